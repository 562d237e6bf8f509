"""Keep secrets masked in a preview of edits: refuse edits that touch a mask or unmask a secret, and mask the diff.

Masks are found in the old lines. If an edit removed the text by which a rule recognises a secret, such as a variable's
name or the first line of a private key, then the new lines would show the secret. So the new lines are masked as well,
and a file is left out unless each secret is still masked in them. The same text is checked, shown and written.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO

from ripwrap._edits.planning import FileChange
from ripwrap.models import Span
from ripwrap.workspace.redact import MAX_SCANNED_BYTES, KeyLines, Redaction, key_lines


@dataclass(slots=True)
class EditMasks:
    """Masks of the files of a plan."""

    redact: Redaction
    check: Callable[[], object] | None = None
    _keys: dict[str, tuple[KeyLines, KeyLines]] = field(default_factory=dict[str, tuple[KeyLines, KeyLines]])

    def why_refused(self, path: str, text: bytes, changes: Sequence[FileChange]) -> str:
        """Return the reason why a file must be left out, or an empty text; `planning.Screen`.

        The text has whole lines only in the edited blocks of the file. Other lines are the same before and after, so
        only their place in a private key can differ.
        """
        new = _applied(text, 0, len(text), changes)
        if max(len(text), len(new)) > MAX_SCANNED_BYTES:
            return f"it has more than {MAX_SCANNED_BYTES:,} bytes, the limit for masking secrets; change it by hand"
        keys = self._keys[path] = key_lines(BytesIO(text)), key_lines(BytesIO(new))
        number, done, shift, unedited = 1, 0, 0, list[tuple[int, int, int]]()
        for start, end, inside in _blocks(text, changes):
            first = number + text.count(b"\n", done, start)
            unedited.append((number, first, shift))
            after = _applied(text, start, end, inside)
            old, changed = self._masks(text[start:end], first, keys[0]), self._masks(after, first + shift, keys[1])
            if old and not _keeps_masks(old, changed, start, inside):
                return _reason(first)
            number, done = first + text.count(b"\n", start, end), end
            shift += after.count(b"\n") - (number - first)
        unedited.append((number, number + text.count(b"\n", done) + 1, shift))
        if keys[0].numbers:
            for first, end, moved in unedited:
                for line in range(first, end):
                    if line in keys[0].numbers and line + moved not in keys[1].numbers:
                        return _reason(line)
        return ""

    def masked(self, path: str, line: str, *, old: int = 0, new: int = 0) -> str:
        """Return a line of the diff of a file with its secrets masked."""
        keys = self._keys[path]
        return self.redact(line, old or new, keys[0] if old else keys[1], self.check).text

    def _masks(self, text: bytes, first: int, keys: KeyLines) -> list[Span]:
        """Return the parts of whole lines that are masked, as offsets in bytes."""
        decoded = text.decode("utf-8", "surrogateescape")
        spans: list[Span] = []
        done = offset = 0
        for mask in self.redact(decoded, first, keys, self.check).masks:
            start = offset + _size(decoded[done : mask.start])
            done, offset = mask.end, start + _size(decoded[mask.start : mask.end])
            spans.append((start, offset))
        return spans


def _reason(line: int) -> str:
    return f"the replacement changes or shows a masked secret at line {line}; change the file by hand"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))


def _applied(text: bytes, start: int, end: int, changes: Sequence[FileChange]) -> bytes:
    """Return a part of a text with its changes."""
    pieces: list[bytes] = []
    for change in changes:
        pieces += text[start : change.start], change.after
        start = change.end
    return b"".join((*pieces, text[start:end]))


def _blocks(text: bytes, changes: Sequence[FileChange]) -> Iterator[tuple[int, int, list[FileChange]]]:
    """Yield blocks of whole lines that are edited: their start, their end, and their changes.

    The lines of a block are whole lines in the new text, too: if an edit joins two lines, both are in the block.
    """
    start = end = 0
    inside: list[FileChange] = []
    for change in changes:
        if not inside or (change.start >= end and text.endswith(b"\n", 0, end)):
            if inside:
                yield start, end, inside
            start, inside = text.rfind(b"\n", end, change.start) + 1 or end, []
            end = start
        inside.append(change)
        if change.end > end or change.start >= end:
            end = _line_end(text, max(change.end - 1, change.start))
        if change.end == end and not change.after.endswith(b"\n"):
            end = _line_end(text, end)
    if inside:
        yield start, end, inside


def _line_end(text: bytes, start: int) -> int:
    return text.find(b"\n", start) + 1 or len(text)


def _keeps_masks(old: Sequence[Span], new: Sequence[Span], start: int, changes: Sequence[FileChange]) -> bool:
    """Return True if no change touches a mask of the old lines, and the new lines have the same text masked.

    A change beside a mask touches it, too: it could make a secret so long that a tool that cuts long lines does not
    recognise it.
    """
    shift = at = 0
    for first, last in old:
        while at < len(changes) and changes[at].end < first + start:
            shift += len(changes[at].after) - len(changes[at].before)
            at += 1
        if at < len(changes) and changes[at].start <= last + start:
            return False
        if not _covered((first + shift, last + shift), new):
            return False
    return True


def _covered(span: Span, masks: Sequence[Span]) -> bool:
    """Return True if each character of a span is in one of the masks, which are in order."""
    here, end = span
    at = max(bisect_right(masks, here, key=lambda mask: mask[0]) - 1, 0)
    for first, last in masks[at:]:
        if first > here or here >= end:
            break
        here = max(here, last)
    return here >= end
