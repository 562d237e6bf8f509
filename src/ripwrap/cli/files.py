"""Commands `ripwrap files`, `ripwrap tree` and `ripwrap types`: list files and file types."""

from cyclopts import App

from ripwrap.cli.help import SETUP_EXIT_CODES, epilogue
from ripwrap.cli.run_files import run_files, run_tree, run_types

files: App = App(
    name="files",
    usage="ripwrap files [OPTIONS] [PATH]...",
    help_epilogue=epilogue("ripwrap files -t py src", "ripwrap files --no-hidden --max-filesize 1M --sort modified"),
)
files.default(run_files)

tree: App = App(
    name="tree",
    usage="ripwrap tree [OPTIONS] [PATH]",
    help_epilogue=epilogue(
        "ripwrap tree",
        "ripwrap tree src -d 1",
        "ripwrap tree src --limit 200 --max-depth 3",
        "ripwrap tree --rev v1.2",
        "ripwrap tree --inside zip",
    ),
)
tree.default(run_tree)

types: App = App(
    name="types",
    usage="ripwrap types [OPTIONS]",
    help_epilogue=epilogue("ripwrap types", "ripwrap types --json", after=SETUP_EXIT_CODES),
)
types.default(run_types)
