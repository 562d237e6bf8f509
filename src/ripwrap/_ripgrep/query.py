"""Query: the patterns, paths, options and place of a search, from which the arguments of rg are made; no I/O.

The functions of `ripwrap._ripgrep.command` make a query and check it. A place makes other queries from it, for example
for other paths or in another encoding. Only `render()` in that module turns a query into arguments of rg, when rg is
started, and no code reads the arguments.
"""

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias, Unpack, cast

from ripwrap._ripgrep.host import RgHost
from ripwrap._signature import lists_options
from ripwrap._system.overlay import OverlayTexts
from ripwrap.options import FileOptions, SearchOptions, SortKey, values_of

Mode: TypeAlias = Literal["json", "files-with-matches", "files-without-match", "count", "count-matches"]
Task: TypeAlias = Mode | Literal["lines", "words", "files", "log", "types"]
Output: TypeAlias = Literal["json", "paths", "counts"]

NEEDS_CAPTURES = ("captures", (15,))
"""Entry of `Query.features` for a search that returns the groups of matches: the option, and its first rg version."""

NEEDS_SCAN = ("scan()", (15,))
"""Entry of `Query.features` for `scan()`, which returns the groups of matches: its name, and its first rg version."""

_SINCE = {"stop_on_nonmatch": (14,), "replace": (15,)}
_TYPES = ("type_add", "type_clear")


class SomePlace(Protocol):
    """Place of a search; `ripwrap.places.Place` says what it returns."""

    def plan(self, query: "Query", run: Any, seconds: float | None) -> Awaitable[Any]:
        """Return the runs that search this place."""
        ...


@dataclass(frozen=True, slots=True)
class Query:
    """Search, or listing, that rg runs; its values are checked."""

    mode: Task  # `lines` are for people, `words` are all matched texts, `log` is rg's log of `files`
    cwd: str  # globs and relative paths are relative to it; absolute, except on a host, or if it was deleted
    paths: tuple[str, ...]  # in the form in which rg prints them
    patterns: tuple[str, ...] = ()  # empty if rg only lists files or file types
    options: SearchOptions = field(default_factory=SearchOptions)  # those of the caller, without default values
    include_zero: bool = False  # also print the count 0 of files without a match
    stats: bool = False  # print statistics after counts
    captures: str | None = None  # value of `--replace` with which rg lists the groups of each match
    printing: tuple[str, ...] = ()  # flags that say how rg prints `lines`
    pattern_file: str | None = None  # has the patterns, one a line, if they are too long for a command line
    features: tuple[tuple[str, tuple[int, ...]], ...] = ()  # besides the options, what some versions lack; see `needs`
    on: RgHost | None = None  # `None` is this machine
    overlay: OverlayTexts | None = None  # texts to search in place of files
    place: SomePlace | None = None  # place besides the files on the disk, such as files in several encodings
    must_exist: bool = False  # a path or ignore file that cannot be read is an error, as the answer has no place for it
    once: bool = False  # a file that two of the paths reach is searched once; rg searches it once for each path
    numbered: str | None = None  # start of the mark after names of items, of which several may be equal; see `marked()`
    streamed: bool = False  # results are used as rg finds them, so rg writes each line at once
    flushed: bool = False  # a time limit keeps what rg has found until then, so rg writes each line at once

    @property
    def is_plain(self) -> bool:
        """True if one run of rg over files on the disk, or on a host, answers the search."""
        return self.overlay is None and self.place is None and not (self.once and len(self.paths) > 1 and self.nested)

    @property
    def nested(self) -> frozenset[str]:
        """Paths that are below another of the paths, or stand among them twice."""
        plain = [path.rstrip(os.sep) or os.sep for path in self.paths]
        known = Counter(plain)
        pairs = zip(self.paths, plain, strict=True)
        return frozenset(path for path, one in pairs if known[one] > 1 or not known.keys().isdisjoint(_parents(one)))

    @property
    def roots(self) -> tuple[str, ...]:
        """Paths to search; empty if the whole directory is searched."""
        return () if self.paths == (os.curdir,) else self.paths

    @property
    def needs(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Features that some supported versions of rg lack, each with the first version of rg that has it."""
        # Only lines and JSON have replacements, and rg 13 and 14 do not write replacements in JSON (rg-facts 49).
        replaces = self.mode in ("json", "lines")
        needed = list(self.features)
        for key, since in _SINCE.items():
            if self.options.get(key, False) is not False and (replaces or key != "replace"):
                needed.append((key, since))
        return tuple(needed)

    @property
    def lists_by_counts(self) -> bool:
        """True if files are listed with `--count --max-count=1` instead of `-l` (rg-facts 51).

        With `-l --null`, rg writes a NUL and no newline after a path, so `--line-buffered` does not flush it and paths
        arrive late. A count ends with a newline. Also, rg 15 leaves a file with a late NUL out of `-l --invert-match`.
        With `--multiline`, `-l` is needed, because rg 15 counts wrongly when `--max-count=1` is added. With PCRE2, rg
        counts nothing in a file with a NUL in the block of its first match, so `-l` is needed, too (rg-facts 58).
        """
        if self.mode == "files-with-matches" and not self.options.get("invert_match") and may_use_pcre2(self.options):
            return False
        listing = self.mode in ("files-with-matches", "files-without-match")
        return listing and not self.options.get("multiline")

    @property
    def counts(self) -> bool:
        """True if rg prints the number of matching lines of each file (`--count`)."""
        return self.mode == "count" or self.lists_by_counts

    @property
    def lists_zeros(self) -> bool:
        """True if rg also prints the count 0 of files without a match. Even so, it exits with 1 if no file matches."""
        return self.include_zero or (self.mode == "files-without-match" and self.lists_by_counts)

    @property
    def output(self) -> Output:
        """Form of rg's output: JSON, or for each file its path, or its path and a number."""
        if self.mode == "json":
            return "json"
        return "counts" if self.counts or self.mode == "count-matches" else "paths"

    @property
    def silent(self) -> bool:
        """True if rg writes nothing, not even a summary, because `--max-count=0` allows no match (rg-facts 25)."""
        return self.options.get("max_count") == 0

    @property
    def bounded(self) -> bool:
        """True if only whole words or whole lines match."""
        return bool(self.options.get("word_regexp") or self.options.get("line_regexp"))

    @property
    def follows(self) -> bool:
        """True if rg follows the links that it finds in directories. It always follows links in `paths`."""
        return self.options.get("follow") is not False

    @property
    def sort_key(self) -> SortKey:
        """Key by which rg sorts files; `none` if it does not sort them. `sortr` takes precedence over `sort`."""
        return self.options.get("sortr") or self.options.get("sort") or "none"

    @property
    def reverse(self) -> bool:
        """True if rg sorts files in reverse order."""
        return self.options.get("sortr", "none") != "none"

    @property
    def sorts_all(self) -> bool:
        """True if rg sorts the files of all paths together, for example by time, or by path in reverse.

        With `--sort=path`, rg does not: it goes through the paths in the given order, and sorts the files of each path
        separately.
        """
        return self.reverse or self.sort_key not in ("path", "none")

    def values(self, name: str) -> tuple[str, ...]:
        """Return the values of an option that can be given several times; empty if it was not given."""
        return values_of(self.options, name)

    @lists_options()
    def with_(self, **options: Unpack[SearchOptions]) -> "Query":
        """Return the query with these options, which take precedence over the options that it has."""
        return replace(self, options={**self.options, **options})

    def without(self, *names: str) -> "Query":
        """Return the query without some options."""
        return replace(self, options=without_options(self.options, names))

    def another(self, mode: Task, patterns: tuple[str, ...] = (), options: SearchOptions | None = None) -> "Query":
        """Return another query in the same directory, paths, host and overlay, with none of the other attributes."""
        return Query(
            mode, self.cwd, self.paths, patterns, SearchOptions() if options is None else options,
            on=self.on, overlay=self.overlay, once=self.once,
        )  # fmt: skip

    def only_files(self) -> "Query":
        """Return the query that lists the files which this query searches."""
        return self.another("files", options=only_options(self.options, FileOptions.__annotations__))

    def types(self) -> "Query":
        """Return the query that lists rg's file types, changed by `type_add` and `type_clear` of this query."""
        return Query("types", self.cwd, (), options=only_options(self.options, _TYPES), on=self.on)

    def followed_by(self, other: "Query") -> "Query":
        """Return this query with the paths of the other query added at the end."""
        return replace(self, paths=(*self.paths, *other.paths))

    def batches(self, room: int, cost: Callable[[str], int]) -> Iterator["Query"]:
        """Yield queries for parts of the paths, in order, that cost at most `room`, unless one path costs more."""
        batch: list[str] = []
        held = 0
        for path in self.paths:
            price = cost(path)
            if batch and held + price > room:
                yield replace(self, paths=tuple(batch))
                batch, held = [], 0
            batch.append(path)
            held += price
        yield replace(self, paths=tuple(batch))

    def texts(self) -> Iterator[str]:
        """Yield the texts of the query: its patterns, paths, options and directory."""
        yield from (self.cwd, self.captures or "", self.pattern_file or "")
        yield from self.patterns
        yield from self.paths
        for value in self.options.values():
            if isinstance(value, str):
                yield value
            elif not isinstance(value, int):
                yield from cast("Sequence[str]", value)


def _parents(path: str) -> Iterator[str]:
    """Yield the directories above a path, as `paths` may name them."""
    while path != os.curdir and (above := os.path.dirname(path) or os.curdir) != path:
        yield (path := above)


def only_options(options: Mapping[str, object], names: Collection[str]) -> SearchOptions:
    """Return the options with these names."""
    return cast("SearchOptions", {name: value for name, value in options.items() if name in names})


def without_options(options: Mapping[str, object], names: Collection[str]) -> SearchOptions:
    """Return the options without those with these names."""
    return cast("SearchOptions", {name: value for name, value in options.items() if name not in names})


def may_use_pcre2(options: SearchOptions) -> bool:
    """Return True if rg searches with PCRE2, or decides by the pattern whether it does."""
    return bool(options.get("pcre2")) or options.get("engine", "default") != "default"


def marked(name: str, mark: str) -> str:
    """Return the name of an item with a mark, which is the same in each search of the same items.

    No path of a file on the disk has such an end, because rg prints no path with a separator at its end.
    """
    return f"{name}/{mark}/"


def unmarked(path: str) -> str:
    """Return a path or the name of an item without the mark."""
    return path[:-1].rpartition("/")[0] if path.endswith("/") else path
