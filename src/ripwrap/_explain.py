"""Why a search found nothing: the same search with one thing changed, and what to say if that finds something; pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from ripwrap.options import SearchOptions

_FILTERS = ("glob", "iglob", "type", "type_not", "ignore_file", "max_depth", "max_filesize", "one_file_system")
_CASE = ("smart_case", "case_sensitive")
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")
_BOUNDS = ("word_regexp", "line_regexp")


@dataclass(frozen=True, slots=True)
class Probe:
    """A search to try.

    Attributes:
        says: What is different, as the end of a sentence.
        how: What the caller passes, or does not pass, to get it.
        options: The options of the search.
    """

    says: str
    how: str
    options: SearchOptions

    def in_options(self) -> str:
        """What the caller of an operation passes: its options."""
        return self.how


def probes(patterns: Sequence[str], options: SearchOptions) -> Iterator[Probe]:
    """The searches that are worth trying, those first that tell most."""
    if options.get("max_count") == 0:
        yield Probe("if any match counted", "without max_count=0", _without(options, ("max_count",)))
        return
    if not (options.get("no_ignore") and options.get("hidden", True)):
        yield Probe(
            "with hidden and ignored files included",
            "hidden=True, no_ignore=True",
            _with(options, hidden=True, no_ignore=True),
        )
    if filters := [name for name in _FILTERS if name in options]:
        yield Probe("in other files", f"without {', '.join(filters)}", _without(options, filters))
    if not options.get("fixed_strings") and any(_SPECIAL.search(one) for one in patterns):
        yield Probe("if the pattern is taken literally", "fixed_strings=True", _with(options, fixed_strings=True))
    insensitive = options.get("ignore_case") and not any(options.get(name) for name in _CASE)
    if not insensitive and any(one.upper() != one.lower() for one in patterns):
        yield Probe("if case is ignored", "ignore_case=True", _with(_without(options, _CASE), ignore_case=True))
    if bounds := [name for name in _BOUNDS if options.get(name)]:
        yield Probe("anywhere in a line", f"without {', '.join(bounds)}", _without(options, bounds))
    if not options.get("crlf") and any("$" in one for one in patterns):
        yield Probe("if CRLF ends a line", "crlf=True", _with(options, crlf=True))
    if not options.get("text"):
        yield Probe("in binary files", "text=True", _with(options, text=True))


def _with(options: SearchOptions, **changes: bool) -> SearchOptions:
    return cast("SearchOptions", {**options, **changes})


def _without(options: SearchOptions, names: Sequence[str]) -> SearchOptions:
    return cast("SearchOptions", {name: value for name, value in options.items() if name not in names})
