r"""Line ends in the patterns of tools: `\n` is the line end of the file, in a pattern and in its replacement."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from _operations.test_inside import tarred, zipped
from _operations.test_revisions import git
from ripwrap import sync
from ripwrap._ripgrep.pattern_errors import across_line_ends
from ripwrap.binary import RgBinary
from ripwrap.options import SearchOptions
from support.effort import some

Plant = Callable[..., Path]

TEXT = "def f(x):\n    y = [1]\n\n    return y  # a.b\n\ndef g(z):\n    return z\n\n\n# \\n end\nlast"

PATTERNS: list[tuple[str, dict[str, Any]]] = [
    ("def f(x):\n    y = [1]", {"fixed_strings": True}),
    ("\n\ndef", {"fixed_strings": True}),
    ("Y = [1]\n\n    RETURN", {"fixed_strings": True, "case_insensitive": True}),
    ("# \\n end\nlast", {"fixed_strings": True}),
    (r"x\):\n    y", {}),
    ("x\\):\n    y", {}),
    (r"x\):$\n", {}),
    (r"\):$\n^    (\w+)", {}),
    (r"\n", {}),
    (r"\n+", {}),
    (r"\n{2,3}d", {}),
    (r"(?:\n\n)(?=def)", {}),
    (r"z\n\x0A+#", {}),
    (r"y\s\s# a.b\s\sdef", {}),
    (r":\s{5}", {}),
    (r"[^;]def", {}),
    (r"z[\n;]", {}),
    (r"z[\n ]{1,2}", {}),
    (r"f\(.*?\n\n", {}),
    (r"b.{2}def", {}),
    (r"^$\n", {}),
    (r"\)\W\s+\w+", {}),
    (r"[^\n]*\n\n", {}),
    ("(?x) z \\n  # a comment\n", {}),
    (r"(\w+)\n\z|end\n(l)", {}),
    (r"\d\]$", {}),
    (r"(?<=:\n)    \w", {}),
    (r"(?<!:\n)    \w", {}),
    (r"(?<=\n\n)def", {}),
    (r"(?<=a|:\n) +", {}),
    (r"(?<=[:\n]\n) *\w", {}),
    (r"(?<=[);]:\s) +", {}),
    (r"(?<=b.{2})def", {}),
    ("(?x) (?<= : \\n ) # a comment\n [ ]+", {}),
    (r"return", {}),
]


def written(folder: Path, text: str) -> str:
    (folder / "f").write_bytes(text.encode())
    return text


@pytest.mark.slow
@pytest.mark.rg_ends
@pytest.mark.parametrize(("pattern", "options"), some(PATTERNS, 16))
def test_line_end_of_a_pattern_is_that_of_the_file(
    tmp_path: Path, rg: RgBinary, pattern: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text of two lines, as `read_file` showed it, was not found in a file with CRLF."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "tree"
    folder.mkdir()
    written(folder, TEXT)
    flags = ["-F"] * ("fixed_strings" in options) + ["-i"] * ("case_insensitive" in options)
    flags += ["--crlf"] * ("$" in pattern) + ["-P"] * bool(re.search(r"\(\?<?[=!]", pattern))
    command = [rg.path, "--no-config", "-U", "--multiline-dotall", "--count-matches", *flags, "--", pattern, "f"]
    run = subprocess.run(command, cwd=folder, capture_output=True, check=False, text=True)
    if "PCRE2 is not available" in run.stderr:
        pytest.skip("this rg has no PCRE2")
    workspace = sync.Workspace(folder, write=True, rg=rg.path)
    asked: dict[str, Any] = {"pattern": pattern, "multiline": True, **options}
    whole = workspace.grep_content(**asked)
    for text in (TEXT, TEXT.replace("\n", "\r\n"), re.sub(r"(:|\])\n", r"\1\r\n", TEXT)):
        written(folder, text)
        assert workspace.grep_content_result(**asked, output_mode="count").total_matches == int(run.stdout)
        assert workspace.grep_content(**asked) == whole
    if "$" in pattern and rg.version < (14,):  # in rg 13, `$` takes `\r` into the match
        return
    for new in ("new", "one\ntwo\n", "$0\n"):
        if "$" in new and (rg.version < (15,) or options or "(?" in pattern):
            continue
        written(folder, TEXT)
        workspace.replace_content(**asked, replacement=new, apply=True)
        after = (folder / "f").read_bytes()
        written(folder, TEXT.replace("\n", "\r\n"))
        said = workspace.replace_content(**asked, replacement=new, apply=True)
        assert (folder / "f").read_bytes() == after.replace(b"\n", b"\r\n"), said


@pytest.mark.parametrize(
    ("before", "pattern", "new", "after"),
    [
        (b"a\r\nb\r\n", "a\nb", "c\nd", b"c\r\nd\r\n"),
        (b"a\r\nb\nc\n", "b\nc", "d\ne", b"a\r\nd\ne\n"),
        (b"a\r\nb\nc\n", "a\nb", "d\ne", b"d\r\ne\nc\n"),
        (b"a\r\nb\nc\n", "a\nb\n", "d\ne\n", b"d\ne\nc\n"),  # both line ends: as it is written
        (b"a\r\nb", "b", "c\nd", b"a\r\nc\r\nd"),
        (b"a\nb", "b", "c\nd", b"a\nc\nd"),
        (b"b", "b", "c\nd", b"c\nd"),
        (b"a\r\nb\r\n", "a", "c\r\nd", b"c\r\nd\r\nb\r\n"),
        (b"a\r\nb\r\n", r"\r\n", "\n", b"a\nb\n"),
        (b"a\r\nb\r\n", r"\r?\n", "\n", b"a\nb\n"),
        (b"a\nb\n", r"\n", "\r\n", b"a\r\nb\r\n"),
        (b"a\r\nb\r\n", "a\nb\n", "", b""),
        ("\ufeffa\r\nb\r\n".encode("utf-16-le"), "a\nb", "c\nd", "\ufeffc\r\nd\r\n".encode("utf-16-le")),
        (b"x" * 3000 + b"\r\n", "x", "\n", b"\r\n" * 3001),
    ],
)
def test_replacement_keeps_the_line_end_of_the_file(
    plant: Plant, before: bytes, pattern: str, new: str, after: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = plant({"f": before})
    said = sync.Workspace(folder, write=True).replace_content(pattern, new, multiline=True, apply=True)
    assert (folder / "f").read_bytes() == after, said


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["one\n  two", r"one$\s+two", r"e.{1,3}two$\n"])
def test_line_end_is_that_of_the_file_in_revisions_and_archives(plant: Plant, pattern: str) -> None:
    crlf = b"one\r\n  two\r\nthree\r\n"
    folder = plant(
        {"f.txt": crlf, "a.zip": zipped({"m": crlf, "l": crlf.replace(b"\r", b"")}), "b.tgz": tarred({"t": crlf})}
    )
    git(folder, "init", "-q", "-b", "main")
    git(folder, "-c", "core.autocrlf=false", "add", "-A")
    git(folder, "commit", "-qm", "first")
    workspace = sync.Workspace(folder)
    found = workspace.grep_content_result(pattern, multiline=True, inside="zip,tar", output_mode="files_with_matches")
    assert {file.path for file in found.files} == {"f.txt", "a.zip!/m", "a.zip!/l", "b.tgz!/t"}
    os.remove(folder / "f.txt")
    found = workspace.grep_content_result(pattern, multiline=True, rev="main")
    assert [(file.path, file.count) for file in found.files] == [("f.txt", 1)]


@pytest.mark.parametrize(
    ("pattern", "options"), [one for one in PATTERNS if "(?<" not in one[0] and "(?=" not in one[0]]
)
def test_explanation_names_a_pattern_that_matches_across_line_ends(
    plant: Plant, pattern: str, options: dict[str, Any]
) -> None:
    """The library searches with rg's own meaning, and says which pattern has matches."""
    folder = plant({"f": TEXT.replace("\n", "\r\n")})
    known: SearchOptions = {"multiline": True, "multiline_dotall": True}
    known |= {"fixed_strings": True} if "fixed_strings" in options else {}
    known |= {"ignore_case": True} if "case_insensitive" in options else {}
    plain = sync.grep(pattern, cwd=folder, explain=True, **known)
    if plain.total_matches:
        return
    other, changed = across_line_ends(pattern, known)
    assert "if CRLF ends a line (" in plain.message
    assert (f"(pattern={other!r}" in plain.message) == (other != pattern)
    named = {one.split("=")[0] for one in re.findall(r"\w+=(?:True|False)", plain.message)}
    assert named == {name for name in ("crlf",) if name in changed} | {name for name in known if name not in changed}
    assert sync.grep(other, cwd=folder, **changed).total_matches
