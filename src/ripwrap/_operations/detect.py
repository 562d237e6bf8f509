"""Search files in several encodings (`encoding="detect"`); needs the extra `detect` (charset-normalizer).

rg finds the files with a line that is not UTF-8. The encoding of each is guessed from its first bytes. Then rg searches
all files as usual, and these files again, with a run for each encoding. What the first run finds in them is dropped.
"""

import codecs
import logging
import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import aclosing, closing
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from ripwrap._concurrency import in_thread
from ripwrap._operations.counts import paths_request
from ripwrap._operations.search import sum_summaries
from ripwrap._operations.streaming import StreamRequest, run_stream, run_stream_blocking
from ripwrap._ripgrep.command import Command
from ripwrap._ripgrep.decoder import PathDecoder
from ripwrap._ripgrep.listing_collector import ListingCollector
from ripwrap._ripgrep.page_collector import MatchCollector, PageRequest
from ripwrap._ripgrep.process import split
from ripwrap._ripgrep.runner import Runner, Step
from ripwrap._safe_open import open_regular_file
from ripwrap._text import shown
from ripwrap.binary.probe import RgBinary
from ripwrap.binary.resolver import Rg, find, resolve
from ripwrap.errors import Hint, HintedText, RipwrapError
from ripwrap.models import End, Stats, Summary
from ripwrap.options import FileOptions, SearchOptions, StrPath, check_timeout

if TYPE_CHECKING:
    from ripwrap._operations.grep import GrepRequest

T = TypeVar("T")
DETECT = "detect"
"""Value of the option `encoding` that this module follows."""

_READ_BYTES = 1024 * 1024  # of a file, to find its lines that are not ASCII
SAMPLE_BYTES = 64 * 1024
"""Number of bytes of such lines from which the encoding of a file is guessed."""

_NOT_UTF8 = "^.*$"  # `.` matches only valid UTF-8, so lines that do not match have other bytes
_FILE_NAMES = frozenset(FileOptions.__annotations__)
_LOGGER = logging.getLogger("ripwrap")

# Labels of the Encoding Standard, which rg follows (https://encoding.spec.whatwg.org/#names-and-labels), for Python's
# names. Python's other encodings are not in the standard.
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
    """Return True if the encodings of files are to be detected."""
    return options.get("encoding") == DETECT


@dataclass(frozen=True, slots=True)
class DetectRequest(Generic[T]):
    """Checked arguments of `search()` or `search_messages()` with `encoding="detect"`.

    Attributes:
        cwd: Directory of the search.
        listing: Request that lists the files that are not UTF-8.
        main: Search of all files, as usual.
        again: Function that makes the search of some files with an encoding, for a number of matches.
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
    """Check the arguments, and return the request.

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
    main = make(pattern, cwd, paths, limit, plain)
    root = main.command.cwd

    def again(files: Sequence[str], label: str, left: int | None) -> StreamRequest[T]:
        found = make(pattern, cwd, files, left, cast("SearchOptions", {**plain, "encoding": label}))
        return replace(found, command=replace(found.command, cwd=root))

    return DetectRequest(root, listing_request(main.command, paths, plain), main, again, limit)


def check_detection(options: SearchOptions, others: Mapping[str, object]) -> SearchOptions:
    """Return the options without the encoding.

    Args:
        options: Options of the search.
        others: Values of the arguments that cannot be combined with the detection, by name.

    Raises:
        RipwrapError: charset-normalizer is not installed.
        ValueError: One of `others` is given.
    """
    for name, value in others.items():
        if value not in (None, False, (), ""):
            wrong = Hint(name, kind="omit")
            said = (" does not apply to ", Hint("encoding", DETECT), "; leave one of them out")
            raise ValueError(HintedText(wrong, *said))
    try:
        import_module("charset_normalizer")  # a missing package is an error of the call, not of the iteration
    except ModuleNotFoundError as error:
        package = Hint(kind="install", target="ripwrap[detect]")
        raise RipwrapError(HintedText("encoding='detect' needs the package charset-normalizer: ", package)) from error
    return cast("SearchOptions", {name: value for name, value in options.items() if name != "encoding"})


def listing_request(command: Command, paths: StrPath | Iterable[StrPath], options: SearchOptions) -> StreamRequest[str]:
    """Return the request that lists the files that are not UTF-8, among those that a command searches."""
    files = {name: value for name, value in options.items() if name in _FILE_NAMES}
    wanted = cast("SearchOptions", {**files, "encoding": "none", "invert_match": True})
    request = paths_request(_NOT_UTF8, os.curdir, paths, None, wanted, matching=True)
    return replace(request, command=replace(request.command, cwd=command.cwd))


def guess_encodings(cwd: str, paths: Iterable[str]) -> dict[str, list[str]]:
    """Return the files of each encoding, as a label for rg. Files whose encoding is unknown are logged as warnings.

    A file with a byte order mark of UTF-16 is left out, because rg decodes it.
    """
    from charset_normalizer import from_bytes

    files: dict[str, list[str]] = {}
    for path in sorted(paths):
        try:
            with open(open_regular_file(cwd, path, follow=True), "rb") as file:
                raw = file.read(_READ_BYTES)
        except OSError as error:
            _LOGGER.warning("%s could not be read: %s", shown(path), error)
            continue
        if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            continue
        best = from_bytes(_sample(raw), cp_isolation=list(_LABELS)).best()
        label = None if best is None else _LABELS.get(best.encoding)
        if label is None:
            _LOGGER.warning("the encoding of %s is unknown; it is searched as UTF-8", shown(path))
        else:
            files.setdefault(label, []).append(path)
    return files


def _sample(raw: bytes) -> bytes:
    """Return the lines that are not ASCII; other lines would hide the encoding of a few comments."""
    sample, size = list[bytes](), 0
    for line in raw.splitlines(keepends=True):
        if not line.isascii():
            sample.append(line[:SAMPLE_BYTES])
            size += len(sample[-1])
            if size >= SAMPLE_BYTES:
                break
    return b"".join(sample) or raw[:SAMPLE_BYTES]


async def run_detect(request: DetectRequest[T], rg: Rg) -> AsyncGenerator[T]:
    """List the files that are not UTF-8, and search all files and then these."""
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
    """Do what `run_detect()` does, blocking; each run of rg has the time limit.

    Raises:
        ValueError, TypeError: `timeout` is not a number of seconds. The call raises it, not the first iteration.
    """
    return _run_detect_blocking(request, rg, check_timeout(timeout))


def _run_detect_blocking(request: DetectRequest[T], rg: Rg, timeout: float | None) -> Generator[T]:
    if request.limit == 0:
        return
    binary = find(rg, timeout=timeout)
    with closing(run_stream_blocking(request.listing, binary, timeout)) as listed:
        others = list(listed)
    merged = _Merged[T](request, guess_encodings(request.cwd, others) if others else {}, binary)
    for search in merged.searches():
        with closing(run_stream_blocking(search, binary, timeout)) as messages:
            for message in messages:
                yield from merged.take(message)
                if merged.full:
                    return
    yield from merged.summary()


class _Merged(Generic[T]):
    """Messages of all searches, as those of one search.

    Attributes:
        full: True if the limit of matches is reached.
    """

    def __init__(self, request: DetectRequest[T], files: Mapping[str, Sequence[str]], rg: RgBinary) -> None:
        self.full = False
        self._counts_all = rg.version >= (15,)  # before, rg counts only files with matches (rg-facts 25)
        self._request = request
        self._files = files
        self._detected = frozenset(path for paths in files.values() for path in paths)
        self._label: str | None = None
        self._left = request.limit
        self._dropped: list[Stats] = []
        self._summary: Summary | None = None

    def searches(self) -> Generator[StreamRequest[T]]:
        """Yield the requests of the searches; each is to be run before the next is taken."""
        yield self._request.main
        for label, paths in self._files.items():
            self._label = label
            yield self._request.again(paths, label, self._left)

    def take(self, message: Any) -> Generator[T]:
        """Yield a message if it counts."""
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
        """Yield the summary of all searches, if they have summaries."""
        if self._summary is not None:
            yield cast("T", self._summary)

    def _add(self, summary: Summary) -> None:
        before = self._summary
        if before is None:
            counts = summary.stats.model_dump(exclude={"elapsed"})
            fewer = {name: count - sum(getattr(one, name) for one in self._dropped) for name, count in counts.items()}
            if self._counts_all:  # the first run has searched the files without a match, too
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
        files: Files of each encoding.
        commands: Commands that search them, one or more for each encoding.
    """

    files: Mapping[str, Sequence[str]]
    commands: tuple[Command, ...]

    def step(self, command: Command, page: PageRequest, timeout: float | None) -> Step[MatchCollector]:
        """Return the step that searches all files and then these."""
        paths = frozenset(os.fsencode(path) for some in self.files.values() for path in some)
        runs = len(split(command))
        return Step(command, lambda: _DetectingCollector(page, paths, runs), timeout, self.commands)


class _DetectingCollector(MatchCollector):
    """Collector that drops the matches of some files until these are searched with their encodings."""

    def __init__(self, page: PageRequest, detected: frozenset[bytes], runs: int) -> None:
        """Set the files, and the number of runs of rg that search all files."""
        super().__init__(page, self._counts)
        self._detected = detected
        self._runs = runs

    def _counts(self, path: bytes) -> bool:
        return (path in self._detected) is (self._runs <= 0)

    def end_run(self, end: Any) -> None:
        """Process the end of a run."""
        super().end_run(end)
        self._runs -= 1


async def with_detected(run: Runner, request: "GrepRequest") -> "GrepRequest":
    """Return a request of `grep()` that searches each file in its encoding.

    Raises what `Runner.collect()` raises.
    """
    listing = listing_request(request.command, request.paths, request.options)
    step = Step(listing.command, lambda: ListingCollector(PathDecoder(), 1 << 60), request.timeout)
    others = (await run.collect(step)).every()
    if not others:
        return request
    files = await run.call(partial(guess_encodings, request.command.cwd, others))
    commands = tuple(
        replace(request.command_for(request.query, options, paths), cwd=request.command.cwd)
        for label, paths in files.items()
        for options in [cast("SearchOptions", {**request.options, "encoding": label})]
    )
    return replace(request, detected=Detected(files, commands))
