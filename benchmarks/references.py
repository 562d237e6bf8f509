"""Compare `references()` with jedi, which infers types, on Python packages that are installed.

    python benchmarks/references.py [PACKAGE]... [--names=60]

For a sample of the functions, classes and methods of each package, the lines that `references()` returns as code are
compared with those of `jedi.Script.get_references()`. Precision is the share of our lines that jedi has, and recall is
the share of jedi's lines that we have, over all names together. jedi leaves out uses whose type it does not infer, so a
line that only we have may be right.
"""

import argparse
import ast
import importlib
import importlib.util
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ripwrap import sync

PACKAGES = ("requests", "jinja2", "click")
LEVELS = {"high": ("high",), "medium or high": ("high", "medium"), "all code": ("high", "medium", "low")}

Lines = set[tuple[str, int]]


class Target(NamedTuple):
    """Definition of a package whose references are compared.

    Attributes:
        path: Path of the file, relative to the directory of the package.
        line: Number of the line of its name, from 1.
        column: Offset of its name in the line.
        name: Name, qualified by the class, or by the module, that has it.
    """

    path: str
    line: int
    column: int
    name: str


@dataclass
class Figures:
    """Numbers of lines for one level of confidence: ours, those of jedi, and those that both have."""

    ours: int = 0
    theirs: int = 0
    both: int = 0

    def add(self, ours: Lines, theirs: Lines) -> None:
        """Add the lines of one name."""
        self.ours += len(ours)
        self.theirs += len(theirs)
        self.both += len(ours & theirs)

    @property
    def precision(self) -> float:
        """Share of our lines that jedi has."""
        return self.both / self.ours if self.ours else 1.0

    @property
    def recall(self) -> float:
        """Share of jedi's lines that we have."""
        return self.both / self.theirs if self.theirs else 1.0


@dataclass
class Comparison:
    """Comparison of one package."""

    package: str
    names: int = 0
    levels: dict[str, Figures] = field(default_factory=lambda: {level: Figures() for level in LEVELS})

    def rows(self) -> Iterator[str]:
        """Yield a row of the table for each level of confidence."""
        for level, one in self.levels.items():
            yield (
                f"| {self.package} | {self.names} | {level} | {one.ours} | {one.theirs} | {one.precision:.2f} "
                f"| {one.recall:.2f} |"
            )


def copied(package: str, folder: Path) -> Path:
    """Copy the sources of an installed package, and return the directory that has it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{package} is not installed, or is no package")
    shutil.copytree(spec.submodule_search_locations[0], folder / package, ignore=shutil.ignore_patterns("*.pyc"))
    return folder


def targets(root: Path) -> Iterator[Target]:
    """Yield the functions, classes and methods of a package, without those with two underscores."""
    for path in sorted(root.rglob("*.py")):
        text = path.read_text("utf-8")
        lines = text.split("\n")
        for owner, node in _definitions(ast.parse(text).body, path.stem):
            line = next(at for at in range(node.lineno, node.lineno + 3) if node.name in lines[at - 1])
            if not node.name.startswith("__"):
                yield Target(
                    path.relative_to(root).as_posix(), line, lines[line - 1].index(node.name), f"{owner}.{node.name}"
                )


def _definitions(
    nodes: Sequence[ast.stmt], owner: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield owner, node
        if isinstance(node, ast.ClassDef):
            yield from _definitions(node.body, node.name)


def compare(package: str, names: int, folder: Path) -> Comparison:
    """Compare the references of a sample of names, evenly spread over the package."""
    jedi: Any = importlib.import_module("jedi")
    root = copied(package, folder)
    every = [*targets(root)]
    sample = every[:: max(len(every) // names, 1)][:names]
    project: Any = jedi.Project(root)
    compared = Comparison(package, len(sample))
    for target in sample:
        script: Any = jedi.Script(path=root / target.path, project=project)
        theirs: Lines = {
            (Path(one.module_path).relative_to(root).as_posix(), one.line)
            for one in script.get_references(target.line, target.column, include_builtins=False)
            if one.module_path and Path(one.module_path).is_relative_to(root)
        }
        found = sync.references(target.name, cwd=root, glob="*.py", limit=None, timeout=None)
        for level, confidences in LEVELS.items():
            ours: Lines = {
                (one.path, one.line)
                for one in (*found.definitions, *found.uses)
                if one.syntax == "code" and one.confidence in confidences
            }
            compared.levels[level].add(ours, theirs)
    return compared


def main() -> None:
    """Print the figures of the packages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", default=PACKAGES)
    parser.add_argument("--names", type=int, default=60)
    given = parser.parse_args()
    print("| package | names | confidence | lines | jedi | precision | recall |\n|---|---|---|---|---|---|---|")
    for package in given.packages:
        with tempfile.TemporaryDirectory() as folder:
            print(*compare(package, given.names, Path(folder).resolve()).rows(), sep="\n", flush=True)


if __name__ == "__main__":
    main()
