"""Tool `resolve`: find the line of an anchor, such as `a.py#42·k7q`, in the file as it is now."""

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypeAlias

from ripwrap._text import as_utf8, plural, shown_path
from ripwrap.workspace.arguments import (
    HASHED_CHARS,
    SEPARATOR,
    Anchor,
    ToolArguments,
    line_hash,
    parse_arguments,
    parse_place,
)
from ripwrap.workspace.dispatch import ToolMethods
from ripwrap.workspace.redact import MAX_SECRET_CHARS
from ripwrap.workspace.results import ToolResult
from ripwrap.workspace.sandbox import RootLocation
from ripwrap.workspace.scope import Settings
from ripwrap.workspace.shown_lines import snippet
from ripwrap.workspace.text_files import Deadline, open_text, skip_line
from ripwrap.workspace.tool import ToolCall, ToolSpec

AnchorState: TypeAlias = Literal["unchanged", "moved", "gone"]

_MAX_OTHERS = 20
"""Maximum number of other lines with the same hash whose numbers an answer gives."""


class ResolveArguments(ToolArguments, frozen=True):
    """Arguments of `resolve()`."""

    anchor: str


class ResolveResult(ToolResult, frozen=True):
    """Result of `resolve()`.

    Attributes:
        anchor: Anchor, such as `42·k7q`.
        state: `unchanged` if the line of the anchor still has the hash, `moved` if another line has the hash, otherwise
            `gone`.
        line: Current number of the line; `None` if it is `gone`. If it `moved` and several lines have the hash, the
            number of the line nearest to the anchor.
        text: Current text of the line, cut if it is long.
        others: If the line `moved`, numbers of further lines with the hash: at most 20, the nearest first.
    """

    anchor: str
    state: AnchorState
    line: int | None = None
    text: str = ""
    others: tuple[int, ...] = ()

    def _body(self) -> Iterator[str]:
        if self.line is not None:
            yield f"File: {shown_path(self.path)}"
            hashed = self.anchor.partition(SEPARATOR)[2]
            yield f"  {self.line}{SEPARATOR}{hashed}: {self.text}".rstrip()


class _AnchorLines(NamedTuple):
    """Lines of a file that have the hash of an anchor."""

    lines: list[tuple[int, str]]
    matching: int
    total: int


async def run_resolve(call: ToolCall, arguments: ResolveArguments) -> ResolveResult:
    """Find the line of an anchor: a line number and a hash of the line, after the path of the file."""
    run, settings = call.run, call.settings
    path, anchor = parse_place(arguments.anchor)
    locate = settings.sandbox.locate_file
    location = await run.call(lambda: locate(path, "pass an anchor with the path of a file"))
    found = await run.call(lambda: _find(settings, location, anchor))
    line, text = found.lines[0] if found.lines else (None, "")
    return ResolveResult(
        root=as_utf8(location.cwd),
        path=location.name,
        anchor=str(anchor),
        state="gone" if line is None else "unchanged" if line == anchor.line else "moved",
        line=line,
        text=snippet(text, 1, settings.max_line),
        others=tuple(number for number, _ in found.lines[1:]),
        message=_message(anchor, found),
    )


def _message(anchor: Anchor, found: _AnchorLines) -> str:
    if not found.lines:
        has = "is gone" if anchor.line > found.total else "changed or is gone"
        much = f"the file has {plural(found.total, 'line')}, none of them with the hash {anchor.hash}"
        return f"Line {anchor.line} {has}: {much}. Search again."
    line = found.lines[0][0]
    if line == anchor.line:
        return f"Line {line} is unchanged."
    if found.matching == 1:
        return f"Line {anchor.line} moved to line {line}."
    numbers = ", ".join(str(number) for number, _ in found.lines)
    more = " and others" if found.matching > len(found.lines) else ""
    return (
        f"Line {anchor.line} moved, but {found.matching} lines have the hash {anchor.hash}: {numbers}{more}. "
        f"Line {line} is the nearest; read the lines around it to be sure."
    )


def _find(settings: Settings, location: RootLocation, anchor: Anchor) -> _AnchorLines:
    """Return the line of an anchor if it is unchanged; otherwise the nearest lines with the hash of the anchor."""
    deadline = Deadline(settings.timeout, "the file was not read")
    lines: list[tuple[int, str]] = []
    count = number = 0
    with open_text(settings, location, "resolve") as (text, _, redactor):
        most = HASHED_CHARS + 1 + (MAX_SECRET_CHARS if redactor else 0)
        while piece := text.readline(most):  # the part of a line that is hashed and shown
            if not piece.endswith("\n"):
                skip_line(text, deadline)
            deadline.check_sometimes()
            number += 1
            if redactor is not None:
                deadline.check()  # masking a thousand long lines may take many seconds
                piece = redactor(piece, number).text
            if line_hash(piece) == anchor.hash:
                if number == anchor.line:
                    return _AnchorLines([(number, piece)], 1, number)
                count += 1
                lines.append((number, piece))
                if len(lines) > 2 * _MAX_OTHERS:  # a file may have a million blank lines
                    lines = _nearest(lines, anchor)
    return _AnchorLines(_nearest(lines, anchor), count, number)


def _nearest(lines: list[tuple[int, str]], anchor: Anchor) -> list[tuple[int, str]]:
    return sorted(lines, key=lambda line: (abs(line[0] - anchor.line), line[0]))[: _MAX_OTHERS + 1]


RESOLVE = ToolSpec("resolve", ResolveArguments, ResolveResult, run_resolve, title="Find a line again", needs="anchors")


class ResolveMethods(ToolMethods, offers=(RESOLVE,)):
    """Methods of `resolve`."""

    async def resolve(self, anchor: str) -> str:
        """Find the line of an anchor in the file as it is now.

        Answers show lines with anchors: in `42·k7q: …`, 42 is the number of the line, and k7q a hash of its text. Pass
        the path and the anchor before you edit a line that you read some time ago. The answer says that the line is
        unchanged, has moved to another number, or is gone.

        Args:
            anchor (str): Path of the file, `#` and the anchor, e.g. `src/till.py#42·k7q`.
        """
        return self.text(await self.resolve_result(anchor))

    async def resolve_result(self, anchor: str) -> ResolveResult:
        """Return the answer of `resolve()` as a `ResolveResult`.

        If the line with the anchor's number has a different hash now, the nearest line with the anchor's hash is
        returned as the moved line. If no line has that hash, the `state` of the result is `gone`. Two different lines
        have the same hash with a probability of 1 in 32,768.
        """
        return await run_resolve(self._tools.begin(), parse_arguments(ResolveArguments, {"anchor": anchor}))
