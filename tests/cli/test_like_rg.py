"""Command lines that users of rg type: each prints what rg prints, or is answered by name."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ripwrap import sync
from ripwrap.cli.command import MISSING, Missing
from ripwrap.cli.search import search
from support.cli import run

Plant = Callable[..., Path]

BASE = ("--no-config", "--no-require-git", "-H", "-n", "--sort=path")
"""Flags with which rg prints what `ripwrap search` prints: paths, and line numbers in a pipe."""

FILES = {
    "a.py": "import os\n\n\ndef needle(x):\n    return x + 1  # needle and Needle\n\n\nclass Thread:\n    pass\n",
    "src/b.py": "def other():\n\tneedle(3)\n\tNEEDLE = 5\n",
    "src/deep/c.rs": "fn needle() {\n    // TODO needle\n}\nfn main() {\n    needle();\n}\n",
    "docs/d.md": "# Title\r\nneedle in\r\nWindows lines\r\n",
    "long.txt": "needle " + "x" * 300 + " needle\nshort needle\n",
    "no end": "the last needle",
    ".hidden": "needle behind a dot\n",
    ".gitignore": "ignored/\n*.log\n",
    "ignored/e.py": "needle ignored\n",
    "x.log": "needle logged\n",
    "zeros": "needle\0other needle\0",
    "parts": "1\n\0a\nb\0002\0003\0004\n\0c\0d\0",
    "-5": "needle in a file with a dash\n",
    "patterns": "needle\nTODO\n",
    "empty": "",
    "nothing": "[^\\s\\S]\n",
    "caf\u00e9.txt": "needle caf\u00e9 \u20ac\n",
}

LINES = """\
needle
needle src
needle src docs
needle -- src
-i needle
-S needle
-S Needle
-s needle
-w needle src
-x 'fn main() {'
-v needle src
-F 'needle('
-F -e 'needle(' -e 'main()'
-e needle -e TODO
-e needle src
-e -5
-e '-5' -e needle docs
-e -x -e needle src
-e -- src
-g -5 needle
-e=needle
-f patterns src
-f patterns -e class
-f empty
-F -f empty -c
-fpatterns src
-tpy needle
-t py -t rust needle
-Tpy needle
-g '*.py' needle
-g '!*.py' -g '!-5' needle
--iglob '*.PY' needle
-g*.rs needle
--type-add 'x:*.txt' -tx needle
-l needle
--files-with-matches needle src
--files-without-match needle
-L -l needle
-c needle
--count needle src
--count-matches needle
-co needle
-o needle
-o 'need\\w+' src
-o '\\w+\\(' -t rust
-or '<$0>' needle src
-r '<$0>' needle src
-r '$2$1' '(need)(le)' src
--column needle
--column -o needle src
--column -v needle src
--vimgrep needle
--vimgrep -i needle src
--vimgrep -v needle src
--no-column --column needle src
-b needle src
-b -o needle src
--byte-offset --column needle src
--trim needle
--trim -C2 needle src
--trim -o '\\s+needle' src
-M 50 needle
-M 50 --column needle
-M 50 -o needle.*
--max-columns=20 -C1 needle
-A1 needle src
-B 1 needle src
-C2 needle
-C1 --heading needle
--heading needle
--heading --no-heading needle
--heading -I needle
-I needle
--no-filename -c needle
-I -c needle src
-H needle a.py
-N needle
-N -C1 needle
-N -B1 'x|Thread' a.py
-N -A1 'os|x|Thread' a.py
-N -C1 'import|Thread' a.py docs
-N -I -B1 'x|Thread' a.py
-N -b -B1 'x|Thread' a.py
-N --heading -C1 'import|Thread'
-N -U -B1 'os\\n|Thread' a.py
-N -v -B1 '^.*[a-z]' a.py
-N -M 10 -B1 'x|Thread' a.py
-N -0 -B1 'x|Thread' a.py
-N --crlf -A1 'Title|lines' docs
-N -C1 -r new 'import|Thread' a.py
-N -B1 --null-data '^a|^c' zeros parts
-B1 --null-data '^a|^c' parts
-N --column needle
-m1 needle
-m 1 -C1 needle
-0 needle
-0 -l needle
-0 -c needle
--null --heading needle
-0I needle
-U 'needle.*\\n.*needle'
-U 'def[^:]*:\\n' -o
-U '(?s)fn.main.*needle' --vimgrep
-U 'x\\):\\n' --column
-U '\\{\\n\\s+' -o -b
-U '\\{\\n\\s+' -or '<>'
-U '\\{\\n\\s+' --trim
-U '(?s)fn.*?\\}' -C1 --heading
-U -v needle src
-U --multiline-dotall 'fn.*TODO'
--crlf 'in$'
--crlf -o 'in$'
--null-data needle zeros
-a needle zeros
--passthru TODO src/deep
-u needle
-uu -l needle
-uuu -l needle
--no-ignore needle
--no-ignore -l needle
-d1 needle
--max-depth 2 -l needle
-d 1 -g '*.py' needle
--max-filesize 100 -l needle
-j1 needle
-P 'needle(?=\\()'
--engine auto '(n)eed\\1?'
-E utf-8 needle docs
--sortr path -l needle
--stop-on-nonmatch needle src
-q needle
-q nothing
--quiet needle src
nothing
-il NEEDLE
-inw needle src
-in needle src
-nC1 needle src
-A1 -B0 needle src
-vc needle
-xvc needle src
'' src
'(?i)NEEDLE' src
'\\bneedle\\b' -oN
--files
--files src
--files -g '*.py'
--files -0
--files -uu
--files -q
-q --files src
--files -q -g '*.none'
--files -qu --glob=!* src
-i -e TODO --files -n --heading -C2 src
-f gone --files --stats --vimgrep docs
--files --type-list
--type-list --files docs
--type-list -iq -g '*.py'
--color never needle
--color=never -o needle
-Iq needle
--ignore-case --case-sensitive needle
--no-config needle src
--line-buffered needle src
--block-buffered -o needle src
-qc needle src
-ql needle
-q --count-matches needle src
-q --files-without-match needle
-q --files-without-match "" a.py
-qc absent
--no-messages needle gone src
--no-messages -l needle gone a.py
--no-messages needle gone
--no-messages --files gone src
-p --color=never needle
--pretty --no-heading --color never -N needle src
--no-line-number -o needle src
--color=never --passthru needle docs
""".splitlines()


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("like-rg")
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("needle\n")
    return folder


def test_table_has_sixty_lines_and_more() -> None:
    assert len(set(LINES)) == len(LINES) > 120


@pytest.fixture
def no_pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Standard input that is not searched."""
    with open(os.devnull) as null:
        monkeypatch.setattr(sys, "stdin", null)
        yield


@pytest.mark.parametrize("line", LINES)
@pytest.mark.usefixtures("no_pipe")
def test_command_line_prints_what_rg_prints(line: str, planted: Path) -> None:
    """Flags, paths and exit code are those of rg; `ripwrap PATTERN` is a search."""
    words = shlex.split(line)
    hidden = () if "-uu" in line else ("--hidden", "--glob=!.git")
    argv = [sync.resolve().path, *BASE, *hidden, *words]
    expected = subprocess.run(argv, cwd=planted, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    done = run(*_sorted(words), cwd=planted, code=expected.returncode)
    assert done.stdout == expected.stdout, done.stderr


def _sorted(words: list[str]) -> list[str]:
    """Return the words of a command line, in path order unless they say another order."""
    return words if {"--sortr", "--type-list"} & {*words} else ["--sort=path", *words]


def test_each_flag_of_rg_is_accepted_or_answered_by_name() -> None:
    """A flag of rg is in the search, is a command, or is in the table that errors and docs have."""
    text = subprocess.run([sync.resolve().path, "--help"], capture_output=True, text=True, check=True).stdout
    listed = re.findall(r"^ +(?:(-\S)(?: \w+)?, )?(--[a-z][a-z0-9-]+)", text, re.MULTILINE)
    opposites = re.findall(r"disabled\s+with\s+(?:the\s+)?(--[a-z][a-z0-9-]+)", text)
    of_rg = {flag for flags in listed for flag in flags if flag} | {*opposites}
    assert len(of_rg) > 130
    known = {*search.flags}
    answered = [flag for one in MISSING for flag in one.flags]
    assert of_rg - known - {*answered} == {"--files", "--type-list", "--help", "-h", "--version", "-V"}
    assert len({*answered}) == len(answered)
    assert not known & {*answered}


@pytest.mark.parametrize("missing", MISSING, ids=lambda one: one.flags[0])
def test_error_about_a_missing_flag_says_why_and_what_to_use(missing: Missing, planted: Path) -> None:
    for flag in missing.flags:
        said = run("needle", flag, cwd=planted, code=2).stderr.decode()
        assert said == f"ripwrap: {flag} is not an option of ripwrap: {missing.reason}; {missing.instead}\n"


def test_page_of_the_command_line_has_the_table_of_missing_flags() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "command-line.md").read_text()
    rows = [f"| {', '.join(f'`{one}`' for one in row.flags)} | {row.reason} | {row.instead} |" for row in MISSING]
    assert "\n".join(("| flags of rg | reason | instead |", "|---|---|---|", *rows)) in page


@pytest.mark.parametrize(
    "line",
    [
        "--hyperlink-format=default needle",
        "--hyperlink-format=kitty --heading needle",
        "--hyperlink-format vscode --column needle src",
        "--hyperlink-format 'x-y:{path}?{line}' -o needle src",
        "--hyperlink-format file -l needle",
        "--hyperlink-format grep+ -c needle",
        "--hyperlink-format none needle",
    ],
)
@pytest.mark.posix
@pytest.mark.usefixtures("no_pipe")
def test_links_are_those_of_rg(line: str, planted: Path) -> None:
    """With colors, paths are links; the codes of colors are others than those of rg."""
    words = ["--color=always", *shlex.split(line)]
    argv = [sync.resolve().path, *BASE, "--hidden", "--glob=!.git", *words]
    expected = subprocess.run(argv, cwd=planted, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    done = run(*_sorted(words), cwd=planted, code=expected.returncode)
    colors = re.compile(rb"\x1b\[[0-9;]*m")
    assert colors.sub(b"", done.stdout) == colors.sub(b"", expected.stdout)
    assert (b"\x1b]8;;" in done.stdout) is ("none" not in line)


@pytest.mark.parametrize("name", ["{path}", "file://x", "x:{path}{nope}", "", "vs-code"])
def test_unknown_format_of_links_is_refused(name: str, planted: Path) -> None:
    if not name:
        assert b"\x1b]8" not in run("--hyperlink-format=", "--color=always", "needle", cwd=planted).stdout
        return
    said = run("--hyperlink-format", name, "needle", cwd=planted, code=2).stderr.decode()
    assert said.startswith("ripwrap: --hyperlink-format must be default, none, file, ")
    assert said.endswith(f"; got {name}\n")


@pytest.mark.parametrize("line", ["--stats needle", "--stats -o needle src", "--stats -q needle", "--stats nothing"])
@pytest.mark.usefixtures("no_pipe")
def test_statistics_are_those_of_rg(line: str, planted: Path) -> None:
    words = shlex.split(line)
    argv = [sync.resolve().path, *BASE, "--hidden", "--glob=!.git", *words]
    expected = subprocess.run(argv, cwd=planted, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    done = run(*_sorted(words), cwd=planted, code=expected.returncode)
    varying = re.compile(rb"^[\d.]+(?= bytes printed| seconds)", re.MULTILINE)
    assert varying.sub(b"N", done.stdout) == varying.sub(b"N", expected.stdout)
    assert b"--stats cannot be combined with --count" in run("needle", "-c", "--stats", cwd=planted, code=2).stderr


@pytest.mark.parametrize(
    "line",
    [
        *("needle - src", "needle src -", "needle src - docs", "needle - -", "needle - src -", "-- needle - -5"),
        *("--heading needle a.py - src", "-C1 needle src - docs", "-c needle - src", "--count-matches needle src -"),
        *("-l needle - src", "--files-without-match Title - docs", "-o needle - docs", "-I needle - src", "-v x - -5"),
        *(
            "-q needle - src",
            "-q nothing - src",
            "absent - src",
            "--no-messages needle gone -",
            "needle gone - src",
            "-l absent - gone src",
        ),
        *("-g *.none needle - src", "--stats needle - src", "--stats -q needle src -", "-m1 needle - a.py"),
        *("-q needle gone - src", "-q needle - gone", "-q absent - gone"),
    ],
)
def test_standard_input_is_searched_beside_paths(line: str, planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, piped = shlex.split(line), "x\nneedle in a pipe\nneedle again\n"
    argv = [sync.resolve().path, *BASE, "--hidden", "--glob=!.git", *words]
    expected = subprocess.run(argv, cwd=planted, input=piped.encode(), capture_output=True, check=False)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped.encode())))
    done = run(*_sorted(words), cwd=planted, code=expected.returncode)
    varying = re.compile(rb"^[\d.]+(?= bytes printed| seconds)", re.MULTILINE)
    assert varying.sub(b"N", done.stdout) == varying.sub(b"N", expected.stdout)
    assert (b"gone" in done.stderr) is (b"gone" in expected.stderr)


def test_limit_and_json_cover_standard_input_and_paths(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found(*words: str) -> list[str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"needle\nneedle\n")))
        done = run("needle", *words, "-", "docs", "a.py", "--sort=path", cwd=planted, code="--limit=0" in words)
        return done.stdout.decode().splitlines()

    for limit, files in ((0, []), (1, ["<stdin>"]), (2, ["<stdin>"] * 2), (3, ["<stdin>"] * 2 + ["docs/d.md"])):
        lines = found(f"--limit={limit}")
        assert [line.partition(":")[0] for line in lines] == files
    records = [json.loads(line) for line in found("--json", "-q") + found("--json")]
    (summary,) = (one["data"]["stats"] for one in records if one["type"] == "summary")
    assert (summary["searches"], summary["matches"]) == (3, 5)
    assert records[-1]["type"] == "summary"


@pytest.mark.parametrize("words", [["--color=ansi", "needle"], ["-l", "--color", "ansi", "needle"]])
@pytest.mark.usefixtures("no_pipe")
def test_color_ansi_is_always(words: list[str], planted: Path) -> None:
    always = [word.replace("ansi", "always") for word in words]
    printed = run(*_sorted(words), cwd=planted).stdout
    assert b"\x1b[35ma.py" in printed
    assert printed == run(*_sorted(always), cwd=planted).stdout


@pytest.mark.parametrize("words", [["-p"], ["--color=always"], ["--color=ansi"], ["--color=never", "--pretty"]])
def test_listed_paths_have_the_color_of_paths(words: list[str], planted: Path) -> None:
    assert run("--files", *words, "docs", cwd=planted).stdout == b"\x1b[35mdocs/d.md\x1b[0m\n"
    assert run("--files", *words, "--color=never", "docs", cwd=planted).stdout == b"docs/d.md\n"


@pytest.mark.parametrize(
    "words", [["-c"], ["-l"], ["--near", "x"], ["--history"], ["--coverage"], ["--typo"]], ids=" ".join
)
def test_listing_refuses_what_it_does_not_do(words: list[str], planted: Path) -> None:
    """rg ignores flags of patterns and lines; a mode of a search, and flags that rg does not have, are errors."""
    assert f"unknown option {words[0]}" in run("--files", *words, cwd=planted, code=2).stderr.decode()


def test_patterns_are_read_from_standard_input(planted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (planted / "words").write_bytes(b"TODO\r\nThread\r\n")
    for patterns, found in (("words", "Thread"), ("/dev/null", "")):
        with open(planted / patterns if patterns == "words" else os.devnull) as file:
            monkeypatch.setattr(sys, "stdin", file)
            done = run("-f", "-", "-oI", "-N", "-g*.py", cwd=planted, code=0 if found else 1)
        assert done.stdout.decode() == (f"{found}\n" if found else "")
    (planted / "words").write_bytes(b"a\n\xff\n")
    assert b"words: a pattern in it is not UTF-8" in run("-f", "words", cwd=planted, code=2).stderr
    assert b"no such file" in run("-f", "gone", cwd=planted, code=2).stderr.lower()
    (planted / "words").unlink()


def test_word_like_a_command_is_refused_and_another_word_is_searched(planted: Path) -> None:
    assert run("serach", "x", cwd=planted, code=2).stderr == b"ripwrap: unknown command serach; did you mean search?\n"
    assert run("Thread", "a.py", cwd=planted).stdout == b"a.py:8:class Thread:\n"
    assert run("Thread", "-oI", "-g", "*.py", cwd=planted).stdout == b"8:Thread\n"  # like `read`
    assert run("cod", "src", cwd=planted, code=1).stdout == b""
    assert b"did you mean files?" in run("file", "needle", "src", cwd=planted, code=2).stderr
    assert b"Usage: ripwrap files" in run("help", "files", cwd=planted).stdout
    assert b"Usage: ripwrap index build" in run("help", "index", "build", cwd=planted).stdout
    assert run("-V", cwd=planted).stdout == run("--version", cwd=planted).stdout
