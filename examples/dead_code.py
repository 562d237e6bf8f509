"""Report Python definitions that nothing else mentions: `python examples/dead_code.py [DIR]`.

`ast` finds functions, classes, methods and constants (names in capitals, on a module's top level) in the files that
`files(type="py")` lists. One rg searches all files, Python or not, for these names. A name that occurs only in its own
definition is reported. The exit code is 0 if there is none, 1 if there are some, 2 if a file could not be read.

The report needs a check by hand:
- It includes definitions that are used only through a name made at run time (`getattr(self, f"visit_{kind}")`), a
  decorator or a framework. Therefore it omits dunder names and `test…`, and marks decorated definitions.
- It misses definitions whose name occurs in a comment, a string, `__all__`, its own body (recursion), or another
  definition: each mention counts as a use.
- Files that .gitignore excludes are not read.
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

DEMO = "demo"
ANY_NAME = r"\b[^\W\d]\w*\b"
MAX_PATTERN_BYTES = 100_000  # Linux allows 128 KiB for an argument; Windows allows 32 KiB for all arguments.
MAX_PATTERN_BYTES_ON_WINDOWS = 20_000


class Definition(NamedTuple):
    """Definition of a name, with its position and kind."""

    path: str
    line: int
    kind: str
    name: str


def definitions(path: str, tree: ast.Module) -> Iterator[Definition]:
    """Yield the definitions of a module, except names that Python or a test runner calls: `__…__` and `test…`."""
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


def parse(folder: str, errors: list[str]) -> Iterator[Definition]:
    """Yield the definitions of all Python files, and add files that cannot be parsed to `errors`."""
    for path in sync.files(cwd=folder, type="py", follow=False, sort="path"):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # such as those about invalid escapes
                tree = ast.parse(Path(folder, path).read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            errors.append(f"{path}: {error}")
        else:
            yield from sorted(definitions(path, tree), key=lambda one: one.line)


def mentions(folder: str, names: set[str]) -> Counter[str]:
    """Count the occurrences of each name as a whole word in all files, with one rg.

    The pattern consists of the names if they fit into one argument. Otherwise it matches any name.
    """
    pattern = rf"\b(?:{'|'.join(sorted(names))})\b"
    if len(pattern.encode()) > (MAX_PATTERN_BYTES_ON_WINDOWS if os.name == "nt" else MAX_PATTERN_BYTES):
        pattern = ANY_NAME
    found = sync.search(pattern, cwd=folder, follow=False)
    return Counter(hit.match for match in found for hit in match.submatches if hit.match in names)


def dead(folder: str, errors: list[str]) -> Iterator[Definition]:
    """Return the definitions whose name occurs only in definitions."""
    defined = list(parse(folder, errors))
    times = Counter(one.name for one in defined)
    written = mentions(folder, set(times)) if times else times
    return (one for one in defined if written[one.name] == times[one.name])


def main() -> int:
    """Print the report, and errors on stderr."""
    parser = argparse.ArgumentParser(description="Report Python definitions that nothing else mentions.")
    parser.add_argument("folder", nargs="?", default=DEMO)
    errors: list[str] = []
    try:
        lines = [f"{one.path}:{one.line}: {one.kind} {one.name}" for one in dead(parser.parse_args().folder, errors)]
    except (OSError, RipwrapError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for line in lines:
        print(os.fsencode(line).decode(errors="replace"))
    for line in errors:
        print(f"not read: {os.fsencode(line).decode(errors='replace')}", file=sys.stderr)
    return 2 if errors else 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
