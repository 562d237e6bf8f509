"""Mask secrets in the lines of an answer: keys, tokens and passwords become `[redacted: NAME]`.

Most rules look at one line. A private key (RFC 7468) has many lines, and an answer may show only a line in the middle.
So `key_lines()` finds the lines of private keys in the whole file. If the file cannot be read, each line that looks
like a line of a key is masked. All secrets of a kind have the same mask, whatever their length, and a mask never spans
lines.

The rules are those of `scan()`: the built-in ones, or others whose patterns mean the same in rg and in Python's `re`.
`re` may take much longer than rg, so a rule is refused if it has too many ways to match (see `backtracking`). `re`
cannot be interrupted, so a rule with many ways is tried at one place after another. A line is masked without its file,
so the path and the keywords of a rule do not matter, and a mask is rather too much than too little.
"""

import io
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from ripwrap._ripgrep.literals import fold, rarest, required_literals
from ripwrap._scan.rules import Rule, allow_comment, check_rules
from ripwrap._system.concurrency import CANCELLED
from ripwrap._system.safe_open import open_regular_file
from ripwrap._text import byte_order_mark, cut_text, plural, raw_bytes, shown
from ripwrap.models import Captures, ScanMatch, Span, Submatch
from ripwrap.workspace.backtracking import MAX_WAYS, Bounded, bounded

MAX_SECRET_CHARS = 16_384
"""Number of characters to read beyond the place where a line is cut, to recognise a secret that spans this place."""

MAX_SCANNED_BYTES = 16_000_000
"""Number of bytes at the start of a file that are scanned for private keys; each later line is checked by itself."""

_FEW_WAYS = 1_000
"""Number of ways up to which a rule searches a part of a line in one step."""

_MAX_FOLDED_CHARS = 1_000_000
"""Length of a text up to which the words of the rules are looked for in all of it, which cannot be interrupted."""

_MAX_NAME_CHARS = 80

_PRIVATE_KEY = "private-key"
_MARKER = r"-{{4,5}} ?{} (?:[A-Z0-9]{{1,20}} ){{0,4}}PRIVATE KEY(?: BLOCK)? ?-{{4,5}}"
_BEGIN = re.compile(_MARKER.format("BEGIN"))
_END = re.compile(_MARKER.format("END"))
_INSIDE = re.compile(
    r"""[\s"'`+#/*>|-]*+(?:[A-Z][A-Za-z-]{1,30}: .{0,200}|"""
    r"""[A-Za-z0-9+/]*+={0,2}[\s"'`,;+)\\]*+(?:(?<=\\)[nr][\s"'`,;+)\\]*+)*)"""
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


class Mask(NamedTuple):
    """Part of a text that is masked."""

    start: int
    end: int
    name: str

    @property
    def text(self) -> str:
        """Text that replaces the secret."""
        return f"[redacted: {self.name}]"


@dataclass(frozen=True, slots=True)
class Redacted:
    """Result of masking the secrets in a text."""

    text: str
    masks: tuple[Mask, ...] = ()
    starts: tuple[int, ...] = ()

    def moved(self, span: Span) -> Span:
        """Convert a span of the original text to a span of the masked text.

        If the span begins or ends inside a secret, the returned span includes the whole mask of that secret.
        """
        return self._moved(span[0], is_end=False), self._moved(span[1], is_end=True)

    def _moved(self, offset: int, *, is_end: bool) -> int:
        at = bisect_left(self.masks, offset, key=lambda mask: mask.start) - 1  # the last mask that starts before it
        if at < 0:
            return offset
        mask, start = self.masks[at], self.starts[at]
        if offset < mask.end:
            return start + is_end * len(mask.text)
        return start + len(mask.text) + offset - mask.end


class Numbers:
    """Set of numbers of lines, with one byte for each line: a file may have millions of blank lines inside a key."""

    def __init__(self, flags: bytes = b"") -> None:
        """Set the flags: byte N is 1 if the set has the number N, and 0 if not."""
        self._flags = flags

    def __contains__(self, number: int) -> bool:
        return 0 <= number < len(self._flags) and self._flags[number] != 0

    def __or__(self, other: "Numbers") -> "Numbers":
        both = int.from_bytes(self._flags, "little") | int.from_bytes(other._flags, "little")
        return Numbers(both.to_bytes(max(len(self._flags), len(other._flags)), "little"))

    def __bool__(self) -> bool:
        return 1 in self._flags


@dataclass(frozen=True, slots=True)
class KeyLines:
    """Lines of the private keys in a file."""

    numbers: Numbers = field(default_factory=Numbers)
    scanned: int = 0


UNKNOWN_KEYS = KeyLines()
"""Value for a file that was not scanned for private keys."""

Redactor: TypeAlias = Callable[[str, int], Redacted]
"""Function that masks secrets in lines; its arguments are the text of the lines and the number of the first line."""


def redact_name(redactor: Redactor, name: str, number: int = 1, line: str = "", masks: Iterable[Mask] = ()) -> str:
    """Mask the secrets in the name of a definition."""
    for mask in masks:
        name = name.replace(line[mask.start : mask.end], mask.text)
    return redactor(name, number).text


def key_lines(
    file: BinaryIO, scanner: "KeyScanner | None" = None, check: Callable[[], object] | None = None
) -> KeyLines:
    """Return the numbers of the lines of private keys in the first `MAX_SCANNED_BYTES` of an open file."""
    scanner = scanner or KeyScanner(check)
    raw = file.read(MAX_SCANNED_BYTES + 1)
    _, encoding = byte_order_mark(raw)
    if encoding == "utf-8" and b"PRIVATE KEY" not in raw and not scanner.inside:
        numbers, count = Numbers(), raw.count(b"\n") + 1
    else:
        flags, line = bytearray(1), "\n"
        for line in io.TextIOWrapper(io.BytesIO(raw), encoding, errors="replace", newline="\n"):
            flags.append(bool(list(scanner.parts(line.removesuffix("\n")))))
        if line.endswith("\n"):  # the last line is empty
            flags.append(bool(list(scanner.parts(""))))
        numbers, count = Numbers(bytes(flags)), len(flags) - 1
    return KeyLines(numbers, count if len(raw) <= MAX_SCANNED_BYTES else count - 1)


class KeyScanner:
    """Scanner that finds private keys in consecutive lines."""

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
            if (
                marker is not None
                or self.inside
                or any(_LONG_BASE64.search(rest, *part) for part in _windows(rest, self._check))
            ):
                yield begin.start(), at

    def _find(self, marker: re.Pattern[str], line: str, at: int = 0) -> re.Match[str] | None:
        """Return the first marker in a line, from an offset on; words are found first, without backtracking."""
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


def _key_masks(scanner: KeyScanner, line: str, number: int, keys: KeyLines) -> Iterator[Mask]:
    """Yield the masks of the parts of a line that belong to private keys."""
    if number - 1 in keys.numbers and number in keys.numbers:
        scanner.inside = True  # the text may begin inside a key
    parts = list(scanner.parts(line))
    if not parts and (number in keys.numbers or (number > keys.scanned and _LOOKS_LIKE_KEY.fullmatch(line))):
        parts = [_content(line)]
    yield from (Mask(start, end, _PRIVATE_KEY) for start, end in parts if start < end)


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


class _Finder:
    """Rule that finds secrets in a line; its pattern is compiled when a line may match."""

    def __init__(self, rule: Rule) -> None:
        """Set the rule."""
        # A line with the comment `gitleaks:allow` has a known secret, which is masked as well.
        kept = tuple(one for one in rule.allowlists if one != allow_comment())
        self._rule = rule.model_copy(update={"allowlists": kept})
        self.name = cut_text(shown(rule.id.partition("/")[0] or rule.id), _MAX_NAME_CHARS)
        self.linear = rule.pattern in _built_in_patterns()  # which `tests/workspace/test_redact.py` checks
        if self.linear:
            return
        cost = self._bounded.cost
        if cost > MAX_WAYS:
            raise ValueError(
                f"there are more than {MAX_WAYS:,} ways to match the pattern {cut_text(rule.pattern, 200)!r} at one "
                "place, so Python may take too long; write a maximum, as in {0,50}, in place of * and +, and no "
                "repetitions in repetitions"
            )
        self.linear = self._bounded.steady and cost <= _FEW_WAYS

    @cached_property
    def _bounded(self) -> Bounded:
        return bounded(self._rule.pattern)

    @cached_property
    def words(self) -> tuple[bytes, ...]:
        """Literals of which each match has at least one, after `fold()`; an empty one if they are not known."""
        required = required_literals([self._rule.pattern], {})
        return (b"",) if required is None else tuple(rarest(required))

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Pattern for Python."""
        if self._rule.pattern in _built_in_patterns():
            return re.compile(self._rule.pattern.replace("(?-u:", "(?a:"))
        return re.compile(self._bounded.text)

    def found(self, line: str, start: int, end: int, check: Callable[[], object]) -> Iterator[re.Match[str]]:
        """Yield the matches in a part of a line; call `check` before each step that takes long."""
        check()
        if self.linear:
            yield from self.pattern.finditer(line, start, end)
            return
        while start <= end:
            check()
            found = self.pattern.match(line, start, end)
            if found:
                yield found
            start = max(start + 1, found.end() if found else 0)

    def whole(self, line: str, found: re.Match[str]) -> re.Match[str]:
        """Return a match that ends with a part of a line, with its text in the rest of the line."""
        end = len(line) if self.linear else found.end() + MAX_SECRET_CHARS
        return self.pattern.match(line, found.start(), end) or found

    def mask(self, found: re.Match[str]) -> Mask | None:
        """Return the mask of a match; `None` if it is no secret."""
        number = self._rule.secret_group if self._rule.secret_group <= found.re.groups else 0
        if not number:
            number = next((number for number, text in enumerate(found.groups(), 1) if text), 0)
        start, end = found.span(number) if found[number] else found.span()
        if not self._rule.filters:
            return Mask(start, end, self.name)
        # The filters of the rule get a match without a path, whose line is the text around it.
        begin = max(found.start() - MAX_SECRET_CHARS, 0)
        line = found.string[begin : found.end() + MAX_SECRET_CHARS]
        before = len(raw_bytes(line[: found.start() - begin]))
        submatch = Submatch.model_construct(match=found[0], start=before, end=0)
        captures = Captures.model_construct(groups=found.groups(), named={})
        known: dict[str, Any] = {"path": "", "lines": line, "submatches": (submatch,), "captures": (captures,)}
        hit = ScanMatch.model_construct(**known, rule=self._rule.id)
        return Mask(start, end, self.name) if self._rule.accepts(hit) else None


def _has_any(words: Sequence[bytes], text: bytes) -> bool:
    for word in words:  # noqa: SIM110 - any() takes three times as long, and this is most of the time of masking
        if word in text:
            return True
    return False


class Redaction:
    """Mask secrets by rules; private keys are always masked."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        """Set the rules, as for `scan()`; those that find files by name are left out."""
        self._finders: list[_Finder] = []
        refused: dict[str, str] = {}
        for rule in rules:
            try:
                self._finders += [_Finder(rule)] if rule.pattern else []
            except ValueError as error:
                refused[rule.id] = str(error)
        if refused:
            names, reason = ", ".join(map(repr, refused)), next(iter(refused.values()))
            raise ValueError(f"cannot mask secrets by {plural(len(refused), 'rule')}, leave out {names}; {reason}")

    def __call__(
        self,
        text: str,
        first: int = 1,
        keys: KeyLines = UNKNOWN_KEYS,
        check: Callable[[], object] | None = None,
    ) -> Redacted:
        """Mask the secrets in whole lines; a secret that is cut is not recognised.

        `check` is called before each line and each part of a long line, and may raise an error at a deadline, because
        masking one megabyte may take several seconds.
        """
        check = check or CANCELLED.get().check
        scanner = KeyScanner(check)
        masks: list[Mask] = []
        starts: list[int] = []
        pieces: list[str] = []
        start = done = length = 0
        words: Sequence[bytes] = self._words
        if "\n" in text and len(text) <= _MAX_FOLDED_CHARS:
            folded = fold(raw_bytes(text))
            words = [word for word in words if word in folded]
        for number, line in enumerate(text.split("\n"), first):
            secrets = self._secrets(line, words, check) if words else ()
            for mask in _merged([*_key_masks(scanner, line, number, keys), *secrets]):
                masks.append(Mask(mask.start + start, mask.end + start, mask.name))
                length += masks[-1].start - done
                starts.append(length)
                pieces += text[done : masks[-1].start], mask.text
                length += len(mask.text)
                done = masks[-1].end
            start += len(line) + 1
        return Redacted("".join((*pieces, text[done:])), tuple(masks), tuple(starts))

    def of_file(
        self,
        folder: str,
        path: str,
        *,
        follow: bool,
        roots: Sequence[str] = (".",),
        check: Callable[[], object] | None = None,
    ) -> Redactor:
        """Return the function that masks secrets in the lines of a file.

        If the file cannot be read, it is not known which lines are inside a private key; then a line is masked if it
        looks like a line of a key. `check` is passed to the masking, the other arguments to `open_regular_file()`.
        """
        keys = UNKNOWN_KEYS
        try:
            with open_regular_file(folder, path, follow=follow, roots=roots) as file:
                keys = key_lines(file, check=check)
        except TimeoutError:  # a subclass of OSError
            raise
        except OSError:
            pass  # without key lines, each line is checked by itself
        return lambda text, first: self(text, first, keys, check)

    @cached_property
    def _words(self) -> tuple[bytes, ...]:
        """Literals of which each match of any rule has at least one."""
        words = {word for finder in self._finders for word in finder.words}
        return tuple(word for word in words if not any(other in word for other in words - {word}))

    def _secrets(self, line: str, words: Sequence[bytes], check: Callable[[], object]) -> Iterator[Mask]:
        """Yield a mask for each secret that a rule finds in a line, rule by rule.

        In a line of more than `2 * MAX_SECRET_CHARS` characters, a secret is found as a whole if it has at most
        `MAX_SECRET_CHARS`.
        """
        ends: dict[_Finder, int] = {}
        for start, end in _windows(line, check):
            folded = fold(raw_bytes(line[start:end]))
            if not _has_any(words, folded):
                continue
            for finder in self._finders:
                if not _has_any(finder.words, folded):
                    continue
                for found in finder.found(line, max(start, ends.get(finder, 0)), min(end, len(line)), check):
                    # The secret may continue after this part of the line.
                    match = found if found.end() < end else finder.whole(line, found)
                    ends[finder] = match.end()
                    if mask := finder.mask(match):
                        yield mask


@cache
def _built_in_rules() -> tuple[Rule, ...]:
    from ripwrap._scan.secrets import SECRET_RULES  # late: making the rules makes Pydantic's first validator

    return SECRET_RULES


@cache
def _built_in_patterns() -> frozenset[str]:
    return frozenset(rule.pattern for rule in _built_in_rules())


@cache
def built_in_redaction() -> Redaction:
    """Return the masking by the built-in rules."""
    return Redaction(_built_in_rules())


def redaction_of(rules: bool | Mapping[str, str] | Iterable[Rule]) -> Redaction | None:
    """Return the masking for the argument `redact` of `Workspace`; `None` if secrets are shown."""
    if isinstance(rules, bool):
        return built_in_redaction() if rules else None
    return Redaction(check_rules(rules))


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
