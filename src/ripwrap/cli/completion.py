"""Flag `ripwrap --install-completion`: write the completion of a shell, which cyclopts makes from the commands."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from ripwrap._text import shown
from ripwrap.cli.app import app
from ripwrap.cli.errors import FOUND
from ripwrap.cli.help import SETUP_EXIT_CODES, epilogue

completion: App = App(
    name="--install-completion",
    usage="ripwrap --install-completion [OPTIONS]",
    help_epilogue=epilogue(
        "ripwrap --install-completion",
        "ripwrap --install-completion --shell fish",
        "ripwrap --install-completion --shell bash --output ripwrap.bash",
        after=SETUP_EXIT_CODES,
    ),
)


@completion.default
def run_completion(
    *,
    shell: Annotated[Literal["zsh", "bash", "fish", "powershell"] | None, Parameter(metavar="SHELL")] = None,
    output: Annotated[str | None, Parameter(metavar="FILE")] = None,
) -> int:
    """Install the completion of commands and flags for a shell.

    Without --output, a line that loads the file is added to the startup file of the shell, if it needs one.

    Parameters
    ----------
    shell
        Shell [default: the one that runs ripwrap]
    output
        File to write, and nothing else [default: by shell]
    """
    from cyclopts.completion.detect import ShellDetectionError  # late: only this command needs it

    try:
        path = app.install_completion(
            shell=shell, output=None if output is None else Path(output).resolve(), add_to_startup=output is None
        )
    except ShellDetectionError:
        raise ValueError("the shell is unknown; name it with --shell") from None
    print(f"wrote {shown(str(path))}; open a new shell to use it")
    return FOUND
