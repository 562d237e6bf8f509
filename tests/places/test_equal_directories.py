"""Every place answers as raw rg does for the same files in a directory, over generated trees and options."""

import json
import os
import random
import re
import subprocess
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import ripwrap
from ripwrap import sync
from ripwrap.binary import RgBinary
from ripwrap.places import History, Items
from support.effort import times
from support.git import require_git
from support.outcomes import without_context

pytestmark = pytest.mark.usefixtures("leaks_nothing")

Files: TypeAlias = dict[str, bytes]
Answer: TypeAlias = Any

NAMES = [
    "a.py",
    "b.txt",
    "sub/a.py",
    "sub/b.py",
    "sub/deep/c.txt",
    "x y.txt",
    ".hid",
    "sub/.hid/d.py",
    "B.TXT",
    "é.txt",
    "noext",
]
LINES = [
    "ab",
    "needle",
    "needle needle",
    "Needle x",
    "",
    "  ",
    "cab a b",
    "AB\tCD",
    "é ω needle",
    "b",
    "aab\r",
    "x" * 200,
]
PATTERNS = [
    "a", "b", "needle", "^$", "$", "^", r"\bneedle\b", "a|b", "[[:upper:]]", r"[\x41-\x5a]", r"\p{Lu}", r"\s", r"[^a]",
    r"\w+", "é", "(a)(b)?", "x*", r"needle\s+needle", "nothing here", ".", "e{2}", r"[a-c&&[^b]]", r"\W", "(?i)NEEDLE",
]  # fmt: skip
OVER_LINES = [r"b\n", r"a\s+b", r"\n\n", r"(?s)a.*?b", r"e\s*$", r"needle[^x]*ab", r"\s+"]
OPTIONS: dict[str, list[Any]] = {
    "ignore_case": [True], "smart_case": [True], "fixed_strings": [True], "word_regexp": [True], "line_regexp": [True],
    "invert_match": [True], "multiline": [True], "multiline_dotall": [True], "crlf": [True], "null_data": [True],
    "text": [True], "max_count": [1, 2, 3], "context": [1, 2], "before_context": [1], "after_context": [2],
    "max_filesize": [0, 1, 12, 30, 200, "1K"], "max_depth": [1, 2, 3], "iglob": ["*.TXT"], "type": ["py", "txt"],
    "glob": ["*.py", "!*.py", "**/a*", "**/sub/**", ["*.txt", "!b*"]], "glob_case_insensitive": [True],
    "type_not": ["py"], "hidden": [False], "no_unicode": [True], "stop_on_nonmatch": [True], "pcre2": [True],
    "encoding": ["utf-16le", "latin1", "none"],
}  # fmt: skip
PLACES = ("directory", "items", "revision", "zip", "tar", "overlay")


def drawn_files(draw: random.Random) -> Files:
    """Draw a few small files: texts with other line ends, encodings and marks, and some with a NUL."""
    files: Files = {}
    for name in draw.sample(NAMES, draw.randint(1, 6)):
        end = draw.choice(["\n", "\n", "\n", "\r\n"])
        text = end.join(draw.choices(LINES, k=draw.randint(0, 8))) + end * draw.randint(0, 1)
        content = text.encode(draw.choice(["utf-8"] * 6 + ["utf-16", "latin1", "utf-8-sig"]), "replace")
        if draw.random() < 0.1:
            at = draw.randint(0, len(content))
            content = content[:at] + b"\0" + content[at:]
        files[name] = content
    return files


def drawn_options(draw: random.Random) -> dict[str, Any]:
    return {
        name: draw.choice(OPTIONS[name]) for name in draw.sample(sorted(OPTIONS), draw.choice([0, 1, 1, 2, 2, 3, 4]))
    }


def plain(path: str | None) -> str:
    """Return the name of a file, without the archive that it is in."""
    return re.sub(r"^zz\.(?:zip|tar)!/", "", (path or "").removeprefix("./"))


def flags_of(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the flags that a person would type, with the defaults of ripwrap."""
    yield from ("--no-config", "--no-ignore", "-L", "--sort=path")
    yield from () if options.get("hidden") is False else ("--hidden",)
    if options.get("hidden") is False and options.get("type"):
        yield "-g!.*"
    for name in (name for name in OPTIONS if name in options and name != "hidden"):  # of two flags, the last may win
        value = options[name]
        for one in value if isinstance(value, list) else [value]:
            yield f"--{name.replace('_', '-')}" + ("" if one is True else f"={one}")
    yield from ("-g!.git", "--iglob=!.git") if "iglob" in options else ("-g!.git",)


class Raw:
    """Answers of raw rg about the files in a directory."""

    def __init__(self, rg: RgBinary, folder: Path, pattern: str, options: Mapping[str, Any]) -> None:
        self._call = [rg.path, *flags_of(options)]
        self._folder, self._pattern = folder, pattern

    def run(self, *flags: str, pattern: str | None = None) -> bytes | None:
        """Return the output of rg; `None` if it failed."""
        searched = [] if "--files" in flags else ["-e", self._pattern if pattern is None else pattern]
        argv = [*self._call, *flags, *searched, "--", "."]
        done = subprocess.run(argv, cwd=self._folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return done.stdout if done.returncode in (0, 1) else None

    def matches(self) -> list[Answer]:
        output = self.run("--json") or b""
        found = [one["data"] for line in output.splitlines() if (one := json.loads(line))["type"] == "match"]
        return sorted(
            (
                plain(one["path"]["text"]),
                one["line_number"],
                one["absolute_offset"],
                [(hit["start"], hit["end"]) for hit in one["submatches"]],
            )
            for one in found
        )

    def counts(self, mode: str) -> list[Answer]:
        found = re.findall(rb"([^\0]+)\0([0-9]+)(?:\r?\n|\0)", self.run(mode, "--null", "--with-filename") or b"")
        return sorted((plain(os.fsdecode(path)), int(number)) for path, number in found)

    def paths(self, mode: str, pattern: str | None = None) -> list[str]:
        return sorted(
            plain(os.fsdecode(one)) for one in (self.run(mode, "--null", pattern=pattern) or b"").split(b"\0")[:-1]
        )


ARCHIVES = ("zz.zip", "zz.tar")


def answers(pattern: str, given: dict[str, Any], options: dict[str, Any]) -> dict[str, Callable[[], Answer]]:
    """Return what ripwrap answers, without what it finds in the bytes of an archive, as `expected()` spells it."""
    files = {name: value for name, value in options.items() if name in ripwrap.FileOptions.__annotations__}
    of_matches = {**given, **without_context(options)}
    several = {**given, **options}

    def matches(found: Any) -> Answer:
        rows = [one for one in found if one.path not in ARCHIVES]
        return sorted(
            (plain(one.path), one.line_number, one.absolute_offset, [(hit.start, hit.end) for hit in one.submatches])
            for one in rows
        )

    def columns() -> Answer:
        rows = [
            row
            for one in sync.search_columns(pattern, **of_matches)
            for row in zip(one.path, one.line_number, strict=True)
        ]
        return sorted((plain(path), number) for path, number in rows if path not in ARCHIVES)

    def counts(found: Any) -> Answer:
        return sorted((plain(one.path), one.count) for one in found if one.path not in ARCHIVES)

    def listed(found: Any) -> Answer:
        return sorted(plain(path) for path in found if path not in ARCHIVES)

    return {
        "search": lambda: matches(sync.search(pattern, **of_matches)),
        "grep": lambda: matches(sync.grep(pattern, limit=None, **several).matches),
        "count": lambda: counts(sync.count(pattern, **several)),
        "count_matches": lambda: counts(sync.count_matches(pattern, **several)),
        "columns": columns,
        "files": lambda: listed(sync.files(**given, **files)),
        "tree": lambda: listed(one.path for one in sync.tree(**given, **files) if not one.is_dir),
        "files_with_matches": lambda: listed(sync.files_with_matches(pattern, **several)),
        "files_matching": lambda: listed(sync.files_matching(all_of=[pattern], none_of="needle", **several)),
    }


def expected(raw: Raw, counting: Raw) -> dict[str, Answer]:
    """Return what raw rg answers; `counting` has the options of context, which change counts (rg-facts 51)."""
    found = raw.matches()
    paths = {path for path, *_ in found}
    return {
        "search": found,
        "grep": found,
        "count": counting.counts("--count"),
        "count_matches": counting.counts("--count-matches"),
        "columns": [(path, number) for path, number, *_ in found],
        "files": raw.paths("--files"),
        "tree": raw.paths("--files"),
        "files_with_matches": sorted(paths),
        "files_matching": sorted(paths - {*raw.paths("-l", pattern="needle")}),
    }


class Arranged:
    """The same files in every place, one after the other."""

    def __init__(self, folder: Path, files: Files) -> None:
        self.files = files
        self.disk, self.zips, self.tars, self.empty = (folder / one for one in ("disk", "zips", "tars", "empty"))
        for one in (self.disk, self.zips, self.tars, self.empty):
            one.mkdir()
        for name, content in files.items():
            (self.disk / name).parent.mkdir(parents=True, exist_ok=True)
            (self.disk / name).write_bytes(content)
        with zipfile.ZipFile(self.zips / "zz.zip", "w") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
        with tarfile.open(self.tars / "zz.tar", "w") as tar:
            for name, content in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                tar.addfile(entry, BytesIO(content))
        git = ["git", "-C", str(self.disk), "-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false"]
        for words in (["init", "-q"], ["add", "-f", "."], ["commit", "-qm", "all"]):
            subprocess.run([*git, *words], check=True, stdin=subprocess.DEVNULL)

    def place(self, name: str) -> tuple[dict[str, Any], AbstractContextManager[object]]:
        match name:
            case "items":
                return {"where": Items(list(self.files.items()))}, nullcontext()
            case "revision":
                return {"cwd": self.disk, "rev": "HEAD"}, nullcontext()
            case "zip":
                return {"cwd": self.zips, "inside": "zip"}, nullcontext()
            case "tar":
                return {"cwd": self.tars, "inside": "tar"}, nullcontext()
            case "overlay":
                return {"cwd": self.empty}, ripwrap.overlay(self.files, cwd=self.empty)
            case _:
                return {"cwd": self.disk, "no_ignore": True}, nullcontext()


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(times(300, 3000))
@pytest.mark.parametrize("seed", range(2))
def test_places_answer_as_raw_rg(newest: RgBinary, tmp_path: Path, seed: int) -> None:
    """2,000 cases in `nox -s stress`: each is a tree, a pattern, options, a place, and all functions."""
    require_git()
    draw = random.Random(f"{seed}")
    for number in range(times(3, 50)):
        folder = tmp_path / str(number)
        folder.mkdir()
        arranged = Arranged(folder, drawn_files(draw))
        for _ in range(times(6, 20)):
            options = drawn_options(draw)
            over = options.get("multiline") and draw.random() < 0.5
            check(newest, arranged, draw.choice(OVER_LINES if over else PATTERNS), options, draw.choice(PLACES))


def check(rg: RgBinary, arranged: Arranged, pattern: str, options: dict[str, Any], place: str) -> None:
    if place in ("zip", "tar"):  # a depth is that of directories on the disk
        options = {name: value for name, value in options.items() if name != "max_depth"}
    raw = Raw(rg, arranged.disk, pattern, without_context(options))
    if raw.run("--json") is None:  # the options need another pattern
        pattern, options = "a", {name: options[name] for name in ("max_filesize", "text") if name in options}
        raw = Raw(rg, arranged.disk, pattern, options)
    wanted = expected(raw, Raw(rg, arranged.disk, pattern, options))
    given, block = arranged.place(place)
    with block:
        for name, answer in answers(pattern, {**given, "rg": rg}, options).items():
            found, right = answer(), wanted[name]
            if options.get("invert_match") and name in ("files_with_matches", "files_matching"):
                # rg-facts 58: rg's own answers differ about a file with a NUL
                binary = {path for path, content in arranged.files.items() if b"\0" in content}
                found, right = ([path for path in paths if path not in binary] for paths in (found, right))
            assert found == right, (place, name, pattern, options, arranged.files)


SIZES: Files = {
    "a": b"",
    "b": b"x",
    "c": b"xxxx\n",
    "d/e": b"x" * 1023 + b"\n",
    "d/f": b"x" * 1024 + b"\n",
    "g": b"x\n" + b"y\n" * 99_998,
}


@pytest.fixture(scope="module")
def sizes(tmp_path_factory: pytest.TempPathFactory) -> Arranged:
    require_git()
    return Arranged(tmp_path_factory.mktemp("sizes"), SIZES)


@pytest.mark.parametrize("most", [0, 1, 4, 5, 1023, "1K", 1025, "195K", "1G"])
@pytest.mark.parametrize("named", [False, True])
def test_every_listing_applies_max_filesize(
    newest: RgBinary, sizes: Arranged, most: "int | str", *, named: bool
) -> None:
    """In each place and function, as rg does: not for files that the paths name."""
    arranged = sizes
    paths = {"paths": ["d/f", "g", "c"]} if named else {}
    argv = [newest.path, "--no-config", "--files", f"--max-filesize={most}", *paths.get("paths", ["."])]
    done = subprocess.run(argv, cwd=arranged.disk, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    wanted = sorted(map(plain, done.stdout.decode().split()))
    for place in PLACES if not named else ("directory", "revision", "history", "overlay"):
        given, block = (
            arranged.place(place) if place != "history" else ({"cwd": arranged.disk, "where": History()}, nullcontext())
        )
        options: dict[str, Any] = {**given, **paths, "max_filesize": most, "rg": newest}
        with block:
            listed = sorted(plain(path) for path in sync.files(**options) if path not in ARCHIVES)
            assert listed == wanted, place
            found = {plain(one.path) for one in sync.search("x", **options) if one.path not in ARCHIVES}
            assert sorted(found) == [path for path in wanted if path != "a"], place
            if not named:
                entries = [one.path for one in sync.tree(**options) if not one.is_dir and one.path not in ARCHIVES]
                assert sorted(map(plain, entries)) == wanted, place
