"""Compare `outline()` with Python's `ast`, Ruby's own syntax trees and universal-ctags, on directories of real source.

Packages with such source: `apt-get download rust-src libruby3.1` (Rust, Ruby), `npm pack expo-modules-core react-native
rxjs zod express lodash jquery re2` (Kotlin, Swift, TypeScript, JavaScript, C++), and what `site-packages` has.

    python benchmarks/outlines.py DIRECTORY... [--files=300]

For each language, `found` is the share of the definitions of the reference that the outline has, by name and line, and
`ends` is the share of these that end on the same line. For Python, the reference is `ast`, and for Ruby, the trees of
`ruby`, as ctags misjudges its ends. For the other languages it is `ctags`, with the kinds in `KINDS`, without the
tags that `_counts()` leaves out, and only files that ctags reads are compared. ctags has no Swift; there, the
reference is the lines that begin with the keyword of a definition. Differences are printed with `--differences`.
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
    "Swift": "swift",
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
    if re.search(r"\boperator\b", name):
        return "operator"
    name = re.sub(r"(?<!<)<(?![<=\s]).*", "", name).removesuffix("=")
    if name.endswith("`"):
        return name.split("`")[-2]
    found = re.search(r"([\w$]+[?!]?|[^\w\s.]+)\)*$", name)
    return found[1] if found else name


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
    lines = path.read_text("utf-8").split("\n")
    return [
        Known(last_part(tag["name"]), tag["line"], tag.get("end"))
        for tag in tags
        if _counts(language, tag["kind"], tag["name"], lines[tag["line"] - 1])
    ]


def _counts(language: str, kind: str, name: str, line: str) -> bool:
    """Return True for a tag that is a definition by its language, and not by a choice of ctags.

    ctags makes a class of each JavaScript object and of each `a.prototype`, a method of each value that is copied or
    called there, and a function of a call of a function, and it names a function that is a value twice; a method of
    each lambda of Kotlin, and of its parameters; a module of each `mod a;` of Rust, which names a file, and an
    implementation of each `impl` behind a `=`; and of C++, a function of a macro in its type. For an interface of
    TypeScript whose `extends` is on the next line, it gives this line.
    """
    if kind not in KINDS[language].split() or name.startswith(("__anon", "anonymous", "AnonymousFunction")):
        return False
    if language == "JavaScript":
        of_class = re.search(rf"\bclass\s+{re.escape(name)}\b|\b{re.escape(name)}\s*[=:]\s*class\b", line)
        called = re.search(rf"=\s*\(\s*function|\.{re.escape(name)}\.|\]\s*=|\w:\s*function\s+{re.escape(name)}", line)
        made = re.search(rf"\bfunction\b|=>|(?<!\.)\b{re.escape(name)}\s*\(", line)
        return bool((of_class if kind == "class" else made) and not called)
    if language == "TypeScript" and line.lstrip().startswith("extends"):
        return False
    if language == "C++" and kind == "function":
        return not re.search(rf"^decltype|\b{re.escape(name)}\(\w*\)\s*\*?\s*[\w:]+\(", line)
    if language == "Kotlin" and kind == "method":
        return name != "<lambda>" and re.search(r"\bfun\b", line) is not None
    if language == "Rust" and kind == "module":
        return not line.rstrip().endswith(";")
    if language == "Rust" and kind == "implementation":
        implemented = line.partition(" for ")[2] or line
        return re.search(rf"\b{re.escape(name)}\b", implemented) is not None and "=" not in line.partition("impl")[0]
    return True


_RUBY = """
def walk(node, found = [])
  kind = %i[DEFN DEFS CLASS MODULE].include?(node.type)
  name = node.children[node.type == :DEFS ? 1 : 0] if kind
  name = name.children.last if name.is_a?(RubyVM::AbstractSyntaxTree::Node)
  found << [name, node.first_lineno, node.last_lineno].join(" ") if kind
  node.children.each { |one| walk(one, found) if one.is_a?(RubyVM::AbstractSyntaxTree::Node) }
  found
end
puts walk(RubyVM::AbstractSyntaxTree.parse(STDIN.read))
"""


def of_ruby(text: str) -> list[Known]:
    """Return the methods, classes and modules that Ruby itself finds."""
    argv = ["ruby", "--disable=gems", "-W0", "-e", _RUBY]
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SyntaxError(done.stderr)
    rows = (line.split(" ") for line in done.stdout.splitlines())
    return [Known(last_part(name), int(first), int(last)) for name, first, last in rows]


_SWIFT = re.compile(
    r"^[ \t]*(?:(?:@\w+(?:\([^()]*\))?|public|private|internal|fileprivate|open|final|static|class|override|mutating"
    r"|nonisolated|indirect|required|convenience|async)[ \t]+)*"
    r"(?:func|class(?![ \t]+(?:func|var|let)\b)|struct|enum|protocol|extension|actor)[ \t]+(`[^`\n]+`|[A-Za-z_][\w.]*)",
    re.MULTILINE,
)


def of_swift(text: str) -> list[Known]:
    """Return the lines that begin with the keyword of a definition, outside of long comments and strings."""
    long = re.compile(r'/\*.*?\*/|""".*?"""', re.DOTALL)
    text = long.sub(lambda found: "\n" * found[0].count("\n"), text)
    return [Known(last_part(one[1]), text.count("\n", 0, one.start(1)) + 1, None) for one in _SWIFT.finditer(text)]


def compare(path: Path, language: str, text: str, outline: Outline, figures: Figures) -> None:
    """Add the figures of a file; a file that the reference cannot read is left out."""
    try:
        own = {"Python": of_ast, "Ruby": of_ruby, "Swift": of_swift}.get(language)
        known = of_ctags(path, language) if own is None else own(text)
    except (SyntaxError, ValueError):
        return
    sections: dict[tuple[str, int], list[int]] = defaultdict(list)
    for section in outline.sections():
        named = {last_part(section.name)}
        if language == "C++":  # `namespace a::b` is one section, and two tags
            named |= {*re.findall(r"\w+", section.name)}
        if language == "Kotlin" and section.name.endswith("companion object"):
            named = {"Companion"}
        for name in named:
            sections[name, section.line].append(section.end_line)
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
    if missing := [name for name in ("ctags", "ruby") if shutil.which(name) is None]:
        raise SystemExit(f"{', '.join(missing)}: not installed; apt-get install universal-ctags ruby")
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
