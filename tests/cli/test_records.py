"""`ripwrap --json` prints the records of `rg --json`, on generated trees and options."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ripwrap import sync
from support.cli import output, run
from support.effort import times

WORDS = (
    b"needle",
    b"Needle",
    b"x",
    b"caf\xc3\xa9",
    b"\xff\xfe",
    b"\xe2\x82",
    b'"\\',
    b"\t",
    b"\xf0\x9f\x98\x80",
    b"fn(",
    b")",
)
ENDS = (b"\n", b"\n", b"\n", b"\r\n", b"\n\n", b"")
NAMES = (
    "a.py",
    "b.txt",
    "sub/c.py",
    "sub/deep/d e.rs",
    ".hid",
    "caf\u00e9.md",
    *(('q"uote', b"\xff.py") if os.name == "posix" else ()),
)
PATTERNS = ("needle", "n(e+)d", "caf.", r"\w+", "", r"(?-u:\xff)", r"^x", r"\(|\)", r"[\t ]")
FLAGS = (
    "-i", "-v", "-w", "-x", "-U", "-N", "-a", "--crlf", "--passthru", "-C1", "-A2", "-B1", "-m1", "-m2", "-F", "-S",
    "-r<$1>", "-r<$0>", "-rpin",
    "-d1", "-g*.py", "-tpy", "--binary", "-ecaf", "--null-data", "--no-unicode", "--stop-on-nonmatch", "-P",
)  # fmt: skip


def grow(random_: random.Random, root: Path) -> None:
    """Write a few files of words: text, bytes that are not UTF-8, NUL bytes, and UTF-16 with a byte order mark."""
    for name in random_.sample(NAMES, random_.randint(1, len(NAMES))):
        path = os.fsencode(root) + b"/" + os.fsencode(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        lines = [
            b" ".join(random_.choices(WORDS, k=random_.randint(0, 5))) + random_.choice(ENDS)
            for _ in range(random_.randint(0, 12))
        ]
        content = b"".join(lines)
        kind = random_.random()
        if kind < 0.1:
            content = content.decode("utf-8", "replace").encode("utf-16")
        elif kind < 0.2:
            content += b"\0needle\n"
        with open(path, "wb") as file:
            file.write(content)


def timeless(stdout: bytes) -> list[Any]:
    """Return records without times, and without `bytes_printed`, which counts the `./` before a path, too."""
    records = [json.loads(line) for line in stdout.splitlines()]
    for record in records:
        record["data"].pop("elapsed_total", None)
        for name in ("elapsed", "bytes_printed") if "stats" in record["data"] else ():
            del record["data"]["stats"][name]
    return records


@pytest.mark.parametrize("seed", range(times(60, 200)))
def test_records_equal_those_of_rg(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that read `rg --json` read `ripwrap --json`: the same records, and the same exit code."""
    random_ = random.Random(seed)
    grow(random_, tmp_path)
    flags = random_.sample(FLAGS, random_.randint(0, 4))
    words = ["--json", "--sort=path", *flags, "-e", random_.choice(PATTERNS)]
    monkeypatch.chdir(tmp_path)
    with open(os.devnull) as null:
        monkeypatch.setattr(sys, "stdin", null)
        raw = subprocess.run(
            [sync.resolve().path, "--no-config", "--no-require-git", "--hidden", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        nothing_searched = b"No files were searched" in raw.stderr  # a warning of rg if it is given no path
        done = run(*words, cwd=tmp_path, code=1 if nothing_searched else raw.returncode)
    if raw.returncode == 2 and not nothing_searched:
        assert done.stdout == b"" and done.stderr
        return
    assert timeless(done.stdout) == timeless(raw.stdout)


def test_json_of_ripwrap_and_modes_without_records_are_answered_by_name(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("needle\n")
    lines = output("needle", "--jsonl", cwd=tmp_path).splitlines()
    assert json.loads(lines[1])["lines"] == "needle\n"
    assert json.loads(output("needle", "--json", cwd=tmp_path).splitlines()[1])["data"]["lines"] == {"text": "needle\n"}
    for flags in (["-c"], ["-l"], ["--near=x"], ["--history"], ["--repositories=."], ["--jsonl"]):
        done = run("needle", "--json", *flags, cwd=tmp_path, code=2)
        assert b"cannot be combined with --json: rg has no JSON for it; --jsonl prints" in done.stderr
