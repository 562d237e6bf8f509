"""Compare `outline()` with Python's `ast` and with universal-ctags, on directories of real source.

    python benchmarks/outlines.py DIRECTORY... [--files=300]

For each language, `found` is the share of the definitions of the reference that the outline has, by name and line, and
`ends` is the share of these that end on the same line. For Python, the reference is `ast`; for the other languages it
is `ctags`, with the kinds in `KINDS`, and only files that ctags reads are compared. A line that ctags reports for
another name is printed with `--differences`.
"""

import argparse
import ast
import json
import re
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ripwrap._code.outline import Outline
from ripwrap._code.treesitter.worker import Source, shared_reader

KINDS = {
    "Java": "class enum interface method annotation",
    "Go": "func struct interface type methodSpec",
    "PHP": "class function interface trait method",
    "JavaScript": "class function method generator",
    "TypeScript": "class function interface enum method namespace generator",
    "C#": "class struct interface enum method",
    "Ruby": "class module method singletonMethod",
    "Rust": "function struct enum interface module method macro typedef implementation",
    "C": "function struct union enum",
    "C++": "function class struct union enum namespace",
    "Kotlin": "class interface object method",
}
"""Kinds of ctags that are definitions of an outline, by language."""

_SUFFIXES = {
    "Python": "py",
    "Java": "java",
    "Go": "go",
    "PHP": "php",
    "JavaScript": "js mjs cjs",
    "TypeScript": "ts mts cts",
    "C#": "cs",
    "Ruby": "rb",
    "Rust": "rs",
    "C": "c",
    "C++": "cpp cc cxx hpp",
    "Kotlin": "kt kts",
}
_LANGUAGES = {f".{suffix}": language for language, suffixes in _SUFFIXES.items() for suffix in suffixes.split()}


class Known(NamedTuple):
    """Definition of a reference: the last part of its name, and its first and last line; the last may be unknown."""

    name: str
    line: int
    end: int | None


@dataclass
class Figures:
    """Numbers of definitions of a language."""

    files: int = 0
    known: int = 0
    found: int = 0
    with_end: int = 0
    ends: int = 0
    differences: list[str] = field(default_factory=list[str])

    def row(self, language: str) -> str:
        """Return a row of a table."""
        found = self.found / self.known if self.known else 1.0
        ends = self.ends / self.with_end if self.with_end else 1.0
        return f"| {language} | {self.files} | {self.known} | {found:.4f} | {ends:.4f} |"


def last_part(name: str) -> str:
    """Return the last part of a qualified name, without a receiver, quotes or type arguments."""
    if "operator" in name:
        return "operator"
    return re.sub(r"<.*", "", name).replace("::", ".").split(".")[-1].strip("`'\"#~ ").removesuffix("=")


def of_ast(text: str) -> list[Known]:
    """Return the functions and classes that `ast` finds."""
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    return [Known(node.name, node.lineno, node.end_lineno) for node in nodes]


def of_ctags(path: Path, language: str) -> list[Known]:
    """Return the definitions that ctags finds in a file."""
    argv = ["ctags", "--output-format=json", "--fields=+neKz", f"--language-force={language}", "--sort=no", "-f", "-"]
    printed = subprocess.run([*argv, str(path)], capture_output=True, check=False).stdout.decode("utf-8", "replace")
    tags = (json.loads(line) for line in printed.splitlines())
    kinds = KINDS[language].split()
    return [
        Known(last_part(tag["name"]), tag["line"], tag.get("end"))
        for tag in tags
        if tag.get("kind") in kinds and not tag["name"].startswith(("__anon", "anonymous", "AnonymousFunction"))
    ]


def compare(path: Path, language: str, text: str, outline: Outline, figures: Figures) -> None:
    """Add the figures of a file; a file that the reference cannot read is left out."""
    try:
        known = of_ast(text) if language == "Python" else of_ctags(path, language)
    except (SyntaxError, ValueError):
        return
    sections: dict[tuple[str, int], list[int]] = defaultdict(list)
    for section in outline.sections():
        sections[last_part(section.name), section.line].append(section.end_line)
    figures.files += 1
    for one in known:
        figures.known += 1
        ends = sections.get((one.name, one.line))
        if ends is None:
            figures.differences.append(f"{path}:{one.line}: {one.name} is missing")
            continue
        figures.found += 1
        if one.end is not None:
            figures.with_end += 1
            figures.ends += one.end in ends
            if one.end not in ends:
                figures.differences.append(f"{path}:{one.line}: {one.name} ends in line {one.end}, not {ends}")


def files_of(folders: Sequence[Path], most: int) -> Iterator[tuple[str, Path]]:
    """Yield at most `most` files of each language, spread over all of them."""
    by_language: dict[str, list[Path]] = defaultdict(list)
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if (language := _LANGUAGES.get(path.suffix)) and path.is_file() and path.stat().st_size < 500_000:
                by_language[language].append(path)
    for language, paths in by_language.items():
        step = max(len(paths) // most, 1)
        yield from ((language, path) for path in paths[::step][:most])


def main() -> None:
    """Print a row for each language."""
    parser = argparse.ArgumentParser(description="Compare outlines with ast and ctags.")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--files", type=int, default=300)
    parser.add_argument("--differences", type=int, default=0)
    given = parser.parse_args()
    if shutil.which("ctags") is None:
        raise SystemExit("universal-ctags is not installed; apt-get install universal-ctags")
    table: dict[str, Figures] = defaultdict(Figures)
    for language, path in files_of(given.folders, given.files):
        try:
            text = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        (found,) = shared_reader().outlines_of([Source(path.name, text)])
        compare(path, language, text, found.outline, table[language])
    print("| language | files | definitions | found | ends |\n|---|---|---|---|---|")
    for language, figures in sorted(table.items()):
        print(figures.row(language))
        print(*figures.differences[: given.differences], sep="\n")


if __name__ == "__main__":
    main()
