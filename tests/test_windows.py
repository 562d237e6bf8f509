"""Windows' rules for paths, programs and command lines, as pure functions."""

import pytest

from ripwrap._system.windows import (
    command_length,
    explain_exit,
    is_batch_file,
    is_foreign_path,
    path_entries,
    why_misleading,
)

UNC_ROOT = "\\\\server\\share\\src"


@pytest.mark.parametrize(
    "path",
    [
        *("rg.cmd", "rg.bat", "rg.CMD", "RG.Bat", "rg.bat.", "rg.cmd ", "rg.bat . .", "rg.cmd.. "),
        *(r"C:\tools\rg.cmd", "C:/tools/RG~1.BAT", "rg.exe.cmd", "rg.txt:rg.bat"),
    ],
)
def test_every_spelling_of_a_batch_file_is_recognised(path: str) -> None:
    assert is_batch_file(path)


@pytest.mark.parametrize("path", ["rg", "rg.exe", "rg.exe.", "bat", r"C:\x.cmd\rg.exe", "rg.cmd.exe", "rgcmd"])
def test_other_programs_are_not_taken_for_batch_files(path: str) -> None:
    assert not is_batch_file(path)


@pytest.mark.parametrize(
    "path",
    [
        *(r"C:secret", "c:..\\x", r"\\?\C:\x", r"\\.\PhysicalDrive0", "//?/C:/x", "//./COM1", r"\\.", r"\??\C:\x"),
        *("NUL", "a/con", r"a\LPT1.txt", "nul .txt", "com\u00b9"),
        *("com1", "CONIN$", "a.txt:stream", r"dir::$INDEX_ALLOCATION", "a.", "a ", r"dir. \x", "aux.c"),
        *(r"\\host\share", "//host/share/x", r"/\host\share", "//"),
    ],
)  # fmt: skip
def test_special_windows_paths_are_detected(path: str) -> None:
    assert why_misleading(path)


@pytest.mark.parametrize(
    "path",
    [
        *(r"C:\work\a.py", "C:/work", r"src\console.py", "..", r"..\x", "nul_.txt", "comma", ".", "a..b", "lpt"),
        *(r"C:\\work", r"\work", "/work", "a//b", "src/??/x"),
    ],
)
def test_ordinary_windows_paths_are_accepted(path: str) -> None:
    assert why_misleading(path) is None


@pytest.mark.parametrize(
    "path", [UNC_ROOT, UNC_ROOT + r"\a.py", "//SERVER/Share/src/a.py", r"\\server\share\src\x\..\a"]
)
def test_path_below_a_root_on_another_computer_is_accepted(path: str) -> None:
    assert why_misleading(path, [r"C:\work", UNC_ROOT]) is None


@pytest.mark.parametrize(
    "path",
    [
        *(r"\\server\share\source", r"\\server\share\src\..\x", r"\\server\other\src", r"\\evil\share\src"),
        *(r"\\?\UNC\server\share\src", r"\\.\UNC\server\share\src"),
    ],
)
def test_path_beside_a_root_on_another_computer_is_foreign(path: str) -> None:
    assert is_foreign_path(path, [r"C:\work", UNC_ROOT])


@pytest.mark.parametrize(
    ("path", "entries"),
    [
        (r"C:\a;C:\b", [r"C:\a", r"C:\b"]),
        (r'"C:\a b";"C:\a;b"\bin;C:\c', [r"C:\a b", r"C:\a;b\bin", r"C:\c"]),
        (r';;C:\a;"C:\b', [r"C:\a", r"C:\b"]),
        ("", []),
    ],
)
def test_quotes_in_the_path_variable_are_removed(path: str, entries: list[str]) -> None:
    assert path_entries(path) == entries


def test_length_of_a_command_line_is_in_utf16_units() -> None:
    assert command_length(["rg", "a b", "\N{GRINNING FACE}"]) == len('rg "a b" ') + 2


def test_exit_code_of_a_program_that_could_not_be_loaded_is_explained() -> None:
    assert "Visual C++ Redistributable" in explain_exit(3221225781)
    assert "another processor" in explain_exit(0xC000007B)
    assert explain_exit(2) == ""
