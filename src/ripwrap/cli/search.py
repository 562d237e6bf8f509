"""Command `ripwrap search`: search files for a regular expression."""

from cyclopts import App

from ripwrap.cli.help import epilogue
from ripwrap.cli.run_search import run_search

search: App = App(
    name="search",
    usage="ripwrap search [OPTIONS] PATTERN [PATH]...",
    help_epilogue=epilogue(
        "ripwrap search 'fn \\w+_total' src        # a regular expression",
        "ripwrap search -F 'a[0]' -t py           # plain text, in Python files",
        "ripwrap search TODO -g '!tests/**' -C 2  # not in tests; two lines of context",
        "ripwrap search TODO --json               # JSON lines, for programs",
        "ripwrap search retry --near timeout      # within 5 lines of a timeout",
        "ripwrap search TODO --coverage           # also count the searched files",
        "ripwrap search TODO --on ssh:box:/srv    # on another machine",
        "ripwrap search TODO --repositories 'src/*' --per-root 5",
        "ripwrap search TODO --rev main~3         # in a revision of git",
        "ripwrap search TODO --inside zip,ipynb   # in archives and notebooks, too",
        "ripwrap search -- --pre                  # a pattern that begins with a dash",
    ),
)
search.default(run_search)
