"""Commands `ripwrap replace` and `ripwrap undo`: show a diff, ask for each edit, write, and restore."""

import os
import sys
from dataclasses import dataclass
from typing import Annotated, Literal, Unpack

from ripwrap import sync
from ripwrap._edits.planning import MAX_BYTES
from ripwrap._text import plural
from ripwrap.cli.command import SETUP_EXIT_CODES, Command, Option
from ripwrap.cli.flags import NOT_FOR_REPLACE, Color, Cwd, Json, Pattern, RunOptions
from ripwrap.cli.output import print_json
from ripwrap.cli.terminal import FAILED, FOUND, NOTHING, When, colored_diff, complain, shows_color
from ripwrap.edits import AppliedEdits, EditPlan, FileEdits
from ripwrap.errors import Hint, combination_error
from ripwrap.options import VISIBLE_FILES, SearchOptions

EXIT_CODES = """\
Exit codes:
  0  there are matches, or files were changed or restored
  1  there are no matches, or no replacement was chosen
  2  an error; stderr says which"""

Answer = Literal["y", "n", "a", "d", "q"]

_HELP = """\
y: replace this, n: leave this, a: replace this and the rest, d: leave this and the rest, q: quit and write nothing"""


@dataclass(frozen=True)
class WriteOptions:
    """Options that say what to do with replacements: show or write them."""

    apply: Annotated[bool, Option("Write the files")] = False
    interactive: Annotated[bool, Option("Ask for each replacement, then write")] = False
    dry_run: Annotated[bool, Option("Show the diff, which is the default")] = False
    break_hard_links: Annotated[bool, Option("Change files with hard links (several names), too")] = False

    def check(self) -> None:
        """Raise `ValueError` if the options contradict each other."""
        given = [name for name in ("apply", "interactive", "dry_run") if getattr(self, name)]
        if len(given) > 1:
            raise combination_error(given[0], Hint(given[1], kind="omit"))


SHOW = WriteOptions()


@Command(
    "PATTERN REPLACEMENT [PATH]...",
    examples=(
        "ripwrap replace 'old_(\\w+)' 'new_$1' src        # show a diff, write nothing",
        "ripwrap replace 'old_(\\w+)' 'new_$1' src --apply",
        "ripwrap replace -F 'a[0]' 'a.first' --interactive",
        "ripwrap undo                                   # undo the last replacement",
    ),
    exit_codes=EXIT_CODES,
    defaults=VISIBLE_FILES,
    without=NOT_FOR_REPLACE,
)
def replace(
    pattern: Pattern,
    replacement: Annotated[str, Option("Text for each match; $1 is a group, $$ a dollar")],
    /,
    *paths: Annotated[str, Option("Files and directories to change [default: all]")],
    escapes: Annotated[bool, Option("Read \\n, \\t, \\xHH and others in REPLACEMENT")] = False,
    max_bytes: Annotated[int, Option("Maximum size of a file, and of all edits, in bytes", value="NUM")] = MAX_BYTES,
    write: WriteOptions = SHOW,
    color: Color = "auto",
    run: RunOptions,
    **options: Unpack[SearchOptions],
) -> int:
    r"""Show a diff of replacements, or write them with --apply.

    If one file cannot be written, no file is changed.
    """
    write.check()
    plan = sync.replace(
        pattern, replacement, cwd=run.cwd, paths=paths, escapes=escapes, max_bytes=max_bytes, rg=run.rg, **options
    )
    return show_or_write(plan, write, color, as_json=run.json)


@Command("[DIR]", examples=("ripwrap undo", "ripwrap undo src"), exit_codes=SETUP_EXIT_CODES)
def undo(
    directory: Annotated[str, Option("Directory that was searched", names=("DIR",), default=".")] = ".",
    /,
    *,
    journal: Annotated[
        str | None, Option("Journal of the replacement to undo [default: the last]", value="PATH")
    ] = None,
    json: Json = False,
    cwd: Cwd = ".",
) -> int:
    """Undo the last replacement in a directory.

    If one file cannot be restored, no file is changed.
    """
    return _print_applied(sync.undo(journal, cwd=os.path.join(cwd, directory)), as_json=json)


def show_or_write(plan: sync.ReplacePlan, options: WriteOptions, color: When, *, as_json: bool) -> int:
    """Show a plan, or write the chosen replacements, and return the exit code."""
    for error in plan.errors:
        complain(str(error))
    code = FAILED if any(not error.harmless for error in plan.errors) else FOUND if plan else NOTHING
    if options.interactive:
        chosen = _ask_for_all(plan, color)
        if not chosen:
            complain("nothing was written")
            return FAILED if code == FAILED else NOTHING
        applied = plan.apply(
            select=lambda file, edit: (file.path, edit.start) in chosen, break_hard_links=options.break_hard_links
        )
    elif options.apply and plan:
        applied = plan.apply(break_hard_links=options.break_hard_links)
    else:
        if as_json:
            print_json(plan)
            return code
        for file in plan:
            _print_file(file, color)
        complain(f"{plan.message} --apply writes them." if plan else plan.message)
        return code
    _print_applied(applied, as_json=as_json)
    return code


def _print_applied(applied: AppliedEdits, *, as_json: bool) -> int:
    if as_json:
        print_json(applied)
    else:
        print(applied if applied.undone else f"{applied} `ripwrap undo` restores them.")
    return FOUND


def _print_file(file: FileEdits, color: When) -> None:
    """Print the diff of a file. If stdout is not a terminal and has no colors, write the exact bytes of the diff."""
    colored = shows_color(color)
    if colored or sys.stdout.isatty():
        print(colored_diff(file.diff(), colored=colored), end="")
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(file.raw_diff())


def _ask_for_all(plan: EditPlan, color: When) -> set[tuple[str, int]]:
    """Ask for each edit, and return the path and offset of each edit to apply; an empty set after the answer `q`."""
    chosen: set[tuple[str, int]] = set()
    everything = [  # each edit with a file that has only this edit and the lines around it
        (file.model_copy(update={"hunks": (hunk.model_copy(update={"edits": (edit,)}),)}), edit)
        for file in plan
        for hunk in file.hunks
        for edit in hunk.edits
    ]
    for number, (file, edit) in enumerate(everything):
        _print_file(file, color)
        answer = _ask(f"Replace this ({number + 1} of {plural(len(everything), 'replacement')})? [y,n,a,d,q,?] ")
        if answer == "q":
            return set()
        if answer == "a":
            return chosen | {(file.path, edit.start) for file, edit in everything[number:]}
        if answer == "d":
            break
        if answer == "y":
            chosen.add((file.path, edit.start))
    return chosen


def _ask(question: str) -> Answer:
    """Ask until a valid answer is typed, and return it; the end of standard input is `q`."""
    while True:
        print(question, end="", flush=True)
        answer = sys.stdin.readline() if sys.stdin is not None else ""
        match answer.strip().lower():
            case "y" | "n" | "a" | "d" | "q" as known:
                return known
            case "" if not answer:
                print()
                return "q"
            case _:
                print(_HELP)
