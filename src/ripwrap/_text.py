"""Texts for people and models: counts, lists of words, cut and shown names, suggestions; no I/O."""

import base64
import binascii
import codecs
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from inspect import getattr_static
from typing import Annotated, Any, AnyStr, cast

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


def to_json(text: str) -> str | dict[str, str]:
    """Return the text if JSON can hold it exactly, or else rg's `{"bytes": …}`."""
    if not isinstance(text, LossyText):
        with suppress(UnicodeEncodeError):
            text.encode()
            return text
    return {"bytes": base64.b64encode(raw_bytes(text)).decode("ascii")}


class _TextOrBytes:
    """Pydantic schema of `Text` and `FsPath`: a string, or rg's `{"bytes": …}`."""

    def __init__(self, read: Callable[[bytes], str]) -> None:
        self._read = read

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        envelope = core_schema.typed_dict_schema(
            {"bytes": core_schema.typed_dict_field(core_schema.str_schema(strict=True))}, extra_behavior="forbid"
        )
        from_envelope = core_schema.no_info_after_validator_function(
            lambda given: self._read(_from_base64(given)), envelope
        )
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


Text = Annotated[str, _TextOrBytes(LossyText.of)]
"""Text from a file, with U+FFFD in place of bytes that were not UTF-8."""

FsPath = Annotated[str, _TextOrBytes(os.fsdecode)]
"""A path as `os.fsdecode` returns it, so that `open(path)` works."""


def plural(number: int, noun: str, ending: str = "s") -> str:
    """Return a number with its noun: `1 file`, `2 files`, `3 directories`. `ending` is the ending of the plural."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith(("ry", "ty")) else f"{number} {noun}{ending}"


def named(paths: Sequence[str], most: int = 10) -> str:
    """Return the first paths as they are shown, and how many there are besides."""
    more = f" and {len(paths) - most} more" if len(paths) > most else ""
    return ", ".join(map(shown, paths[:most])) + more


def nothing_found(noun: str, within: float | None) -> str:
    """Return a message such as `No matches found`, or `No matches found within 2 seconds` after a time limit."""
    return f"No {noun} found" + ("" if within is None else f" within {in_seconds(within)}")


def has_text(lines: Iterable[AnyStr]) -> bool:
    """Return True if at least one line is not blank."""
    return any(line.strip() for line in lines)


def in_seconds(number: float) -> str:
    """Return a duration as text, such as `1 second` or `0.5 seconds`."""
    return f"{number:g} second{'' if number == 1 else 's'}"


ALIASES: Mapping[str, tuple[str, ...]] = {
    "pattern": ("query", "regex"),
    "query": ("question", "search_term", "q"),
    "path": ("paths", "search_path", "directory", "dir", "target_directory", "dir_path", "cwd", "file_path"),
    "start_line": ("offset", "start", "line"),
    "end_line": ("end",),
    "ranges": ("view_range", "line_range"),
    "context_lines": ("context", "-C", "C"),
    "before_context": ("-B", "B"),
    "after_context": ("-A", "A"),
    "max_matches": ("head_limit", "limit", "max_results", "-m"),
    "limit": ("head_limit", "max_results", "max_entries"),
    "file_pattern": ("glob", "include", "include_pattern", "-g"),
    "file_type": ("type", "-t"),
    "entry_type": ("type", "-t", "-type"),
    "case_insensitive": ("-i", "ignore_case"),
    "fixed_strings": ("-F", "literal", "literal_text"),
    "multiline": ("-U",),
    "include_hidden": ("hidden",),
    "include_ignored": ("no_ignore",),
    "ignore": ("exclude", "exclude_patterns"),
    "max_depth": ("depth",),
}
"""Map the name of an argument to its other names in the library, in rg and in other programs.

The agent tools accept all of these names. If a call of the library has an unknown name, the error suggests the name
that the called function has for the same argument.
"""


_OTHER_NAMES = {
    "cwd": "root folder",
    "pattern": "regexp regexes patterns expression needle",
    "replacement": "replace repl new",
    "path": "file filename",
    "ignore_case": "insensitive icase nocase",
    "word_regexp": "whole_word whole_words word",
    "line_regexp": "whole_line",
    "fixed_strings": "fixed",
    "invert_match": "invert",
    "multiline_dotall": "dotall",
    "before_context": "before",
    "after_context": "after",
    "follow": "follow_links follow_symlinks",
    "max_filesize": "max_size max_file_size",
    "sort": "sort_by",
    "threads": "jobs num_threads",
    "lang": "language",
    "on": "host",
    "rev": "revision commit",
    "rg": "executable rg_path",
}
WORDS = {word: name for name, words in _OTHER_NAMES.items() for word in words.split()}
"""Map a word of other libraries to the argument with that meaning: errors of the library name it, tools accept it."""

_INSTEAD: Mapping[str, str] = {
    "timeout": "cancel the call instead, as in `async with asyncio.timeout(5)` or `with anyio.fail_after(5)`",
    "root": "pass directories by position",
}
"""Map a word of other libraries to what ripwrap has instead of such an argument, as an end of an error message."""

_DEFAULT = "leave it out, because this is the default"
_REGEX, _GITIGNORE = (_DEFAULT, "pass fixed_strings=True"), (_DEFAULT, "pass no_ignore=True")
_LINE_NUMBERS, _NO_HIDDEN = (_DEFAULT, "pass no_line_number=True"), ("pass hidden=False", "pass hidden=True")
SWITCHES: Mapping[str, tuple[str, str]] = {
    "case_sensitive": (_DEFAULT, "pass ignore_case=True"),
    **dict.fromkeys(("regex", "regexp", "is_regex", "use_regex"), _REGEX),
    **dict.fromkeys(("respect_gitignore", "gitignore", "use_gitignore", "respect_ignore"), _GITIGNORE),
    **dict.fromkeys(("line_number", "line_numbers"), _LINE_NUMBERS),
    **dict.fromkeys(("no_hidden", "skip_hidden", "ignore_hidden", "exclude_hidden"), _NO_HIDDEN),
    "no_follow": ("pass follow=False", "pass follow=True"),
    "recursive": (_DEFAULT, "pass max_depth=1"),
    "unicode": (_DEFAULT, "pass no_unicode=True"),
    "search_zip": ("pass inside=['gz', 'bz2', 'xz', 'zst'] instead", _DEFAULT),
    "only_matching": ("match.submatches has the parts that matched", _DEFAULT),
}
"""Map a word of other libraries for a switch to the ends of error messages for its values True and False."""


def _is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike))


def _are_paths(value: object) -> bool:
    if not isinstance(value, Iterable) or isinstance(value, (bytes, bytearray)):
        return _is_path(value)
    # An iterator can be read only once, so its paths are checked when they are used.
    return not isinstance(value, (list, tuple)) or all(map(_is_path, cast("Iterable[object]", value)))


def _are_texts(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray))


def _has(*names: str) -> Callable[[object], bool]:
    """Return a check for attributes, which are not computed: the version of an `RgBinary` runs rg."""
    return lambda value: (
        not isinstance(value, type) and all(getattr_static(value, name, None) is not None for name in names)
    )


_PATH, _PATHS = (_is_path, "a path, as a str or os.PathLike"), (_are_paths, "a path or an iterable of paths")
KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("cwd", "path", "root", "journal", "journals", "lease_folder", "location"), _PATH),
    **dict.fromkeys(("paths", "repositories"), _PATHS),
    **dict.fromkeys(("all_of", "any_of", "none_of"), (_are_texts, "a pattern or an iterable of patterns")),
    "exclude": (_are_texts, "an iterable of names"),
    "rg": (lambda value: _is_path(value) or _has("path", "version")(value), "a path or name of rg, or an RgBinary"),
    "where": (_has("plan"), "a place, such as ripwrap.places.Directory('src') or ripwrap.places.Revision('main')"),
    "on": (_has("command_line"), "a host, such as ripwrap.remote.ssh('name') or ripwrap.remote.docker('name')"),
    "match": (_has("path"), "a match, a line of context or a chunk, as search() and rank() return it"),
}
"""Map the names of arguments that are objects to what they may be: a check, and a phrase for an error."""


def check_kind(name: str, value: object) -> None:
    """Raise `TypeError` if an argument that has a kind is something else; `None` is no value."""
    if name in KINDS and value is not None and not KINDS[name][0](value):
        got = f"{value[:60]!r}" if isinstance(value, str) else type(value).__name__
        if KINDS[name] is _PATHS and isinstance(value, (list, tuple)):
            (wrong, *_) = (one for one in cast("Iterable[object]", value) if not _is_path(one))
            got = f"{type(wrong).__name__} in a {got}"
        raise TypeError(f"{name} must be {KINDS[name][1]}, got {got}")


def suggest(name: str, known: Collection[str]) -> str:
    """Return the known argument that an unknown name stands for, or is similar to; empty if no argument fits.

    For a name such as `exclude`, return `glob="!…"` if `glob` is known.
    """
    for key, others in ALIASES.items():
        row = (key, *others)
        if name in row and (meant := next((one for one in row if one in known), "")):
            return meant
    if WORDS.get(name) in known:
        return WORDS[name]
    if name in ("ignore", *ALIASES["ignore"]) and "glob" in known:
        return 'glob="!…"'
    import difflib  # late: only errors need it

    # Never suggest the opposite, such as files_without_match for files_with_matches.
    alike = [one for one in known if ("without" in one) == ("without" in name)]
    return next(iter(difflib.get_close_matches(name, alike, 1, cutoff=0.8)), "")


def advise(name: str, known: Collection[str], value: object = None) -> str:
    """Return the end of an error about an unknown argument, such as `did you mean cwd?`; empty without any advice."""
    if name in SWITCHES and isinstance(value, bool):
        return SWITCHES[name][not value]
    if meant := suggest(name, known):
        return f"did you mean {meant}?"
    return _INSTEAD.get(name, "")


UTF8 = "utf-8"

_LABELS = {
    UTF8: "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8",
    "utf-16-le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
    "utf-16-be": "unicodefffe utf-16be",
    "cp866": "866 cp866 csibm866 ibm866",
    "iso8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    "iso8859-3": "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    "iso8859-4": "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    "iso8859-5": "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
    "iso8859-6": "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e "
    "iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987",
    "iso8859-7": "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
    "iso_8859-7:1987 sun_eu_greek",
    "iso8859-8": "csiso88598e csiso88598i csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-8859-8-i iso-ir-138 "
    "iso8859-8 iso88598 iso_8859-8 iso_8859-8:1988 logical visual",
    "iso8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso8859-13": "iso-8859-13 iso8859-13 iso885913",
    "iso8859-14": "iso-8859-14 iso8859-14 iso885914",
    "iso8859-15": "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9",
    "iso8859-16": "iso-8859-16",
    "koi8-r": "cskoi8r koi koi8 koi8-r koi8_r",
    "koi8-u": "koi8-ru koi8-u",
    "mac-roman": "csmacintosh mac macintosh x-mac-roman",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "cp874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874",
    "cp1250": "cp1250 windows-1250 x-cp1250",
    "cp1251": "cp1251 windows-1251 x-cp1251",
    "cp1252": "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 "
    "iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252",
    "cp1253": "cp1253 windows-1253 x-cp1253",
    "cp1254": "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 "
    "windows-1254 x-cp1254",
    "cp1255": "cp1255 windows-1255 x-cp1255",
    "cp1256": "cp1256 windows-1256 x-cp1256",
    "cp1257": "cp1257 windows-1257 x-cp1257",
    "cp1258": "cp1258 windows-1258 x-cp1258",
    "gbk": "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk",
    "gb18030": "gb18030",
    "euc_jp": "cseucpkdfmtjapanese euc-jp x-euc-jp",
    "cp932": "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis",
    "cp949": "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 "
    "windows-949",
    # Files in these encodings cannot be changed. In ISO-2022-JP, the bytes of a character depend on those before it. In
    # Big5, some sequences stand for two characters. Python has no codec for the last.
    "": "csiso2022jp iso-2022-jp big5 big5-hkscs cn-big5 csbig5 x-x-big5 x-user-defined",
}
"""Map from Python's name of an encoding to the labels of the Encoding Standard, without those that rg refuses."""

LABELS = {label: codec for codec, labels in _LABELS.items() for label in labels.split()}
"""Map from each label that rg takes to Python's name of the encoding; empty if files cannot be changed."""

_MULTI_BYTE = ("utf-", "gb", "euc_jp", "cp932", "cp949")

_GB18030 = (
    "\ue78d\ue78e\ue78f\ue790\ue791\ue792\ue793\ue794\ue795\ue796"
    "\ue7c7\u1e3f\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854\ue864"
)
_GB18030_2022 = (
    "\ufe10\ufe12\ufe11\ufe13\ufe14\ufe15\ufe16\ufe17\ufe18\ufe19"
    "\u1e3f\ue7c7\u9fb4\u9fb5\u9fb6\u9fb7\u9fb8\u9fb9\u9fba\u9fbb"
)
# Characters that Python reads from bytes, and those that rg reads from the same bytes.
_OTHERS = {
    "koi8-u": ("\u255d\u256c", "\u045e\u040e"),
    "euc_jp": ("\u301c\u2016\u2212\xa2\xa3\xac", "\uff5e\u2225\uff0d\uffe0\uffe1\uffe2"),
    "gb18030": (_GB18030, _GB18030_2022),
}
_READ = {codec: str.maketrans(*others) for codec, others in _OTHERS.items()}
_WRITTEN = {codec: str.maketrans(others[1], others[0]) for codec, others in _OTHERS.items()}

_DOUBTFUL = {"cp932": "\uf8f0\uf8f1\uf8f2\uf8f3", "gb18030": "\ue5e5"}
"""Characters that Python reads from bytes that are not valid for rg, or that stand for another character, too."""


def decode(raw: bytes, codec: str, errors: str = "strict") -> str:
    """Decode bytes as rg does; `codec` is a value of `LABELS`.

    With `errors="replace"`, bytes that Python and rg read differently give other characters than rg's.
    """
    if not codec.startswith(_MULTI_BYTE):
        return raw.decode("latin-1").translate(_characters(codec))
    text = raw.decode(codec, errors).translate(_READ.get(codec, {}))
    if errors == "strict":
        # Python reads 8F A2 B7 of EUC-JP as `~`, and rg reads it as U+FF5E.
        doubtful = next((one for one in _DOUBTFUL.get(codec, "") if one in text), "")
        if doubtful or (codec == "euc_jp" and b"\x8f\xa2\xb7" in raw):
            raise UnicodeDecodeError(codec, raw, 0, len(raw), "rg reads these bytes differently")
    return text


def encode(text: str, codec: str) -> bytes:
    """Encode text in bytes that rg decodes to the same text; `codec` is a value of `LABELS`."""
    if not codec.startswith(_MULTI_BYTE):
        return codecs.charmap_encode(text, "strict", _bytes(codec))[0]
    raw = _written(text, codec)
    if codec.startswith("utf-") or _is_read_as(raw, text, codec):
        return raw
    at = next((at for at, one in enumerate(text) if not _is_read_as(_written(one, codec), one, codec)), 0)
    raise UnicodeEncodeError(codec, text, at, at + 1, "rg reads its bytes as another character")


def width(text: str, codec: str) -> int:
    """Return the number of bytes of a text that was decoded; U+FFFD counts as one byte of a single-byte encoding."""
    return len(_written(text, codec)) if codec.startswith(_MULTI_BYTE) else len(text)


def _written(text: str, codec: str) -> bytes:
    return text.translate(_WRITTEN.get(codec, {})).encode(codec)


def _is_read_as(raw: bytes, text: str, codec: str) -> bool:
    try:
        return decode(raw, codec) == text
    except UnicodeDecodeError:
        return False


@cache
def _characters(codec: str) -> str:
    """Return the characters of the bytes 0 to 255 of a single-byte encoding, with U+FFFD for bytes without one."""
    text = bytes(range(256)).decode(codec, "replace").translate(_READ.get(codec, {}))
    if codec.startswith(("cp125", "cp874")):  # the standard reads bytes that Windows does not define as C1 controls
        text = "".join(chr(n) if one == "\ufffd" and 0x80 <= n < 0xA0 else one for n, one in enumerate(text))
    return text[:0xCA] + "\u05ba" + text[0xCB:] if codec == "cp1255" else text


@cache
def _bytes(codec: str) -> dict[int, int]:
    """Return the bytes of the characters of a single-byte encoding."""
    return {ord(one): n for n, one in enumerate(_characters(codec)) if one != "\ufffd"}
