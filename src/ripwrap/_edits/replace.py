"""Find what a replacement changes, preview it as a plan, and write it.

From version 15 on, rg writes the replacement of each match into its JSON output, from which a plan is made. Older
versions do not write replacements. Running `rg --passthru --replace` on each file is no substitute: it drops byte order
marks, writes UTF-16 as UTF-8, and adds a newline to the last line. So with an older rg, a replacement with groups
raises `CapabilityError`. A replacement without groups works, because rg does not have to compute it.
"""

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Unpack, cast

from ripwrap._edits.collector import EditCollector, find_left_out
from ripwrap._edits.journal import apply_edits, journal_path, undo_edits
from ripwrap._edits.planning import CONTEXT, MAX_BYTES, Screen, codec_of, plan_files
from ripwrap._ripgrep.command import search_query
from ripwrap._ripgrep.groups import (
    COMPILE_OPTIONS,
    MAX_GROUP,
    PLAIN_NAME,
    PROBE,
    Template,
    count_probe,
    ending,
    group_count,
    match_options,
    missing_group,
    name_probe,
    never_empty,
    parse_template,
    refuse_backslash_groups,
)
from ripwrap._ripgrep.pattern_errors import across_line_ends, names_return
from ripwrap._ripgrep.protocols import Runner, Step
from ripwrap._ripgrep.query import Query, only_options, without_options
from ripwrap._ripgrep.runner import AsyncRunner
from ripwrap._signature import lists_options
from ripwrap._system.subprocess import TemporaryFolder
from ripwrap.binary.resolver import Rg
from ripwrap.edits import AppliedEdits, EditPlan, Select
from ripwrap.errors import Hint, HintedText, SearchError, named_paths
from ripwrap.options import VISIBLE_FILES, SearchOptions, StrPath, check_timeout
from ripwrap.places.where import refuse_places

ARGUMENTS = ("pattern", "replacement", "cwd", "paths", "escapes", "max_bytes", "rg")

_REFUSED = {
    "invert_match": "a line without a match has nothing to replace",
    "passthru": "a diff shows only the lines around each edit",
    "replace": "the replacement is the second argument",
}
"""Options that do not apply to `replace()`, with the reasons."""

_CONTEXT = ("context", "before_context", "after_context")
_IGNORED = ("no_line_number", "sort", "sortr")

_SMALL_GROWTH = 100
"""Value of `Template.longest(1)` up to which rg computes the replacements without a check of their size before."""


class ReplacePlan(EditPlan, frozen=True):
    """Plan of replacements, the result of `replace()`. No file is changed before `apply()`.

    `EditPlan.diff()` shows the replacements, `apply()` writes them, and `undo()` restores the files.
    """

    async def apply(
        self, *, select: Select | None = None, break_hard_links: bool = False, journals: StrPath | None = None
    ) -> AppliedEdits:
        """Write the replacements, all or none.

        Each file is first compared with the content that was searched. The new contents are written to temporary files
        in the directories of the files. A journal is also written. The temporary files and the journal are synced to
        the disk. Then each temporary file is renamed to its target. If anything fails, all files get their old contents
        back.

        If the process is killed or the system crashes, some files may have the old content and others the new content.
        Then `ripwrap.undo()` gives all files the old content, and `apply()` of the same plan gives all files the new
        content. Only one process applies or undoes at a time; other processes wait.

        A file keeps its mode, its owner, and on Linux its extended attributes; its modification time is the time of the
        change. A symbolic link stays, and its target is changed. A read-only file is changed if its directory is
        writable.

        If the task is cancelled before the first file is renamed, no file changes. If the task is cancelled after
        that, all files change.

        Args:
            select: Edits to apply: paths, as in `FileEdits.path`, or a function that is called with a file and an edit,
                and returns True to apply the edit. `None` applies all edits.
            break_hard_links: Also change files that have several hard links. Each path in the plan then becomes a
                separate file, and links that are not in the plan keep the old content. By default, files with several
                hard links raise `ConflictError`.
            journals: Directory of the journals; `None` is `ripwrap/replace` in the user's state directory. Journals
                contain the text that was replaced. The last 50 finished journals are kept for up to 30 days.

        Raises:
            ConflictError: A file has changed since it was searched, has several hard links, or was changed by an
                interrupted replacement. Nothing was written.
            ValueError: `select` names a path that the plan does not change, or the same plan was applied before and its
                journal is damaged.
            PermissionError: A file belongs to version control (see `replace()`), or another user could write to
                `journals`. Nothing was written.
            DiskFullError: The disk is full. This is an `OSError`, too.
            OSError: A file or the journal cannot be written. All files have their old contents, unless a note of the
                error says otherwise.
        """
        files = self.selected(select)
        return await run_write(
            AsyncRunner(None),
            lambda: apply_edits(self.root, files, journals, break_hard_links=break_hard_links),
            timeout=None,
        )

    async def undo(self, *, select: Select | None = None, journals: StrPath | None = None) -> AppliedEdits:
        """Restore the files that `apply()` has changed; see `ripwrap.undo()`.

        Args:
            select: The value that was passed to `apply()`. It is not possible to undo only some of the edits.
            journals: The directory that was passed to `apply()`.

        Raises what `ripwrap.undo()` raises, and `ValueError` if `select` names a path that the plan does not change.
        """
        journal = journal_path(self.root, self.selected(select), journals)
        return await run_write(
            AsyncRunner(None), lambda: undo_edits(journal, self.root, journals, planned=True), timeout=None
        )


@named_paths
@lists_options(VISIBLE_FILES)
async def replace(
    pattern: str | Sequence[str],
    replacement: str,
    *,
    cwd: StrPath | None = ".",
    paths: StrPath | Iterable[StrPath] | None = (),
    escapes: bool = False,
    max_bytes: int = MAX_BYTES,
    rg: Rg = None,
    **options: Unpack[SearchOptions],
) -> ReplacePlan:
    r"""Find every match of a pattern, and return a plan that replaces them; nothing is written before `plan.apply()`.

    ```python
    import asyncio

    import ripwrap


    async def main():
        plan = await ripwrap.replace(r"TODO: (\w+)", "DONE: $1", cwd="demo", glob="*.py", context=0)
        print(plan)


    asyncio.run(main())
    ```

    ```text
    --- a/shop/cart.py
    +++ b/shop/cart.py
    @@ -5 +5 @@
    -    # TODO: taxes
    +    # DONE: taxes
    --- a/shop/till.py
    +++ b/shop/till.py
    @@ -1 +1 @@
    -def pay(amount):  # TODO: cards
    +def pay(amount):  # DONE: cards
    2 replacements in 2 files.
    ```

    All bytes outside of the matches stay as they are, such as CRLF, a byte order mark, bytes that are not UTF-8, and a
    last line without a newline. In a file with a byte order mark of UTF-16, or with `encoding`, the replacement is
    written in the encoding of the file. Binary files are left out, except with `text=True`. Files with a match whose
    position rg does not report are left out, too. Files of version control are never changed: files whose path has a
    part `.git`, `.jj`, `.hg`, `.svn` or `.ripwrap`, and files of a bare repository of git. `plan.errors` names the
    files that are left out.

    Args:
        pattern: A regular expression (https://docs.rs/regex), or several, any of which may match.
        replacement: Text to put in place of each match. `$1`, `$name` and `${name}` are groups, `$0` is the match, and
            `$$` is a dollar sign. Without `escapes`, a backslash has no special meaning, as in `rg --replace`; only
            `\1` without a group such as `$1` is an error. A newline is written as it is, also in a file with CRLF.
        cwd: The directory to search; globs and `paths` are relative to it.
        paths: Files or directories to search, any number of them; empty is all of `cwd`. A file that several
            of them reach is searched once.
        escapes: Read `\n`, `\r`, `\t`, `\0`, `\xHH`, `\u{H…}` and `\\` in the replacement as escapes.
        max_bytes: Maximum size in bytes of a file, before and after the change; larger files are left out. It is also
            the maximum size of all edits together: their old and new texts, and 500 bytes for each edit.
        rg: The rg to run: a path, or a bare name to find in PATH; `None` finds one. An rg before version 15
            supports only replacements without groups.
        **options: rg's flags; see `SearchOptions`. Hidden files are left out, unless `hidden` is set. Symbolic links
            are left out, unless `follow` is set, because a link may lead to another directory. `context` is the number
            of lines around each edit in the diff, 3 by default. `max_count` is the maximum number of matching lines of
            each file.

    Raises:
        pydantic.ValidationError: An option is unknown or ill-typed.
        ValueError: The replacement refers to a group that does not exist, has `\1` for `$1`, or has an unknown escape;
            `invert_match`, `passthru` or `replace` is given; files in this `encoding` cannot be changed; the encoding
            of a file lacks a character of the replacement; or all edits together are larger than `max_bytes`.
        CapabilityError: The replacement refers to a group, and rg is older than 15.
        ConflictError: A file changed while it was searched.

    It also raises what `search()` raises.
    """
    request = replace_request(pattern, replacement, cwd, paths, options, escapes=escapes)
    known = await run_replace(AsyncRunner(rg), request, timeout=None, max_bytes=max_bytes)
    return ReplacePlan(root=known.root, files=known.files, errors=known.errors, hidden_matches=known.hidden_matches)


@named_paths
async def undo(
    journal: StrPath | None = None, *, cwd: StrPath | None = ".", journals: StrPath | None = None
) -> AppliedEdits:
    """Restore the old contents and modification times of the files that a plan has changed, all or none.

    This also works if the process was killed or the system crashed while the plan was applied.

    Args:
        journal: Path of the journal: `AppliedEdits.journal`. `None` is the newest journal for `cwd` that is not undone.
        cwd: The directory that was searched. With `journal`, a directory above the files to restore, if they are
            outside of the directory that was searched.
        journals: The directory of the journals, if a directory was passed to `apply()`.

    A journal outside of the user's state directory may be from somebody else. It can only restore files below the
    directory that it names as searched, or below `cwd`.

    Raises:
        FileNotFoundError: There is no such journal.
        PermissionError: Another user could have written the journal, or the journal names a file of version control, or
            a file outside of these directories. Nothing was written.
        ConflictError: A file has changed since the plan was applied, or has several hard links; nothing was written.
        ValueError: The journal is damaged.
        DiskFullError: The disk is full. This is an `OSError`, too.
        OSError: A file cannot be written. All files keep their new contents, unless a note of the error says otherwise.
    """
    return await run_write(AsyncRunner(None), lambda: undo_edits(journal, cwd, journals), timeout=None)


@dataclass(frozen=True, slots=True)
class ReplaceRequest:
    """Checked arguments of `replace()`."""

    query: Query
    template: Template
    options: SearchOptions
    context: int
    keeps_line_ends: bool = False

    @property
    def root(self) -> str:
        """Directory that is searched, as an absolute path without `..`."""
        return os.path.normpath(self.query.cwd)

    @property
    def terminator(self) -> bytes:
        """End of a line."""
        return b"\0" if self.options.get("null_data") else b"\n"

    def probe(self, pattern: str, folder: str, replacement: str | None = None) -> "Step[EditCollector]":
        """Return the step (a run of rg) that searches a small file; its output tells which groups `pattern` has."""
        options = only_options(self.options, COMPILE_OPTIONS)
        if replacement is not None:
            options["replace"] = replacement
        query = search_query(pattern, folder, "0", options)
        return Step(query, lambda: EditCollector(None), None)


def replace_request(
    pattern: str | Sequence[str],
    replacement: str,
    cwd: StrPath | None,
    paths: StrPath | Iterable[StrPath] | None,
    options: SearchOptions,
    *,
    escapes: bool,
) -> ReplaceRequest:
    """Check the arguments, and return the request of `replace()`."""
    refuse_places("replace()", options)
    given = cast("dict[str, Any]", {**VISIBLE_FILES, **options})
    search_query(pattern, cwd, paths, options, arguments=ARGUMENTS)  # checks the options and their types
    for name, reason in _REFUSED.items():
        if given.get(name) not in (None, False):
            raise ValueError(HintedText(Hint(name, kind="omit"), f" does not apply: {reason}; leave it out"))
    codec_of(given.get("encoding"))
    template = parse_template(replacement, escapes=escapes)
    if not (escapes or given.get("fixed_strings")):
        refuse_backslash_groups(replacement, template)
    context = max((given[name] for name in _CONTEXT if name in given), default=CONTEXT)
    searched = without_options(given, (*_CONTEXT, *_IGNORED))
    if template.constant is None:
        searched["replace"] = template.text
    query = dataclasses.replace(search_query(pattern, cwd, paths, searched), once=True)
    return ReplaceRequest(query, template, searched, context)


def across_line_ends_of_files(request: ReplaceRequest) -> ReplaceRequest:
    r"""Return a request in which `\n`, in the pattern and the replacement, is the line end of the file."""
    (pattern,) = request.query.patterns
    if names_return(pattern, request.options) or "\r" in request.template.text:
        return request
    pattern, options = across_line_ends(pattern, request.options)
    query = search_query(pattern, request.query.cwd, request.query.paths, options)
    return dataclasses.replace(request, query=query, options=options, keeps_line_ends=True)


async def run_replace(
    run: Runner,
    request: ReplaceRequest,
    *,
    timeout: float | None,  # noqa: ASYNC109 - rg's
    max_bytes: int = MAX_BYTES,
    allowed: Callable[[str], bool] | None = None,
    holds: Callable[[str], bool] | None = None,
    screen: Screen | None = None,
) -> EditPlan:
    """Search, check the groups that the replacement refers to, read the files with matches, and return the plan."""
    seconds = check_timeout(timeout)
    template = request.template
    if template.constant is None and template.longest(1) > _SMALL_GROWTH:
        # rg holds all replacements of a line in memory. So first make sure that they are not too many.
        sizing = request.query.without("replace")
        await run.collect(Step(sizing, lambda: EditCollector(b"", seconds, max_bytes, template), seconds))
    constant = None if template.constant is None else template.constant.encode()

    def collector() -> EditCollector:
        return EditCollector(constant, seconds, max_bytes, terminator=request.terminator)

    found = await run.collect(Step(request.query, collector, seconds))
    await _find_lost_matches(run, request, found, seconds, max_bytes)
    if template.references:
        await _check_groups(run, request)
    other = await find_left_out(run, request.query, found.files, seconds, allowed)

    def plan() -> EditPlan:  # `allowed` reads the file system for each file, so it is called in a worker thread
        chosen = [one for one in found.found() if allowed is None or allowed(one.path)]
        files, left_out = plan_files(
            request.root,
            chosen,
            encoding=request.options.get("encoding"),
            context=request.context,
            max_bytes=max_bytes,
            holds=holds,
            screen=screen,
            terminator=request.terminator,
            keeps_line_ends=request.keeps_line_ends,
        )
        errors = [error for error in found.errors if allowed is None or (error.path and allowed(error.path))]
        every = (*errors, *other.errors, *left_out)
        return EditPlan(root=request.root, files=files, errors=every, hidden_matches=other.hidden)

    return await run.call(plan, seconds=seconds)


async def run_write(run: Runner, work: Callable[[], AppliedEdits], *, timeout: float | None) -> AppliedEdits:  # noqa: ASYNC109
    """Call `work`, which applies or undoes a plan. A cancelled call returns only after `work` has ended."""
    return await run.call_to_end(work, seconds=check_timeout(timeout))


async def _find_lost_matches(
    run: Runner, request: ReplaceRequest, found: "EditCollector", seconds: float | None, max_bytes: int
) -> None:
    """Leave out files without a final newline that have an empty match at their end, which rg does not print.

    rg's JSON printer drops an empty match at the end of the bytes of a line (`record_matches()` in
    `crates/printer/src/json.rs`). If the line has a newline, this match is before the newline, and rg prints it. So the
    last lines are searched again, with a newline, which a match in one line does not see. A match of several lines may
    see it. So with `multiline`, matches at the end are searched, and rg tells whether there is one, but not where.
    """
    ends, newline = found.ends(), b"" if request.options.get("multiline") else request.terminator
    if not ends or never_empty(request.query.patterns, request.options):
        return
    with await run.call(lambda: _make_probes([end + newline for end in ends.values()])) as folder:
        patterns, options = request.query.patterns, match_options(request.options)
        if request.options.get("multiline"):
            patterns, options = ending(patterns, request.options)
        query = search_query(patterns, folder, (), options)
        again = await run.collect(
            Step(query, lambda: EditCollector(b"", seconds, max_bytes, terminator=request.terminator), seconds)
        )
    last = again.last_starts()
    for number, (path, end) in enumerate(ends.items()):
        start = last.get(str(number))
        if (start is None or start >= len(end)) if newline else str(number) in last:
            found.lost.add(path)


def _make_probes(texts: Iterable[bytes]) -> TemporaryFolder:
    folder = TemporaryFolder("ripwrap-probe-")  # deleted also if nobody waits for it any more
    for number, text in enumerate(texts):
        with open(os.path.join(folder.path, str(number)), "wb") as file:
            file.write(text)
    return folder


async def _check_groups(run: Runner, request: ReplaceRequest) -> None:
    """Raise `ValueError` if the replacement refers to a group that the pattern lacks. rg tells which groups exist."""
    references, patterns = request.template.references, request.query.patterns
    if request.options.get("fixed_strings"):
        raise missing_group(references[0], 0)
    numbers = [int(one) for one in references if one.isdigit()]
    with await run.call(lambda: _make_probes([PROBE.encode()])) as folder:
        if numbers:
            largest = min(max(numbers), MAX_GROUP)
            pattern, replacement = count_probe(patterns, largest)
            probed = await run.collect(request.probe(pattern, folder, replacement))
            count = group_count(probed.last_replacement, largest)
            for number in numbers:
                if number > count:
                    raise missing_group(str(number), count if count < largest else None)
        for name in references:
            if not name.isdigit() and not (PLAIN_NAME.fullmatch(name) and await _has_name(run, request, name, folder)):
                raise missing_group(name, None)


async def _has_name(run: Runner, request: ReplaceRequest, name: str, folder: str) -> bool:
    try:
        await run.collect(request.probe(name_probe(request.query.patterns, name), folder))
    except SearchError:  # the name exists; rg's error about PCRE2 is not a `PatternError`
        return True
    return False
