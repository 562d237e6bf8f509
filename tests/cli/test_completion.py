"""Completion of shells: cyclopts writes it, from the commands and flags."""

import subprocess
from pathlib import Path

import pytest

from support.cli import output, run


@pytest.mark.slow
@pytest.mark.posix
def test_bash_completes_commands_and_flags(tmp_path: Path) -> None:
    said = output("--install-completion", "--shell=bash", "--output=ripwrap.bash", cwd=tmp_path)
    assert said == f"wrote {tmp_path / 'ripwrap.bash'}; open a new shell to use it\n"

    def completed(*words: str) -> set[str]:
        typed = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}"
        script = f'source ./ripwrap.bash; {typed}; _ripwrap; printf "%s\\n" "${{COMPREPLY[@]}}"'
        argv = ["bash", "--noprofile", "--norc", "-c", script]
        return {*subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split()}

    assert {"search", "scan"} <= completed("ripwrap", "s")
    assert completed("ripwrap", "search", "--ignore-c") == {"--ignore-case"}
    assert {"build", "status"} <= completed("ripwrap", "index", "")
    assert completed("ripwrap", "search", "--color", "al") == {"always"}


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script_with_all_commands(shell: str, tmp_path: Path) -> None:
    output("--install-completion", f"--shell={shell}", "--output=script", cwd=tmp_path)
    script = (tmp_path / "script").read_text()
    assert all(name in script for name in ("search", "index", "smart-case", "hyperlink-format", "install-completion"))


def test_unknown_shell_is_an_error_that_names_the_flag(tmp_path: Path) -> None:
    said = run("--install-completion", "--shell=tcsh", cwd=tmp_path, code=2).stderr.decode()
    assert said == "ripwrap: --shell must be zsh, bash, fish or powershell, got tcsh\n"
