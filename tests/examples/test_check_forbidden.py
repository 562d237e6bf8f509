"""`check_forbidden.py` finds text that must not be committed, and reports every file that it cannot check."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.runs import EXAMPLES, run

pytestmark = pytest.mark.slow

# Split, so that this file itself is clean.
BREAK = "break" + "point()"
KEY = "-----BEGIN RSA PRIVATE " + "KEY-----"
OURS = "<" * 7 + " HEAD"


def check(folder: Path, *names: str) -> tuple[int, str, str]:
    return run("check_forbidden.py", *names, cwd=folder)


def test_each_finding_has_line_column_and_rule(plant: Callable[..., Path]) -> None:
    folder = plant(
        {
            "b.py": f"é = 1; {BREAK}; {BREAK}\n",
            "a/key.pem": f"x\n{KEY}\n",
            "a/text.txt": f"{OURS}\r\nx\n" + ">" * 7 + "\r\n" + "=" * 7 + "\n",
            "pdb.py": "import pdb; pdb.set_" + "trace()\n",
            "turned.py": "x = 1 # \u202e gnp\n",
            "clean.py": "breakpoints() # <<<<<<< \n",
        }
    )
    assert check(folder, "turned.py", "b.py", "a/key.pem", "./a/text.txt", "clean.py", "pdb.py") == (
        1,
        f"a/key.pem:2:1: private key: {KEY}\n"
        f"a/text.txt:1:1: conflict marker: {OURS}\n"
        "a/text.txt:3:1: conflict marker: >>>>>>>\n"
        f"b.py:1:8: debugger: é = 1; {BREAK}; {BREAK}\n"
        f"b.py:1:22: debugger: é = 1; {BREAK}; {BREAK}\n"
        "pdb.py:1:13: debugger: import pdb; pdb.set_" + "trace()\n"
        "turned.py:1:9: text direction: x = 1 # \\u202e gnp\n",
        "",
    )


def test_the_examples_have_no_forbidden_text() -> None:
    assert check(EXAMPLES, *sorted(path.name for path in EXAMPLES.glob("*.py"))) == (0, "", "")


def test_files_of_any_name_are_checked(plant: Callable[..., Path]) -> None:
    names = ["-", "--", "-x.py", "--pre=x", ".hidden", "ignored", "n\udcff", "new\nline", "a b*?[]", ".git/config"]
    folder = plant({os.fsencode(name): BREAK + "\n" for name in names} | {".gitignore": "ignored\n"})
    code, out, err = check(folder, *names)
    shown = [name.replace("\udcff", "�").replace("\n", "\\u000a") for name in sorted(names)]
    assert out.splitlines() == [f"{name}:1:1: debugger: {BREAK}" for name in shown]
    assert (code, err) == (1, "")


@pytest.mark.parametrize("others", [0, 20])  # rg maps a few files into memory, but reads many files
def test_binary_file_is_checked_to_its_end(plant: Callable[..., Path], others: int) -> None:
    names = [f"{number}.txt" for number in range(others)]
    binary = b"\0\xff\n" * 50_000 + b"\0" + KEY.encode() + b"\n"
    folder = plant({"image.bin": binary, **dict.fromkeys(names, "clean\n")})
    assert check(folder, *names, "image.bin") == (1, f"image.bin:50001:2: private key: \\u0000{KEY}\n", "")


def test_long_line_is_clipped_around_the_finding(plant: Callable[..., Path]) -> None:
    folder = plant({"min.js": "x" * 1000 + " " + BREAK + "y" * 1000})
    code, out, _ = check(folder, "min.js")
    assert (code, out) == (1, f"min.js:1:1002: debugger: {'x' * 49} {BREAK}{'y' * 38}\n")


def test_thousands_of_files_are_checked_by_one_rg_for_each_rule(
    plant: Callable[..., Path], watched: Callable[[], list[str]]
) -> None:
    names = [f"a-rather-long-name-of-a-file-number-{number:04}.txt" for number in range(1500)]
    folder = plant({name: f"{number}\n" for number, name in enumerate(names)} | {names[1210]: f"\n{OURS}\n"})
    assert check(folder, *names) == (1, f"{names[1210]}:2:1: conflict marker: {OURS}\n", "")
    assert len(watched()) == 4


@pytest.mark.posix
def test_unreadable_files_are_named_and_the_others_checked(
    plant: Callable[..., Path], unprivileged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = plant({"a.py": f"{BREAK}\n", "secret": "", "folder/b.py": ""})
    (folder / "secret").chmod(0)
    os.mkfifo(folder / "pipe")
    monkeypatch.setenv("RIPWRAP_RG", str(unprivileged))
    code, out, err = check(folder, "gone", "secret", "folder", "pipe", "a.py")
    assert (code, out) == (2, f"a.py:1:1: debugger: {BREAK}\n")
    assert err.splitlines() == [
        "not checked: gone: no such file",
        "not checked: folder: no such file",
        "not checked: pipe: no such file",
        "not checked: secret: Permission denied (os error 13)",
    ]


def test_too_long_line_is_reported_as_unchecked(plant: Callable[..., Path]) -> None:
    folder = plant({"huge": KEY + "x" * (21 << 20)})
    assert check(folder, "huge") == (2, "", "not checked: huge: 1 line left out, longer than 20 MiB in rg's JSON\n")


def test_no_argument_prints_the_usage(folder: Path) -> None:
    assert check(folder) == (2, "", "usage: python examples/check_forbidden.py FILE…\n")


def test_missing_rg_is_an_error(plant: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = plant({"a.py": "x\n"})
    monkeypatch.setenv("RIPWRAP_RG", str(folder / "no-rg"))
    code, out, err = check(folder, "a.py")
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
