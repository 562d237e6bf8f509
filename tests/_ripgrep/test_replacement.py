"""Replacements: what they refer to, their escapes, and what rg makes of them."""

import random
import subprocess
from pathlib import Path

import pytest

from ripwrap import sync
from ripwrap._ripgrep.groups import parse_template
from ripwrap.binary import RgBinary
from support.effort import times


@pytest.mark.parametrize(
    ("replacement", "references", "constant"),
    [
        ("", (), ""),
        ("plain", (), "plain"),
        ("$$1 costs $", (), "$1 costs $"),
        ("${x", (), "${x"),
        ("$0 ${0}", (), None),
        ("$1 ${2} $name ${name}", ("1", "2", "name"), None),
        ("$1a", ("1a",), None),
        ("$é", (), "$é"),
        (r"\1\n", (), r"\1\n"),
    ],
)
def test_references_and_constant_text(replacement: str, references: tuple[str, ...], constant: str | None) -> None:
    found = parse_template(replacement)
    assert (found.references, found.constant) == (references, constant)


def test_escapes_are_read_if_asked_for() -> None:
    assert parse_template(r"a\tb\n\x41\u{e9}\\n\0", escapes=True).constant == "a\tb\nAé\\n\0"
    for wrong in (r"\q", "\\", r"\x4", r"\u{110000}", r"\u"):
        with pytest.raises(ValueError, match=r"unknown escape.*leave escapes out"):
            parse_template(wrong, escapes=True)


@pytest.mark.slow
@pytest.mark.rg_matrix
def test_replacement_constant_equals_rgs_output(rg: RgBinary, tmp_path: Path) -> None:
    """Texts of dollars, braces and names: rg writes the constant, or the text depends on the match."""
    (tmp_path / "f").write_text("x\n")
    for seed in range(times(30, 1000)):
        text = "".join(random.Random(seed).choices(["$", "$$", "{", "}", "a", "1", "_", "é", "-", "\\"], k=6))
        constant = parse_template(text).constant
        command = [rg.path, "--no-config", "--no-line-number", f"--replace={text}", "x", str(tmp_path / "f")]
        done = subprocess.run(command, capture_output=True, check=True, encoding="utf-8")
        if constant is not None:
            assert done.stdout == f"{constant}\n", text
        else:
            assert parse_template(text).references, text


def test_replacement_must_be_text() -> None:
    with pytest.raises(TypeError, match="a replacement must be a str, got bytes"):
        sync.replace("x", b"y")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not valid Unicode"):
        sync.replace("x", "\udcff")
