"""rg's own JSON records, for programs that read `rg --json`: the inverse of the decoder, from messages to records."""

from typing import Any

from ripwrap._text import raw_bytes, to_envelope
from ripwrap.models import Begin, Context, End, Match, Message


def record(message: Message) -> dict[str, Any]:
    """Return the record of `rg --json` for a message (https://docs.rs/grep-printer, JSON)."""
    data: dict[str, Any]
    if isinstance(message, Begin):
        data = {"path": _text(message.path)}
    elif isinstance(message, (Match, Context)):
        data = {
            "path": _text(message.path),
            "lines": _text(message.lines),
            "line_number": message.line_number,
            "absolute_offset": message.absolute_offset,
            "submatches": [
                {
                    "match": _text(hit.match),
                    **({} if hit.replacement is None else {"replacement": _text(hit.replacement)}),
                    "start": hit.start,
                    "end": hit.end,
                }
                for hit in message.submatches
            ],
        }
    elif isinstance(message, End):
        data = {
            "path": _text(message.path),
            "binary_offset": message.binary_offset,
            "stats": message.stats.model_dump(),
        }
    else:
        data = {"elapsed_total": message.elapsed_total.model_dump(), "stats": message.stats.model_dump()}
    return {"type": message.type, "data": data}


def _text(text: str | None) -> dict[str, str] | None:
    return None if text is None else to_envelope(raw_bytes(text))
