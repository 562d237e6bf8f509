"""Report Python definitions that nothing else mentions: `python examples/dead_code.py [DIR]`.

`ast` finds functions, classes, methods and constants (names in capitals, on a module's top level) in the files that
`files(type="py")` lists. One rg finds mentions of their names in all files, Python or not. A name that occurs only
where it is defined is reported. Exit 0 if there is none, 1 if there are some, 2 if a file could not be read.

The report is a list of suspects:
- A definition that is used through a name made at run time (`getattr(self, f"visit_{kind}")`), a decorator or a
  framework is reported although it is used. So dunder names and `test…` are left out, and "decorated" is printed.
- Any mention counts as a use, also in a comment, a string, `__all__`, the definition itself (recursion), or of another
  definition with the same name. So more may be unused than is reported.
- Files that .gitignore names are not read.
"""

import argparse
import ast
import os
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ripwrap import RipwrapError, sync

DEMO = Path(__file__).parent.parent / "docs" / "demo"
ANY_NAME = r"\b[^\W\d]\w*\b"
MAX_PATTERN_BYTES = 100_000  # Linux takes 128 KiB in one argument; Windows takes 32 in all.
MAX_PATTERN_BYTES_ON_WINDOWS = 20_000


class Definition(NamedTuple):
    """A definition: its place, name and kind."""

    path: str
    line: int
    kind: str
    name: str


def definitions(path: str, tree: ast.Module) -> Iterator[Definition]:
    """Yield the definitions of a module, except those that are called by a naming convention."""
    methods = {id(one) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for one in node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            kind = "class" if isinstance(node, ast.ClassDef) else "method" if id(node) in methods else "function"
            decorated = "decorated " if node.decorator_list else ""
            if not re.match(r"__.*__$|test", node.name, re.IGNORECASE):
                yield Definition(path, node.lineno, decorated + kind, node.name)
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        for name in (target for target in targets if isinstance(target, ast.Name) and target.id.isupper()):
            yield Definition(path, name.lineno, "constant", name.id)


def parse(folder: str, complaints: list[str]) -> Iterator[Definition]:
    """Return the definitions of each Python file, and print an error for each that does not parse."""
    for path in sync.files(cwd=folder, type="py", follow=False, sort="path"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about invalid escapes and the like
                tree = ast.parse(Path(folder, path).read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            complaints.append(f"{path}: {error}")
        else:
            yield from sorted(definitions(path, tree), key=lambda one: one.line)


def mentions(folder: str, names: set[str]) -> Counter[str]:
    """Count how often each name occurs as a whole word in all files, with one rg.

    The pattern has these names while they fit in an argument, and matches every name if they do not.
    """
    pattern = rf"\b(?:{'|'.join(sorted(names))})\b"
    if len(pattern.encode()) > (MAX_PATTERN_BYTES_ON_WINDOWS if os.name == "nt" else MAX_PATTERN_BYTES):
        pattern = ANY_NAME
    found = sync.search(pattern, cwd=folder, follow=False)
    return Counter(hit.match for match in found for hit in match.submatches if hit.match in names)


def dead(folder: str, complaints: list[str]) -> Iterator[Definition]:
    """Return the definitions whose name occurs exactly as often as it is defined."""
    defined = list(parse(folder, complaints))
    times = Counter(one.name for one in defined)
    written = mentions(folder, set(times)) if times else times
    return (one for one in defined if written[one.name] == times[one.name])


def main() -> int:
    """Print the report, and errors on stderr."""
    parser = argparse.ArgumentParser(description="Report Python definitions that nothing else mentions.")
    parser.add_argument("folder", nargs="?", default=str(DEMO))
    complaints: list[str] = []
    try:
        lines = [
            f"{one.path}:{one.line}: {one.kind} {one.name}" for one in dead(parser.parse_args().folder, complaints)
        ]
    except (OSError, RipwrapError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for line in lines:
        print(os.fsencode(line).decode(errors="replace"))
    for line in complaints:
        print(f"not read: {os.fsencode(line).decode(errors='replace')}", file=sys.stderr)
    return 2 if complaints else 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
