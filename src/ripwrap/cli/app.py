"""The commands of the program `ripwrap`, as cyclopts has them."""

from collections.abc import Sequence
from importlib import import_module

from cyclopts import App, CycloptsError, Parameter

from ripwrap.cli.arguments import rewrite
from ripwrap.cli.commands import COMMANDS
from ripwrap.cli.errors import FAILED, complain
from ripwrap.cli.flags import OTHER
from ripwrap.cli.help import HelpFormatter, epilogue
from ripwrap.cli.usage import usage_error

app: App = App(
    name="ripwrap",
    version=lambda: import_module("importlib.metadata").version("ripwrap"),  # late: it takes 15 ms
    version_flags=["--version", "-V"],
    help="Search files with ripgrep, or serve searches to agents.",
    usage="ripwrap COMMAND [OPTIONS] [ARGUMENTS]\n       ripwrap [OPTIONS] PATTERN [PATH]...",
    help_format="plaintext",
    help_formatter=HelpFormatter(),
    group_parameters=OTHER.of_cyclopts,
    default_parameter=Parameter(allow_repeating=True),
    help_epilogue=epilogue(
        'ripwrap search "async def" src',
        'ripwrap "async def" src                     # the same',
        "ripwrap rank 'how are cookies stored'",
        "ripwrap tree src",
        "ripwrap COMMAND --help",
    ),
)
app["--help"].group = app["--version"].group = OTHER.of_cyclopts
app["--help"].sort_key = 1

for _number, (_command, _help) in enumerate(COMMANDS.items()):
    _module, _colon, _name = _command.partition(":")
    app.command(f"ripwrap.cli.{_module}:{_name.replace('-', '_')}", name=_name, help=_help, sort_key=_number)
app.command(
    "ripwrap.cli.completion:completion",
    name="--install-completion",
    help="Install the completion of commands and flags for a shell.",
    group=OTHER.of_cyclopts,
)


def run_app(arguments: Sequence[str]) -> int | None:
    """Run the command in `arguments`, and return its exit code; print an error if the arguments are wrong."""
    try:
        given = rewrite(arguments, app)
        code: int | None = app(given, result_action="return_value", exit_on_error=False, print_error=False)
        return code
    except CycloptsError as error:
        complain(usage_error(error))
        return FAILED
