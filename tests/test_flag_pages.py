"""Parts of the documentation that are made from flags: a row for each flag of rg, and the help of each command."""

import re
import subprocess
from functools import cache

import pytest

import flag_pages
from ripwrap import Match, Submatch, cli, sync
from ripwrap.cli.command import MISSING
from ripwrap.cli.commands import NAMES


@cache
def rg_help() -> str:
    return subprocess.run([sync.resolve().path, "--help"], capture_output=True, text=True, check=True).stdout


@cache
def rows() -> list[list[str]]:
    """Return the cells of each row of the cheat sheet."""
    table = flag_pages.describe_rg_flags(rg_help())
    return [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]


def test_cheat_sheet_has_each_flag_of_rg_once() -> None:
    named = [name for names, _, _ in rows() for name in re.findall(r"`(-\S+)`", names)]
    described = re.findall(r"^ +(?:(-\S)(?: \w+)?, )?(--[a-z][a-z0-9-]+)", rg_help(), re.MULTILINE)
    negations = re.findall(r"disabled\s+with\s+(?:the\s+)?(--[a-z0-9-]+)", rg_help())
    assert len(described) > 100
    assert sorted(named) == sorted({name for names in described for name in names if name} | set(negations))


def test_cheat_sheet_names_options_and_functions_that_exist() -> None:
    for _, python, _ in rows():
        for code in re.findall(r"`([^`]+)`", python):
            if found := re.fullmatch(r"match\.(\w+)(?:\(\))?", code):
                assert hasattr(Match, found[1]) or found[1] in Match.model_fields or found[1] in Submatch.model_fields
            elif found := re.match(r"(\w+)\(", code):
                assert found[1] in {*sync.__all__, "help"}, code
    assert {*flag_pages.IN_PYTHON} <= {flag.name for flag in flag_pages.flags_of_rg(rg_help())}


def test_flag_that_is_in_no_table_stops_the_build() -> None:
    flag = flag_pages.RgFlag("search options", "", "--new", "")
    with pytest.raises(LookupError, match="--new is neither an option"):
        flag_pages.in_python(flag, {})
    with pytest.raises(LookupError, match="--new is neither a flag"):
        flag_pages.in_commands(flag)
    assert [row for row in rows() if "" in row] == []


@pytest.mark.parametrize("name", ["ignore_case", "pre"])
def test_removed_entry_of_a_table_is_missed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cheat sheet has no other source than the tables of the code."""
    flag = f"--{name.replace('_', '-')}"
    monkeypatch.setattr(flag_pages, "MISSING", [one for one in MISSING if flag not in one.flags])
    monkeypatch.setattr(flag_pages, "option_hints", dict)
    monkeypatch.setattr(flag_pages, "IN_PYTHON", {})
    with pytest.raises(LookupError, match=flag):
        flag_pages.in_python(flag_pages.RgFlag("", "", flag, ""), {})
    if name == "pre":
        with pytest.raises(LookupError, match=flag):
            flag_pages.in_commands(flag_pages.RgFlag("", "", flag, ""))


@pytest.mark.slow
def test_flags_of_several_commands_are_described_once(capfd: pytest.CaptureFixture[str]) -> None:
    """The page had 58 screens, because each command repeated the options of files."""
    text = flag_pages.describe_commands()
    shared, *sections = text.split("\n## ")
    for names in ("-g, --glob GLOB", "-t, --type TYPE", "-j, --threads NUM", "--cwd DIR"):
        assert text.count(f" {names} ") == shared.count(f" {names} ") == 1
    assert len(text.splitlines()) < 900
    (files,) = (section for section in sections if section.startswith("ripwrap files\n"))
    cli.run(["files", "--help"])
    has = {
        re.findall(r"--[\w-]+", line)[0] for line in capfd.readouterr().out.splitlines() if re.match(r"  .*--", line)
    }
    own, _, others = files.partition("\nAlso, from ")
    every = {name for line in shared.splitlines() for name in re.findall(r"^ +(?:-\S, )?(--[\w-]+)", line)}
    assert others and has - every <= set(re.findall(r"--[\w-]+", own))


@pytest.mark.slow
def test_every_command_has_a_section() -> None:
    titles = re.findall(r"^## ripwrap (\w[\w-]*)", flag_pages.describe_commands(), re.MULTILINE)
    assert set(titles) == set(NAMES)
