"""Search for many rules at once, and report the rule and the groups of each match."""

import os
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import aclosing, closing
from typing import Any, Unpack, cast

from ripwrap._ripgrep.command import several_paths
from ripwrap._ripgrep.runner import AsyncRunner, BlockingRunner, run_blocking
from ripwrap._ripgrep.spool import Spool
from ripwrap._ripgrep.stream import run_stream, run_stream_blocking
from ripwrap._scan.rules import Rule, check_rules
from ripwrap._scan.scanning import Scanning, ScanRequest
from ripwrap._scan.secrets import SECRET_RULES
from ripwrap.binary.resolver import Rg
from ripwrap.errors import Hint, HintedText, PatternError, named_paths
from ripwrap.models import ScanMatch
from ripwrap.options import SearchOptions, StrPath, check_limit
from ripwrap.places.where import PlacedSearchOptions, placed_search

REFUSED = {
    "fixed_strings": "rules are regular expressions; put a backslash before their special characters",
    "invert_match": "a line without a match has no text to yield; leave it out",
    "replace": "a scan uses replacements to read the groups; use search()",
    "smart_case": "it would depend on all rules together; write (?i) in a rule",
    "multiline": "pass Rule(…, multiline=True) for the rules that may span lines",
    "engine": "pass pcre2=True for PCRE2",
    "max_count": "it would count lines that no rule matches; use limit",
    "stop_on_nonmatch": "a line that does not match one rule may match another rule; leave it out",
    **dict.fromkeys(("context", "before_context", "after_context", "passthru"), "it yields no lines around matches"),
}
"""Options that do not apply to `scan()`, with the reasons."""


@named_paths
def scan(
    rules: Mapping[str, str] | Iterable[Rule] = SECRET_RULES,
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    overlaps: bool = False,
    limit: int | None = None,
    rg: Rg = None,
    **options: Unpack[PlacedSearchOptions],
) -> AsyncGenerator[ScanMatch]:
    r"""Search files for many rules at once and yield each text that a rule matches, with its rule and its groups.

    A rule matches the same texts that `search()` finds for its pattern. If texts of several rules overlap, only the
    text that begins first is yielded. If texts begin at the same position, the text of the first rule is yielded.
    `overlaps=True` yields all texts, as if each rule was searched for alone.

    If all rules are searched together, texts come file by file, from the start of each file to its end. Rules that may
    span lines, name the start of the file (`\A`), or have white space between their parts (`(?x)`) are searched in
    further runs of rg. With such rules and without `overlaps`, all texts are held in memory before the first is
    yielded. With more than 16 rules and no `sort`, rg may search all files twice. Then the texts that the first run has
    found in a file are held until the second run has found its texts in this file, or has ended.

    Rules that find files by name (with a `path`, but no pattern) come last. Their matches have an empty text and no
    line number.

    ```python
    import asyncio

    import ripwrap

    RULES = {"def": r"def (?P<name>\w+)", "todo": r"(?P<mark>TODO|FIXME)(?:\((?P<who>\w+)\))?: (?P<what>\w+)"}


    async def main():
        async for hit in ripwrap.scan(RULES, cwd="demo", glob="*.py", sort="path"):
            print(hit.path, hit.line_number, hit.rule, hit.named)


    asyncio.run(main())
    ```

    ```text
    shop/cart.py 4 def {'name': 'total'}
    shop/cart.py 5 todo {'mark': 'TODO', 'who': None, 'what': 'taxes'}
    shop/till.py 1 def {'name': 'pay'}
    shop/till.py 1 todo {'mark': 'TODO', 'who': None, 'what': 'cards'}
    ```

    Args:
        rules: A mapping of rule names to patterns, or an iterable of `Rule` objects, as `load_rules()` returns. Without
            it, the built-in rules for keys, tokens and passwords (`ripwrap.SECRET_RULES`).
        cwd: The directory to search; globs and `paths` are relative to it.
        paths: Files or directories to search, any number of them; empty is all of `cwd`. A file that several
            of them reach is searched once.
        overlaps: Yield all texts that rules match, also texts that overlap.
        limit: Maximum number of texts, over all files.
        rg: The rg to run, version 15 or later: a path, or a bare name to find in PATH; `None` finds one.
        **options: rg's flags for all rules, and where to search, as in `search()`. With `pcre2`, rg runs once for each
            rule.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: There is no rule, two rules have the same name, `limit` is negative, or an option does not apply.
        TypeError: `rules` is neither a mapping nor an iterable, a rule is neither a `Rule` nor a name with a pattern,
            or `limit` is not an int.
        PatternError: A rule does not compile; the message names it, and `PatternError.rule` is its name.
        CapabilityError: rg is older than version 15, which is the first version that can report groups.
        FileNotFoundError, NotADirectoryError, BinaryNotFoundError, GlobError, UnknownTypeError, SearchError,
            DecodeError: See `search()`.

    The call itself raises `ValidationError`, `ValueError` and `TypeError`. The first iteration raises the other errors.
    """
    return run_scan(scan_request(rules, cwd, paths, limit, options, overlaps=overlaps), rg)


def scan_request(
    rules: Mapping[str, str] | Iterable[Rule],
    cwd: StrPath | None,
    paths: StrPath | Iterable[StrPath] | None,
    limit: int | None,
    options: SearchOptions,
    *,
    overlaps: bool,
) -> ScanRequest:
    """Check the arguments, and return the request of `scan()`; raise what the call of `scan()` raises."""
    known = check_rules(rules)
    for name, reason in REFUSED.items():
        if cast("Mapping[str, Any]", options).get(name) not in (None, False):
            raise ValueError(HintedText(Hint(name, kind="omit"), f" does not apply to a scan: {reason}"))
    several = several_paths(paths)
    query = placed_search("scan()", [rule.pattern for rule in known], cwd, several, options)
    folder = os.curdir if cwd is None else cwd
    if query.on is None and folder:
        folder = os.path.abspath(folder)
    return ScanRequest(known, folder, several, overlaps, check_limit(limit), options, on_host=query.on is not None)


async def run_scan(request: ScanRequest, rg: Rg) -> AsyncGenerator[ScanMatch]:
    """Search, and yield the texts that the rules match."""
    run = AsyncRunner(None if request.on_host else rg)
    with Spool() as spool:
        scanning = Scanning(request, None, spool.path)
        await scanning.check(run)
        while scanning.passes and not scanning.full:
            try:
                async with aclosing(run_stream(scanning.begin(), rg)) as matches:
                    async for match in matches:
                        if scanning.add(match):
                            for hit in await scanning.flush(run):
                                yield hit
                            if scanning.full:
                                return
            except PatternError as error:
                await scanning.fail(run, error)
                continue
            for hit in await scanning.end(run):
                yield hit
        async for hit in _names(scanning, rg):
            yield hit


async def _names(scanning: Scanning, rg: Rg) -> AsyncGenerator[ScanMatch]:
    """List the files if a rule finds files by name, and yield the matches."""
    if not scanning.named or scanning.full:
        return
    async with aclosing(run_stream(scanning.listing(), rg)) as paths:
        async for path in paths:
            for hit in scanning.names(path):
                yield hit
            if scanning.full:
                return


def run_scan_blocking(request: ScanRequest, rg: Rg, timeout: float | None) -> Generator[ScanMatch]:
    """Search, and yield the texts that the rules match, blocking."""
    run = BlockingRunner(None if request.on_host else rg, timeout=timeout)
    with Spool() as spool:
        scanning = Scanning(request, timeout, spool.path)
        run_blocking(scanning.check(run))
        while scanning.passes and not scanning.full:
            try:
                with closing(run_stream_blocking(scanning.begin(), rg, scanning.left())) as matches:
                    for match in matches:
                        if scanning.add(match):
                            yield from run_blocking(scanning.flush(run))
                            if scanning.full:
                                return
            except PatternError as error:
                run_blocking(scanning.fail(run, error))
                continue
            yield from run_blocking(scanning.end(run))
        if scanning.named and not scanning.full:
            with closing(run_stream_blocking(scanning.listing(), rg, scanning.left())) as paths:
                for path in paths:
                    yield from scanning.names(path)
                    if scanning.full:
                        return
