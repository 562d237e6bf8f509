"""Places whose files are searched in another form: insides of archives and documents, and guessed encodings.

First, rg searches the files. Then the members of archives and the texts of notebooks and documents are searched as
items. With `encoding="detect"`, rg lists the files with a line that is not UTF-8, and their encodings are guessed; the
files of each encoding are searched once more.
"""

import codecs
import io
import logging
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import IO, Any, cast

from ripwrap._ripgrep.change import Change
from ripwrap._ripgrep.command import in_paths
from ripwrap._ripgrep.decoder import PathDecoder, listing_decoder
from ripwrap._ripgrep.page_collector import ListingCollector
from ripwrap._ripgrep.place import Part, Place, Plan
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Output, Query, only_options
from ripwrap._ripgrep.spool import MAX_RUNNING, OverdueError, check_item
from ripwrap._system.concurrency import CANCELLED, countdown
from ripwrap._system.overlay import with_overlay
from ripwrap._system.safe_open import open_regular_file
from ripwrap._text import raw_bytes, shown
from ripwrap.binary.cache import folder, why_untrusted
from ripwrap.errors import Hint, HintedText, MissingPackageError
from ripwrap.models import PathError
from ripwrap.options import Directories, FileOptions, SearchOptions, size_in_bytes
from ripwrap.places.items import Batches, ItemPlace, listed
from ripwrap.sources.archives import ArchiveSource, check_inside
from ripwrap.sources.base import AnyItems, Item, Source, find_format, format_of
from ripwrap.sources.git import RevisionSource, check_revision
from ripwrap.sources.git_history import ALL_REFS, HistorySource, check_date
from ripwrap.sources.git_process import holds
from ripwrap.sources.reading import DocumentReader, TextCache

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


_OF_MEMBERS = ("glob", "iglob", "glob_case_insensitive", "type", "type_not", "type_add", "type_clear", "max_filesize")
"""Options that choose members by their names, or by the name of their archive, and documents (`NameSelection`)."""

_OF_FILES = ("sort", "sortr", "threads", "ignore_file", "max_depth")
"""Options that choose or sort files on the disk; the search inside of files leaves them out."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Restrictions of a caller, such as a workspace, for a search inside of files."""

    denied: Sequence[str] = ()
    opens: Callable[[str], bool] | None = None
    allows: Callable[[str], bool] | None = None
    wrap: Callable[[Source], Source] = lambda source: source


@dataclass(frozen=True, slots=True)
class InsidePlace:
    """Place that consists of files, and of the items inside of these files."""

    formats: tuple[str, ...]
    limits: ArchiveLimits = ArchiveLimits()
    inner: Place | None = None

    async def plan(self, query: Query, run: Runner, seconds: float | None) -> Plan:
        """Return the run that searches the files, followed by runs for the items inside of them."""
        # As with rg's --search-zip, what rg finds in the bytes of an archive or document is no result: the texts inside
        # are searched, and the bytes of an archive may show a member that `allows` refuses.
        drops: Callable[[str], bool] = lambda path: format_of(path, self.formats) is not None  # noqa: E731
        change = None if query.mode == "files" else Change(query.output, drops)
        query = replace(query, place=self.inner)
        inside = _Inside(self, query, run, seconds)
        errors, close = inside.errors, inside.close
        return Plan((Part(query, change),), more=inside.more, ahead=MAX_RUNNING, errors=errors, close=close)

    def listing(self, query: Query) -> Query:
        """Return the query that lists the files that may be archives or documents."""
        files = query.only_files().without(*_OF_MEMBERS)
        return files.with_(iglob=[*self.limits.denied]) if self.limits.denied else files

    def source(self, query: Query, listed: Iterable[str], until: float | None) -> ArchiveSource:
        """Return the source of the items inside of the listed files, in path order."""
        paths = sorted({path for path in listed if format_of(path, self.formats)}, key=lambda path: path.split(os.sep))
        reader, named = DocumentReader(document_cache(), until=until), frozenset(map(os.path.normpath, query.paths))
        return ArchiveSource(query.cwd, paths, self.formats, follow=query.follows, named=named, reader=reader)


class _Inside:
    """Runs for the items inside of files; the files are listed when the first of these runs is asked for."""

    def __init__(self, place: InsidePlace, query: Query, run: Runner, seconds: float | None) -> None:
        self._place, self._query, self._run = place, query, run
        self._seconds = seconds
        self._left = countdown(seconds)
        self._batches: Batches | None = None
        self._listed: Plan | None = None

    async def more(self) -> Sequence[Part] | None:
        if self._query.mode == "files":
            if self._listed is not None:
                return None
            source, selects = await self._open()
            self._listed = await listed(self._query, self._run, source, selects, self._left())
            return self._listed.parts
        if self._batches is None:
            source, selects = await self._open()
            self._batches = Batches(self._query.without(*_OF_FILES), self._run, source, selects, self._left())
        return await self._batches.more()

    def errors(self) -> Sequence[PathError]:
        begun = self._batches or self._listed
        return () if begun is None else begun.errors()

    def close(self) -> None:
        if self._batches is not None:
            self._batches.close()

    async def _open(self) -> tuple[Source, Callable[[str], bool]]:
        place, run, left = self._place, self._run, self._left
        collector = partial(ListingCollector[str], PathDecoder(), allowed=place.limits.opens)
        found = await run.collect(Step(place.listing(self._query), collector, left(), metered=False))
        if found.timed_out:
            raise OverdueError(f"rg was stopped after timeout={self._seconds} seconds; allow more time")
        query = self._query.without(*_OF_FILES)
        selects = await ItemPlace(tuple, query.roots, place.limits.allows).selects(query, run, left())
        seconds = left()
        until = None if seconds is None else time.monotonic() + seconds
        return place.limits.wrap(place.source(self._query, found.every(), until)), selects


def in_files(
    query: Query, inside: str | Iterable[str], limits: ArchiveLimits = ArchiveLimits(), *, inner: Place | None = None
) -> Query:
    """Return the query that searches files, and inside of archives, notebooks and documents."""
    return replace(query, place=InsidePlace(check_inside(inside), limits, inner))


def document_cache() -> TextCache | None:
    """Return the cache of the texts of documents; `None` if other users may write to it."""
    path = folder()
    return None if why_untrusted(path) else TextCache(path / "documents")


_NOT_UTF8 = "^.*$"  # `.` matches only valid UTF-8, so a line that does not match has invalid bytes
_FILE_NAMES = frozenset(FileOptions.__annotations__) | {"binary", "text"}


@dataclass(frozen=True, slots=True)
class Detection:
    """Place of a search in files of several encodings."""

    async def plan(self, query: Query, run: Runner, seconds: float | None) -> Plan:
        """Return the run that searches all files, and a run for the files of each guessed encoding."""
        files, late = await self._guess(query, run, seconds)
        guessed = frozenset(path for paths in files.values() for path in paths)
        output = query.output
        parts = [Part(query, Change(output, guessed.__contains__, len(guessed)) if guessed else None)]
        parts += [
            Part(in_paths(query.with_(encoding=label), paths), Labelled(output, label))
            for label, paths in files.items()
        ]
        return Plan(tuple(parts), late=late)

    async def _guess(self, query: Query, run: Runner, seconds: float | None) -> tuple[dict[str, list[str]], bool]:
        """Return the files of each encoding, and True if files may be missing, because the time limit was reached."""
        seconds = None if seconds is None else seconds / 2  # the other half is for the search
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        options = only_options(query.options, _FILE_NAMES)
        if query.options.get("null_data"):
            options["text"] = True  # with `null_data`, no file is binary
        wanted: SearchOptions = {**options, "encoding": "none", "invert_match": True}
        listing = query.another("files-with-matches", (_NOT_UTF8,), wanted)
        listed = await run.collect(
            Step(listing, lambda: ListingCollector[str](listing_decoder(counts=listing.counts)), seconds, metered=False)
        )
        others = listed.every()
        if not others:
            return {}, listed.timed_out
        # The active overlay may differ: a generator keeps the overlay of the call that made it.
        files = await run.call(
            lambda: with_overlay(query.overlay, lambda: guess_encodings(query.cwd, others, deadline))
        )
        return files, listed.timed_out or time.monotonic() >= deadline


class Labelled(Change):
    """Change that gives the end of each file the encoding in which it was searched."""

    def __init__(self, output: Output, label: str) -> None:
        super().__init__(output, lambda path: False)  # noqa: ARG005 - drops nothing
        self._label = label.encode()

    def _ended(self, record: bytes) -> bytes:
        return record.replace(b'"data":{', b'"data":{"encoding":"%b",' % self._label, 1)


def detection() -> Detection:
    """Return the place of a search in files of several encodings; the query of the search has no encoding."""
    try:
        import_module("charset_normalizer")  # a missing package is an error of the call, not of the iteration
    except ModuleNotFoundError as error:
        package = Hint(kind="install", target="ripwrap[detect]")
        needed = HintedText("encoding='detect' needs the package charset-normalizer: ", package)
        raise MissingPackageError(needed, name=error.name) from error
    return Detection()


def layered(
    items: AnyItems, texts: Mapping[str, bytes | None], formats: tuple[str, ...], roots: Sequence[str] = ()
) -> Source:
    """Return the source of items of which some are replaced by texts, and of what is inside of them."""
    source = items if isinstance(items, Source) else _Plain(cast("Iterable[Item]", items))
    if texts:
        source = _Replaced(source, texts, roots)
    return _Opened(source, check_inside(formats)) if formats else source


class _Plain(Source):
    """Source of the items of an iterable."""

    def __init__(self, items: Iterable[Item]) -> None:
        super().__init__()
        self._items = items

    def __iter__(self) -> Iterator[Item]:
        for item in self._items:
            name, content = check_item(item, files=False)
            if self.selects(name):
                yield name, cast("bytes", content)

    def close(self) -> None:
        """Do nothing: the iterable belongs to the caller."""


class _OnTop(Source):
    """Base class of sources that change the items of another source."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.errors = source.errors
        self._source = source

    def close(self) -> None:
        """Close the other source."""
        self._source.close()


class _Replaced(_OnTop):
    """Source whose items are replaced by texts with the same names; new texts come last."""

    def __init__(self, source: Source, texts: Mapping[str, bytes | None], roots: Sequence[str]) -> None:
        super().__init__(source)
        self._texts = {
            name: text for name, text in texts.items() if not roots or any(holds(one, name) for one in roots)
        }

    def __iter__(self) -> Iterator[Item]:
        self._source.selects, self._source.deadline = self.selects, self.deadline
        left = dict(self._texts)
        for name, content in self._source:
            if name not in self._texts:
                yield name, content
                continue
            text = left.pop(name, None)
            if text is not None:
                yield name, text
        for name, text in left.items():
            if text is not None and self.selects(name):
                yield name, text


class _Opened(_OnTop):
    """Source that yields the items of another source, and what is inside of them."""

    def __init__(self, source: Source, formats: tuple[str, ...]) -> None:
        super().__init__(source)
        self._formats = formats
        reader = DocumentReader(document_cache())
        self._archives = ArchiveSource("", (), formats, follow=False, reader=reader)
        self._archives.errors = source.errors

    def __iter__(self) -> Iterator[Item]:
        self._source.deadline = self._archives.deadline = self.deadline
        self._archives.selects = self.selects
        self._source.selects = lambda name: self.selects(name) or format_of(name, self._formats) is not None
        try:
            for name, content in self._source:
                kind = format_of(name, self._formats)
                if kind is None:
                    if self.selects(name):
                        yield name, content
                elif find_format(kind) is None or self.selects(name):
                    yield from self._archives.members(name, _opened(content))
                del content  # the next item needs the memory
        finally:
            self._archives.reader.close()

    def close(self) -> None:
        """Close the other source, and end the process that reads documents."""
        super().close()
        self._archives.close()


def _opened(content: Any) -> IO[bytes]:
    """Return the content of an item as a file, at its start."""
    if hasattr(content, "readinto"):
        file = cast("IO[bytes]", content)
        file.seek(0)
        return file
    return io.BytesIO(raw_bytes(content) if isinstance(content, str) else bytes(content))


def revision_source(
    query: Query, rev: str, repositories: Directories | None, texts: Mapping[str, bytes | None]
) -> RevisionSource:
    """Return the source that reads the files of a git revision that a query searches."""
    return RevisionSource(
        query.cwd,
        check_revision(rev),
        query.roots,
        repositories=repositories,
        max_filesize=size_in_bytes(query.options.get("max_filesize")),
        must_exist=query.must_exist,
        texts=texts,
    )


def history_source(query: Query, rev: str, since: str | None, repositories: Directories | None) -> HistorySource:
    """Return the source that reads the versions of files in a git history that a query searches."""
    checked = rev if rev == ALL_REFS else check_revision(rev), check_date(since), query.roots
    limit = size_in_bytes(query.options.get("max_filesize"))
    return HistorySource(
        query.cwd, *checked, repositories=repositories, max_filesize=limit, must_exist=query.must_exist
    )
