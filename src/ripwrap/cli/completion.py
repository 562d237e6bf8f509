"""Completion for shells: `ripwrap --install-completion`, and the candidates for which the scripts of shells ask."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from ripwrap import sync
from ripwrap._text import shown
from ripwrap.cli.command import END, SETUP_EXIT_CODES, Command, Option, Parameter
from ripwrap.cli.commands import COMMANDS, NAMES, find
from ripwrap.cli.lines import print_line
from ripwrap.cli.terminal import FOUND

Shell = Literal["zsh", "bash", "fish", "powershell"]
Candidate = tuple[str, str]
"""Word and description."""

_SCRIPTS: dict[Shell, str] = {
    "bash": """\
_ripwrap() {
    local word
    local -a words=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do  # bash makes three words of --type=py
        [[ $word == = ]] || words+=("$word")
    done
    [[ ${COMP_WORDS[COMP_CWORD]} != = ]] || words+=("")
    COMPREPLY=()
    while IFS= read -r word; do
        COMPREPLY+=("${word%%$'\\t'*}")
    done < <("${COMP_WORDS[0]}" --install-completion --candidates -- "${words[@]}" 2>/dev/null)
}
complete -o bashdefault -o default -F _ripwrap ripwrap
""",
    "zsh": """\
#compdef ripwrap
_ripwrap() {
    local line
    local -a found
    while IFS= read -r line; do
        found+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}")
    done < <("${words[1]}" --install-completion --candidates -- "${(@)words[2,CURRENT]}" 2>/dev/null)
    if (( $#found )); then _describe ripwrap found; else _files; fi
}
if [ "$funcstack[1]" = "_ripwrap" ]; then _ripwrap "$@"; else compdef _ripwrap ripwrap; fi
""",
    "fish": """\
function __ripwrap_candidates
    set -l words (commandline -opc) (commandline -ct)
    $words[1] --install-completion --candidates -- $words[2..-1] 2>/dev/null
end
complete -c ripwrap -a '(__ripwrap_candidates)'
""",
    "powershell": """\
Register-ArgumentCompleter -Native -CommandName ripwrap -ScriptBlock {
    param($typed, $ast, $position)
    $words = @($ast.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
    if ($typed -eq '') { $words += '""' }
    ripwrap --install-completion --candidates -- @words 2>$null | ForEach-Object {
        $word, $about = $_ -split "`t", 2
        [System.Management.Automation.CompletionResult]::new($word, $word, 'ParameterValue', "$about ")
    }
}
""",
}
"""Script of each shell. It asks ripwrap for candidates: lines with a word, a tab and a description."""


@Command(
    examples=(
        "ripwrap --install-completion",
        "ripwrap --install-completion --shell fish",
        "ripwrap --install-completion --shell bash --output ripwrap.bash",
    ),
    exit_codes=SETUP_EXIT_CODES,
)
def completion(
    *words: Annotated[str, Option("Words of a command line, for --candidates")],
    shell: Annotated[Shell | None, Option("Shell [default: the one that runs ripwrap]", value="SHELL")] = None,
    output: Annotated[str | None, Option("File to write, and nothing else [default: by shell]", value="FILE")] = None,
    candidates: Annotated[bool, Option("Print what completes the last word", hidden=True)] = False,
) -> int:
    """Install the completion of commands and flags for a shell.

    Without --output, a line that loads the file is added to the startup file of the shell, if it needs one.
    """
    if candidates:
        for word, about in complete(words):
            print_line(f"{word}\t{about}" if about else word)
        return FOUND
    running = Path(os.environ.get("SHELL", "powershell" if sys.platform == "win32" else "")).name
    chosen: Shell | None = shell or next((one for one in _SCRIPTS if one == running), None)
    if chosen is None:
        raise ValueError("the shell is unknown; name it with --shell")
    home = Path.home()
    data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local" / "share")
    config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    # bash-completion and fish load files of these directories; zsh and PowerShell need a line in a startup file.
    place, startup, line = {
        "bash": (data / "bash-completion" / "completions" / "ripwrap", home / ".bashrc", '. "{}"'),
        "zsh": (home / ".zsh" / "completions" / "_ripwrap", home / ".zshrc", 'autoload -Uz compinit; compinit; . "{}"'),
        "fish": (config / "fish" / "completions" / "ripwrap.fish", None, ""),
        "powershell": (config / "powershell" / "ripwrap.ps1", config / "powershell" / "profile.ps1", '. "{}"'),
    }[chosen]
    path = Path(output).resolve() if output is not None else place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(_SCRIPTS[chosen], "utf-8", newline="\n")
    if output is None and startup is not None:
        text = startup.read_text("utf-8") if startup.exists() else ""
        line = f"{line.format(path)}  # completion of ripwrap"
        if line not in text.splitlines():
            startup.parent.mkdir(parents=True, exist_ok=True)
            with startup.open("a", encoding="utf-8") as file:
                file.write("\n" * (bool(text) and not text.endswith("\n")) + line + "\n")
    print(f"wrote {shown(str(path))}; open a new shell to use it")
    return FOUND


def complete(words: Sequence[str]) -> Iterator[Candidate]:
    """Yield what completes the last of the words after `ripwrap`; nothing if a shell should offer files."""
    *before, word = words or ("",)
    yield from ((name, about) for name, about in _candidates(before, word) if name.startswith(word))


def _candidates(before: Sequence[str], word: str) -> Iterator[Candidate]:
    name, *rest = before if before and before[0] in COMMANDS else ["search", *before]
    found = find(name)
    if not before and not word.startswith("-"):
        yield from ((name, COMMANDS[name][1].removesuffix(".")) for name in NAMES)
        return
    if not before:
        yield from ((flag, "") for flag in ("--help", "--version", "--install-completion"))
    if not isinstance(found, Command):
        if not rest:
            yield from ((name, "") for name, one in found.commands.items() if not one.hidden)
            return
        if rest[0] not in found.commands:
            return
        found, *rest = found.commands[rest[0]], *rest[1:]
    yield from _of_command(found, rest, word)


def _of_command(command: Command, before: Sequence[str], word: str) -> Iterator[Candidate]:
    if END in before:
        return
    given = [*command.split(before)]
    last, value = given[-1] if given else ("", "")
    waits = value is None and last in command.flags and command.flags[last].takes_value
    if not waits:
        *_, (last, value) = ("", ""), *command.split([word])  # joined, as in `--type=p` and `-itp`
    typed = word if waits else value
    if last and typed is not None:
        joined = word.removesuffix(typed)
        yield from ((f"{joined}{one}", about) for one, about in _values(command.flags.get(last), typed))
    elif word.startswith("-"):
        shown_flags = [one for one in command.parameters[1] if not one.option.hidden]
        yield from ((name, one.option.help) for one in shown_flags for name in (*one.names, *one.option.off))
        yield "--help", "Display this message and exit"
    elif arguments := command.parameters[0]:
        named = [other for flag, other in given if not flag]
        choices = arguments[min(len(named), len(arguments) - 1)].choices
        yield from ((one, "") for one in choices if one not in named)


def _values(flag: Parameter | None, typed: str) -> Iterator[Candidate]:
    if flag is None:
        return
    if flag.key in ("type", "type_not", "type_clear"):
        yield from ((name, ", ".join(globs)) for name, globs in sync.file_types().items())
    if flag.key == "inside":
        from ripwrap.sources.archives import known_formats

        *named, _ = typed.split(",")
        yield from ((",".join((*named, one)), "") for one in known_formats() if one not in named)
    yield from ((one, "") for one in flag.choices)
