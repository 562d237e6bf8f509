"""Render matches, diffs and trees as texts of rich, in the colors of rg and git; no I/O.

Only this module needs rich, which is optional.
"""

from collections.abc import Iterable, Sequence

from rich.console import Group
from rich.text import Text

from ripwrap._display.html import Gaps
from ripwrap._text import shown
from ripwrap.models import Context, Match, TreeEntry


def _text(line: Match | Context) -> Text:
    """Return the lines of a match or context; with `replace`, they have the replacements."""
    if not isinstance(line, Match) or any(hit.replacement is not None for hit in line.submatches):
        return _shown(line.replaced() if isinstance(line, Match) else line.lines)
    # The text is built from pieces because escapes are longer than the control characters that they replace.
    text, done = Text(), 0
    for start, end in line.spans():
        text.append(_shown(line.lines[done:start])).append(_shown(line.lines[start:end], "bold red"))
        done = end
    return text.append(_shown(line.lines[done:]))


def _shown(text: str, style: str = "") -> Text:
    return Text(shown(text, lines=True), style)


def grouped(message: str, files: Iterable[tuple[str, Iterable[Match | Context]]]) -> Group:
    """Return a rich `Group` that shows the path and the lines of each file, and then `message`."""
    blocks: list[Text] = []
    for path, lines in files:
        gaps = Gaps()
        blocks.append(Text(shown(path), "magenta"))
        for line in lines:
            if gaps.before(line):
                blocks.append(Text("--"))
            text = _text(line)
            text.remove_suffix("\n")
            mark = ":" if isinstance(line, Match) else "-"
            for number, one in enumerate(text.split("\n", allow_blank=True), line.line_number or 0):
                # With `no_line_number`, rg also prints the line without a number.
                blocks.append(one if line.line_number is None else Text.assemble((str(number), "green"), mark, one))
        blocks.append(Text())
    return Group(*blocks, _shown(message, "dim"))


def colored_diffs(diffs: Iterable[str], message: str) -> Group:
    """Return the unified diffs of files, with git's colors, and a dimmed message below them."""
    return Group(*map(colored_diff, diffs), Text(message, "dim"))


def colored_diff(diff: str) -> Text:
    """Return the unified diff of one file, with the colors that git uses."""
    styles = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}
    lines = shown(diff, lines=True).removesuffix("\n").split("\n")
    return Text("\n").join(
        Text(line, "bold" if number < 2 else styles.get(line[:1], "")) for number, line in enumerate(lines)
    )


def tree(entries: Sequence[TreeEntry]) -> Text:
    """Return the lines of a tree. Directories are bold, and lines that count omitted entries are dimmed."""
    styled = (Text(str(entry), "bold blue" if entry.is_dir else "dim" if entry.truncated else "") for entry in entries)
    return Text("\n").join(styled)
