"""Queries with the files that answer them, from a folder of annotations, and the corpora that they are run on.

The corpus of a repository is the directory in its package on PyPI or npm that the annotations name as root.
"""

import ast
import json
import re
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from retrieval.packages import CACHE, NPM, WHEELS, UnavailableError, package
from ripwrap._code.enclosing import LineSpan, definition_at
from ripwrap._code.treesitter.worker import read_outline

_SKIPPED_FOLDERS = frozenset({"test", "tests", "idle_test", "site-packages", "__pycache__"})
LIBRARY = "cpython"
GIVEN = "given"
"""Name of the set of annotated queries."""
DOCSTRINGS = "docstrings"
"""Name of a second set of queries, so that ranking is not tuned to the first set only; "all" does not include it."""
_DOCSTRING_QUERIES = 150
_MIN_WORDS = 4
_SKIPPED_PATTERNS = ("site-packages", "__pycache__", "config-*", "lib-dynload", "*.so", "*.a", "*.o")


SYMBOL = "symbol"
"""Category of queries that are the name of a definition."""


@dataclass(frozen=True)
class Query:
    """Query whose answers are known.

    Attributes:
        text: Text of the query.
        answers: Relevant files, relative to the root of the corpus, the best first.
        category: Kind of the query in the annotations, such as "symbol".
        lines: First and last relevant line, by path, for files whose lines are annotated.
    """

    text: str
    answers: tuple[str, ...]
    category: str
    lines: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


@dataclass(frozen=True)
class Corpus:
    """Folder with the queries to run in it.

    Attributes:
        name: Name in the table.
        root: Path of the folder.
        queries: Queries whose answers are in the folder.
        check: Name of the set of queries, which may have several corpora.
    """

    name: str
    root: Path
    queries: tuple[Query, ...]
    check: str = GIVEN


def corpora(folder: Path) -> Iterator[Corpus]:
    """Yield the corpora of a folder of annotations; skip repositories without a known package, with a line on stderr.

    Raises:
        UnavailableError: A package cannot be downloaded, or lacks an annotated file.
    """
    for repository in json.loads((folder / "repos.json").read_text()):
        name, root = repository["name"], PurePosixPath(repository["benchmark_root"])
        annotations = folder / f"{name}.json"
        if not annotations.exists() or (name not in WHEELS and name not in NPM):
            print(f"SKIPPED: {name}: its package is not known", file=sys.stderr)
            continue
        queries = tuple(_parse_query(one, root) for one in json.loads(annotations.read_text()))
        # A wheel has the package at its top level, even if the repository has it in another folder.
        folder_of_package = package(name) / (root.name if name in WHEELS else root)
        yield _follow_definitions(_check_answers(Corpus(name, folder_of_package, queries)))
    lines = (folder / f"{LIBRARY}.tsv").read_text().splitlines()
    annotated = (line.split("\t") for line in lines if line)
    yield _check_answers(
        Corpus(LIBRARY, _library(), tuple(Query(text, tuple(files.split()), "library") for text, files in annotated))
    )
    yield docstrings(_library(), CACHE / f"{DOCSTRINGS}-{sys.version_info.major}.{sys.version_info.minor}")


def docstrings(library: Path, copy: Path) -> Corpus:
    """Return a corpus whose queries are first sentences of module docstrings, and whose modules lack these docstrings.

    Args:
        library: Folder of the modules.
        copy: Folder for the modules without docstrings, reused if it exists.
    """
    queries: list[Query] = []
    with tempfile.TemporaryDirectory() as folder:
        unfinished = Path(folder, "copy")
        for file in sorted(library.rglob("*.py")):
            path = file.relative_to(library)
            if _SKIPPED_FOLDERS.isdisjoint(path.parts[:-1]):
                sentence, text = _without_docstring(file.read_bytes())
                target = unfinished / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(text)
                if len(sentence.split()) >= _MIN_WORDS and path.name != "__init__.py":
                    queries.append(Query(sentence, (path.as_posix(),), DOCSTRINGS))
        if not copy.exists():
            shutil.copytree(unfinished, copy)
    step = max(len(queries) / _DOCSTRING_QUERIES, 1)
    chosen = {int(number * step): None for number in range(min(len(queries), _DOCSTRING_QUERIES))}
    return Corpus(DOCSTRINGS, copy, tuple(queries[number] for number in chosen), DOCSTRINGS)


def _without_docstring(raw: bytes) -> tuple[str, bytes]:
    """Return the first sentence of a module's docstring, empty if it has none, and the module without the docstring."""
    try:
        first = next(iter(ast.parse(raw).body), None)
    except (SyntaxError, ValueError):  # the library has invalid modules, which test the parser
        return "", raw
    match first:
        case ast.Expr(value=ast.Constant(value=str(docstring))):
            lines = raw.splitlines(keepends=True)
            rest = lines[: first.lineno - 1] + lines[first.end_lineno :]
            paragraph = " ".join(docstring.strip().split("\n\n")[0].split())
            return re.split(r"(?<=[.!?])\s", paragraph)[0], b"".join(rest)
        case _:
            return "", raw


def _parse_query(annotation: dict[str, Any], root: PurePosixPath) -> Query:
    answers: dict[str, tuple[int, int] | None] = {}
    for one in (*annotation["relevant"], *annotation["secondary"]):
        path = PurePosixPath(one if isinstance(one, str) else one["path"]).relative_to(root)
        answers[str(path)] = None if isinstance(one, str) else (one["start_line"], one["end_line"])
    lines = {path: span for path, span in answers.items() if span is not None}
    return Query(annotation["query"], tuple(answers), annotation["category"], lines)


def _check_answers(corpus: Corpus) -> Corpus:
    files = {file for query in corpus.queries for file in query.answers}
    if missing := sorted(file for file in files if not (corpus.root / file).is_file()):
        raise UnavailableError(f"{corpus.name} has no {', '.join(missing)} in {corpus.root}")
    return corpus


def _follow_definitions(corpus: Corpus) -> Corpus:
    """Return the corpus with the relevant lines of names moved to the lines that the packages have.

    Lines are annotated in a revision of the repository, and the package may be newer. The annotated lines of a name
    begin with its definition, so as many lines from that definition on are relevant in the package.
    """

    def followed(query: Query) -> Query:
        if query.category != SYMBOL:
            return query
        lines: dict[str, tuple[int, int]] = {}
        for path, (first, last) in query.lines.items():
            defined, whole = find_definition(corpus.root / path, query.text)
            lines[path] = (defined, min(defined + last - first, whole.last))
        return replace(query, lines=lines)

    return replace(corpus, queries=tuple(map(followed, corpus.queries)))


def find_definition(file: Path, name: str) -> tuple[int, LineSpan]:
    """Return the number of the line that defines a name, and all lines of the definition, with its decorators.

    Args:
        file: File with the definition.
        name: Name, qualified by the definitions around it, as in `Shop.add`.

    Raises:
        UnavailableError: The file has no such definition, or several.
    """
    lines = file.read_text("utf-8").split("\n")
    outline = read_outline(file.name, lines).outline
    sections = (outline.enclosing(number) for number in range(1, len(lines) + 1))
    found = {section.line for section in sections if section is not None and section.name == name}
    if len(found) != 1:
        raise UnavailableError(f"{file} has {len(found)} definitions of {name}, expected 1")
    (line,) = found
    at = definition_at(outline, LineSpan(line, line))
    if at is None or at[0].name != name:
        raise UnavailableError(f"{file} defines {name} in line {line} together with another name")
    return line, at[1]


def _library() -> Path:
    """Return the folder of a copy of this Python's standard library, without installed packages; make it if missing."""
    version = ".".join(map(str, sys.version_info[:3]))
    stored = CACHE / f"{LIBRARY}-{version}"
    if not stored.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            copied = Path(folder, "copied")
            shutil.copytree(sysconfig.get_path("stdlib"), copied, ignore=shutil.ignore_patterns(*_SKIPPED_PATTERNS))
            copied.rename(stored)
    return stored
