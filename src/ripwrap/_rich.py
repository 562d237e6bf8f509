"""Models to what a rich console prints: headings, line numbers and hits in rg's colours."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group
from rich.text import Text

from ripwrap._text import shown
from ripwrap.models import Context, Match, TreeEntry
from ripwrap.render import Gaps


def heading(path: str) -> Text:
    """The line above a file's lines."""
    return Text(shown(path), "magenta")


def numbered_lines(line: Match | Context) -> Iterator[Text]:
    """The lines of a message, each with its number, as `replace` would leave them."""
    text = _text(line)
    text.remove_suffix("\n")
    mark = ":" if isinstance(line, Match) else "-"
    for offset, one in enumerate(text.split("\n", allow_blank=True)):
        number = "" if line.line_number is None else str(line.line_number + offset)
        yield Text.assemble((number, "green"), mark, one)


def _text(line: Match | Context) -> Text:
    if not isinstance(line, Match) or any(hit.replacement is not None for hit in line.submatches):
        return Text(line.replaced() if isinstance(line, Match) else line.lines)
    # Put together of pieces, because rich takes control characters out, and a place in the text would be another.
    text, done = Text(), 0
    for start, end in line.spans():
        text.append(line.lines[done:start]).append(line.lines[start:end], "bold red")
        done = end
    return text.append(line.lines[done:])


def grouped(message: str, files: Iterable[tuple[str, Iterable[Match | Context]]]) -> Group:
    """For each file its path and its lines, then the message."""
    blocks: list[Text] = []
    for path, lines in files:
        gaps = Gaps()
        blocks.append(heading(path))
        for line in lines:
            if gaps.before(line):
                blocks.append(Text("--"))
            blocks += numbered_lines(line)
        blocks.append(Text())
    return Group(*blocks, Text(message, "dim"))


def tree(entries: Sequence[TreeEntry]) -> Text:
    """A tree's lines, directories in bold, what was cut pale."""
    styled = (
        Text(shown(str(entry)), "bold blue" if entry.is_dir else "dim" if entry.truncated else "") for entry in entries
    )
    return Text("\n").join(styled)
