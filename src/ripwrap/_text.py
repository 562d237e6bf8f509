"""Text and paths that may not be UTF-8: shown as `str`, their exact bytes kept, in JSON as rg writes them.

rg writes a text as `{"text": …}` and, where it is not UTF-8, as `{"bytes": base64}` (rg-facts 13). Both annotations
below take a plain string, a `{"bytes": …}` object, or a string that is already theirs; in JSON they give the string,
or the `{"bytes": …}` object where the string alone would lose something. Pydantic by itself refuses what
`os.fsdecode` makes.
"""

import base64
import binascii
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

from pydantic_core import CoreSchema, PydanticCustomError, core_schema


class LossyText(str):
    """Text shown with U+FFFD where it was not UTF-8; `raw` is what it was."""

    __slots__ = ("raw",)
    raw: bytes

    @classmethod
    def of(cls, raw: bytes) -> "LossyText":
        """The text that stands for `raw`."""
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
    """The exact bytes behind a text: of a `LossyText` what rg read, of any other string its UTF-8."""
    if isinstance(text, LossyText):
        return text.raw
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate that no undecodable byte stands behind
        return text.encode("utf-8", "surrogatepass")


def text_of(raw: bytes) -> str:
    """The text that bytes are: the reverse of `raw_bytes()`."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return LossyText.of(raw)


def shown(path: str) -> str:
    """A path that can be printed anywhere."""
    return os.fsencode(path).decode("utf-8", "replace")


def _from_base64(envelope: dict[str, str]) -> bytes:
    try:
        return base64.b64decode(envelope["bytes"], validate=True)
    except binascii.Error as error:
        raise PydanticCustomError("base64", "'bytes' should be base64: {reason}", {"reason": str(error)}) from error


def _text_from_envelope(envelope: dict[str, str]) -> LossyText:
    return LossyText.of(_from_base64(envelope))


def _path_from_envelope(envelope: dict[str, str]) -> str:
    return os.fsdecode(_from_base64(envelope))


def _to_json(text: str) -> str | dict[str, str]:
    """The text itself where JSON can hold it, else rg's `{"bytes": …}`."""
    if not isinstance(text, LossyText):
        with suppress(UnicodeEncodeError):
            text.encode()
            return text
    return {"bytes": base64.b64encode(raw_bytes(text)).decode("ascii")}


class _TextOrBytes:
    """Tells Pydantic how to read and write one of the two annotations."""

    def __init__(self, read: Callable[[dict[str, str]], str]) -> None:
        self._read = read

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        envelope = core_schema.typed_dict_schema(
            {"bytes": core_schema.typed_dict_field(core_schema.str_schema(strict=True))}, extra_behavior="forbid"
        )
        from_envelope = core_schema.no_info_after_validator_function(self._read, envelope)
        written = core_schema.union_schema([core_schema.str_schema(), envelope])
        return core_schema.json_or_python_schema(
            # Left to right: what rg writes nearly always is tried first, and nothing else then runs.
            core_schema.union_schema([core_schema.str_schema(strict=True), from_envelope], mode="left_to_right"),
            # `is_instance`, because Pydantic's own string schema refuses lone surrogates and copies subclasses.
            core_schema.union_schema([core_schema.is_instance_schema(str), from_envelope], mode="left_to_right"),
            serialization=core_schema.plain_serializer_function_ser_schema(
                _to_json, return_schema=written, when_used="json"
            ),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> dict[str, Any]:
        # Written out, because Pydantic's own differs by version.
        envelope = {
            "type": "object",
            "properties": {"bytes": {"type": "string", "contentEncoding": "base64"}},
            "required": ["bytes"],
            "additionalProperties": False,
        }
        return {"anyOf": [{"type": "string"}, envelope]}


Text = Annotated[str, _TextOrBytes(_text_from_envelope)]
"""Text out of a file: U+FFFD where it was not UTF-8."""

FsPath = Annotated[str, _TextOrBytes(_path_from_envelope)]
"""A path as `os.fsdecode` gives it, so that `open(path)` works."""
