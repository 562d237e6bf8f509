"""Place of a search with `encoding="detect"`: files in several encodings.

First, rg lists the files with a line that is not UTF-8, and their encodings are guessed. Then rg searches all files as
usual, without the results for the files with a guessed encoding, and once more the files of each encoding.
"""

import math
import time
from dataclasses import dataclass
from functools import partial
from importlib import import_module

from ripwrap._overlay import with_overlay
from ripwrap._ripgrep.change import Change
from ripwrap._ripgrep.command import in_paths
from ripwrap._ripgrep.decoder import listing_decoder
from ripwrap._ripgrep.listing_collector import ListingCollector
from ripwrap._ripgrep.place import Part, Plan
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Output, Query, only_options
from ripwrap.errors import Hint, HintedText, MissingPackageError
from ripwrap.options import FileOptions, SearchOptions
from ripwrap.sources.encodings import guess_encodings

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
        listing = _not_utf8(query)
        collector = partial(ListingCollector[str], listing_decoder(counts=listing.counts))
        listed = await run.collect(Step(listing, collector, seconds, metered=False))
        others = listed.every()
        if not others:
            return {}, listed.timed_out
        # The active overlay may differ: a generator keeps the overlay of the call that made it.
        guess = partial(guess_encodings, query.cwd, others, deadline)
        files = await run.call(partial(with_overlay, query.overlay, guess))
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


def _not_utf8(query: Query) -> Query:
    """Return the query that lists the files, of those that a query searches, with a line that is not UTF-8."""
    files = only_options(query.options, _FILE_NAMES)
    if query.options.get("null_data"):
        files["text"] = True  # with `null_data`, no file is binary
    wanted: SearchOptions = {**files, "encoding": "none", "invert_match": True}
    return query.another("files-with-matches", (_NOT_UTF8,), wanted)
