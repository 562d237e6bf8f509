"""Represent text and paths as `str`, even if they are not UTF-8, and write them to JSON, without losing any byte.

rg writes a text as `{"text": …}`, or as `{"bytes": base64}` if it is not UTF-8 (rg-facts 13). The annotations `Text`
and `FsPath` accept a string or a `{"bytes": …}` object. In JSON, they write the string, or the object if the string
would lose bytes. Pydantic's own string type cannot be used, because it refuses the surrogates of `os.fsdecode`
(PEP 383).
"""

import base64
import binascii
import codecs
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Annotated, Any, AnyStr

from pydantic_core import CoreSchema, PydanticCustomError, core_schema

BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
"""Byte order marks that rg recognises, and their encodings. By default, rg reads files without a mark as UTF-8."""


def byte_order_mark(raw: bytes, codec: str = "") -> tuple[bytes, str]:
    """Return the byte order mark that rg leaves out at the beginning of `raw`, and the encoding of the text after it.

    `codec` is the encoding that rg was told to use. A mark of UTF-16 overrides it; one of UTF-8 does not. The decoder
    of an encoding leaves out a second mark; rg reads UTF-8 without a decoder, unless `codec` names it (encoding_rs_io,
    `DecodeReaderBytesBuilder::bom_override`; encoding_rs, `new_decoder_with_bom_removal`).
    """
    mark, own = next(((mark, encoding) for mark, encoding in BOMS if raw.startswith(mark)), (b"", "utf-8"))
    encoding = codec if codec and own == "utf-8" else own
    second = next((mark for mark, of in BOMS if of == encoding), b"") if codec or own != "utf-8" else b""
    return (mark + second if raw.startswith(second, len(mark)) else mark), encoding


def is_binary(raw: bytes) -> bool:
    """Return True if rg treats a file with these first bytes as binary."""
    return b"\0" in raw and not raw.startswith(tuple(bom for bom, _ in BOMS))


def is_utf8(raw: bytes) -> bool:
    """Return True if bytes are valid UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_within_character(raw: bytes, at: int) -> bool:
    """Return True if a text in UTF-8 has bytes of one character before and after the offset `at`."""
    if not (0 < at < len(raw) and 0x80 <= raw[at] < 0xC0):
        return False
    start = next((start for start in range(at - 1, max(at - 4, -1), -1) if raw[start] >= 0xC0), at)
    for end in range(at + 1, start + 5):
        with suppress(UnicodeDecodeError):
            return len(raw[start:end].decode()) == 1
    return False


class LossyText(str):
    """A text that has U+FFFD in place of bytes that were not UTF-8; `raw` has the original bytes."""

    __slots__ = ("raw",)
    raw: bytes

    @classmethod
    def of(cls, raw: bytes) -> "LossyText":
        """Decode `raw` as UTF-8, with U+FFFD in place of bytes that are not UTF-8, and keep `raw` in the text."""
        text = cls(raw.decode("utf-8", "replace"))
        text.raw = raw
        return text

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LossyText):
            return self.raw == other.raw
        return str.__eq__(self, other) if isinstance(other, str) else NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __reduce__(self) -> tuple[Callable[[bytes], "LossyText"], tuple[bytes]]:
        return LossyText.of, (self.raw,)


def raw_bytes(text: str) -> bytes:
    """Return the exact bytes of a text: for a `LossyText` its `raw`, for any other string its UTF-8.

    A surrogate by which `os.fsdecode` represents a byte (PEP 383) becomes that byte again.
    """
    if isinstance(text, LossyText):
        return text.raw
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate that does not stand for a byte (PEP 383)
        return text.encode("utf-8", "surrogatepass")


def text_of(raw: bytes) -> str:
    """Decode bytes as UTF-8; if they are not UTF-8, return a `LossyText`. This is the inverse of `raw_bytes()`."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return LossyText.of(raw)


def cut_text(text: str, max_chars: int) -> str:
    """Cut a text to at most `max_chars` characters. If the text was longer, its last character is `…`."""
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


_UNPRINTABLE = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb"
    "\\U0001d173-\\U0001d17a\\U000e0000-\\U000e007f]"
)
"""Characters that `shown()` escapes. A terminal obeys C0, DEL and C1 (ECMA-48). Controls of direction show text in
another order than it is read (CVE-2021-42574, UTR 36 section 3). Separators of lines and paragraphs add lines. Soft
hyphens, invisible format characters and tags are read by a model, but not seen by a person (UTS 39 section 3.1.1).
Joiners (U+200C, U+200D) and variation selectors are not escaped, because words, emoji and names are written with them.
"""


_ESCAPE = re.compile(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_HAS_ESCAPES = os.sep == "/"


def as_utf8(text: str) -> str:
    """Return a text with U+FFFD in place of surrogates, which stand for bytes that are not UTF-8 (PEP 383)."""
    return raw_bytes(text).decode("utf-8", "replace")


def shown(text: str, *, lines: bool = False) -> str:
    r"""Return a text of a file, path, argument or host as it is shown to a person or a model.

    Control characters, and characters that are invisible or change the direction of text, become escapes such as
    `\x1b` and `\u202e`, which rg and Python read as the same characters. U+FFFD replaces bytes that are not UTF-8. The
    escape of a control character looks like the same letters in a file, so models of results keep the exact text.
    """
    plain = as_utf8(text)
    if plain.isprintable():
        return plain
    if lines:
        plain = plain.replace("\r\n", "\n")
    return _UNPRINTABLE.sub(lambda found: found[0] if lines and found[0] in "\n\t" else _escaped(found[0]), plain)


def shown_path(path: str, *, lines: bool = False) -> str:
    r"""Return a path as `shown()` does, but so that `path_from_shown()` returns the same path.

    A backslash before letters that look like an escape becomes `\x5c`, except on Windows, where it is a separator.
    """
    if _HAS_ESCAPES:
        path = _ESCAPE.sub(lambda found: found[0] if _unescaped(found) == found[0] else rf"\x5c{found[0][1:]}", path)
    return shown(path, lines=lines)


def path_from_shown(text: str) -> str:
    """Return the path that `shown_path()` has shown as this text; U+FFFD stays."""
    return _ESCAPE.sub(_unescaped, text) if _HAS_ESCAPES else text


def shown_json(text: bytes) -> bytes:
    r"""Return JSON in UTF-8 with the characters that `shown()` escapes as `\u202e`, so that the values stay the same.

    JSON has no such characters outside of its strings, except the newlines and spaces between values.
    """
    return _UNPRINTABLE.sub(
        lambda found: found[0] if found[0] in "\n\t" else json.dumps(found[0])[1:-1], text.decode()
    ).encode()


def _unescaped(found: re.Match[str]) -> str:
    """Return the character of an escape, or the escape itself if `shown_path()` does not write it."""
    number = int(f"0x{found[0][2:]}", 0)
    character = chr(number) if 0 < number <= sys.maxunicode else ""
    return character if character == "\\" or _UNPRINTABLE.fullmatch(character) else found[0]


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def show_arguments(record: logging.LogRecord) -> bool:
    """Show the arguments of a log record on one line, so that no name of a file forges another record; return True."""
    if isinstance(record.args, tuple):
        record.args = tuple(one if isinstance(one, (int, float)) else shown(str(one)) for one in record.args)
    return True


def to_envelope(raw: bytes) -> dict[str, str]:
    """Return bytes as rg writes them in JSON: as `text` if they are UTF-8, or else as `bytes` in Base64."""
    return {"text": raw.decode()} if is_utf8(raw) else {"bytes": base64.b64encode(raw).decode()}


def _from_base64(envelope: dict[str, str]) -> bytes:
    try:
        return base64.b64decode(envelope["bytes"], validate=True)
    except binascii.Error as error:
        raise PydanticCustomError("base64", "'bytes' must be base64: {reason}", {"reason": str(error)}) from error


def _text_from_envelope(envelope: dict[str, str]) -> LossyText:
    return LossyText.of(_from_base64(envelope))


def _path_from_envelope(envelope: dict[str, str]) -> str:
    return os.fsdecode(_from_base64(envelope))


def to_json(text: str) -> str | dict[str, str]:
    """Return the text if JSON can hold it exactly, or else rg's `{"bytes": …}`."""
    if not isinstance(text, LossyText):
        with suppress(UnicodeEncodeError):
            text.encode()
            return text
    return {"bytes": base64.b64encode(raw_bytes(text)).decode("ascii")}


class _TextOrBytes:
    """Pydantic schema of `Text` and `FsPath`: a string, or rg's `{"bytes": …}`."""

    def __init__(self, read: Callable[[dict[str, str]], str]) -> None:
        self._read = read

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        envelope = core_schema.typed_dict_schema(
            {"bytes": core_schema.typed_dict_field(core_schema.str_schema(strict=True))}, extra_behavior="forbid"
        )
        from_envelope = core_schema.no_info_after_validator_function(self._read, envelope)
        written = core_schema.union_schema([core_schema.str_schema(), envelope])
        return core_schema.json_or_python_schema(
            # The schemas are tried from left to right. rg nearly always writes a string, which the first one accepts.
            core_schema.union_schema([core_schema.str_schema(strict=True), from_envelope], mode="left_to_right"),
            # `is_instance`, because Pydantic's own string schema refuses lone surrogates and copies subclasses.
            core_schema.union_schema([core_schema.is_instance_schema(str), from_envelope], mode="left_to_right"),
            serialization=core_schema.plain_serializer_function_ser_schema(
                to_json, return_schema=written, when_used="json"
            ),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        # The schema is written here because the one that Pydantic generates differs between its versions.
        envelope = {
            "type": "object",
            "properties": {"bytes": {"type": "string", "contentEncoding": "base64"}},
            "required": ["bytes"],
            "additionalProperties": False,
        }
        return {"anyOf": [{"type": "string"}, envelope]}


Text = Annotated[str, _TextOrBytes(_text_from_envelope)]
"""Text from a file, with U+FFFD in place of bytes that were not UTF-8."""

FsPath = Annotated[str, _TextOrBytes(_path_from_envelope)]
"""A path as `os.fsdecode` returns it, so that `open(path)` works."""


def plural(number: int, noun: str, ending: str = "s") -> str:
    """Return a number with its noun: `1 file`, `2 files`, `3 directories`. `ending` is the ending of the plural."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith(("ry", "ty")) else f"{number} {noun}{ending}"


def nothing_found(noun: str, within: float | None) -> str:
    """Return a message such as `No matches found`, or `No matches found within 2 seconds` after a time limit."""
    return f"No {noun} found" + ("" if within is None else f" within {in_seconds(within)}")


def has_text(lines: Iterable[AnyStr]) -> bool:
    """Return True if at least one line is not blank."""
    return any(line.strip() for line in lines)


def in_seconds(number: float) -> str:
    """Return a duration as text, such as `1 second` or `0.5 seconds`."""
    return f"{number:g} second{'' if number == 1 else 's'}"
