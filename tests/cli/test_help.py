"""Help texts and errors of the command line, in process."""

import re
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from typing import get_type_hints

import pytest

from flag_pages import every_command
from ripwrap.cli import run
from ripwrap.options import SearchOptions, flag_of

COMMANDS = (
    "search",
    "files",
    "tree",
    "types",
    "files-matching",
    "watch",
    "read",
    "expand",
    "rank",
    "refs",
    "outline",
    "scan",
    "why",
    "replace",
    "code",
    "undo",
    "doctor",
    "install",
    "mcp",
)
INDEX_COMMANDS = tuple(f"index {one}" for one in ("build", "status", "check", "prune", "search", "watch"))
AGENT_COMMANDS = ("agent install", "agent uninstall", "agent list")
HINTS = get_type_hints(SearchOptions, include_extras=True)


@cache
def help_of(command: str) -> str:
    printed = StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
        patch.setenv("COLUMNS", "80")
        assert run([*command.split(), "--help"]) == 0
    return printed.getvalue()


def test_help_lists_commands_in_the_order_of_use() -> None:
    text = help_of("")
    usage = "Usage: ripwrap COMMAND [OPTIONS] [ARGUMENTS]\n       ripwrap [OPTIONS] PATTERN [PATH]...\n"
    assert text.startswith(f"{usage}\nSearch files ")
    listed = text.partition("\nCommands:\n")[2].partition("\n\n")[0]
    assert re.findall(r"^  ([\w-]+) ", listed, re.MULTILINE) == [*COMMANDS[:11], "index", *COMMANDS[11:], "agent"]


@pytest.mark.parametrize("command", ["", *COMMANDS, *INDEX_COMMANDS, *AGENT_COMMANDS])
def test_help_fits_a_terminal_and_ends_with_examples_and_exit_codes(command: str) -> None:
    text = help_of(command)
    assert [line for line in text.splitlines() if len(line) > 80 or line != line.rstrip()] == []
    assert text.index("\nExamples:\n  ripwrap") < text.index("\nExit codes:\n  0  ")
    assert not re.search(r"\w\(\)|argparse|None|True|False", text)


def test_help_of_search_has_each_option_in_its_group() -> None:
    titles = {
        "pattern": "Pattern options",
        "files": "File options",
        "output": "Output options",
        "engine": "Engine options",
    }
    groups = dict(re.findall(r"^(\w[\w ]+):\n((?:  .*\n)+)", help_of("search"), re.MULTILINE))
    ours = ["ripwrap options", "Options for places", "Options for many roots"]
    assert list(groups) == ["Arguments", *titles.values(), *ours, "Examples", "Exit codes"]
    for name, hint in HINTS.items():
        flag = flag_of(hint)
        letter = f"-{re.escape(flag.short)}, " if flag.short else "    "
        assert re.search(rf"^  {letter}--{name.replace('_', '-')}\b", groups[titles[flag.group]], re.MULTILINE), name
    assert (
        "  -., --hidden, --no-hidden   Include hidden files and directories [default: on]\n" in groups["File options"]
    )
    assert "--no-ignore-case" not in groups["Pattern options"]  # accepted, but omitted from the help


@pytest.mark.parametrize("command", ["rank", "index build", "index search", "index status", "index watch"])
def test_help_of_rank_and_index_says_that_hidden_files_and_links_are_off(command: str) -> None:
    """`rank` and the index skip both by default."""
    text = help_of(command)
    assert "  -., --hidden                Include hidden files and directories\n" in text
    assert "  -L, --follow                Follow symbolic links\n" in text


def descriptions(command: str) -> list[tuple[str, str]]:
    (found,) = (one for words, one in every_command() if " ".join(words) == command)
    return [
        (one.names[-1], one.option.help) for several in found.parameters for one in several if not one.option.hidden
    ]


@pytest.mark.parametrize("command", [*COMMANDS, *INDEX_COMMANDS, *AGENT_COMMANDS])
def test_description_of_each_option_is_short_and_has_no_full_stop(command: str) -> None:
    for name, text in descriptions(command):
        assert 0 < len(text) <= 60 and not text.endswith("."), (name, text)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("search x --max-filesize 1MB", "--max-filesize must be in bytes, or with K, M or G as in 50K, got 1MB"),
        ("search x -m -1", "--max-count must be a whole number, 0 or more, got -1"),
        ("search x -m many", "-m must be a whole number, 0 or more, got many"),
        ("search x -M -1", "--max-columns must be a whole number, 0 or more, got -1"),
        ("search x --sort size", "--sort must be none, path, modified, accessed or created, got size"),
        ("search x --color red", "--color must be auto, always, never or ansi, got red"),
        ("search x --count=3", "--count must be given without a value, got 3"),
        ("types --json py rs", "unexpected argument py; see `ripwrap types --help`"),
        ("index status a b", "unexpected argument b; see `ripwrap index status --help`"),
        ("doctor -xz", "unknown option -x; see `ripwrap doctor --help`"),
        ("search x --case-insensitive", "unknown option --case-insensitive; did you mean --ignore-case?"),
        ("search x --max-results=3", "unknown option --max-results; did you mean --limit?"),
        ("search x --include a", "unknown option --include; did you mean --glob?"),
        ("search x --exclude a", "unknown option --exclude; did you mean --glob='!…'?"),
        ("search x --max-cuont=3", "unknown option --max-cuont; did you mean --max-count?"),
        ("x --colors=red", "--colors is not an option of ripwrap: the colors are fixed; use --color=never for none"),
        ("files --ignore-case", "unknown option --ignore-case; see `ripwrap files --help`"),
        ("search x -y", "unknown option -y; see `ripwrap search --help`"),
        ("search -5", "unknown option -5; see `ripwrap search --help`"),
        ("search x -1j", "unknown option -1j; see `ripwrap search --help`"),
        ("search x --limit 3 -inf", "-f needs a value; see `ripwrap search --help`"),
        ("replace -0 x", "unknown option -0; see `ripwrap replace --help`"),
        ("index grep x -9", "unknown option -9; see `ripwrap index grep --help`"),
        ("mcp --port -1 -7:3", "unknown option -7:3; see `ripwrap mcp --help`"),
        ("search x -g", "-g needs a value; see `ripwrap search --help`"),
        ("search", "PATTERN is missing; see `ripwrap search --help`"),
        ("tree no-such-directory", "PATH must be a directory, got no-such-directory; check PATH or --cwd"),
        ("tree pyproject.toml", "PATH must be a directory, got pyproject.toml; name its directory"),
        ("search -f no-such-file", "no-such-file: No such file or directory; check the path"),
        ("scan --rules no-such-file", "no-such-file: No such file or directory; check the path"),
        ("scan --baseline no-such-file", "no-such-file: No such file or directory; check the path"),
        ("search -f src", "src: Is a directory; name a file"),
        ("install --timeout=x", "--timeout must be a number, got x"),
        ("serach x", "unknown command serach; did you mean search?"),
        ("--frobnicate", "unknown option --frobnicate; see `ripwrap search --help`"),
        ("index bild", "unknown command bild; did you mean build?"),
    ],
)
def test_error_is_one_line_that_names_the_flag_and_what_it_takes(
    arguments: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments.split()) == 2
    assert capsys.readouterr() == ("", f"ripwrap: {says}\n")


def test_each_invalid_option_has_an_error_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["search", "x", "--max-depth=-1", "--max-filesize=1T"]) == 2
    assert [line.partition(" must be ")[0] for line in capsys.readouterr().err.splitlines()] == [
        "ripwrap: --max-depth",
        "ripwrap: --max-filesize",
    ]
