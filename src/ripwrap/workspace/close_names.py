"""Find the files whose names are close to a name that no file has, such as `user_controller.py` for `usrctl`.

With the extra `fuzzy`, rapidfuzz compares the names. Without it, `difflib` compares fewer names, and does not find
shortened names.
"""

import difflib
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from itertools import takewhile
from typing import TypeAlias

from ripwrap._ripgrep.command import words_query
from ripwrap._ripgrep.page_collector import TermCounts
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._system.concurrency import CANCELLED, countdown
from ripwrap._system.windows import IS_WINDOWS
from ripwrap.options import FileOptions
from ripwrap.workspace.arguments import comma_separated
from ripwrap.workspace.results import shown_start
from ripwrap.workspace.sandbox import MAX_NAME_BYTES
from ripwrap.workspace.scope import (
    LEFT_OUT,
    Scope,
    anchored,
    as_name,
    half,
    in_revision,
    list_files,
    plain_glob,
    unescaped,
    wider,
)

SECONDS = 1.0
"""Time limit in seconds for listing the files, and also for comparing their names."""

MAX_FILES = 100_000
"""Maximum number of files whose names are compared: the first in path order."""

MIN_SCORE = 0.8
"""Similarity of names, from 0 to 1, below which a name is not close."""

_MIN_RATIO = 0.75
"""The same for `difflib`, in which `mian` and `main` have three of four letters in common."""

_MAX_BEHIND = 0.1
"""Difference to the similarity of the closest name from which a name is not proposed beside it."""
_MAX_PROPOSED = 5
_MAX_SORTED = 1_000
"""Maximum number of files of which the time of the last change is read."""
MIN_SYMBOL_CHARS = 4
"""Minimum length of a symbol to which others are close."""

MAX_WORDS = 10_000
"""Maximum number of words that are compared with a symbol."""

MAX_LINES_PER_FILE = 1_000
_MAX_LONGER = 3
"""Difference of lengths from which a word is not close to a symbol."""
_MIN_SHORT = 3
"""Minimum length of a name that may be short for another one; fewer letters are in too many names."""

Compare: TypeAlias = Callable[[str, Sequence[str]], Sequence[tuple[str, float]]]
"""Function that takes a name and other names, and returns those that are close, with their similarities."""


async def ask_close_names(run: Runner, scope: Scope, name: str, seconds: float = 2 * SECONDS) -> str:
    """Return a question such as `Did you mean a.py or b.py?`; empty for a glob, and if no name is close."""
    if re.search(r"[*?\[{,!]", name) or len(os.path.basename(name)) > MAX_NAME_BYTES or seconds <= 0:
        return ""
    compare, most, together = _library()
    left = countdown(seconds)
    seconds = min(seconds, SECONDS)
    listing = await list_files(run, scope, scope.options, seconds, most, allowed=scope.allowed, install=False)
    seconds = min(left() or 0, SECONDS)
    paths = await run.call(lambda: _closest(scope.location.cwd, listing.items(), name, compare, together, seconds))
    return _question([shown_start(scope.location.shown(path)) for path in paths])


def _question(names: Sequence[str]) -> str:
    *others, last = names or [""]
    return f"Did you mean {' or '.join(filter(None, (', '.join(others), last)))}?" if last else ""


async def ask_close_symbols(run: Runner, scope: Scope, options: FileOptions, name: str) -> str:
    """Return a question such as `Did you mean get_user_name?`; empty if no word of the files is close to the name.

    A word that two typing errors tell from a name has one of three parts of the name. Words in files that `scope`
    does not allow do not count.
    """
    word = re.split(r"\W+", name)[-1]
    size, wanted = -(-len(word) // 3), _stem(word)
    if len(word) < MIN_SYMBOL_CHARS:
        return ""
    parts = "|".join(re.escape(word[at : at + size]) for at in range(0, len(word), size))
    query = words_query(
        rf"(?i)\b\w*(?:{parts})\w*\b", scope.location.cwd, scope.location.paths, options, MAX_LINES_PER_FILE
    )
    seconds = SECONDS if scope.timeout is None else min(SECONDS, scope.timeout)
    seen = set[str]()

    def terms(hit: str) -> Sequence[str]:
        if abs(len(hit) - len(word)) > _MAX_LONGER or (hit not in seen and len(seen) >= MAX_WORDS):
            return ()
        seen.add(hit)
        return (hit,)

    hits = await run.collect(
        Step(in_revision(scope, query), lambda: TermCounts(terms, seconds), seconds, install=False)
    )
    counts = Counter[str]()
    for path, words in hits.files.items():
        if scope.allowed is None or scope.allowed(path):
            counts.update(words)
    del counts[word]
    spelled: dict[str, list[str]] = {}
    for one, _ in counts.most_common():
        spelled.setdefault(_stem(one), []).append(one)
    close = await run.call(lambda: _library()[0](wanted, [*spelled]), seconds=seconds)
    best = max((score for _, score in close), default=0.0)
    near = sorted((one for one in close if one[1] > best - _MAX_BEHIND), key=lambda one: -one[1])
    proposed = [one for folded, _ in near for one in spelled[folded]][:_MAX_PROPOSED]
    return _question(proposed)


def by_age(cwd: str, paths: Sequence[str]) -> list[str]:
    """Sort paths by the time of their last change, the newest first, stably; a path that is gone comes last."""

    def negative_mtime(path: str) -> float:
        try:
            return -os.lstat(os.path.join(cwd, path)).st_mtime
        except OSError:
            return 0.0

    return sorted(paths, key=negative_mtime)


def _library() -> tuple[Compare, int, int]:
    """Return the function that compares names, the maximum number of files, and how many are compared together."""
    try:
        from rapidfuzz import process  # late: an optional package
        from rapidfuzz.distance import JaroWinkler, LCSseq
    except ImportError:
        return _similar, MAX_FILES // 10, 20

    def compare(name: str, names: Sequence[str]) -> Sequence[tuple[str, float]]:
        """Return the names that have nearly all characters of a name, in its order."""
        if len(name) < _MIN_SHORT:
            return _similar(name, names)
        least = len(name) - max(len(name) // 5, len(name) > _MIN_SHORT)
        having = process.extract(name, names, scorer=LCSseq.similarity, score_cutoff=least, limit=None)
        similar = JaroWinkler.similarity  # it prefers names that begin alike
        found = process.extract(name, [one for one, *_ in having], scorer=similar, score_cutoff=MIN_SCORE, limit=None)
        return [(one, score) for one, score, _ in found]

    return compare, MAX_FILES, 1_000


def _similar(name: str, names: Sequence[str]) -> Sequence[tuple[str, float]]:
    """Return the names that are similar, compared by `difflib`."""
    close = difflib.get_close_matches(name, names, n=max(1, len(names)), cutoff=_MIN_RATIO)
    return [(one, difflib.SequenceMatcher(None, one, name).ratio()) for one in close]


def _closest(
    cwd: str, paths: Sequence[str], name: str, compare: Compare, together: int, seconds: float
) -> Sequence[str]:
    """Return the paths with the closest names, the closest first; blocking."""
    left = countdown(seconds)
    wanted = _stem(name.rstrip("/"))
    by_stem: dict[str, list[str]] = {}
    scores: dict[str, float] = {}
    for start in range(0, len(paths), together):
        CANCELLED.get().check()
        if left() == 0:
            break
        new: list[str] = []
        for path in paths[start : start + together]:
            if (stem := _stem(path)) not in by_stem:
                new.append(stem)
            by_stem.setdefault(stem, []).append(path)
        scores.update(compare(wanted, new))
    best = max(scores.values(), default=0.0)
    near = sorted((stem for stem, score in scores.items() if score > best - _MAX_BEHIND), key=lambda one: -scores[one])
    found = [path for stem in near for path in by_stem[stem]][:_MAX_SORTED]
    *folders, last = name.rstrip("/").replace(os.sep, "/").split("/")
    suffix = os.path.splitext(last)[1].casefold()

    def order(path: str) -> tuple[float, bool, int]:
        other = bool(suffix) and os.path.splitext(path)[1].casefold() != suffix
        above = path.split(os.sep)[-2::-1]
        equal = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(above, reversed(folders), strict=False)))
        return -round(scores[_stem(path)], 2), other, -equal

    return sorted(by_age(cwd, found), key=order)[:_MAX_PROPOSED]


def _stem(path: str) -> str:
    """Return the name of a path as names are compared: without suffix, case and separators of words."""
    name = os.path.splitext(os.path.basename(path))[0]
    return name.casefold().replace("_", "").replace("-", "").replace(" ", "")


HasName = Callable[[str], Awaitable[bool]]
"""Function that returns True if a file matches a glob, or is in a directory that matches it."""


async def resolve_names(globs: str, has: HasName) -> str:
    """Return the globs of a call, separated by commas, in which the names of files that exist are escaped.

    The whole text, a glob that does not parse, and one with backslashes may be a name.
    """
    split = comma_separated(globs)
    if (
        len(split) > 1
        and not globs.lstrip().startswith("!")
        and "," in re.split(r"[*?]", globs, maxsplit=1)[0]
        and await has(as_name(globs))
    ):
        return as_name(globs)
    return ",".join([await _resolved(one, has) for one in split]) if any(map(_may_be_name, split)) else globs


async def _resolved(glob: str, has: HasName) -> str:
    mark, bare = ("!", glob[1:]) if glob.startswith("!") else ("", glob)
    return mark + as_name(bare) if _may_be_name(glob) and await has(as_name(bare)) else glob


def _may_be_name(glob: str) -> bool:
    """Return True if a glob with brackets or braces does not parse, or if it has backslashes that may be meant so."""
    if "\\" in glob and not IS_WINDOWS:
        return unescaped(glob) == glob
    if not re.search(r"[\[\]{}]", glob):
        return False
    from ripwrap._ignore.globs import parse_glob  # late: it imports pathspec

    try:
        parse_glob(glob.removeprefix("!"), allow_unclosed=False)
    except ValueError:
        return True
    return False


def names_in(run: Runner, scope: Scope) -> HasName:
    """Return the function that looks up a name with rg, also among hidden and ignored files."""

    async def is_listed(name: str) -> bool:
        globs = [one for glob in (name, f"{name.rstrip('/')}/") for one in anchored(plain_glob(glob), scope.location)]
        wide = wider(scope, LEFT_OUT, half(scope.timeout))
        options: FileOptions = {**wide.options, "glob": globs}
        return (await list_files(run, scope, options, wide.timeout, 1, allowed=scope.allowed)).total > 0

    return is_listed
