"""Corpora of needles: descriptions of functions without docstrings, and the functions that they describe."""

import ast
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from retrieval.packages import CACHE, SDISTS, sdist
from retrieval.queries import Corpus, Query

NEEDLES = "needles"
QUERIES = 60
"""Needles of each package."""

FOLDERS = {
    "babel": "babel",
    "celery": "celery",
    "jinja2": "src/jinja2",
    "networkx": "networkx",
    "prompt_toolkit": "src/prompt_toolkit",
    "pyramid": "src/pyramid",
    "scrapy": "scrapy",
    "sqlglot": "sqlglot",
    "tornado": "tornado",
    "trio": "src/trio",
    "urllib3": "src/urllib3",
    "werkzeug": "src/werkzeug",
}
"""Folder of the sources in each source distribution."""
_SKIPPED = ("test", "tests", "_tests", "testing", "*.so", "*.dat")
_WORDS = range(6, 61)
_MIN_LINES = 3
"""Lines of code of a function that counts as a needle, without its docstring."""
_ROLE = re.compile(r":\w+:`~?\.?([^`]*)`")

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def needles() -> Iterator[Corpus]:
    """Yield a corpus for each package.

    Raises:
        UnavailableError: A package cannot be downloaded.
    """
    for name, folder in FOLDERS.items():
        yield needles_of(name, sdist(name) / folder, CACHE / f"{NEEDLES}-{SDISTS[name].replace('==', '-')}")


def needles_of(name: str, sources: Path, copy: Path) -> Corpus:
    """Return a corpus whose queries are first sentences of docstrings, and whose functions lack docstrings.

    A sentence that describes several functions is left out.

    Args:
        name: Name of the package.
        sources: Folder of its modules.
        copy: Folder for the modules without docstrings, reused if it exists.
    """
    found: list[Query] = []
    with tempfile.TemporaryDirectory() as folder:
        unfinished = Path(folder, "copy")
        shutil.copytree(sources, unfinished / sources.name, ignore=shutil.ignore_patterns(*_SKIPPED))
        for file in sorted(unfinished.rglob("*.py")):
            text, described = _without_docstrings(file.read_text("utf-8"))
            file.write_text(text, "utf-8")
            path = file.relative_to(unfinished).as_posix()
            found += [Query(sentence, (path,), NEEDLES, {path: span}) for sentence, span in described]
        if not copy.exists():
            shutil.copytree(unfinished, copy)
    counts = Counter(query.text for query in found)
    return Corpus(f"{NEEDLES}/{name}", copy, evenly([one for one in found if counts[one.text] == 1], QUERIES), NEEDLES)


def evenly(queries: Sequence[Query], number: int) -> tuple[Query, ...]:
    """Return at most `number` queries, at even distances in the list."""
    step = max(len(queries) / number, 1)
    return tuple(queries[int(place * step)] for place in range(min(len(queries), number)))


def _without_docstrings(source: str) -> tuple[str, list[tuple[str, tuple[int, int]]]]:
    """Return a module without the docstrings of its functions, and for each needle its description and its lines."""
    lines = source.split("\n")
    docstrings = [(node, first) for node in _functions(ast.parse(source)) if (first := _docstring(node, lines))]
    gone = {number for _, first in docstrings for number in range(first.lineno, _last(first) + 1)}
    kept, numbers = 0, [0]
    for number in range(1, len(lines) + 1):
        kept += number not in gone
        numbers.append(kept)
    described = [
        (sentence, (numbers[node.lineno], numbers[_last(node)]))
        for node, first in docstrings
        if len((sentence := _description(node)).split()) in _WORDS and _last(node) - _last(first) >= _MIN_LINES
    ]
    return "\n".join(line for number, line in enumerate(lines, 1) if number not in gone), described


def _functions(node: ast.AST) -> Iterator[_Function]:
    """Yield the functions and methods of a module, without those inside of functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _Function):
            yield child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child)


def _docstring(node: _Function, lines: list[str]) -> ast.Expr | None:
    """Return the docstring of a function that has other statements; `None` if it shares a line with one of them."""
    if ast.get_docstring(node) is None or len(node.body) == 1:
        return None
    first, second = node.body[:2]
    assert isinstance(first, ast.Expr)
    alone = node.lineno < first.lineno and second.lineno > _last(first)
    return first if alone and not lines[first.lineno - 1].encode()[: first.col_offset].strip() else None


def _description(node: _Function) -> str:
    """Return the first sentence of a docstring, without the marks of reStructuredText."""
    paragraph = " ".join((ast.get_docstring(node) or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s", _ROLE.sub(r"\1", paragraph).replace("`", ""))[0]


def _last(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno
