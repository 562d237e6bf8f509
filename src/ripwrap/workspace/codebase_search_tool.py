"""Tool `codebase_search`: its arguments, result and methods; the search is in `workspace/codebase_search.py`."""

from collections.abc import Iterator
from typing import Literal, TypeAlias, Unpack

from typing_extensions import TypedDict

from ripwrap._text import plural, shown, shown_path
from ripwrap.models import Model
from ripwrap.workspace.anchors import labels
from ripwrap.workspace.arguments import Number, ToolArguments
from ripwrap.workspace.dispatch import ToolMethods
from ripwrap.workspace.results import ToolResult
from ripwrap.workspace.tool import ToolSpec

Ranking: TypeAlias = Literal["hybrid", "index", "files"]


class CodebaseSearchOptions(TypedDict, total=False):
    """Options of `codebase_search()` besides `query` and `path`."""

    limit: int


class CodebaseSearchArguments(ToolArguments, frozen=True):
    """Arguments of `codebase_search()`."""

    query: str
    path: str = "."
    limit: Number = 30


class CodePlace(Model, frozen=True):
    """Lines of code that answer a question.

    Attributes:
        file: Path of the file.
        start_line: Number of the first line, from 1.
        end_line: Number of the last line.
        symbol: Name of the definition that encloses the most relevant line; `None` outside of definitions.
        score: Value that results are sorted by; comparable only within one answer and one root.
        why: Reasons for the score.
        snippet: Text of the lines. If the answer has no room for all lines, only the first lines. `…` marks a place
            where a long line was cut. Blank lines at the end are included; `str()` omits them.
        anchors: Hash of each line of `snippet`, if the workspace has `anchors`; else empty.
    """

    file: str
    start_line: int
    end_line: int
    symbol: str | None = None
    score: float
    why: tuple[str, ...]
    snippet: str
    anchors: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the path, the score and its reasons, then the lines, each with its number."""
        symbol = f" in {shown(self.symbol)}" if self.symbol else ""
        yield f"{shown_path(self.file)}:{self.start_line}-{self.end_line}{symbol}"
        yield f"  score {self.score:.2f}" + (f": {shown('; '.join(self.why))}" if self.why else "")
        texts = self.snippet.split("\n") if self.snippet else []
        left_out = self.end_line - self.start_line + 1 - len(texts)
        while texts and left_out <= 0 and not texts[-1].strip():
            texts.pop()
        for label, text in zip(labels(self.start_line, self.anchors, len(texts)), texts, strict=True):
            yield f"  {label}: {text}".rstrip()
        if left_out > 0:
            yield f"  [{plural(left_out, 'more line')}]"


class CodebaseSearchResult(ToolResult, frozen=True):
    """Result of `codebase_search()`.

    Attributes:
        query: Question or name that was searched.
        ranking: Source of the results: `index` (words in the refreshed index), `hybrid` (words and embeddings in the
            index), or `files` (no index).
        places: Results, the best first. With several indexed roots, results of the roots alternate.
    """

    query: str
    ranking: Ranking
    places: tuple[CodePlace, ...]

    _entries = ("places",)

    def _body(self) -> Iterator[str]:
        for number, place in enumerate(self.places):
            yield from ("",) if number else ()
            yield from place.lines()


CODEBASE_SEARCH = ToolSpec(
    "codebase_search",
    CodebaseSearchArguments,
    CodebaseSearchResult,
    "ripwrap.workspace.codebase_search:run_codebase_search",
    title="Search by question or name",
    aliases=("semantic_search", "search_codebase", "search_code", "code_search"),
    writes="index",
)


class CodebaseSearchMethods(ToolMethods, offers=(CODEBASE_SEARCH,)):
    """Methods of `codebase_search`."""

    async def codebase_search(self, query: str, path: str = ".", *, limit: int = 30) -> str:
        """Find the code that answers a question in words, or that defines a name, the best results first.

        The answer gives for each result its file and lines, the definition around it, the reasons for its rank, and its
        text. Use this if you do not know the names in the code, and grep_content if you do. Hidden files and files that
        .gitignore excludes are left out.

        Args:
            query (str): Words, e.g. `how are cookies stored`, or a name, e.g. `CookieJar`.
            path (str): The directory or file to search; `.` is everything.
            limit (int): Maximum number of results to show; default 30. A file may have several.
        """
        return await self._tools.answer(CODEBASE_SEARCH, locals())

    async def codebase_search_result(
        self, query: str, path: str = ".", **options: Unpack[CodebaseSearchOptions]
    ) -> CodebaseSearchResult:
        """Return the answer of `codebase_search()` as a `CodebaseSearchResult`.

        If the index cannot be used, the files are ranked without the index, and `notes` give the reason. The method
        raises the errors of `grep_content_result()`, and `TimeoutError` if the ranking takes longer than the
        workspace's `timeout`.
        """
        return await self._tools.run(CODEBASE_SEARCH, {"query": query, "path": path, **options})
