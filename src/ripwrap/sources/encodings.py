"""Guess the encodings of files with charset-normalizer (extra `detect`)."""

import codecs
import logging
import math
import re
import time
from collections.abc import Iterable
from typing import IO

from ripwrap._concurrency import CANCELLED
from ripwrap._safe_open import open_regular_file
from ripwrap._text import shown

_READ_BYTES = 1024 * 1024  # size of a block; the sample is from the first block that is not ASCII
SAMPLE_BYTES = 64 * 1024
"""Size in bytes of the sample from which the encoding of a file is guessed.

A long last line can make the sample larger.
"""

_UTF8_RATIO = 3
"""Minimum number of valid non-ASCII characters for each invalid byte in a text that counts as UTF-8 with a few errors.
A text in another encoding has less than one such character for each invalid byte, because its non-ASCII bytes are
rarely valid UTF-8.
"""
_INVALID = frozenset(map(chr, range(0xDC80, 0xDD00)))  # `surrogateescape` decodes invalid bytes to these
_LOGGER = logging.getLogger("ripwrap")

# Map from Python's names of encodings to the labels of the Encoding Standard, which rg takes
# (https://encoding.spec.whatwg.org/#names-and-labels). Python's other encodings are not in the standard.
_LABELS = {
    **dict.fromkeys(("gb2312", "gbk", "gb18030"), "gb18030"),
    **dict.fromkeys(("big5", "big5hkscs", "cp950"), "big5"),
    **dict.fromkeys(("shift_jis", "shift_jis_2004", "shift_jisx0213", "cp932"), "shift_jis"),
    **dict.fromkeys(("euc_jp", "euc_jis_2004", "euc_jisx0213"), "euc-jp"),
    **dict.fromkeys(("euc_kr", "cp949"), "euc-kr"),
    **{f"cp{number}": f"windows-{number}" for number in range(1250, 1259)},
    **{f"iso8859_{number}": f"iso-8859-{number}" for number in (*range(2, 9), 10, 13, 14, 15, 16)},
    **dict.fromkeys(("latin_1", "iso8859_1"), "windows-1252"),
    **dict.fromkeys(("cp874", "tis_620", "iso8859_11"), "windows-874"),
    "iso8859_9": "windows-1254",
    "cp866": "ibm866",
    "koi8_r": "koi8-r",
    "koi8_u": "koi8-u",
    "mac_roman": "macintosh",
    "mac_cyrillic": "x-mac-cyrillic",
}

# Runs of characters of several bytes of the encodings in which the second byte may be ASCII.
_CHARACTERS = {
    "gb18030": re.compile(rb"(?:[\x81-\xfe][\x40-\x7e\x80-\xfe])+"),
    "big5": re.compile(rb"(?:[\x81-\xfe][\x40-\x7e\xa1-\xfe])+"),
    "shift_jis": re.compile(rb"(?:[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc])+"),
    "euc-kr": re.compile(rb"(?:[\x81-\xfe][\x41-\x5a\x61-\x7a\x81-\xfe])+"),
    "euc-jp": re.compile(rb"(?:[\xa1-\xfe][\xa1-\xfe])+"),
}
_SIZE = 2
_FIRST_BYTE = 0x80
_MIN_CHARACTERS = 4
"""Minimum number of neighboring characters of two bytes in a text that counts as Chinese, Japanese or Korean."""

_MIN_RATIO = 10
"""Minimum number of such characters for each character that seems to swallow a letter of a word."""


def guess_encodings(cwd: str, paths: Iterable[str], deadline: float = math.inf) -> dict[str, list[str]]:
    """Guess the encodings of files, and return a map from each encoding (a label for rg) to its files.

    A file whose encoding is unknown is logged as a warning and left out. Files that rg decodes by itself are left out,
    too: files with a byte order mark, and files that are UTF-8 except for a few bytes.
    """
    files: dict[str, list[str]] = {}
    for path in sorted(paths):
        CANCELLED.get().check()
        if time.monotonic() >= deadline:
            break
        try:
            with open_regular_file(cwd, path, follow=True) as file:
                sample, is_cut = _sample(file)
        except OSError as error:
            _LOGGER.warning("%s could not be read: %s", shown(path), error)
            continue
        if not sample or _is_utf8(sample):
            continue
        label = _guess(sample, is_cut=is_cut)
        if label is None:
            _LOGGER.warning(
                "could not guess the encoding of %s, so the file is searched as UTF-8; if you know the encoding, pass "
                "it as encoding=",
                shown(path),
            )
        else:
            files.setdefault(label, []).append(path)
    return files


def _sample(file: IO[bytes]) -> tuple[bytes, bool]:
    """Return the first lines of a file that are not ASCII, and True if the last of these lines is cut.

    ASCII lines fit every encoding, and many of them would hide the few lines that show the encoding. Return no lines if
    the file has a byte order mark.
    """
    if file.read(3).startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF8)):
        return b"", False
    file.seek(0)
    while (chunk := file.read(_READ_BYTES)) and chunk.isascii():
        if CANCELLED.get().is_set():
            break
    end = file.tell()
    file.seek(end - len(chunk))
    lines, size, line = list[bytes](), 0, b""
    while size < SAMPLE_BYTES and file.tell() < end and (line := file.readline(SAMPLE_BYTES)):
        if not line.isascii():
            lines.append(line)
            size += len(line)
    return b"".join(lines), len(line) == SAMPLE_BYTES and not line.endswith(b"\n")


def _is_utf8(sample: bytes) -> bool:
    """Return True if a text is UTF-8 except for a few bytes."""
    text = sample.decode("utf-8", "surrogateescape")
    invalid = sum(map(_INVALID.__contains__, text))
    valid = sum(map("\x7f".__lt__, text)) - invalid
    return valid >= _UTF8_RATIO * invalid


def _guess(sample: bytes, *, is_cut: bool) -> str | None:
    """Return the label of the encoding of a text, or `None` if it is unknown."""
    # If the sample ends within a character, it is invalid in every multi-byte encoding. A character has up to four
    # bytes, so also try the sample without its last one, two and three bytes.
    texts = [sample[: len(sample) - cut] for cut in range(4 if is_cut else 1)]
    label = _best(texts, _LABELS)
    if label in _CHARACTERS and not _is_double_byte(sample, _CHARACTERS[label]):
        return _best(texts, [name for name, known in _LABELS.items() if known not in _CHARACTERS])
    return label


def _best(texts: Iterable[bytes], names: Iterable[str]) -> str | None:
    """Return the label of the encoding, of those with these names in Python, that fits one of several texts best."""
    from charset_normalizer import from_bytes

    guesses = [best for text in texts if (best := from_bytes(text, cp_isolation=list(names)).best()) is not None]
    # `chaos` is higher for garbled text, `coherence` is higher for text of a known language.
    best = min(guesses, key=lambda one: (one.chaos, -one.coherence), default=None)
    return None if best is None else _LABELS.get(best.encoding)


def _is_double_byte(sample: bytes, characters: re.Pattern[bytes]) -> bool:
    r"""Return True if a text has characters of two bytes, and is not a text in which they swallow letters of words.

    In a text with one byte for each character, the second byte is often the ASCII letter after a sign, as in
    `b"10 \xb5sec"`. Then the character stands alone, or another letter follows. In a text in Chinese, Japanese or
    Korean, most characters stand beside another one.
    """
    fitting = swallowing = 0
    for run in characters.finditer(sample):
        size = len(run[0])
        takes_ascii = sample[run.end() - 1] < _FIRST_BYTE
        if takes_ascii and (size == _SIZE or sample[run.end() : run.end() + 1].isalnum()):
            swallowing += 1
        fitting += size // _SIZE - takes_ascii if size > _SIZE else 0
    return fitting >= max(_MIN_CHARACTERS, _MIN_RATIO * swallowing)
