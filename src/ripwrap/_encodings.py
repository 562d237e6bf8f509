"""Decode and encode text as rg does, which follows the Encoding Standard (https://encoding.spec.whatwg.org).

rg decodes with encoding_rs. Python has codecs with similar tables, but under other labels: for rg, `latin1` is
Windows-1252. Some tables differ, too: the byte 0x81 of Windows-1252 is U+0081 for rg, and an error for Python. This
module has all labels of the standard, and all differences for the encodings in which files can be changed. The tests
compare each byte, each pair of bytes and each character with rg itself (`tests/test_encodings.py`).
"""

import codecs
from functools import cache

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
