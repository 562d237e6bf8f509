"""Mask secrets in the lines of an answer: keys, tokens and passwords become `[redacted: NAME]`.

Most rules look at one line. A private key (RFC 7468) has many lines, and an answer may show only a line in the middle.
So `key_lines()` finds the lines of private keys in the whole file. If the file cannot be read, each line that looks
like a line of a key is masked. All secrets of a kind have the same mask, whatever their length, and a mask never spans
lines.

The rules are based on some rules of gitleaks (https://github.com/gitleaks/gitleaks, `config/gitleaks.toml`) and on the
formats that the providers document. In a rule, a repetition before other text has a maximum, so that matching takes
linear time.
"""

import io
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple, TypeAlias

from ripwrap._concurrency import CANCELLED
from ripwrap._safe_open import open_regular_file
from ripwrap._text import byte_order_mark
from ripwrap.models import Span

MAX_SECRET_CHARS = 16_384
"""Number of characters to read beyond the place where a line is cut, to recognise a secret that spans this place."""

MAX_SCANNED_BYTES = 16_000_000
"""Number of bytes at the start of a file that are scanned for private keys; each later line is checked by itself."""

_PRIVATE_KEY = "private-key"
_MARKER = r"-{{4,5}} ?{} (?:[A-Z0-9]{{1,20}} ){{0,4}}PRIVATE KEY(?: BLOCK)? ?-{{4,5}}"
_BEGIN = re.compile(_MARKER.format("BEGIN"))
_END = re.compile(_MARKER.format("END"))
_INSIDE = re.compile(
    r"""[\s"'`+#/*>|-]*+(?:[A-Z][A-Za-z-]{1,30}: .{0,200}|[A-Za-z0-9+/]*+={0,2}(?:\\[nr]|[\s"'`,;+)\\])*+)"""
)
"""Pattern of a line inside a key: base64 or a header of RFC 1421 or RFC 4880, also in quotes, in a comment or in a
diff.
"""

_WORDS = "PRIVATE KEY"
_MARKER_CHARS = 100
"""Maximum number of characters of a marker before, and after, its words `PRIVATE KEY`."""

_MAX_INSIDE_CHARS = 65_536
"""Maximum length of a line inside a key; the longest keys that are in use have a quarter of this in all lines."""

_LONG_BASE64 = re.compile(r"[A-Za-z0-9+/]{40,}")
_LOOKS_LIKE_KEY = re.compile(r"(?=.*[a-z])(?=.*[G-Z+/])[^A-Za-z0-9+/]*[A-Za-z0-9+/]{60,76}={0,2}[^A-Za-z0-9+/]*")
"""Pattern of a line that has only base64, is not hexadecimal, and is as long as RFC 7468 and RFC 4880 prescribe."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Rule that finds secrets in a line.

    Attributes:
        name: Name of the kind of secret.
        words: Texts in lower case. The rule is tried only on lines that contain one of these texts, in any case.
        pattern: Regular expression; its group 1 is the secret, or the whole match if the pattern has no group.
    """

    name: str
    words: tuple[str, ...]
    pattern: str


_NO_WORD_BEFORE = r"(?<![A-Za-z0-9])"
_NO_PLACEHOLDER = r"(?!\$[{(]|\{|<[^<>]{1,40}>|%[(s]|\*{3}|\[redacted: )"
_NAME = (
    r"(?i:(?:pass(?:word|wd|phrase|code)|\bpwd|_pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)"
    r"[\w.-]{0,40})"
)
_ASSIGNED = r"[\"'\]]{0,2}(?:\s{0,9}:\s{0,9}[\w.\[\]|]{1,40})?\s{0,9}(?:=>|:=|==?|:)\s{0,9}"
_NAME_WORDS = ("pass", "pwd", "secret", "token", "key", "credential")

RULES: tuple[Rule, ...] = tuple(
    Rule(name, words, pattern)
    for name, words, pattern in (
        (
            "aws-access-key",
            ("akia", "asia", "abia", "acca", "a3t"),
            _NO_WORD_BEFORE + r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
        ),
        (
            "aws-secret-key",
            ("aws",),
            r"(?i:aws)[\w.-]{0,40}" + _ASSIGNED + r"[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])",
        ),
        ("github-token", ("gh", "github_pat_"), _NO_WORD_BEFORE + r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{22,})"),
        (
            "gitlab-token",
            ("gl",),
            _NO_WORD_BEFORE + r"gl(?:pat|oas|dt|rtr?|cbt|ptt|ft|imt|agent|wt|soat|ffct)-[A-Za-z0-9_.=-]{20,}",
        ),
        ("slack-token", ("xox", "xapp-"), _NO_WORD_BEFORE + r"(?:xox[a-z](?:\.xox[a-z])?-|xapp-\d-)[A-Za-z0-9-]{10,}"),
        ("slack-webhook", ("hooks.slack.com",), r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/+-]{20,})"),
        (
            "stripe-key",
            ("_test_", "_live_", "_prod_", "whsec_"),
            _NO_WORD_BEFORE + r"(?:[sr]k_(?:test|live|prod)_|whsec_)[A-Za-z0-9]{10,}",
        ),
        ("google-key", ("aiza", "gocspx-", "ya29."), r"AIza[\w-]{35}|GOCSPX-[\w-]{20,}|\bya29\.[\w-]{20,}"),
        ("anthropic-key", ("sk-ant-",), _NO_WORD_BEFORE + r"sk-ant-[\w-]{20,}"),
        ("openai-key", ("sk-",), _NO_WORD_BEFORE + r"sk-(?:(?:proj|svcacct|admin)-[\w-]{20,}|[A-Za-z0-9]{32,})"),
        ("jwt", (".ey",), r"(?<![\w-])ey[\w-]{10,}\.ey[\w-]{10,}\.[\w-]*"),
        ("url-password", ("://",), rf"://[^\s/?#\"'<>:@]{{0,256}}:{_NO_PLACEHOLDER}([^\s/?#\"'<>]{{1,256}})@"),
        ("url-token", ("://",), rf"://{_NO_PLACEHOLDER}([\w-]{{20,256}})@"),
        ("password", _NAME_WORDS, rf"{_NAME}{_ASSIGNED}[a-zA-Z]{{0,2}}\"{_NO_PLACEHOLDER}((?:[^\"\\]|\\.){{4,}})\""),
        ("password", _NAME_WORDS, rf"{_NAME}{_ASSIGNED}[a-zA-Z]{{0,2}}'{_NO_PLACEHOLDER}((?:[^'\\]|\\.){{4,}})'"),
        # Values without quotes: `DB_PASSWORD=…` of a shell, and `password: …` if the value has a digit and does not
        # look like code.
        (
            "password",
            _NAME_WORDS,
            (
                r"(?<![\w.])(?:[A-Z0-9]{1,40}_){0,10}(?:PASS(?:WORD|WD|PHRASE)?|PWD|SECRET|TOKEN|CREDENTIALS?|(?:API|ACCESS|SECRET|PRIVATE|AUTH|MASTER)_?KEY)"
                rf"(?:_[A-Z0-9]{{1,40}}){{0,5}}=(?![\"']){_NO_PLACEHOLDER}([^\s\"']{{4,}})"
            ),
        ),
        (
            "password",
            _NAME_WORDS,
            rf"{_NAME}[\"']?\s{{0,9}}[:=]\s{{0,9}}((?=[^\s\d]{{0,99}}\d)[^\s\"'`(){{}}\[\]<>$,;]{{8,200}})\s*$",
        ),
    )
)
"""Rules for one line. If two rules find the same secret, the first one determines its name."""


class Mask(NamedTuple):
    """Part of a text that is masked.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last character.
        name: Name of the kind of secret.
    """

    start: int
    end: int
    name: str

    @property
    def text(self) -> str:
        """Text that replaces the secret."""
        return f"[redacted: {self.name}]"


@dataclass(frozen=True, slots=True)
class Redacted:
    """Result of masking the secrets in a text.

    Attributes:
        text: Text in which secrets are masked.
        masks: Masks, in order, with offsets in the original text.
        starts: Offset of each mask in the masked text.
    """

    text: str
    masks: tuple[Mask, ...] = ()
    starts: tuple[int, ...] = ()

    def moved(self, span: Span) -> Span:
        """Convert a span of the original text to a span of the masked text.

        If the span begins or ends inside a secret, the returned span includes the whole mask of that secret.
        """
        return self._moved(span[0], is_end=False), self._moved(span[1], is_end=True)

    def _moved(self, offset: int, *, is_end: bool) -> int:
        at = (
            bisect_left(self.masks, offset, key=lambda mask: mask.start) - 1
        )  # the last mask that starts before `offset`
        if at < 0:
            return offset
        mask, start = self.masks[at], self.starts[at]
        if offset < mask.end:
            return start + is_end * len(mask.text)
        return start + len(mask.text) + offset - mask.end


class Numbers:
    """Set of numbers of lines, with one byte for each line: a file may have millions of blank lines inside a key."""

    def __init__(self, flags: bytes = b"") -> None:
        """Set the flags: byte N is not 0 if the set has the number N."""
        self._flags = flags

    def __contains__(self, number: int) -> bool:
        return 0 <= number < len(self._flags) and self._flags[number] != 0

    def __or__(self, other: "Numbers") -> "Numbers":
        both = int.from_bytes(self._flags, "little") | int.from_bytes(other._flags, "little")
        return Numbers(both.to_bytes(max(len(self._flags), len(other._flags)), "little"))

    def __iter__(self) -> Iterator[int]:
        return (number for number, flag in enumerate(self._flags) if flag)


@dataclass(frozen=True, slots=True)
class KeyLines:
    """Lines of the private keys in a file.

    Attributes:
        numbers: Numbers of these lines, from 1.
        scanned: Number of lines that were scanned; each later line is checked by itself.
    """

    numbers: Numbers = field(default_factory=Numbers)
    scanned: int = 0


UNKNOWN_KEYS = KeyLines()
"""Value for a file that was not scanned for private keys."""

Redactor: TypeAlias = Callable[[str, int], Redacted]
"""Function that masks secrets in lines; its arguments are the text of the lines and the number of the first line."""


def redact(
    text: str, first: int = 1, keys: KeyLines = UNKNOWN_KEYS, check: Callable[[], object] | None = None
) -> Redacted:
    """Mask the secrets in lines.

    Args:
        text: Whole lines; a secret that is cut is not recognised.
        first: Number of the first line in its file.
        keys: Lines of private keys in that file.
        check: Function that is called before each line and each part of a long line, and may raise an error, for
            example at a deadline. Masking one megabyte may take several seconds.
    """
    check = check or CANCELLED.get().check
    scanner = KeyScanner(check)
    masks: list[Mask] = []
    starts: list[int] = []
    pieces: list[str] = []
    start = done = length = 0
    for number, line in enumerate(text.split("\n"), first):
        for mask in _merged([*_key_masks(scanner, line, number, keys), *_secrets(line, check)]):
            masks.append(Mask(mask.start + start, mask.end + start, mask.name))
            length += masks[-1].start - done
            starts.append(length)
            pieces += text[done : masks[-1].start], mask.text
            length += len(mask.text)
            done = masks[-1].end
        start += len(line) + 1
    return Redacted("".join((*pieces, text[done:])), tuple(masks), tuple(starts))


def redact_name(name: str, line: str = "", masks: Iterable[Mask] = ()) -> str:
    """Mask the secrets in the name of a definition.

    Args:
        name: Name, which may be qualified by the names of the definitions around it.
        line: Line that defines the name.
        masks: Masks of that line; the name may repeat a secret that only the rest of the line makes recognisable.
    """
    for mask in masks:
        name = name.replace(line[mask.start : mask.end], mask.text)
    return redact(name).text


def key_lines(
    file: BinaryIO, scanner: "KeyScanner | None" = None, check: Callable[[], object] | None = None
) -> KeyLines:
    """Return the numbers of the lines of private keys in the first `MAX_SCANNED_BYTES` of an open file.

    Args:
        file: File that is open for reading bytes.
        scanner: Scanner that has scanned the earlier parts of the same document, if the file is a part of a document.
        check: Function that is called before each line, and may raise an error; without a `scanner` only.
    """
    scanner = scanner or KeyScanner(check)
    raw = file.read(MAX_SCANNED_BYTES + 1)
    _, encoding = byte_order_mark(raw)
    if encoding == "utf-8" and b"PRIVATE KEY" not in raw and not scanner.inside:
        numbers, count = Numbers(), raw.count(b"\n") + 1
    else:
        numbers, count = _numbers_of_keys(raw, encoding, scanner)
    return KeyLines(numbers, count if len(raw) <= MAX_SCANNED_BYTES else count - 1)


def file_redactor(
    folder: str,
    path: str,
    *,
    follow: bool,
    roots: Sequence[str] = (".",),
    check: Callable[[], object] | None = None,
) -> Redactor:
    """Return the function that masks secrets in the lines of a file.

    If the file cannot be read, it is not known which lines are inside a private key; then a line is masked if it looks
    like a line of a key. `check` is passed to `redact()`, the other arguments to `open_regular_file()`.
    """
    keys = UNKNOWN_KEYS
    try:
        with open(open_regular_file(folder, path, follow=follow, roots=roots), "rb") as file:
            keys = key_lines(file, check=check)
    except TimeoutError:  # a subclass of OSError
        raise
    except OSError:
        pass  # without key lines, each line is checked by itself
    return lambda text, first: redact(text, first, keys, check)


class KeyScanner:
    """Scanner that finds private keys in consecutive lines.

    Attributes:
        inside: True if a key began in an earlier line and may continue in the next line.
    """

    def __init__(self, check: Callable[[], object] | None = None) -> None:
        """Begin; `check` is called before each line and each part of a long line, and may raise an error."""
        self.inside: bool = False
        self._check = check or CANCELLED.get().check

    def parts(self, line: str) -> Iterator[Span]:
        """Scan the next line; yield start and end of each part of the line that is in a private key."""
        self._check()
        start, end = _content(line)
        at = 0
        if self.inside:
            marker = self._find(_END, line)
            self.inside = marker is None and self._find(_BEGIN, line) is None and self._is_inside(line)
            if self.inside or marker is not None:
                at = end if marker is None else marker.end()
                yield start, at
        while begin := self._find(_BEGIN, line, at):
            marker = self._find(_END, line, begin.end())
            at = end if marker is None else marker.end()
            # Only the last marker of a line can be without an end, so the rest of a line is copied only once.
            rest = "" if marker is not None else line[begin.end() :]
            self.inside = marker is None and self._is_inside(rest)
            if marker is not None or self.inside or self._has_long_base64(rest):
                yield begin.start(), at

    def _find(self, marker: re.Pattern[str], line: str, at: int = 0) -> re.Match[str] | None:
        """Return the first marker in a line, from an offset on.

        The words are found first, because a search for them is faster, and does not backtrack in a long run of dashes.
        """
        here = line.find(_WORDS, at)
        while here >= 0:
            self._check()
            if found := marker.search(line, max(at, here - _MARKER_CHARS), here + len(_WORDS) + _MARKER_CHARS):
                return found
            here = line.find(_WORDS, here + 1)
        return None

    @staticmethod
    def _is_inside(line: str) -> bool:
        return len(line) <= _MAX_INSIDE_CHARS and _INSIDE.fullmatch(line) is not None

    def _has_long_base64(self, line: str) -> bool:
        return any(_LONG_BASE64.search(line, *part) for part in _windows(line, self._check))


def _key_masks(scanner: KeyScanner, line: str, number: int, keys: KeyLines) -> Iterator[Mask]:
    """Yield the masks of the parts of a line that belong to private keys."""
    if number - 1 in keys.numbers and number in keys.numbers:
        scanner.inside = True  # the text may begin inside a key
    parts = list(scanner.parts(line))
    if not parts and (number in keys.numbers or (number > keys.scanned and _LOOKS_LIKE_KEY.fullmatch(line))):
        parts = [_content(line)]
    yield from (Mask(start, end, _PRIVATE_KEY) for start, end in parts if start < end)


def _numbers_of_keys(raw: bytes, encoding: str, scanner: KeyScanner) -> tuple[Numbers, int]:
    """Return the numbers of the lines that belong to private keys, and the number of all lines."""
    numbers = bytearray(1)
    line = "\n"
    for line in io.TextIOWrapper(io.BytesIO(raw), encoding, errors="replace", newline="\n"):
        numbers.append(bool(list(scanner.parts(line.removesuffix("\n")))))
    if line.endswith("\n"):  # the last line is empty
        numbers.append(bool(list(scanner.parts(""))))
    return Numbers(bytes(numbers)), len(numbers) - 1


def _content(line: str) -> Span:
    """Return the start and end of a line's text, without the white space around the text."""
    end = len(line.rstrip())
    return min(len(line) - len(line.lstrip()), end), end


def _windows(line: str, check: Callable[[], object]) -> Iterator[Span]:
    """Yield start and end of overlapping parts of a line, all of it for most lines; call `check` before each part.

    A search in one part cannot be interrupted, and other threads wait for it. Each part of `MAX_SECRET_CHARS` is in one
    of the yielded parts as a whole.
    """
    start = 0
    while start == 0 or start + MAX_SECRET_CHARS < len(line):
        check()
        yield start, start + 2 * MAX_SECRET_CHARS
        start += MAX_SECRET_CHARS


def _secrets(line: str, check: Callable[[], object]) -> Iterator[Mask]:
    """Yield a mask for each secret that a rule finds in a line, rule by rule.

    In a line of more than `2 * MAX_SECRET_CHARS` characters, a secret is found as a whole if it has at most
    `MAX_SECRET_CHARS`.
    """
    ends: dict[str, int] = {}
    for start, end in _windows(line, check):
        lower = line[start:end].lower()
        for rule in RULES:
            if not any(word in lower for word in rule.words):
                continue
            check()
            pattern = re.compile(rule.pattern)  # `re` caches it; few lines need it, so it is not compiled at import
            for found in pattern.finditer(line, max(start, ends.get(rule.pattern, 0)), end):
                # The secret may continue after this part of the line.
                match = found if found.end() < end else pattern.match(line, found.start()) or found
                ends[rule.pattern] = match.end()
                yield Mask(*match.span(min(1, pattern.groups)), rule.name)


def _merged(masks: Iterable[Mask]) -> Iterator[Mask]:
    """Yield the masks in order. Join masks that overlap; the result has the name of the first mask."""
    last: Mask | None = None
    for mask in sorted(masks, key=lambda mask: mask.start):
        if last is None:
            last = mask
        elif mask.start < last.end:
            last = last._replace(end=max(last.end, mask.end))
        else:
            yield last
            last = mask
    if last is not None:
        yield last
