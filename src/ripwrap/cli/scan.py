"""Command `ripwrap scan`: search for texts, such as secrets, that match the built-in rules or those in a file."""

import json
import sys
from collections.abc import Iterator
from typing import Annotated, Unpack

from ripwrap import sync
from ripwrap._scan.reports import Baseline, sarif
from ripwrap._scan.rules import Rule, load_rules
from ripwrap._scan.scan import REFUSED
from ripwrap._scan.secrets import SECRET_RULES
from ripwrap._text import raw_bytes, shown, text_of
from ripwrap.cli.command import Command, Option
from ripwrap.cli.flags import Cwd, HistoryFlags, Json, Limit, PlaceFlags, RgPath, placed
from ripwrap.cli.output import print_json, printed_warnings
from ripwrap.cli.terminal import FAILED, FOUND, NOTHING
from ripwrap.errors import Hint, combination_error
from ripwrap.models import HistoryScanMatch, ScanMatch
from ripwrap.options import SearchOptions

_NOT_FOR_SCAN = (*REFUSED, "multiline_dotall", "pcre2")
"""Options that the command does not have: those that do not apply to a scan, and those that change the syntax of the
rules.
"""

SCAN = "Scan options"

EXIT_CODES = """\
Exit codes:
  0  no rule matched (texts in the baseline do not count), or --write-baseline
  1  a rule matched
  2  an error; stderr says which"""


@Command(
    "[PATH]...",
    examples=(
        "ripwrap scan --redact",
        "ripwrap scan --rules rules.toml",
        "ripwrap scan --rules rules.toml --sarif src > scan.sarif",
        "ripwrap scan --write-baseline known.json",
        "ripwrap scan --baseline known.json",
        "ripwrap scan --rev main~3",
        "ripwrap scan --history --since 2024-01-31",
    ),
    exit_codes=EXIT_CODES,
    without=_NOT_FOR_SCAN,
)
def scan(
    *paths: Annotated[str, Option("Files and directories [default: all]; - is standard input")],
    rules: Annotated[str | None, Option("TOML file of rules [default: built-in rules]", SCAN, "FILE")] = None,
    sarif_output: Annotated[bool, Option("Print a log in SARIF 2.1.0", SCAN, names=("--sarif",))] = False,
    baseline: Annotated[
        str | None, Option("Leave out texts that --write-baseline stored in FILE", SCAN, "FILE")
    ] = None,
    write_baseline: Annotated[
        str | None, Option("Store hashes of the found texts in FILE; print nothing", SCAN, "FILE")
    ] = None,
    overlaps: Annotated[bool, Option("Report all texts, also overlapping ones", SCAN)] = False,
    redact: Annotated[bool, Option("Print paths, lines and rules, but not the texts", SCAN)] = False,
    limit: Limit = None,
    place: PlaceFlags,
    history: HistoryFlags,
    json: Json = False,
    cwd: Cwd = ".",
    rg: RgPath = None,
    **options: Unpack[SearchOptions],
) -> int:
    """Search for secrets, or for other texts that match rules."""
    if json and sarif_output:
        raise combination_error("json", Hint("sarif"))
    if (json or sarif_output) and redact:
        raise combination_error("redact", Hint("json" if json else "sarif"))
    known = SECRET_RULES if rules is None else load_rules(rules)
    several, given = placed(place, history, paths, options)
    old = Baseline(known={}) if baseline is None else Baseline.read(baseline)
    with printed_warnings() as warned:
        found = sync.scan(known, cwd=cwd, paths=several, overlaps=overlaps, rg=rg, **given)
        hits = old.new(found)
        if write_baseline is not None:
            Baseline.of(hits).write(write_baseline)
            return FAILED if warned.any else FOUND
        number = _print(hits, known, limit, as_json=json, as_sarif=sarif_output, redact=redact)
    return FAILED if warned.any else NOTHING if number else FOUND


def _print(
    hits: Iterator[ScanMatch],
    rules: tuple[Rule, ...],
    limit: int | None,
    *,
    as_json: bool,
    as_sarif: bool,
    redact: bool,
) -> int:
    """Print the matches, at most `limit`, and return how many were printed."""
    shown_hits: list[ScanMatch] = []
    number = 0
    for hit in hits:
        if limit is not None and number == limit:
            break
        number += 1
        if as_sarif:
            shown_hits.append(hit)
        elif as_json:
            print_json(hit)
        else:
            place = shown(hit.path)
            if hit.line_number is not None:
                ((line, column, _, _),) = hit.ranges()
                place += f":{line}:{column + 1}"
            text = b"" if redact or not hit.lines else b": " + raw_bytes(hit.submatches[0].match).replace(b"\n", b"\\n")
            if isinstance(hit, HistoryScanMatch):
                place = f"{hit.first.id[:12]}:{place}"
                text += b" (" + shown(f"{hit.first.author}, {hit.first.date.date()}").encode("utf-8", "replace") + b")"
            whole = f"{place}: {hit.rule}".encode("utf-8", "replace") + text
            sys.stdout.buffer.write((shown(text_of(whole)).encode() if sys.stdout.isatty() else whole) + b"\n")
    if as_sarif:
        sys.stdout.write(f"{json.dumps(sarif(shown_hits, rules), indent=1)}\n")
    return number
