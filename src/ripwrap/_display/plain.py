"""Convert matches and their context to plain text, in the form of `grep -n`."""

from collections.abc import Iterable, Iterator

from ripwrap._display.html import Gaps
from ripwrap.models import Context, Match, as_printed


def grep_lines(files: Iterable[tuple[str, Iterable[Match | Context]]]) -> Iterator[str]:
    """Yield `path:line:text` for each matching line, `path-line-text` for context, and `--` between groups.

    Without line numbers, the lines are `path:text` and `path-text`. With `replace`, the text has the replacements.
    As in grep, there are groups only if there is context. A new group begins at a line that does not directly follow
    the previous line, and at a new file if the previous file has lines of context.
    """
    pending_separator = False
    for path, lines in files:
        gaps = Gaps()
        has_context = False
        for line in lines:
            has_context = has_context or isinstance(line, Context)
            if gaps.before(line) or pending_separator:
                yield "--"
            pending_separator = False
            yield from as_printed(line, path)
        pending_separator = has_context
