"""Comparison of `search()` with an independent reader of raw `rg --json`, field by field, on the standard library."""

import base64
import json
import os
import subprocess
import sysconfig
from collections import defaultdict
from typing import Any

import anyio
import pytest

import ripwrap
from ripwrap import Match, sync
from ripwrap.binary import RgBinary

FOLDER = sysconfig.get_path("stdlib")

pytestmark = pytest.mark.slow  # `test_against_rg.py` compares the same with older rgs

# Pattern, options, and the same as flags. Python's tests have unusual encodings, and .pyc files have raw bytes.
SEARCHES: list[tuple[str, dict[str, Any], list[str]]] = [
    (r"class \w+Error\b", {}, []),
    ("[^\\x00-\\x7f]{2,}", {}, []),
    ("Löwis|naïve|日本", {"ignore_case": True}, ["-i"]),
    ("yield", {"word_regexp": True, "type": "py"}, ["-w", "-tpy"]),
    (r"except \w+:\n\s+pass", {"multiline": True}, ["-U"]),
    ("(?-u)\\xff", {"text": True, "max_count": 1}, ["-a", "-m1"]),
    ("no such text anywhere \x01", {}, []),
    (
        "\\S",
        {"invert_match": True, "iglob": ["*.TXT", "!site-packages"]},
        ["-v", "--iglob=*.TXT", "--iglob=!site-packages"],
    ),
    ("#!.*python[0-9.]*$", {"crlf": True, "max_depth": 2, "hidden": False}, ["--crlf", "--max-depth=2", "--no-hidden"]),
]

Fields = tuple[Any, ...]


def raw_text(value: dict[str, str]) -> str:
    if "text" in value:
        return value["text"]
    return base64.b64decode(value["bytes"]).decode("utf-8", "replace")


def raw_path(value: dict[str, str]) -> str:
    path = value["text"] if "text" in value else os.fsdecode(base64.b64decode(value["bytes"]))
    assert path.startswith("./")
    return path[2:]


def raw_matches(rg: str, pattern: str, flags: list[str]) -> dict[str, list[Fields]]:
    """Return rg's own matches by file, since rg does not promise an order of files."""
    defaults = ["--hidden", "-L", "--no-require-git", "-g!site-packages", "-g!.git"]
    argv = [rg, "--no-config", "--json", *defaults, *flags, "-e", pattern, "."]
    done = subprocess.run(argv, cwd=FOLDER, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    matches = defaultdict(list)
    for line in done.stdout.split(b"\n"):
        record: dict[str, Any] = json.loads(line or '{"type": null}')
        if record["type"] == "match":
            data = record["data"]
            hits = tuple((raw_text(hit["match"]), hit["start"], hit["end"]) for hit in data["submatches"])
            fields = (raw_text(data["lines"]), data["line_number"], data["absolute_offset"], hits)
            matches[raw_path(data["path"])].append(fields)
    return matches


def our_fields(match: Match) -> Fields:
    hits = tuple((hit.match, hit.start, hit.end) for hit in match.submatches)
    return match.lines, match.line_number, match.absolute_offset, hits


def our_matches(rg: RgBinary, api: str, pattern: str, options: dict[str, Any]) -> dict[str, list[Fields]]:
    """Return ripwrap's matches by file, from an event loop or the blocking twin."""
    matches: dict[Any, list[Fields]] = defaultdict(list)

    async def collect() -> None:
        async for match in ripwrap.search(pattern, cwd=FOLDER, rg=rg, **options):
            matches[match.path].append(our_fields(match))

    if api == "blocking":
        for match in sync.search(pattern, cwd=FOLDER, rg=rg, **options):
            matches[match.path].append(our_fields(match))
    else:
        anyio.run(collect, backend=api)
    return matches


@pytest.mark.parametrize("number", range(len(SEARCHES)), ids=lambda number: SEARCHES[number][0])
def test_search_fields_equal_rgs_json_in_the_standard_library(rg: RgBinary, number: int) -> None:
    """Each search runs with one API in turn, and the densest with all three."""
    pattern, options, flags = SEARCHES[number]
    expected = raw_matches(rg.path, pattern, flags)
    assert bool(expected) != pattern.startswith("no such")
    apis = ("asyncio", "trio", "blocking")
    for api in apis if "invert_match" in options else [apis[number % 3]]:
        assert our_matches(rg, api, pattern, {"glob": "!site-packages", **options}) == expected
