"""No string that a caller passes becomes a flag, changes the mode, starts a program or makes rg read a configuration.

Checked at both ends: by a stand-in that records its arguments, and by strace on every rg of the matrix.
"""

import functools
import gzip
import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import ripwrap
from ripwrap import CapabilityError, SearchError, UnknownTypeError, sync
from ripwrap._ripgrep.named_paths import missing_paths_as_warnings
from ripwrap.binary import RgBinary
from ripwrap.options import FileOptions, SearchOptions, option_hints
from ripwrap.testing.behaviors import SUMMARY
from support import rgs, strace
from support.effort import STRESS, times
from support.strace import Trace

pytestmark = [pytest.mark.slow, pytest.mark.rg_ends]

Plant = Callable[..., Path]

EXCLUDING = ("--glob=!.git", "--glob=!.ripgrep/")
ALWAYS = ("--no-config", "--hidden", "--follow", "--no-require-git", *EXCLUDING)
LISTING = ("--files", "--null")
FRAMED = ("--null", "--with-filename")
MODES = {
    "count": ("--count", *FRAMED, "--stats"),
    "count_matches": ("--count-matches", *FRAMED, "--stats"),
    "files": LISTING,
    "files_with_matches": ("--count", *FRAMED, "--max-count=1"),
    "files_without_match": ("--count", *FRAMED, "--include-zero", "--max-count=1"),
    "grep": ("--json", "--context=2"),
    "search": ("--json",),
    "search_messages": ("--json",),
    "tree": LISTING,
    "tree_text": LISTING,
}
"""The operations that take options, each with the flags that are its own."""

COLLECTED = {"grep", "tree", "tree_text"}
"""The operations that use rg's output at its end; the others ask rg to write each line at once."""

NASTY = (
    *("", "-", "--", "---", "-\n", "\n", " ", "\t-l", " --files", "\n--files", "\r-l"),
    *("=", "=--files", "--=", "--glob=", "--config", "--config=ripgreprc", "-f/etc/passwd", "/etc/passwd"),
    *("--pre ./evil.sh", "--pre=./evil.sh --json", "x\n--pre=./evil.sh\n", "'; ./evil.sh; '", '"', "~", "$HOME"),
    *("$(touch marker)", "`touch marker`", "; ./evil.sh", "| ./evil.sh", "|| ./evil.sh", "&& ./evil.sh &"),
    *("> marker", "< evil.sh", "!./evil.sh", "#", "*", "\\", "\\-\\-files", "\\0", "%s", "{}", "\x1b[2J", "\x7f"),
    *("\u2013\u2013files", "\uff0d\uff0dfiles", "\u2028--files", "\U0001f600--files", "\U00010000", "-\u0301"),
    *("caf\u00e9", "--pre=\U0001f600", "\udcff", "--\udcff", "--pre=\udcff"),
)
PROGRAMS = (
    "--pre=./evil.sh",
    "-z",
    "--files",
    "--",
    "@args",
    "x\n--pre=./evil.sh",
    "$(./evil.sh)",
    "; ./evil.sh #",
)
"""Strings that would start a program if anything took them for a flag, a response file or shell words."""


def takes_any_string(hint: Any) -> bool:
    """Return whether an option takes any string; a `Literal` and a type annotated with a pattern do not."""
    if get_origin(hint) is Annotated:
        return False
    return hint is str or any(takes_any_string(part) for part in get_args(hint))


def takes_several(hint: Any) -> bool:
    return any(get_origin(part) is Sequence for part in get_args(hint))


def options_of(operation: str) -> dict[str, Any]:
    """Return an operation's options and their types, without annotations."""
    hints = option_hints(FileOptions if MODES[operation] is LISTING else SearchOptions)
    return {key: hint.__origin__ for key, hint in hints.items()}


def slots(operation: str) -> dict[str, bool]:
    """Return the parameters that pass a caller's strings to rg, each with whether it takes several."""
    own = inspect.signature(getattr(sync, operation)).parameters
    options = {key: takes_several(hint) for key, hint in options_of(operation).items() if takes_any_string(hint)}
    return {**{name: True for name in ("pattern", "paths") if name in own}, **options}


@functools.cache
def flags() -> tuple[str, ...]:
    """Return every flag, short and long, that the help of any rg of the matrix names."""
    helps = [
        subprocess.run([rg, "--help"], capture_output=True, text=True, check=True).stdout for rg in rgs.available()
    ]
    found = sorted(set(re.findall(r"(?<![\w-])(?:--[a-z][a-z0-9-]+|-[a-zA-Z0-9.])(?![\w-])", "".join(helps))))
    assert {"--pre", "--files", "--no-json", "-l", "-z", "-.", "--type-list", "--hostname-bin"} <= set(found)
    return tuple(found)


@functools.cache
def nasty() -> tuple[str, ...]:
    """Return all of the strings above and all flags, alone and with a value as rg takes it."""
    valued = (f"{flag}=./evil.sh" if flag[1] == "-" else f"{flag}./evil.sh" for flag in flags())
    return (*NASTY, *PROGRAMS, *flags(), *valued)


def fits(slot: str, text: str) -> bool:
    """Return whether a parameter takes a string: a pattern is Unicode, a path is not empty."""
    if slot == "pattern":
        return not re.search("[\ud800-\udfff]", text)
    return slot != "paths" or text != ""


def strings(slot: str) -> st.SearchStrategy[str]:
    some = st.deferred(lambda: st.sampled_from(nasty()))
    plain = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
    any_of = some | plain | st.builds(str.__add__, some, some | plain)
    return any_of.filter(lambda text: fits(slot, text))


def arguments(operation: str) -> st.SearchStrategy[dict[str, Any]]:
    """Draw what a caller passes to an operation."""
    drawn = {
        slot: st.lists(strings(slot), min_size=slot == "pattern", max_size=3) | strings(slot)
        if several
        else strings(slot)
        for slot, several in slots(operation).items()
    }
    needed = {slot: drawn.pop(slot) for slot in ("pattern",) if slot in drawn}
    return st.fixed_dictionaries(needed, optional=drawn)


def everything_nasty(operation: str) -> dict[str, Any]:
    """Return all nasty strings at once for each parameter that takes several."""
    return {
        slot: [text for text in nasty() if fits(slot, text)] if several else "--pre=./evil.sh"
        for slot, several in slots(operation).items()
    }


@dataclass(frozen=True)
class Recorder:
    """An rg that records its arguments.

    Attributes:
        path: The executable.
        logs: Folder with a file for each run, because several may write at once: its arguments, each ended by a NUL.
    """

    path: Path
    logs: Path

    def runs(self) -> list[list[bytes]]:
        """Return the arguments of each run since the last call, in the order of their ends."""
        found = [(log.stat().st_mtime_ns, log.read_bytes().split(b"\0")[:-1]) for log in self.logs.iterdir()]
        for log in self.logs.iterdir():
            log.unlink()
        return [arguments for _, arguments in sorted(found)]

    def run(self) -> list[bytes]:
        """Return the arguments of the only run."""
        (only,) = self.runs()
        return only


def recorder(folder: Path, body: str) -> Recorder:
    path, logs = folder / "recorder", folder / "logs"
    logs.mkdir()
    record = f"printf '%s\\0' \"$@\" >{shlex.quote(str(logs))}/$$"
    path.write_text(f'#!/bin/sh\n[ "$2" = --version ] && echo ripgrep 15.2.0 && exit\n{record}\n{body}\n')
    path.chmod(0o755)
    return Recorder(path, logs)


@pytest.fixture(scope="module")
def rec(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """A recorder that finds nothing."""
    return recorder(
        tmp_path_factory.mktemp("recorder"), f'[ --json = "$2" -o --json = "$3" ] && echo \'{SUMMARY}\'\nexit 1'
    )


def call(operation: str, given: dict[str, Any], rg: Path, cwd: "str | Path" = "/") -> None:
    """Call a blocking operation and take all its results; the files that it names do not exist."""
    with missing_paths_as_warnings():
        answer = getattr(sync, operation)(**{"cwd": cwd, "rg": rg, **given})
        if isinstance(answer, Generator):
            list(answer)


def wanted(operation: str, given: dict[str, Any]) -> tuple[list[bytes], list[bytes]]:
    """Return the flags, sorted, and the paths, normalised, that rg must receive."""
    found = [*ALWAYS, *MODES[operation], *(() if operation in COLLECTED else ("--line-buffered",))]
    paths = ["."]
    for slot, value in given.items():
        several = [value] if isinstance(value, str) else value
        if slot == "paths":
            paths = several or paths
        else:
            name = "regexp" if slot == "pattern" else slot.replace("_", "-")
            found += [f"--{name}={text}" for text in several]
    if given.get("iglob"):
        found += ["--iglob=!.git", "--iglob=!.ripgrep/"]
    return sorted(map(os.fsencode, found)), [os.path.normpath(os.fsencode(path)) for path in paths]


def received(run: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """Return the flags and paths that rg received, by its own rule: flags end at the first `--`."""
    end = run.index(b"--")
    assert run[0] == b"--no-config"
    assert b"-" not in run[end:], "rg would search stdin"
    return sorted(run[:end]), [os.path.normpath(path) for path in run[end + 1 :]]


def test_these_tests_cover_every_operation_with_options() -> None:
    takes_options = {
        name
        for name in set(sync.__all__) - {"Index", "ReplacePlan"}  # the options of `Index` are those of `files()`
        if "glob" in inspect.signature(getattr(sync, name)).parameters
    }
    # The query of `rank` consists of words: `test_rank.py`. A history is searched as items are. The others run the
    # commands of `search()` and `files_with_matches()`, some of them several times.
    others = {"rank", "coverage", "why", "search_in", "grep_in", "search_history", "files_matching", "replace", "scan"}
    others |= {"search_code", "replace_code", "search_columns", "watch", "references"}
    assert takes_options - others == MODES.keys()
    assert {"pattern", "paths", "glob", "type", "ignore_file", "encoding", "replace"} <= slots("search").keys()
    assert {"paths", "glob", "type", "ignore_file"} <= slots("files").keys()


@pytest.mark.parametrize("operation", MODES)
def test_every_string_reaches_rg_as_a_value_or_a_path(rec: Recorder, operation: str) -> None:
    @settings(max_examples=times(4, 200))
    @given(arguments(operation))
    def holds(given: dict[str, Any]) -> None:
        call(operation, given, rec.path)
        assert received(rec.run()) == wanted(operation, given)

    holds()


@pytest.mark.anyio
@pytest.mark.parametrize("operation", MODES)
async def test_every_flag_of_every_rg_reaches_rg_as_a_value_or_a_path(rec: Recorder, operation: str) -> None:
    given = everything_nasty(operation)
    with missing_paths_as_warnings():
        answer = getattr(ripwrap, operation)(**given, cwd="/", rg=rec.path)
        if isinstance(answer, AsyncGenerator):
            async for _ in answer:
                pass
        else:
            await answer
    flags, paths = wanted(operation, given)
    runs = [received(run) for run in rec.runs()]  # `grep` searches paths below others in a run of their own
    assert [found for found, _ in runs] == [flags] * len(runs)
    assert {path for _, some in runs for path in some} == set(paths)


@pytest.mark.parametrize("operation", MODES)
def test_nul_or_surrogate_is_refused_before_rg_starts(rec: Recorder, operation: str) -> None:
    """A NUL would end the argument; half of a surrogate pair has no bytes."""

    @given(st.sampled_from([*slots(operation), "cwd"]), strings("pattern"), st.sampled_from("\0\ud800"), st.text())
    def holds(slot: str, before: str, bad: str, behind: str) -> None:
        given = {"pattern": "x"} if "pattern" in slots(operation) else {}
        with pytest.raises(ValueError, match=r"NUL|null|cannot encode|Unicode"):
            call(operation, {**given, slot: before + bad + behind}, rec.path)
        assert rec.runs() == []

    holds()


@pytest.mark.parametrize("operation", MODES)
def test_options_with_fixed_values_refuse_other_strings(rec: Recorder, operation: str) -> None:
    given = {"pattern": "x"} if "pattern" in slots(operation) else {}
    texts = (*NASTY, *PROGRAMS, "path\n", "10K\n", "path --files", "10K --files", "--path")
    for number, option in enumerate(sorted(options_of(operation).keys() - slots(operation).keys())):
        for text in texts if STRESS else texts[number % 4 :: 4]:
            with pytest.raises(ValueError, match=option):
                call(operation, {**given, option: text}, rec.path)
    assert rec.runs() == []


def test_unknown_option_name_never_becomes_a_flag(rec: Recorder) -> None:
    names = {flag.lstrip("-").replace("-", "_") for flag in flags()} - options_of("search").keys()
    for name in chain(names, nasty()):
        for value in (True, "./evil.sh"):
            with suppress(TypeError), pytest.raises(ValidationError):
                call("search", {"pattern": "x", name: value}, rec.path)
    assert rec.runs() == []


def test_cwd_of_any_name_is_not_passed_to_rg(rec: Recorder, folder: Path) -> None:
    for name in ("--pre=evil", "-", "--", "-l", "$(touch marker)", "\n", "\udcff"):
        (folder / name).mkdir()
        for operation in MODES:
            given = {"pattern": "x"} if "pattern" in slots(operation) else {}
            call(operation, given, rec.path, cwd=folder / name)
            assert received(rec.run()) == wanted(operation, given)


def test_explain_passes_no_string_as_a_flag(rec: Recorder) -> None:
    given = everything_nasty("grep")
    call("grep", {**given, "explain": True}, rec.path)
    runs = rec.runs()
    assert len(runs) > 4
    changes = {b"--no-ignore", b"--fixed-strings", b"--ignore-case", b"--text", b"--crlf"}
    found, paths = wanted("grep", given)
    for run in runs:
        assert set(received(run)[0]) <= {*found, *changes}
        assert {b"--no-config", b"--json"} <= set(run)
        assert [flag for flag in received(run)[0] if flag.startswith(b"--regexp=")] == [
            flag for flag in found if flag.startswith(b"--regexp=")
        ]
        assert set(received(run)[1]) <= set(paths)


@pytest.mark.parametrize("operation", ["coverage", "why"])
def test_reasons_pass_no_string_as_a_flag(rec: Recorder, tmp_path: Path, operation: str) -> None:
    names = ["-", "--files", "--pre=evil.sh", "$(touch marker)", "\n"]
    for name in names:
        (tmp_path / name).write_text("x")
    given = {**everything_nasty("search"), "paths": names}
    del given["pattern"]
    own = {*FRAMED, *LISTING, "--count", "--include-zero", "--text", "--max-count=1", "--max-depth=0", "--stats"}
    own |= {"--type-list", "--debug", "--threads=2"}
    own.add(r"--regexp=\x00")
    known = {*wanted("search", given)[0], *map(os.fsencode, own)}
    for name in names if operation == "why" else [""]:
        with suppress(SearchError):
            call(operation, {**given, **({"path": name} if name else {})}, rec.path, cwd=tmp_path)
        runs = rec.runs()
        assert runs
        for run in runs:
            found, paths = received(run)
            assert set(found) <= known
            assert {os.fsdecode(path) for path in paths} <= {*names, "."}


@pytest.mark.parametrize("operation", ["search_in", "grep_in"])
@pytest.mark.parametrize("by_name", [True, False])
def test_items_pass_no_string_as_a_flag(rec: Recorder, operation: str, by_name: bool) -> None:
    given = everything_nasty("search")
    del given["paths"], given["ignore_file"]
    if not by_name:  # rg checks globs and types first, and this one knows no types
        given = {slot: value for slot, value in given.items() if slot not in slots("files")}
    with suppress(SearchError):
        list(getattr(sync, operation)(**given, items=[(text, "x") for text in nasty()], rg=rec.path))
    own = {"--max-depth=0", "--no-ignore", "--sort=path", "--type-list", "--context=2"}
    known = {*wanted("search", given)[0], *map(os.fsencode, own)}
    runs = rec.runs()
    assert len(runs) > 1
    for run in runs:
        found, paths = received(run)
        assert set(found) <= known
        assert paths in ([], [b"."])


def test_retry_passes_no_string_as_a_flag(tmp_path: Path) -> None:
    """The retry uses one thread, because the system lets rg start no more."""
    rec = recorder(tmp_path, "echo 'failed to spawn thread: Os {' >&2\nexit 101")
    given = everything_nasty("search")
    with pytest.raises(SearchError):
        call("search", given, rec.path)
    first, second = rec.runs()
    found, paths = wanted("search", given)
    assert received(first) == (found, paths)
    assert received(second) == (sorted([*found, b"--threads=1"]), paths)


class TestTypes:
    """Type lists: after an unknown type, rg lists the types that it knows and the caller's own."""

    @pytest.fixture
    def without_types(self, tmp_path: Path) -> Recorder:
        return recorder(tmp_path, "echo 'rg: unrecognized file type: nope' >&2\nexit 2")

    @pytest.mark.parametrize("operation", MODES)
    def test_type_list_gets_only_the_callers_types(self, without_types: Recorder, operation: str) -> None:
        own = {"type_add": list(nasty()), "type_clear": list(nasty())}
        given = {"pattern": ["x"]} if "pattern" in slots(operation) else {}
        with pytest.raises(UnknownTypeError):
            call(operation, {**given, **own, "type": "nope", "glob": list(nasty())}, without_types.path)
        _, listing = without_types.runs()
        values = [os.fsencode(f"--{name}={text}") for name in ("type-clear", "type-add") for text in nasty()]
        assert listing == [b"--no-config", *values, b"--type-list", b"--"]

    def test_path_does_not_add_a_type(self, without_types: Recorder) -> None:
        paths = ["--type-add=x:include:nope", "--type-clear=py"]
        with pytest.raises(UnknownTypeError):
            call("files", {"paths": paths, "type": "nope"}, without_types.path)
        _, listing = without_types.runs()
        assert listing == [b"--no-config", b"--type-list", b"--"]


@dataclass(frozen=True)
class Watched:
    """A real rg under strace, in a folder with programs and configurations as bait.

    Attributes:
        path: A launcher of the rg.
        folder: The folder.
        marker: A file that exists as soon as one of the programs has run.
        config: A configuration that would run one, which `RIPGREP_CONFIG_PATH` names.
        rg: The rg.
        traces: The folder of the traces.
    """

    path: Path
    folder: Path
    marker: Path
    config: Path
    rg: RgBinary
    traces: Path

    def raw(self, *words: str) -> Trace:
        """Run the rg with unchecked arguments and return its trace."""
        subprocess.run([self.path, *words], cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        (trace,) = strace.take(self.traces)
        return trace

    def check(self) -> int:
        """Return how many times rg ran; fail if a run did anything but search."""
        traces = strace.take(self.traces)
        for trace in traces:
            (program,) = trace.programs
            assert program.startswith(f'execve("{self.rg.path}"')
            assert (trace.processes, trace.sockets) == ((), ())
            assert not [file for file in trace.files if str(self.config) in file]
        assert not self.marker.exists()
        return len(traces)


@pytest.fixture(scope="session")
def tracing() -> None:
    """Skip the test if strace does not work here, or fail if RIPWRAP_ALL_RGS is set."""
    strace.provide()


@pytest.fixture
def watched(
    rg: RgBinary, tracing: None, plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Watched]:
    marker, config = tmp_path / "marker", tmp_path / "ripgreprc"
    evil = f'#!/bin/sh\ntouch {shlex.quote(str(marker))}\ncat "$1"\n'
    bait = dict.fromkeys(("a.py", "b.txt", "--files", "-l", "-", "--pre=evil", "sub/x"), "x needle\n")
    folder = plant({**bait, "evil.sh": evil, "args": "--pre=./evil.sh\n", "x.gz": gzip.compress(b"x needle\n")})
    (folder / "evil.sh").chmod(0o755)
    config.write_text("--pre=./evil.sh\n")
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", str(config))
    launcher = strace.launcher(tmp_path / "watched", Path(rg.path), tmp_path / "traces")
    before = sorted(os.listdir(folder))
    watched = Watched(launcher, folder, marker, config, rg, tmp_path / "traces")
    assert sync.resolve(launcher).version == rg.version
    assert watched.check() == 1
    yield watched
    assert sorted(os.listdir(folder)) == before


def test_strace_detects_programs_processes_and_configurations(watched: Watched) -> None:
    plain = watched.raw("--no-config", "x", ".")
    assert len(plain.programs) == 1
    assert (plain.processes, plain.sockets) == ((), ())
    assert not watched.marker.exists()

    evil = watched.raw("--no-config", "--pre=./evil.sh", "x", ".")
    assert [program for program in evil.programs[1:] if "evil.sh" in program]
    assert evil.processes
    assert watched.marker.exists()
    watched.marker.unlink()

    configured = watched.raw("x", ".")
    assert [file for file in configured.files if str(watched.config) in file]
    assert watched.marker.exists()
    watched.marker.unlink()

    assert watched.raw("--no-config", "--search-zip", "x", ".").processes


def test_strace_detects_sockets_and_ignores_threads(tracing: None, tmp_path: Path) -> None:
    script = "import socket, threading as t; socket.socket(); own = t.Thread(target=print); own.start(); own.join()"
    launcher = strace.launcher(tmp_path / "watched", Path(sys.executable), tmp_path / "traces")
    subprocess.run([launcher, "-c", script], check=True, capture_output=True)
    (trace,) = strace.take(tmp_path / "traces")
    assert (len(trace.programs), trace.processes, len(trace.sockets)) == (1, (), 1)


@pytest.mark.parametrize("slot", slots("search"))
def test_no_string_starts_anything(watched: Watched, slot: str) -> None:
    takers = [operation for operation in MODES if slot in slots(operation)]
    several = slots(takers[0])[slot]
    # Older rgs get every second string, and all of them at once.
    programs = PROGRAMS if STRESS or watched.rg.version >= (15,) else PROGRAMS[[*slots("search")].index(slot) % 2 :: 2]
    together: list[str | list[str]] = [[text for text in PROGRAMS if fits(slot, text)]] if several else []
    for number, text in enumerate([*programs, *together]):
        operation = takers[number % len(takers)]
        given = {"pattern": "x"} if "pattern" in slots(operation) else {}
        with suppress(SearchError, CapabilityError, FileNotFoundError):
            call(operation, {**given, slot: text}, watched.path, watched.folder)
        lacks = slot == "replace" and "--json" in MODES[operation] and watched.rg.version < (15,)
        assert watched.check() >= 1 - lacks


@pytest.mark.anyio
async def test_no_string_starts_anything_in_an_async_search(watched: Watched) -> None:
    names = [name for name in os.listdir(watched.folder) if name.startswith("-")]
    with missing_paths_as_warnings():
        search = ripwrap.search(
            ["needle", *PROGRAMS],
            cwd=watched.folder,
            rg=watched.path,
            paths=[".", *names],
            glob=["*", *PROGRAMS],
            ignore_file=PROGRAMS,
            multiline=True,
        )
    assert {*names, "a.py"} <= {match.path async for match in search}
    assert watched.check() == 1


def test_version_and_type_queries_read_no_configuration(watched: Watched) -> None:
    assert sync.resolve(watched.path).features == watched.rg.features
    assert sync.file_types(rg=watched.path)["py"]
    assert watched.check() >= 1


def test_version_query_runs_without_ripgrep_config_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPGREP_CONFIG_PATH", "/evil")
    rg = folder / "rg"
    rg.write_text('#!/bin/sh\n[ -z "${RIPGREP_CONFIG_PATH+set}" ] && echo ripgrep 15.2.0\n')
    rg.chmod(0o755)
    assert sync.resolve(rg).version == (15, 2, 0)
