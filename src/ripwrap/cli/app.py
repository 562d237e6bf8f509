"""Commands to search, list, rank, find rg and serve MCP, with rg's flags and exit codes.

On a terminal, results are grouped and colored; in a pipe, they are plain lines with the original bytes. `--json` prints
one model per line.
"""

import io
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Annotated, Any, TypeAlias, Unpack

from cyclopts import App, CycloptsError, Parameter
from pydantic import ValidationError
from rich.text import Text

from ripwrap import binary, remote, sync
from ripwrap._text import shown
from ripwrap.binary.platforms import current, describe
from ripwrap.binary.probe import format_version
from ripwrap.binary.resolver import how_to_install
from ripwrap.cli.flags import (
    GROUPS,
    NOT_FOR_REPLACE,
    OTHER,
    Color,
    CountLines,
    CountMatches,
    CoverageFlag,
    Cwd,
    EmbedderName,
    HybridWeight,
    Inside,
    Json,
    Limit,
    LineNumber,
    ListFiles,
    ListOthers,
    MaxColumns,
    OnHost,
    ResultLimit,
    RgPath,
    drop_overridden,
    flags,
    invalid_options,
    spell_as_flag,
    usage_error,
)
from ripwrap.cli.grep import NO_NEAR, NearOptions, search_near
from ripwrap.cli.help import HelpFormatter, epilogue
from ripwrap.cli.many import NO_ROOTS, ManyRoots, search_repositories
from ripwrap.cli.output import (
    FAILED,
    FOUND,
    NOTHING,
    DownloadBar,
    complain,
    count_printer,
    match_printer,
    path_printer,
    print_all,
    print_chunk,
    print_coverage,
    print_entry,
    print_json,
    print_reason,
    print_types,
    styled_console,
)
from ripwrap.cli.replace import SHOW, WriteOptions, show_or_write, undo_last
from ripwrap.cli.sources import NO_GIT, GitOptions, move_stdin, search_source
from ripwrap.errors import RipwrapError, spell, spell_error
from ripwrap.models import FileCount, Match, TreeEntry
from ripwrap.options import VISIBLE_FILES, FileOptions, SearchOptions, ShowDenied
from ripwrap.results import RankedChunk

Exclude = Annotated[
    tuple[str, ...],
    Parameter(group=GROUPS["files"], negative=(), metavar="NAME", show_default=" ".join, help="Names to leave out"),
]

Operation: TypeAlias = Callable[..., Iterable[object]]


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions:
    """Options of the commands that run rg in a directory."""

    json: Json = False
    cwd: Cwd = "."
    rg: RgPath = None


SETUP_EXIT_CODES = """\
Exit codes:
  0  success
  2  an error; stderr says which"""

WHY_EXIT_CODES = """\
Exit codes:
  0  a search reads the file
  1  a search does not read the file; the reason is printed
  2  an error; stderr says which"""

REPLACE_EXIT_CODES = """\
Exit codes:
  0  there are matches, or files were changed or restored
  1  there are no matches, or no replacement was chosen
  2  an error; stderr says which"""

app: App = App(
    name="ripwrap",
    version=lambda: import_module("importlib.metadata").version("ripwrap"),  # late: it takes 15 ms
    help="Search files with ripgrep: by regex, by words, or for agents.",
    usage="ripwrap COMMAND [OPTIONS] [ARGUMENTS]",
    help_format="plaintext",
    help_formatter=HelpFormatter(),
    group_parameters=OTHER,
    default_parameter=Parameter(allow_repeating=True),
    help_epilogue=epilogue(
        'ripwrap search "async def" src',
        "ripwrap rank 'how are cookies stored'",
        "ripwrap tree src",
        "ripwrap COMMAND --help",
    ),
)
app["--help"].group = app["--version"].group = OTHER
app["--help"].sort_key = 1
# The modules of these two commands are imported when they are used.
app.command(
    "ripwrap.cli.index:index", name="index", help="Keep an index of a directory, and search with it.", sort_key=6
)
app.command("ripwrap.cli.scan:scan", name="scan", help="Search for texts that match rules, e.g. secrets.", sort_key=6)


def run(arguments: list[str] | None = None) -> int:
    """Run a command, and return rg's exit code: 0 found, 1 nothing found, 2 an error."""
    for stream in (sys.stdout, sys.stderr):  # a question mark for a character that the console cannot show
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if sys.stderr is None:  # stderr is closed, so `print` would write errors to stdout
        sys.stderr = io.StringIO()
    if sys.stdout is None:
        complain("stdout is closed, so no results can be printed")
        return FAILED
    try:
        given = drop_overridden(move_stdin(sys.argv[1:] if arguments is None else arguments))
        code: int | None = app(given, result_action="return_value", exit_on_error=False, print_error=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has closed the pipe; drop the buffered output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FOUND
    except CycloptsError as error:
        complain(usage_error(error))
        return FAILED
    except ValidationError as error:
        for line in invalid_options(error):
            complain(line)
        return FAILED
    except (RipwrapError, ValueError, OSError) as error:
        notes = [spell(note, spell_as_flag) for note in getattr(error, "__notes__", ())]
        complain("\n".join((spell_error(error, spell_as_flag), *notes)))
        return FAILED
    return code or FOUND


def _parse_on(on: str | None) -> remote.Host | None:
    """Return the host that `--on` names; error messages name the flag."""
    if on is None:
        return None
    try:
        return remote.parse_host(on)
    except ValueError as error:
        text = spell_error(error, spell_as_flag)
        raise ValueError(text if text.startswith("--on ") else f"--on {on}: {error}") from None


def _check_inside(given: Sequence[str]) -> None:
    """Raise `ValueError` if --inside was given with another of the flags that exclude each other."""
    if "--inside" in given and len(given) > 1:
        raise ValueError(f"{given[0]} does not apply to --inside; leave one of them out")


def _print_results(operation: Operation, show: Callable[[Any], None], wanted: type, run: RunOptions) -> int:
    """Print the results of an operation, and return the exit code."""

    def results() -> Iterator[
        object
    ]:  # a generator, so that the operation runs inside of `print_all()`, which prints its warnings
        yield from operation(cwd=run.cwd, rg=run.rg)

    return print_all(results(), print_json if run.json else show, wanted)


@app.command(
    sort_key=1,
    usage="ripwrap search [OPTIONS] PATTERN [PATH]...",
    help_epilogue=epilogue(
        "ripwrap search 'fn \\w+_total' src        # a regular expression",
        "ripwrap search -F 'a[0]' -t py           # plain text, in Python files",
        "ripwrap search TODO -g '!tests/**' -C 2  # not in tests; two lines of context",
        "ripwrap search TODO --json               # JSON lines, for programs",
        "ripwrap search retry --near timeout      # lines within 5 of a timeout",
        "ripwrap search TODO --coverage           # and how many files were searched",
        "ripwrap search TODO --on ssh:box:/srv    # on another machine",
        "ripwrap search TODO --repositories 'src/*' --per-root 5",
        "ripwrap search TODO --rev main~3         # in a revision of git",
        "ripwrap search TODO --inside zip,ipynb   # in archives and notebooks, too",
        "ripwrap search -- --pre                  # a pattern that begins with a dash",
    ),
)
@flags(SearchOptions)
def search(
    pattern: str,
    /,
    *paths: str,
    files_with_matches: ListFiles = False,
    files_without_match: ListOthers = False,
    count: CountLines = False,
    count_matches: CountMatches = False,
    line_number: LineNumber = False,
    color: Color = "auto",
    max_columns: MaxColumns = 0,
    limit: Limit = None,
    coverage: CoverageFlag = False,
    inside: Inside = "",
    on: OnHost = None,
    where: NearOptions = NO_NEAR,
    many: ManyRoots = NO_ROOTS,
    git: GitOptions = NO_GIT,
    run: RunOptions = RunOptions(),
    **options: Unpack[SearchOptions],
) -> int:
    """Search files for a regular expression.

    Parameters
    ----------
    pattern
        Regular expression to search for
    paths
        Files and directories [default: all]; - is standard input
    """
    if coverage and on is not None:
        raise ValueError(
            "--coverage reads files of this machine, and cannot be combined with --on; leave one of them out"
        )
    host = _parse_on(on)
    if line_number:
        options["no_line_number"] = False
    modes = {
        "--files-with-matches": files_with_matches,
        "--files-without-match": files_without_match,
        "--count": count,
        "--count-matches": count_matches,
        "--coverage": coverage,
        "--on": on is not None,
        "--repositories": many is not NO_ROOTS,
        "--inside": bool(inside),
        "--near": bool(where.near),
    }
    given = [flag for flag, is_given in modes.items() if is_given]
    if git.check(paths, given):
        return search_source(
            pattern,
            paths,
            git,
            run.cwd,
            run.rg,
            as_json=run.json,
            color=color,
            max_columns=max_columns,
            limit=limit,
            options=options,
        )
    if where.check([flag for flag in given if flag not in ("--on", "--near")]):
        return search_near(
            pattern,
            paths,
            where,
            run.cwd,
            run.rg,
            as_json=run.json,
            color=color,
            max_columns=max_columns,
            limit=limit,
            on=host,
            options=options,
        )
    _check_inside(given)
    other = files_with_matches or files_without_match or count_matches
    if many.check(paths, other_mode=other or coverage or on is not None):
        return search_repositories(
            pattern,
            many,
            run.cwd,
            run.rg,
            as_json=run.json,
            count=count,
            color=color,
            max_columns=max_columns,
            limit=limit,
            options=options,
        )

    def ask(operation: Operation, show: Callable[[Any], None], wanted: type) -> int:
        code = _print_results(
            partial(operation, pattern, paths=paths, limit=limit, on=host, **options), show, wanted, run
        )
        if coverage:
            files = sync.coverage(cwd=run.cwd, paths=paths, timeout=None, rg=run.rg, **options)
            print_coverage(files, as_json=run.json)
        return code

    if files_with_matches or files_without_match:
        return ask(
            sync.files_with_matches if files_with_matches else sync.files_without_match, path_printer(color), str
        )
    if count or count_matches:
        return ask(sync.count if count else sync.count_matches, count_printer(color), FileCount)
    formats = [one.strip() for one in inside.split(",")] if inside else ()
    return ask(partial(sync.search_messages, inside=formats), match_printer(color, max_columns), Match)


@app.command(
    sort_key=2,
    usage="ripwrap files [OPTIONS] [PATH]...",
    help_epilogue=epilogue("ripwrap files -t py src", "ripwrap files --no-hidden --max-filesize 1M --sort modified"),
)
@flags(FileOptions)
def files(
    *paths: str,
    limit: Limit = None,
    on: OnHost = None,
    run: RunOptions = RunOptions(),
    **options: Unpack[FileOptions],
) -> int:
    """List the files that a search would read.

    Parameters
    ----------
    paths
        Files and directories to list [default: all]
    """
    host = _parse_on(on)
    listing = partial(sync.files, paths=paths, limit=limit, on=host, **options)
    return _print_results(listing, path_printer("never"), str, run)


@app.command(
    sort_key=3,
    usage="ripwrap tree [OPTIONS] [PATH]",
    help_epilogue=epilogue("ripwrap tree", "ripwrap tree src --limit 200 --max-depth 3"),
)
@flags(FileOptions)
def tree(
    path: Annotated[str, Parameter(show_default=False)] = "",
    /,
    *,
    limit: Limit = 50,
    exclude: Exclude = (".opencode",),
    run: RunOptions = RunOptions(),
    **options: Unpack[FileOptions],
) -> int:
    """Show files as a tree, shortened to --limit entries.

    Parameters
    ----------
    path
        Directory to show [default: --cwd]
    """
    root = os.path.join(run.cwd, path) if path else run.cwd
    if path and not os.path.isdir(root):
        raise ValueError(f"PATH must be a directory, got {shown(path)}")
    entries = partial(sync.tree, limit=limit, exclude=exclude, **options)
    return _print_results(entries, print_entry, TreeEntry, replace(run, cwd=root))


@app.command(
    sort_key=4,
    usage="ripwrap types [OPTIONS]",
    help_epilogue=epilogue("ripwrap types", "ripwrap types --json", after=SETUP_EXIT_CODES),
)
def types(*, json: Json = False, rg: RgPath = None) -> int:
    """List the file types of --type, with their globs."""
    print_types(sync.file_types(rg=rg), as_json=json)
    return FOUND


@app.command(
    sort_key=5,
    usage="ripwrap rank [OPTIONS] QUERY [PATH]...",
    help_epilogue=epilogue("ripwrap rank 'how are cookies stored'", "ripwrap rank CookieJar src --limit 3"),
)
@flags(FileOptions, VISIBLE_FILES)
def rank(
    query: str,
    /,
    *paths: str,
    limit: ResultLimit = 10,
    run: RunOptions = RunOptions(),
    **options: Unpack[FileOptions],
) -> int:
    """Find code by words or a name, best first.

    Parameters
    ----------
    query
        Words or a name, e.g. 'how are cookies stored', CookieJar
    paths
        Files and directories to search [default: all]
    """
    ranked = partial(sync.rank, query, paths=paths, limit=limit, **options)
    return _print_results(ranked, print_chunk, RankedChunk, run)


@app.command(
    sort_key=7,
    usage="ripwrap why [OPTIONS] FILE [PATH]...",
    help_epilogue=epilogue(
        "ripwrap why build/out.py",
        "ripwrap why src/till.py -t md --no-hidden  # with the options of a search",
        after=WHY_EXIT_CODES,
    ),
)
@flags(SearchOptions)
def why(file: str, /, *paths: str, run: RunOptions = RunOptions(), **options: Unpack[SearchOptions]) -> int:
    """Show why a search reads a file, or does not.

    Parameters
    ----------
    file
        File or directory to explain
    paths
        Files and directories of the search [default: all]
    """
    reason = sync.why(file, cwd=run.cwd, paths=paths, rg=run.rg, **options)
    print_json(reason) if run.json else print_reason(reason)
    return FOUND if reason else NOTHING


@app.command(
    sort_key=8,
    usage="ripwrap replace [OPTIONS] PATTERN REPLACEMENT [PATH]...\n       ripwrap replace --undo",
    help_epilogue=epilogue(
        "ripwrap replace 'old_(\\w+)' 'new_$1' src        # show a diff, write nothing",
        "ripwrap replace 'old_(\\w+)' 'new_$1' src --apply",
        "ripwrap replace -F 'a[0]' 'a.first' --interactive",
        "ripwrap replace --undo                         # undo the last replacement",
        after=REPLACE_EXIT_CODES,
    ),
)
@flags(SearchOptions, VISIBLE_FILES, without=NOT_FOR_REPLACE)
def replace_(
    pattern: str | None = None,
    replacement: str | None = None,
    /,
    *paths: str,
    escapes: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    write: WriteOptions = SHOW,
    color: Color = "auto",
    run: RunOptions = RunOptions(),
    **options: Unpack[SearchOptions],
) -> int:
    r"""Replace matches in all files or none; show a diff first.

    Parameters
    ----------
    pattern
        Regular expression to search for
    replacement
        Text for each match; $1 is a group, $$ a dollar
    paths
        Files and directories to change [default: all]
    escapes
        Read \n, \t, \xHH and others in REPLACEMENT
    """
    write.check((pattern, replacement))
    if pattern is None or replacement is None:
        return undo_last(write.journal, run.cwd, as_json=run.json)
    plan = sync.replace(pattern, replacement, cwd=run.cwd, paths=paths, escapes=escapes, rg=run.rg, **options)
    return show_or_write(plan, write, color, as_json=run.json)


@app.command(
    sort_key=9,
    usage="ripwrap doctor [OPTIONS]",
    help_epilogue=epilogue("ripwrap doctor", "ripwrap doctor --rg ./rg", after=SETUP_EXIT_CODES),
)
def doctor(*, rg: RgPath = None) -> int:
    """Show which rg is used, why, and what it can do."""
    console = styled_console()
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    python = sys.implementation.name, tuple(sys.version_info[:2])
    console.print(describe(current(), *python, free_threaded=free_threaded))
    places = binary.explain(rg)
    for place in places:
        mark = Text("✓ " if place.usable else "✗ ", "green" if place.usable else "dim")
        console.print(Text.assemble(mark, (place.source, "bold"), " ", shown(place.path), ": ", place.reason))
    if places[-1].source == "download" and not any(place.usable for place in places):
        # `doctor` does not download rg only to show it.
        complain(
            "there is no rg yet; `ripwrap install` downloads one. "
            f"Or install it yourself, for instance:\n{how_to_install()}"
        )
        return FAILED
    found = sync.resolve(rg)
    features = ", ".join(sorted(found.features)) or "none"
    console.print(
        Text.assemble(
            ("rg ", "bold"),
            (format_version(found.version), "bold green"),
            f", features: {features}\n{shown(found.path)}",
        )
    )
    return FOUND


@app.command(
    sort_key=10,
    usage="ripwrap install [OPTIONS] [VERSION]",
    help_epilogue=epilogue(
        "ripwrap install",
        "ripwrap install 15.2.0 --dest /usr/local/bin",
        "ripwrap install --on ssh:build-7",
        after=SETUP_EXIT_CODES,
    ),
)
def install(
    version: str | None = None,
    /,
    *,
    dest: Annotated[str | None, Parameter(metavar="DIR")] = None,
    on: Annotated[str | None, Parameter(metavar="HOST")] = None,
    mirror: Annotated[list[str] | None, Parameter(metavar="URL", negative=())] = None,
    sha256: Annotated[str | None, Parameter(metavar="HASH")] = None,
    allow_unpinned: Annotated[bool, Parameter(show_default=False)] = False,
    timeout: Annotated[float, Parameter(metavar="SECONDS")] = 120.0,
) -> int:
    """Download rg, check its hash, and install it.

    Parameters
    ----------
    version
        Release, e.g. 15.2.0 [default: the newest known]
    dest
        Directory to put rg into [default: ripwrap's cache]
    on
        Host to put rg on: ssh:HOST or docker:NAME
    mirror
        Base address in place of GitHub's; may be repeated
    sha256
        Hash of an archive that ripwrap does not know
    allow_unpinned
        If ripwrap has no hash, trust the published .sha256 file
    timeout
        Maximum number of seconds for the whole installation
    """
    if dest is not None and on is not None:
        raise ValueError(
            "--dest is a directory of this machine, and cannot be combined with --on; leave one of them out"
        )
    host = _parse_on(on)
    call = partial(sync.install, dest=dest) if host is None else host.install_blocking
    with DownloadBar() as progress:
        found = call(
            version,
            mirrors=mirror,
            sha256=sha256,
            allow_unpinned=allow_unpinned,
            timeout=timeout,
            progress=progress,
        )
    state = "installed" if found.source == "download" else "is there already"
    place = "" if host is None else f"{host.name}: "
    print(f"rg {format_version(found.version)} {state}: {place}{shown(found.path)}")
    return FOUND


@app.command(
    sort_key=11,
    usage="ripwrap mcp [OPTIONS]",
    help_epilogue=epilogue(
        "ripwrap mcp --root .", "ripwrap mcp --root src --root docs --http --port 8080", after=SETUP_EXIT_CODES
    ),
)
def mcp(
    *,
    root: Annotated[list[str] | None, Parameter(metavar="DIR", negative=())] = None,
    http: Annotated[bool, Parameter(show_default=False)] = False,
    host: Annotated[str, Parameter(metavar="HOST")] = "127.0.0.1",
    port: Annotated[int, Parameter(metavar="PORT")] = 8000,
    allowed_host: Annotated[list[str] | None, Parameter(metavar="HOST", negative=())] = None,
    index: Annotated[bool, Parameter(show_default=False)] = False,
    index_location: Annotated[str | None, Parameter(metavar="DIR")] = None,
    embedder: EmbedderName = None,
    hybrid_weight: HybridWeight = None,
    anchors: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    deny: Annotated[list[str] | None, Parameter(metavar="GLOB", negative=())] = None,
    no_deny: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    show_denied: Annotated[ShowDenied, Parameter(metavar="HOW", show_choices=False)] = "hide",
    redact: Annotated[bool, Parameter(negative="--no-redact", show_default="on")] = True,
    write: Annotated[bool, Parameter(negative=(), show_default=False)] = False,
    rg: RgPath = None,
) -> int:
    """Serve tools to agents, over MCP.

    Parameters
    ----------
    root
        Directory to search; may be repeated [default: the client's]
    http
        Serve HTTP at http://HOST:PORT/mcp instead of stdio
    host
        Address to listen at
    port
        Port to listen at
    allowed_host
        Another host name to accept in requests; may be repeated
    index
        Offer the tools of an index, kept in the user's cache
    index_location
        Keep the index in DIR; project is .ripwrap in each root
    anchors
        Show a hash of each line, and a tool to find it again
    deny
        Deny files that match, as in .gitignore; may be repeated
    no_deny
        Deny only the files of --deny, not the usual secrets
    show_denied
        Denied files in listings: hide, count or name them
    redact
        Mask keys, tokens and passwords in answers
    write
        Offer the tool replace_content, which changes files
    """
    try:
        from ripwrap import mcp as server
    except ImportError as error:
        package, _, module = (error.name or "ripwrap").partition(".")
        if package == "ripwrap":
            raise
        needed = error.name
        if package == "mcp" and (
            module or not isinstance(error, ModuleNotFoundError)
        ):  # an installed version with another interface
            from importlib import metadata

            requirements = (one.partition(";")[0] for one in metadata.requires("ripwrap") or ())
            needed = next(one for one in requirements if re.match(r"mcp\W", one))
            needed += f", and mcp {metadata.version('mcp')} is installed"
        complain(f'the MCP server needs {needed}: pip install "ripwrap[mcp]"')
        return FAILED
    names = allowed_host or ()
    server.serve(
        root or (),
        transport="http" if http else "stdio",
        host=host,
        port=port,
        allowed_hosts=names,
        rg=rg,
        index=index_location or index,
        embedder=embedder,
        hybrid_weight=hybrid_weight,
        anchors=anchors,
        deny=(*(() if no_deny else sync.Workspace.SECRETS), *(deny or ())),
        show_denied=show_denied,
        redact=redact,
        write=write,
    )
    return FOUND
