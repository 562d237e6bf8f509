"""List further searches with other options, which may show why a search found nothing or too little."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from ripwrap._ripgrep.line_ends import across_line_ends
from ripwrap._ripgrep.query import without_options
from ripwrap.errors import Hint
from ripwrap.options import SearchOptions

_FILTERS = ("glob", "iglob", "type", "type_not", "ignore_file", "max_depth", "max_filesize", "one_file_system")
_CASE = ("smart_case", "case_sensitive")
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
_BOUNDS = ("word_regexp", "line_regexp")


@dataclass(frozen=True, slots=True)
class Probe:
    """Further search to try with other options, after a search that found nothing or too little."""

    says: str
    hints: tuple[Hint, ...]
    options: SearchOptions
    narrower: tuple["Probe", ...] = ()
    patterns: tuple[str, ...] = ()

    def in_options(self) -> str:
        """Return a text that names the options to pass or to leave out."""
        without = "without " if any(hint.kind == "omit" for hint in self.hints) else ""
        return without + ", ".join(map(str, self.hints))


def probes(patterns: Sequence[str], options: SearchOptions) -> Iterator[Probe]:
    """Yield the further searches to try; the search for the most likely reason comes first.

    If `max_count` is 0, which excludes every match, yield only a search without `max_count`.
    """
    if options.get("max_count") == 0:
        limit = Hint("max_count", 0, "omit")
        yield Probe("if the limit per file is not 0", (limit,), without_options(options, ("max_count",)))
        return
    hidden = () if options.get("hidden", True) else (_passing("with hidden files included", options, hidden=True),)
    ignored = _passing("with ignored files included", options, no_ignore=True)
    if options.get("no_ignore"):
        yield from hidden
    elif hidden:
        both = _passing("with hidden and ignored files included", options, hidden=True, no_ignore=True)
        yield replace(both, narrower=(*hidden, ignored))
    else:
        yield ignored
    if filters := [name for name in _FILTERS if name in options]:
        yield _omitting("if files are not filtered", options, filters)
    if not options.get("fixed_strings") and any(_SPECIAL.search(one) for one in patterns):
        yield _passing("if the pattern is taken literally", options, fixed_strings=True)
    insensitive = options.get("ignore_case") and not any(options.get(name) for name in _CASE)
    if not insensitive and any(one.upper() != one.lower() for one in patterns):
        yield _passing("if case is ignored", without_options(options, _CASE), ignore_case=True)
    if bounds := [name for name in _BOUNDS if options.get(name)]:
        yield _omitting("anywhere in a line", options, bounds)
    yield from _in_crlf(patterns, options)
    if not options.get("text"):
        yield _passing("in binary files", options, text=True)


def _in_crlf(patterns: Sequence[str], options: SearchOptions) -> Iterator[Probe]:
    says, crossing = "if CRLF ends a line", [across_line_ends(one, options) for one in patterns]
    changed = crossing[0][1] if crossing else options
    if any(one not in patterns for one, _ in crossing):
        hints = [Hint("pattern", one) for one, _ in crossing]
        hints += [Hint("fixed_strings", False)] if options.get("fixed_strings") else []
        hints += [Hint("crlf", True)] if changed.get("crlf") else []
        yield Probe(says, tuple(hints), changed, patterns=tuple(one for one, _ in crossing))
    elif not options.get("crlf") and any("$" in one for one in patterns):
        yield _passing(says, options, crlf=True)


def _passing(says: str, options: SearchOptions, **changes: bool) -> Probe:
    hints = tuple(Hint(name, value) for name, value in changes.items())
    return Probe(says, hints, cast("SearchOptions", {**options, **changes}))


def _omitting(says: str, options: SearchOptions, names: Sequence[str]) -> Probe:
    return Probe(says, tuple(Hint(name, kind="omit") for name in names), without_options(options, names))
