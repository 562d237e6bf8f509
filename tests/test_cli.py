"""The command line, run as a program: what it prints where, and its exit codes."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import get_type_hints

import psutil
import pytest

from ripwrap import Match, RankedChunk, TreeEntry
from ripwrap.index import Collected, IndexHealth, IndexStatus, Refreshed
from ripwrap.options import SearchOptions

Plant = Callable[..., Path]
RunningIn = Callable[[Path], list[psutil.Process]]
RIPWRAP = [sys.executable, "-m", "ripwrap"]


def run(*arguments: str, cwd: Path, code: int = 0) -> "subprocess.CompletedProcess[bytes]":
    done = subprocess.run([*RIPWRAP, *arguments], cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == code, done.stderr.decode()
    return done


def output(*arguments: str, cwd: Path, code: int = 0) -> str:
    return run(*arguments, cwd=cwd, code=code).stdout.decode()


def on_terminal(*arguments: str, cwd: Path) -> str:
    """What a terminal is sent."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "40"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(
        [*RIPWRAP, *arguments], cwd=cwd, stdin=subprocess.DEVNULL, stdout=follower, stderr=follower, env=environment
    ) as program:
        os.close(follower)
        sent = b""
        while True:
            try:
                chunk = os.read(leader, 65536)
            except OSError:  # how Linux says that the other side is closed
                break
            if not chunk:
                break
            sent += chunk
        os.close(leader)
    assert program.returncode == 0, sent
    return sent.decode().replace("\r\n", "\n")


def test_search_prints_plain_lines_into_a_pipe(plant: Plant) -> None:
    folder = plant({"src/a.py": "import x\nasync def f():\n    pass\n", "b.py": "no\n"})
    assert output("search", "async def", cwd=folder) == "src/a.py:2:async def f():\n"
    assert output("search", "async def", "src", cwd=folder) == "src/a.py:2:async def f():\n"
    assert output("search", "async", "-A1", "--sort=path", cwd=folder) == (
        "src/a.py:2:async def f():\nsrc/a.py-3-    pass\n"
    )


def test_bytes_go_into_a_pipe_as_they_are(plant: Plant) -> None:
    folder = plant({b"\xff": b"caf\xe9 needle\n"})
    assert run("search", "needle", cwd=folder).stdout == b"\xff:1:caf\xe9 needle\n"
    assert run("files", cwd=folder).stdout == b"\xff\n"


def test_gaps_between_context_are_marked(plant: Plant) -> None:
    folder = plant({"f": "needle\n2\n3\n4\nneedle\n"})
    assert output("search", "needle", "-C1", cwd=folder) == ("f:1:needle\nf-2-2\n--\nf-4-4\nf:5:needle\n")
    assert "--" not in output("search", "needle", cwd=folder)


def test_a_match_of_several_lines_has_a_number_for_each(plant: Plant) -> None:
    assert output("search", "-U", "a\\nb", cwd=plant({"f": "a\nb\nc\n"})) == "f:1:a\nf:2:b\n"


def test_replace_shows_the_new_line(plant: Plant) -> None:
    assert output("search", "(a) (b)", "-r", "$2 $1", cwd=plant({"f": "a b\n"})) == "f:1:b a\n"


def test_a_terminal_gets_groups_and_colours(plant: Plant) -> None:
    folder = plant({"a.py": "one\nneedle and needle\n", "b.py": "needle " + "x" * 100 + "\n"})
    red = "\x1b[1;31mneedle\x1b[0m"
    assert on_terminal("search", "needle", "--sort=path", cwd=folder) == (
        f"\x1b[35ma.py\x1b[0m\n\x1b[32m2\x1b[0m:{red} and {red}\n"
        f"\n\x1b[35mb.py\x1b[0m\n\x1b[32m1\x1b[0m:{red} {'x' * 100}\n"
    )


def test_a_terminal_gets_gaps_and_context_too(plant: Plant) -> None:
    folder = plant({"f": "needle\n2\n3\n4\nneedle\n"})
    shown = on_terminal("search", "needle", "-C1", cwd=folder)
    assert shown.count("--\n") == 1
    assert "\x1b[32m2\x1b[0m-2\n" in shown


def test_json_lines_are_the_models(plant: Plant) -> None:
    folder = plant({"a.py": "needle\n", "sub/b.py": "", b"\xff": ""})
    lines = output("search", "needle", "--json", cwd=folder).splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["begin", "match", "end", "summary"]
    assert Match.model_validate_json(lines[1]).lines == "needle\n"
    paths = [json.loads(line) for line in output("files", "--json", cwd=folder).splitlines()]
    assert sorted(paths, key=str) == ["a.py", "sub/b.py", {"bytes": "/w=="}]
    entries = [TreeEntry.model_validate_json(line) for line in output("tree", "--json", cwd=folder).splitlines()]
    assert [entry.path for entry in entries] == ["sub", "sub/b.py", "a.py", "\udcff"]


def test_files_and_tree(plant: Plant) -> None:
    folder = plant({"src/a.py": "", "src/b.c": "", "README": "", ".git/x": "", "node/x": ""})
    assert output("files", "-g", "*.py", cwd=folder) == "src/a.py\n"
    assert output("files", "--limit=2", cwd=folder).count("\n") == 2
    assert output("tree", "--exclude=node", cwd=folder) == "src/\n    a.py\n    b.c\nREADME\n"
    assert output("tree", "--limit=1", cwd=folder) == "node/\n    [1 truncated]\n[2 truncated]\n"
    assert output("tree", "--cwd=src", cwd=folder) == "a.py\nb.c\n"


def test_rank_prints_where_why_and_the_first_lines(plant: Plant) -> None:
    folder = plant(
        {"src/jar.py": "class CookieJar:\n    x = 1\n" + "    y = 2\n" * 8, "src/b.js": "cookie()\n", "a.py": ""}
    )
    shown = output("rank", "CookieJar", cwd=folder).splitlines()
    assert re.fullmatch(r"src/jar\.py:1-10  CookieJar  \d\.\d\d", shown[0])
    assert shown[1].startswith('  defines "CookieJar"; path has "jar"; BM25 ')
    assert shown[2:9] == [
        "  1:class CookieJar:",
        "  2:    x = 1",
        *(f"  {number}:    y = 2" for number in range(3, 7)),
        "  … 4 more lines",
    ]
    assert output("rank", "cookie jar", "src/b.js", "--limit=1", cwd=folder).startswith("src/b.js:1-1  ")
    (place,) = output("rank", "jar", "--json", "-g*.py", cwd=folder).splitlines()
    assert RankedChunk.model_validate_json(place).path == "src/jar.py"
    assert run("rank", "zebra", cwd=folder, code=1).stdout == b""
    assert b"there is no word in the query" in run("rank", "?", cwd=folder, code=2).stderr
    assert "\x1b[35msrc/jar.py:1-10\x1b[0m  \x1b[1mCookieJar\x1b[0m" in on_terminal(
        "rank", "CookieJar", cwd=folder
    ).replace("\x1b[0m\x1b[1m  ", "\x1b[0m  \x1b[1m")


@pytest.mark.once
def test_the_index_is_built_asked_and_looked_after(plant: Plant, tmp_path: Path) -> None:
    folder = plant({"src/jar.py": "class CookieJar:\n    x = 1\n", "b.py": "cookie()\n", "skip.txt": "cookie\n"})
    home = f"--location={tmp_path / 'home'}"
    assert output("index", "status", home, cwd=folder, code=1).startswith("built: no\n")
    assert b"there is no index" in run("index", "search", "cookie", "--no-refresh", home, cwd=folder, code=2).stderr
    done = run("index", "build", home, "-g*.py", "--json", cwd=folder)
    assert Refreshed.model_validate_json(done.stdout).added == 2
    assert done.stderr == b""  # no bar where there is no terminal
    assert output("index", "build", ".", home, "-g*.py", cwd=folder).startswith(
        "0 added, 0 changed, 0 removed, 2 unchanged; 0 chunks in "
    )
    told = IndexStatus.model_validate_json(output("index", "status", home, "-g*.py", "--json", cwd=folder))
    assert (told.built, told.files, told.location) == (True, 2, str(tmp_path / "home"))
    shown = output("index", "search", "CookieJar", str(folder), home, "-g*.py", cwd=tmp_path).splitlines()
    assert re.fullmatch(r"src/jar\.py:1-2  CookieJar  \d\.\d\d", shown[0])
    (folder / "src" / "tin.py").write_text("class Tin:\n    pass\n")
    (place,) = output("index", "search", "Tin", home, "-g*.py", "--json", cwd=folder).splitlines()
    assert RankedChunk.model_validate_json(place).path == "src/tin.py"
    assert run("index", "search", "zebra", home, cwd=folder, code=1).stdout == b""
    assert output("index", "health", home, cwd=folder).startswith("ok: yes\nchecked: ok\n")
    assert IndexHealth.model_validate_json(output("index", "health", home, "--json", cwd=folder)).ok
    assert Collected.model_validate_json(output("index", "gc", home, "--json", cwd=folder)).views == ()
    with (tmp_path / "home" / "index.sqlite3").open("r+b") as file:
        file.seek(4096)
        file.write(b"garbage" * 10_000)
    assert "index build --anew" in output("index", "health", home, cwd=folder, code=2)
    shown_there = on_terminal("index", "build", home, cwd=folder)  # made anew, which is said, and is no failure
    assert "ripwrap: the index in" in shown_there and "4/4" in shown_there
    assert "4 added" in shown_there
    assert output("index", "build", home, "--anew", cwd=folder).startswith("4 added")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["build", "missing"], "ROOT should be a folder; /"),
        (["build", "missing"], "/missing does not exist\n"),
        (["watch", "file"], "/file is no folder\n"),
        (["search", "x", "file"], "/file is no folder\n"),
        (["search", "?"], "there is no word in the query '?'"),
        (["search", "x", "--limit=-1"], "limit should be 0 or more"),
        (["build", "--rg=missing/rg"], "no such file"),
        (["build", "--location=file/below"], "an index cannot be kept in"),
        (["build", "--location=file/below"], "; pass another --location\n"),
        (["build", "--location="], "location should name a folder, not ''"),
        (["search", "x", "--no-refresh", "--location=home"], "; `ripwrap index build` makes it\n"),
        (["build", "--hybrid-weight=.5"], "--hybrid-weight says something with an embedder alone; pass --embedder\n"),
        (["build", "--embedder=wordllama", "--hybrid-weight=2"], "--hybrid-weight should be from 0 to 1, not 2"),
        (["build", "--chunker=lines"], "windows"),
        (["build", "--embedder=no-such-provider"], "no-such-provider"),
        (["bild"], "bild"),
    ],
)
@pytest.mark.once
def test_what_is_wrong_with_an_index_is_a_line_on_stderr(arguments: list[str], says: str, plant: Plant) -> None:
    done = run("index", *arguments, cwd=plant({"file": "x\n"}), code=2)
    assert says in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@pytest.mark.once
def test_what_an_index_leaves_out_is_said_and_is_no_failure(plant: Plant, tmp_path: Path) -> None:
    folder = plant({"a.py": "cookie\n", "b.bin": b"\0", "big.txt": "cookie\n" * 200_000})
    (folder / "broken").symlink_to("nowhere")
    home = f"--location={tmp_path / 'home'}"
    warning = b"ripwrap: rg could not read everything: broken: No such file or directory (os error 2)\n"
    done = run("index", "build", home, "--chunker=windows", cwd=folder)
    assert done.stderr == warning
    assert re.fullmatch(
        r"3 added, 0 changed, 0 removed, 0 unchanged; \d+ chunks in \d\.\d seconds; left out: 1 binary; "
        r"1 file of more than a million bytes cut there\n",
        done.stdout.decode(),
    )
    done = run("index", "search", "cookie", "--json", home, "--chunker=windows", cwd=folder)
    assert done.stdout and done.stderr == warning
    done = run("index", "search", "zebra", home, "--chunker=windows", cwd=folder, code=1)
    assert (done.stdout, done.stderr) == (b"", warning)
    assert run("rank", "cookie", cwd=folder, code=2).stderr == warning  # as rg's


@pytest.mark.once
def test_all_that_is_about_an_index_takes_what_cuts_its_files(plant: Plant, tmp_path: Path) -> None:
    folder = plant({"a.py": "class Cookie:\n    pass\n\n\nclass Jar:\n    pass\n"})
    given = (f"--location={tmp_path / 'home'}", "--chunker=windows")
    assert "1 added" in output("index", "build", *given, cwd=folder)
    assert "built: yes\n" in output("index", "status", *given, cwd=folder)
    assert output("index", "health", *given, cwd=folder).startswith("ok: yes\n")
    assert "chunks: 0\n" in output("index", "gc", *given, cwd=folder)
    assert "chunker: windows 1\n" in output("index", "status", *given, cwd=folder)


def test_what_health_advises_is_a_command(plant: Plant, tmp_path: Path) -> None:
    shown = output("index", "health", f"--location={tmp_path / 'home'}", cwd=plant({"a.py": ""}))
    assert "messages: There is no index yet; `ripwrap index build` makes it.\n" in shown


@pytest.mark.skipif(find_spec("wordllama") is None, reason="the extra `vectors` is not installed")
def test_a_terminal_is_shown_how_far_embedding_is(plant: Plant, tmp_path: Path) -> None:
    folder = plant({f"{number}.py": f"cookie{number}\n" for number in range(5)})
    command = ("index", "build", f"--location={tmp_path / 'home'}", "--embedder=wordllama", "--hybrid-weight=.5")
    shown = on_terminal(*command, cwd=folder)
    assert re.search(r"indexing.*5/5.*files", shown)
    assert re.search(r"embedding.*5/5.*texts", shown)
    assert "5 texts embedded" in shown


@pytest.mark.once
def test_places_go_into_a_pipe_with_their_own_bytes(plant: Plant, tmp_path: Path) -> None:
    folder = plant({b"caf\xe9.py": b"cookie = 'caf\xe9'\r\n" + b"x\n" * 8})
    home = f"--location={tmp_path / 'home'}"
    for command in (["rank", "cookie"], ["index", "search", "cookie", home]):
        lines = run(*command, cwd=folder).stdout.split(b"\n")
        assert lines[0].startswith(b"caf\xe9.py:1-9  ")
        assert lines[2] == b"  1:cookie = 'caf\xe9'"
        assert lines[7:] == [b"  6:x", "  … 3 more lines".encode(), b"", b""]
        (place,) = run(*command, "--json", cwd=folder).stdout.splitlines()
        assert json.loads(place)["path"] == {"bytes": "Y2Fm6S5weQ=="}
    assert "caf\ufffd.py:1-9" in on_terminal("rank", "cookie", cwd=folder)


@pytest.mark.once
def test_an_index_of_a_folder_whose_name_is_not_utf_8_is_told_with_its_own_bytes(plant: Plant) -> None:
    folder = plant({b"caf\xe9/a.py": "cookie\n"}) / os.fsdecode(b"caf\xe9")
    run("index", "build", "--location=project", cwd=folder)
    shown = run("index", "status", "--location=project", cwd=folder).stdout
    assert b"/caf\xe9/.ripwrap\n" in shown
    told = run("index", "status", "--location=project", "--json", cwd=folder).stdout
    assert IndexStatus.model_validate_json(told).location == str(folder / ".ripwrap")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("it is full; pass another location=", "it is full; pass another --location"),
        ("Pass another location= if not", "Pass another --location if not"),
        ("location=, or refresh=False for what is in there", "--location, or --no-refresh for what is in there"),
        ("chunker='syntax' needs it", "--chunker=syntax needs it"),
        ("call refresh(anew=True), or gc().", "call `ripwrap index build --anew`, or `ripwrap index gc`."),
        (
            "[Errno 20] cwd is not a directory; one file in paths=: 'x'",
            "--cwd is not a directory; one file in PATHS: 'x'",
        ),
        ("limit should be 0 or more", "--limit should be 0 or more"),
        ("/home/location=/x is a link", "/home/location=/x is a link"),
        ("there is no word in the query 'glob=!'", "there is no word in the query 'glob=!'"),
    ],
)
def test_messages_name_flags(said: str, shown: str) -> None:
    from ripwrap._flags import in_flags

    assert in_flags(said) == shown


@pytest.mark.skipif(find_spec("watchfiles") is None, reason="the extra `watch` is not installed")
def test_watching_tells_of_each_refresh_and_ends_quietly(plant: Plant, tmp_path: Path, running_in: RunningIn) -> None:
    folder = plant({"a.py": "a\n"})
    command = [*RIPWRAP, "index", "watch", "--json", f"--location={tmp_path / 'home'}"]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
    ) as program:
        assert program.stdout is not None
        assert Refreshed.model_validate_json(program.stdout.readline()).added == 1
        (folder / "b.py").write_text("b\n")
        assert Refreshed.model_validate_json(program.stdout.readline()).added == 1
        os.killpg(program.pid, signal.SIGINT)
        stdout, stderr = program.communicate(timeout=30)
    assert (program.returncode, stdout, stderr) == (130, b"", b"")
    assert running_in(folder) == []


def test_exit_codes_are_rgs(plant: Plant, folder: Path) -> None:
    plant({"f": "needle\n"})
    assert run("search", "needle", cwd=folder, code=0).stderr == b""
    assert run("search", "nothing", cwd=folder, code=1).stdout == b""
    assert run("files", "-g", "*.none", cwd=folder, code=1).stdout == b""
    assert run("search", "needle", "f", "missing", cwd=folder, code=2).stdout == b"f:1:needle\n"
    (folder / "broken").symlink_to("nowhere")
    for command, printed in (("files", b"f\n"), ("tree", b"f\n")):
        done = run(command, cwd=folder, code=2)
        assert done.stdout == printed
        assert done.stderr == b"ripwrap: rg could not read everything: broken: No such file or directory (os error 2)\n"


def test_a_file_that_looks_binary_is_reported_as_rg_does(plant: Plant) -> None:
    folder = plant({"late": b"needle\n" + b"x\n" * 50_000 + b"\0\nneedle\n"})
    done = run("search", "needle", cwd=folder)
    assert done.stdout == b"late:1:needle\n"
    assert b"late: taken for binary, from the NUL byte at offset 100007; --text" in done.stderr


def test_closed_streams_and_consoles_of_few_letters_do_no_harm(plant: Plant) -> None:
    folder = plant({"é": "needle é\n"})
    command = f"{sys.executable} -m ripwrap"
    closed = subprocess.run(f"{command} files >&-", shell=True, cwd=folder, stderr=subprocess.PIPE, check=False)
    assert (closed.returncode, closed.stderr) == (2, b"ripwrap: stdout is closed: there is nowhere to print to\n")
    silent = subprocess.run(
        f"{command} search x none 2>&-", shell=True, cwd=folder, stdout=subprocess.PIPE, check=False
    )
    assert (silent.returncode, silent.stdout) == (2, b"")
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*RIPWRAP, "doctor"], cwd=folder, env=ascii_only, capture_output=True, check=True)
    assert b"rg 15" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["search", "(text="], "(text="),
        (
            ["search", "(text="],
            "unclosed group\nMend the pattern, or pass --fixed-strings to search for it literally.\n",
        ),
        (["search", "a\\n"], "Pass --multiline to let a match span lines.\n"),
        (["search", "x", "-g", "a["], "unclosed character class"),
        (["search", "x", "-t", "nope"], "unrecognized file type: nope"),
        (["search", "x", "missing"], "ripwrap: missing: No such file or directory"),
        (["search", "x", "--cwd", "missing"], "/folder/missing'"),
        (["search", "x", "--max-depth=-1"], "--max-depth: Input should be greater than or equal to 0"),
        (["search", "x", "--limit=-1"], "limit should be 0 or more"),
        (["search", "x", "--sort=size"], "size"),
        (["search", "x", "--pre=sh"], "--pre"),
        (["search", "x", "--rg=missing/rg"], "no such file"),
        (["search"], "PATTERN"),
        (["doctor", "--rg=missing/rg"], "no such file"),
    ],
)
def test_what_is_wrong_is_said_on_stderr_with_exit_code_2(arguments: list[str], says: str, folder: Path) -> None:
    done = run(*arguments, cwd=folder, code=2)
    assert says in done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_a_pattern_that_begins_with_a_dash_stands_behind_two(plant: Plant) -> None:
    assert output("search", "--", "--pre=x", cwd=plant({"f": "--pre=x\n"})) == "f:1:--pre=x\n"


def test_every_option_is_a_flag(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = output("search", "--help", cwd=folder)
    for key in get_type_hints(SearchOptions):
        assert "--" + key.replace("_", "-") in text


def test_doctor_tells_what_is_used_and_why(folder: Path) -> None:
    text = output("doctor", cwd=folder)
    assert "rg 15." in text
    assert "features: pcre2" in text
    assert "wheel" in text and ": taken" in text
    assert "cache" in text


def test_a_reader_that_has_enough_ends_it_quietly(plant: Plant, running_in: RunningIn) -> None:
    folder = plant({"dense": "needle\n" * 500_000})
    command = [*RIPWRAP, "search", "needle"]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as program:
        assert program.stdout is not None and program.stderr is not None
        assert program.stdout.readline() == b"dense:1:needle\n"
        program.stdout.close()
        assert program.stderr.read() == b""
    assert program.returncode == 0
    assert running_in(folder) == []


def test_ctrl_c_ends_it_quietly(plant: Plant, running_in: RunningIn) -> None:
    folder = plant({"file": "needle\n"})
    os.mkfifo(folder / "fifo")
    command = [*RIPWRAP, "search", "needle", "file", "fifo", "--threads=1"]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
    ) as program:
        while not running_in(folder):
            assert program.poll() is None
        os.killpg(program.pid, signal.SIGINT)
        stdout, stderr = program.communicate(timeout=30)
    assert (program.returncode, stderr) == (130, b"")
    assert stdout in (b"", b"file:1:needle\n")
    assert running_in(folder) == []


def test_ctrl_c_when_rg_has_just_been_started_ends_it_too(plant: Plant, running_in: RunningIn) -> None:
    folder = plant({})
    os.mkfifo(folder / "fifo")
    code = """if True:
        import signal, sys
        from ripwrap.__main__ import main
        from ripwrap._rg.process import BlockingChild
        BlockingChild.__enter__ = lambda child: signal.raise_signal(signal.SIGINT)
        sys.argv[1:] = ["search", "needle", "fifo"]
        main()
        """
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
    assert running_in(folder) == []


def test_ctrl_c_twice_ends_it_quietly_too(plant: Plant, tmp_path: Path) -> None:
    folder = plant({f"{number}.py": f"def cookie{number}(): ...\n" * 20 for number in range(3_000)})
    command = [*RIPWRAP, "index", "build", f"--location={tmp_path / 'home'}", "--chunker=windows"]
    with subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
    ) as program:
        while not (tmp_path / "home" / "index.sqlite3-wal").exists():
            assert program.poll() is None
        for _ in range(2):
            os.killpg(program.pid, signal.SIGINT)
            signal.sigtimedwait([], 0.005)
        stdout, stderr = program.communicate(timeout=30)
    assert (stdout, stderr) == (b"", b"")
    assert program.returncode in (130, -signal.SIGINT)  # the latter where Python has already let go of its handlers
    assert output(*command[3:], cwd=folder).startswith("3000 added, ")


def test_without_its_extra_the_command_says_which_one(folder: Path) -> None:
    code = "import sys; sys.modules['cyclopts'] = None; from ripwrap.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == 'ripwrap: the command line needs cyclopts: pip install "ripwrap[cli]"\n'


def test_without_its_extra_the_mcp_server_says_which_one(folder: Path) -> None:
    code = "import sys; sys.modules['mcp'] = None; from ripwrap.cli import run; sys.exit(run(['mcp', '--root', '.']))"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.stderr == 'ripwrap: the MCP server needs mcp: pip install "ripwrap[mcp]"\n'
    assert done.returncode == 2
