"""Completion: the scripts of shells ask ripwrap for candidates."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ripwrap.cli.commands import NAMES
from support.cli import output, run

HERE = Path(sys.executable).parent
"""Directory of the program `ripwrap`, which the scripts run."""


def candidates(*words: str, cwd: Path) -> set[str]:
    lines = output("--install-completion", "--candidates", "--", *words, cwd=cwd).splitlines()
    return {line.partition("\t")[0] for line in lines}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", " ".join(NAMES)),
        ("sea", "search"),
        ("index ", "build status check prune search grep watch"),
        ("index gr", "grep"),
        ("search x --ignore-c", "--ignore-case"),
        ("x --ignore-c", "--ignore-case"),
        ("--ignore-c", "--ignore-case"),
        ("files --ignore-c", ""),
        ("search --no-hid", "--no-hidden"),
        ("search --color al", "always"),
        ("search --color=al", "--color=always"),
        ("search --color a", "auto always ansi"),
        ("search -it rus", "rust"),
        ("search -trus", "-trust"),
        ("search -itru", "-itruby -itrust"),
        ("-t=rus", "-t=rust"),
        ("search -Tru", "-Truby -Trust"),
        ("search -i-t", ""),
        ("search -e-t", ""),
        ("search --inside", "--inside"),
        ("search --inside t", "tar"),
        ("search x --inside=ipy", "--inside=ipynb --inside=ipynb-outputs"),
        ("search --inside=zip,ta", "--inside=zip,tar"),
        ("search --inside zip,tar,xl", "zip,tar,xlsx"),
        ("tree --inside zip,zi", ""),
        ("agent install c", "claude codex cursor"),
        ("agent install claude c", "codex cursor"),
        ("agent uninstall --user vs", "vscode"),
        ("agent install --color c", ""),
        ("agent list c", ""),
        ("search -tpy -T ru", "ruby rust"),
        ("search -e --col", ""),
        ("search -- --col", ""),
        ("search x sr", ""),
        ("index bild ", ""),
    ],
)
def test_candidates_are_the_words_that_may_follow(words: str, expected: str, tmp_path: Path) -> None:
    assert candidates(*words.split(" "), cwd=tmp_path) == {*expected.split()}


def test_candidates_have_each_flag_with_its_description(tmp_path: Path) -> None:
    lines = output("--install-completion", "--candidates", "--", "search", "-", cwd=tmp_path).splitlines()
    described = dict(line.split("\t") for line in lines)
    assert described["--smart-case"] == described["-S"] == "Ignore case if the pattern is all lower case"
    assert {"--hyperlink-format", "-0", "--no-ignore-case", "--help"} <= described.keys()


ASK = {
    "bash": (
        "source ./script; COMP_WORDS=(ripwrap {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _ripwrap; "
        'printf "%s\\n" "${{COMPREPLY[@]}}"'
    ),
    "fish": "source ./script; complete -C 'ripwrap {words}'",
    "zsh": (
        "compdef() {{ :; }}; _files() {{ echo files; }}; "
        "_describe() {{ print -l -- ${{found%%:*}}; }}; source ./script; "
        "words=(ripwrap {words}); CURRENT=$#words; _ripwrap"
    ),
}
"""Commands of each shell that print what completes a command line; those of zsh stand for its editor."""


@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.parametrize("shell", ASK)
def test_shell_offers_the_candidates(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}: apt install {shell}")
    said = output("--install-completion", f"--shell={shell}", "--output=script", cwd=tmp_path)
    assert said == f"wrote {tmp_path / 'script'}; open a new shell to use it\n"

    def completed(words: str) -> set[str]:
        environment = {**os.environ, "PATH": f"{HERE}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path)}
        argv = [shell, "-c", ASK[shell].format(words=words)]
        done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        return {line.partition("\t")[0] for line in done.stdout.splitlines()}

    assert {"search", "scan"} <= completed("s")
    assert completed("search --ignore-c") == {"--ignore-case"}
    assert completed("search --color al") == {"always"}
    assert completed("search -t rus") == {"rust"}
    if shell == "bash":  # its words are split at `=`
        assert completed("search --type = rus") == {"rust"}
        assert completed("search --color =") == {"auto", "always", "never", "ansi"}
        assert completed("--sort = path foo --no-hidd") == {"--no-hidden"}


@pytest.mark.parametrize(
    ("shell", "line"), [("bash", '. "{}"'), ("zsh", 'autoload -Uz compinit; compinit; . "{}"'), ("fish", "")]
)
def test_startup_file_loads_the_script_and_is_changed_once(
    shell: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    startup = tmp_path / f".{shell}rc"
    startup.write_text("alias a=b")
    for _ in range(2):
        said = output("--install-completion", f"--shell={shell}", cwd=tmp_path)
    path = said.removeprefix("wrote ").partition(";")[0]
    assert "--candidates" in Path(path).read_text()
    added = f"\n{line.format(path)}  # completion of ripwrap\n" if line else ""
    assert startup.read_text() == f"alias a=b{added}"


def test_unknown_shell_is_an_error_that_names_the_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run("--install-completion", "--shell=tcsh", cwd=tmp_path, code=2).stderr.decode()
    assert said == "ripwrap: --shell must be zsh, bash, fish or powershell, got tcsh\n"
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    said = run("--install-completion", cwd=tmp_path, code=2).stderr.decode()
    assert said == "ripwrap: the shell is unknown; name it with --shell\n"
