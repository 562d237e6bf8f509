"""Search files in several encodings (`encoding="detect"`); needs the extra `detect` (charset-normalizer).

First, rg lists the files with a line that is not UTF-8. charset-normalizer guesses the encoding of each of these files
from its first lines that are not ASCII. Then rg searches all files as usual, but the matches in the files with
a guessed encoding are dropped. Finally, rg searches the files of each encoding again, with that encoding.
"""

import codecs
import logging
import math
import os
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar, cast

from ripwrap._concurrency import CANCELLED, in_thread
from ripwrap._operations.counts import paths_request
from ripwrap._operations.files import ListingAnswer
from ripwrap._operations.search import sum_summaries
from ripwrap._operations.streaming import StreamRequest, run_stream, run_stream_blocking
from ripwrap._ripgrep.command import Command
from ripwrap._ripgrep.decoder import PathDecoder
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.listing_collector import ListingCollector
from ripwrap._ripgrep.page_collector import MatchCollector, PageRequest
from ripwrap._ripgrep.process import split, timeout_error
from ripwrap._ripgrep.runner import Runner, Step
from ripwrap._safe_open import open_regular_file
from ripwrap._text import shown
from ripwrap.binary.probe import RgBinary
from ripwrap.binary.resolver import Rg, find, resolve
from ripwrap.errors import Hint, HintedText, RipwrapError, combination_error
from ripwrap.models import End, Stats, Summary
from ripwrap.options import FileOptions, SearchOptions, StrPath, check_limit, check_timeout

if TYPE_CHECKING:
    from ripwrap._operations.grep import GrepRequest

T = TypeVar("T")
DETECT = "detect"
"""Value of the option `encoding` that asks ripwrap to detect the encoding of each file."""

_READ_BYTES = 1024 * 1024  # size of a block; the sample is from the first block that is not ASCII
SAMPLE_BYTES = 64 * 1024
"""Size in bytes of the sample from which the encoding of a file is guessed.

A long last line can make the sample larger.
"""

_NOT_UTF8 = "^.*$"  # `.` matches only valid UTF-8, so a line that does not match has invalid bytes
_FILE_NAMES = frozenset(FileOptions.__annotations__) | {"binary", "text"}
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


def detects(options: Mapping[str, Any]) -> bool:
    """Return True if the options ask to detect the encodings of files."""
    return options.get("encoding") == DETECT


@dataclass(frozen=True, slots=True)
class DetectRequest(Generic[T]):
    """Checked arguments of `search()` or `search_messages()` with `encoding="detect"`.

    Attributes:
        cwd: Directory of the search.
        listing: Request that lists the files that are not UTF-8.
        main: Request that searches all files without the option `encoding`.
        again: Function that takes paths, an encoding and a limit of matches, and returns the request that searches
            these paths in this encoding.
        limit: Maximum number of matches; `None` is no limit.
    """

    cwd: str
    listing: StreamRequest[str]
    main: StreamRequest[T]
    again: Callable[[Sequence[str], str, int | None], StreamRequest[T]]
    limit: int | None


def detect_request(
    make: Callable[..., StreamRequest[T]],
    pattern: str | Sequence[str],
    cwd: StrPath,
    paths: StrPath | Iterable[StrPath],
    limit: int | None,
    options: SearchOptions,
    on: object,
) -> DetectRequest[T]:
    """Check the arguments, and return the request of a search with `encoding="detect"`.

    Args:
        make: Function that returns the request of a search: `search_request()` or `messages_request()`.
        pattern: See `search()`.
        cwd: See `search()`.
        paths: See `search()`.
        limit: See `search()`.
        options: See `search()`.
        on: See `search()`.

    Raises:
        RipwrapError: charset-normalizer is not installed.
        ValueError: An option cannot be combined with the detection.
    """
    plain = check_detection(options, {"on": on, "sort": options.get("sort"), "sortr": options.get("sortr")})
    if not isinstance(paths, (str, bytes, os.PathLike)):
        paths = tuple(paths)
    if not isinstance(pattern, (str, bytes)):
        pattern = tuple(pattern)
    main = make(pattern, cwd, paths, None, plain)  # no limit, because some of these matches are dropped
    root = main.command.cwd

    def again(files: Sequence[str], label: str, left: int | None) -> StreamRequest[T]:
        found = make(pattern, cwd, files, left, cast("SearchOptions", {**plain, "encoding": label}))
        return replace(found, command=replace(found.command, cwd=root))

    return DetectRequest(root, listing_request(main.command, paths, plain), main, again, check_limit(limit))


def check_detection(options: SearchOptions, others: Mapping[str, object]) -> SearchOptions:
    """Check that the detection is possible, and return the options without `encoding`.

    Args:
        options: Options of the search.
        others: Values of the arguments that cannot be combined with the detection, by name.

    Raises:
        RipwrapError: charset-normalizer is not installed.
        ValueError: One of `others` is given.
    """
    for name, value in others.items():
        if value not in (None, False, (), [], "", "none"):
            raise combination_error(name, Hint("encoding", DETECT))
    try:
        import_module("charset_normalizer")  # a missing package is an error of the call, not of the iteration
    except ModuleNotFoundError as error:
        package = Hint(kind="install", target="ripwrap[detect]")
        raise RipwrapError(HintedText("encoding='detect' needs the package charset-normalizer: ", package)) from error
    return cast("SearchOptions", {name: value for name, value in options.items() if name != "encoding"})


def listing_request(command: Command, paths: StrPath | Iterable[StrPath], options: SearchOptions) -> StreamRequest[str]:
    """Return the request that lists the files that are not UTF-8, among the files that a command searches."""
    files: dict[str, Any] = {name: value for name, value in options.items() if name in _FILE_NAMES}
    if options.get("null_data"):
        files["text"] = True  # with `null_data`, no file is binary
    # With `--files-with-matches --invert-match`, rg 15 reads each file to its end, and then leaves out files with a NUL
    # byte (rg-facts 51). With `max_count=1`, rg stops at the first match.
    wanted = cast("SearchOptions", {**files, "encoding": "none", "invert_match": True, "max_count": 1})
    request = paths_request(_NOT_UTF8, os.curdir, paths, None, wanted, matching=True)
    return StreamRequest(replace(request.command, cwd=command.cwd), lambda: _SilentListing(PathDecoder(), None))


class _SilentListing(ListingAnswer[str]):
    """Listing that does not log unreadable paths, because the search that follows logs them."""

    def finish(self, end: Exit) -> Iterator[str]:  # noqa: ARG002 - see above
        return iter(())


def guess_encodings(cwd: str, paths: Iterable[str], deadline: float = math.inf) -> dict[str, list[str]]:
    """Guess the encodings of files, and return a map from each encoding (a label for rg) to its files.

    A file whose encoding is unknown is logged as a warning and left out. Files that rg decodes by itself are left out,
    too: files with a byte order mark, and files that are UTF-8 except for a few bytes.

    Args:
        cwd: Directory of the paths.
        paths: Files.
        deadline: Time of `time.monotonic()` after which no further file is read.

    Raises:
        TimeoutError: The call was cancelled.
    """
    files: dict[str, list[str]] = {}
    for path in sorted(paths):
        if CANCELLED.get().is_set():
            raise TimeoutError("the call was cancelled")
        if time.monotonic() >= deadline:
            break
        try:
            with open(open_regular_file(cwd, path, follow=True), "rb") as file:
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
    from charset_normalizer import from_bytes

    # If the sample ends within a character, it is invalid in every multi-byte encoding. A character has up to four
    # bytes, so also try the sample without its last one, two and three bytes.
    texts = [sample[: len(sample) - cut] for cut in range(4 if is_cut else 1)]
    guesses = [best for text in texts if (best := from_bytes(text, cp_isolation=list(_LABELS)).best()) is not None]
    # `chaos` is higher for garbled text, `coherence` is higher for text of a known language.
    best = min(guesses, key=lambda one: (one.chaos, -one.coherence), default=None)
    return None if best is None else _LABELS.get(best.encoding)


async def run_detect(request: DetectRequest[T], rg: Rg) -> AsyncGenerator[T]:
    """List the files that are not UTF-8, search all files, then search the listed files in the guessed encodings."""
    if request.limit == 0:
        return
    binary = await resolve(rg)
    async with aclosing(run_stream(request.listing, binary)) as listed:
        others = [path async for path in listed]
    files = await in_thread(partial(guess_encodings, request.cwd, others)) if others else {}
    merged = _Merged[T](request, files, binary)
    for search in merged.searches():
        async with aclosing(run_stream(search, binary)) as messages:
            async for message in messages:
                for one in merged.take(message):
                    yield one
                if merged.full:
                    return
    for one in merged.summary():
        yield one


def run_detect_blocking(request: DetectRequest[T], rg: Rg, timeout: float | None) -> Generator[T]:
    """List and search files like `run_detect()`, but blocking.

    Raises:
        ValueError, TypeError: `timeout` is negative, or not a number of seconds. The call raises these errors, not the
            first iteration.
        TimeoutError: All searches together took longer than `timeout` seconds.
    """
    return _run_detect_blocking(request, rg, check_timeout(timeout))


def _run_detect_blocking(request: DetectRequest[T], rg: Rg, timeout: float | None) -> Generator[T]:
    if request.limit == 0:
        return
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    binary = find(rg, timeout=timeout)

    def left() -> float | None:
        return None if timeout is None else max(0.0, deadline - time.monotonic())

    try:
        with closing(run_stream_blocking(request.listing, binary, left())) as listed:
            others = list(listed)
        merged = _Merged[T](request, guess_encodings(request.cwd, others, deadline) if others else {}, binary)
        for search in merged.searches():
            with closing(run_stream_blocking(search, binary, left())) as messages:
                for message in messages:
                    yield from merged.take(message)
                    if merged.full:
                        return
    except TimeoutError as error:
        if time.monotonic() < deadline:
            raise
        raise timeout_error(timeout) from error
    yield from merged.summary()


class _Merged(Generic[T]):
    """Merger of the messages of all searches into the messages of one search.

    Attributes:
        full: True if the limit of matches is reached.
    """

    def __init__(self, request: DetectRequest[T], files: Mapping[str, Sequence[str]], rg: RgBinary) -> None:
        self.full = False
        self._counts_all = rg.version >= (15,)  # before 15, only files with matches (rg-facts 25)
        self._request = request
        self._files = files
        self._detected = frozenset(path for paths in files.values() for path in paths)
        self._label: str | None = None
        self._left = request.limit
        self._dropped: list[Stats] = []
        self._summary: Summary | None = None

    def searches(self) -> Generator[StreamRequest[T]]:
        """Yield the requests of the searches. Run each request before you take the next one."""
        yield self._request.main
        for label, paths in self._files.items():
            self._label = label
            yield self._request.again(paths, label, self._left)

    def take(self, message: Any) -> Generator[T]:
        """Yield the message, unless it is a summary, or a message of the first search about a file to search again.

        `summary()` yields the total of the summaries. An `End` of a later search gets the encoding of that search.
        """
        if isinstance(message, Summary):
            self._add(message)
        elif self._label is None and message.path in self._detected:
            if isinstance(message, End):
                self._dropped.append(message.stats)
        else:
            if isinstance(message, End) and self._label is not None:
                message = message.model_copy(update={"encoding": self._label})
            if self._left is not None and message.type == "match":
                self._left -= 1
                self.full = not self._left
            yield cast("T", message)

    def summary(self) -> Generator[T]:
        """Yield the total of the summaries of all searches; nothing if the searches have no summaries."""
        if self._summary is not None:
            yield cast("T", self._summary)

    def _add(self, summary: Summary) -> None:
        before = self._summary
        if before is None:
            counts = summary.stats.model_dump(exclude={"elapsed"})
            fewer = {name: count - sum(getattr(one, name) for one in self._dropped) for name, count in counts.items()}
            if self._counts_all:  # the first run also counted detected files without a match
                fewer["searches"] -= len(self._detected) - len(self._dropped)
            self._summary = summary.model_copy(update={"stats": summary.stats.model_copy(update=fewer)})
            return
        known = {
            "errors": (*before.errors, *summary.errors),
            "dropped_records": before.dropped_records + summary.dropped_records,
        }
        self._summary = (sum_summaries(before, summary) or summary).model_copy(update=known)


@dataclass(frozen=True, slots=True)
class Detected:
    """Files of a `grep()` that are not UTF-8.

    Attributes:
        files: Map from each encoding (a label for rg) to its files.
        timed_out: True if some of these files may be missing, because the time limit was reached.
    """

    files: Mapping[str, Sequence[str]]
    timed_out: bool

    def step(
        self, request: "GrepRequest", options: SearchOptions, page: PageRequest, timeout: float | None
    ) -> Step[MatchCollector]:
        """Return the step (several runs of rg) that searches all files, and then `files` in their encodings."""
        command = request.command_for(request.query, options)
        commands = tuple(
            request.command_for(request.query, cast("SearchOptions", {**options, "encoding": label}), paths)
            for label, paths in self.files.items()
        )
        paths = frozenset(os.fsencode(path) for some in self.files.values() for path in some)
        runs = len(split(command))
        return Step(command, lambda: _DetectingCollector(page, paths, runs, self.timed_out), timeout, commands)


class _DetectingCollector(MatchCollector):
    """Collector that counts a match in a file of `detected` only if rg searched the file in its encoding."""

    def __init__(self, page: PageRequest, detected: frozenset[bytes], runs: int, timed_out: bool) -> None:
        """Set the files, the number of runs of rg that search all files, and `Detected.timed_out`."""
        super().__init__(page, self._counts)
        self._detected = detected
        self._runs = runs
        self._timed_out = timed_out

    def _counts(self, path: bytes) -> bool:
        return (path in self._detected) is (self._runs <= 0)

    def end_run(self, end: Any) -> None:
        """Process the end of a run."""
        super().end_run(end)
        self._runs -= 1

    def finish(self, end: Exit, *, timed_out: bool) -> None:
        """Store the exit of rg; if the detection timed out, mark the result as incomplete."""
        super().finish(end, timed_out=timed_out or self._timed_out)


async def with_detected(run: Runner, request: "GrepRequest") -> "GrepRequest":
    """Return a request of `grep()` that searches each file in its encoding.

    Return `request` itself if no encoding was guessed and the detection did not time out. The search for the encodings
    takes at most the time limit of the request. Then the search for the pattern has the whole time limit.

    Raises what `Runner.collect()` raises.
    """
    begun = time.monotonic()
    listing = listing_request(request.command, request.paths, request.options)

    def collector() -> ListingCollector[str]:
        nonlocal begun
        begun = time.monotonic()  # rg starts now; the wait for a slot does not count
        return ListingCollector(PathDecoder(), 1 << 60)

    listed = await run.collect(Step(listing.command, collector, request.timeout))
    deadline = math.inf if request.timeout is None else begun + request.timeout
    files = dict[str, list[str]]()
    if others := listed.every():
        files = await run.call(partial(guess_encodings, request.command.cwd, others, deadline))
    timed_out = listed.timed_out or (bool(others) and time.monotonic() >= deadline)
    return replace(request, detected=Detected(files, timed_out)) if files or timed_out else request
