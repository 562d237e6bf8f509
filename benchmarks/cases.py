"""Cases of the benchmark, and their budgets; each budget has an explanation that is printed if it is missed."""

from dataclasses import dataclass, field, replace
from typing import Any

SUBPROCESS = ("raw rg", "ripwrap", "ripwrap.sync")
ONE_RUN = "ripwrap.sync, one run"
"""Contestant for comparison: `grep()` that does all work in one run of rg, also if there are very many matches."""
COLUMNS = "ripwrap.sync, columns"
"""Contestant that calls `search_columns()`."""
PEERS = ("rpygrep", "ripgrepy", "python-ripgrep", "rgapi")
BOUNDED = ("rpygrep", "rgapi")  # the peers that do not keep all matches in memory
LIMIT = 100
TIMES = 200
A_MODEL = "from pydantic import create_model; create_model('A', a=(int, ...))"
OUR_IMPORTS = (
    "pass",
    "import pydantic",
    "from pydantic import BaseModel",
    A_MODEL,
    "import ripwrap",
    "from ripwrap import search",
    "from ripwrap import Workspace",
    "from mcp.server.lowlevel import Server",
    "import ripwrap.mcp",
)
COMMANDS = ("ripwrap --help", "ripwrap search --help", "ripwrap search needle", "ripwrap files")
SERVERS = ("ripwrap mcp", "a server of the SDK")
PEER_IMPORTS = ("import rpygrep", "import ripgrepy", "import rgapi")


@dataclass(frozen=True)
class Case:
    """Group of rows of the table.

    Attributes:
        name: Name of the case; `TITLES` has its title.
        kind: Method of a contestant that runs the case.
        given: Arguments of that method besides `cwd`.
        contestants: Contestants, in the order of a round.
        baseline: Contestant with which ratios compare the others.
        under: Directory to search, relative to the corpus.
        rounds: Highest number of rounds; some cases take long.
        metric: Main figure, which is plotted and has a spread and a ratio.
    """

    name: str
    kind: str
    contestants: tuple[str, ...]
    given: dict[str, Any] = field(default_factory=dict[str, Any])
    baseline: str = "raw rg"
    under: str = "."
    rounds: int = 100
    metric: str = "wall"


@dataclass(frozen=True)
class Corpus:
    """Folder to search, and the literals to search for.

    Attributes:
        name: Title of the corpus.
        sparse: Literal that a few lines have.
        dense: Literal that many lines have.
        very_dense: Literal that most lines have.
        part: Directory in the corpus for the case that compares ripwrap with rgapi; empty if there is no such case.
        queries: Queries to rank the files with.
        ranked: Globs of the files to rank; empty for all files.
    """

    name: str
    sparse: str
    dense: str
    very_dense: str
    part: str = ""
    queries: tuple[str, ...] = ()
    ranked: tuple[str, ...] = ()

    def cases(self) -> tuple[Case, ...]:
        """Return the cases to measure in this directory."""
        return (
            Case("sparse", "search", (*SUBPROCESS, *PEERS), {"pattern": self.sparse}),
            Case("dense", "search", (*SUBPROCESS, COLUMNS, *PEERS), {"pattern": self.dense}),
            *(
                [Case("part", "search", (*SUBPROCESS, COLUMNS, "rgapi"), {"pattern": self.dense}, under=self.part)]
                if self.part
                else []
            ),
            Case("very dense", "search", (*SUBPROCESS, COLUMNS, *BOUNDED), {"pattern": self.very_dense}, rounds=3),
            Case("limit", "limit", (*SUBPROCESS, "rgapi"), {"pattern": self.dense, "limit": LIMIT}),
            Case("grep", "grep", SUBPROCESS, {"pattern": self.dense, "limit": LIMIT}),
            *(
                Case(
                    name,
                    "grep",
                    (*SUBPROCESS, ONE_RUN),
                    {"pattern": pattern, "limit": LIMIT, "context": 2},
                    under=self.part or ".",
                )
                for name, pattern in (("sparse page", self.sparse), ("page", self.dense))
            ),
            Case("files", "files", (*SUBPROCESS, "rpygrep", "python-ripgrep", "rgapi")),
            Case("tree", "tree", SUBPROCESS[1:], {"limit": 50}, baseline="ripwrap"),
            Case("whole tree", "tree", SUBPROCESS[1:], {"limit": None}, baseline="ripwrap"),
            Case(
                "rank",
                "rank",
                ("ripwrap.sync",),
                {"queries": self.queries, "glob": self.ranked},
                baseline="ripwrap.sync",
            ),
        )


STDLIB = Corpus(
    "standard library",
    sparse="zipimporter",
    dense="self",
    very_dense="e",
    queries=(
        "how are cookies stored",
        "parse a date in iso format",
        "raw_decode",
        "event loop run until complete",
        "temporary directory cleanup",
        "walk a directory tree",
        "thread pool executor submit",
        "HTTPConnection",
    ),
    ranked=("!site-packages",),
)
LINUX = Corpus(
    "Linux 6.1",
    sparse="sched_clock_register",
    dense="static int",
    very_dense="struct",
    part="drivers/",
    queries=(
        "how are interrupts disabled on a cpu",
        "kthread_create",
        "where is the tcp congestion window reduced",
        "spin lock irqsave",
        "usb device disconnect handling",
        "page fault handler",
        "read a block from an ext4 inode",
        "task_struct",
    ),
)
SMALL = Case("tiny", "tiny", (*SUBPROCESS, *PEERS), {"pattern": "needle", "times": TIMES})
IMPORT = Case("import", "imports", (*OUR_IMPORTS, *PEER_IMPORTS), baseline="import pydantic")
COMMAND = Case("command", "imports", COMMANDS, baseline=COMMANDS[0], metric="child_cpu")
DECODE = Case("decode", "decode", ("ripwrap", "rpygrep"), baseline="ripwrap", metric="instructions")
MCP = Case("mcp", "list_tools", SERVERS, baseline=SERVERS[1], metric="first")
ALONE = (SMALL, IMPORT, COMMAND, MCP, DECODE)
"""Cases that need no corpus; their figures are stored with those of the standard library."""

TITLES = {
    "sparse": "a sparse literal (`{pattern}`)",
    "dense": "a dense literal (`{pattern}`)",
    "part": "the dense literal, in `{under}`",
    "very dense": "a very dense literal (`{pattern}`)",
    "limit": f"the first {LIMIT} of the dense literal",
    "grep": f"`grep()`: a page of {LIMIT}, all matches counted",
    "sparse page": f"`grep()`: a page of {LIMIT} of the sparse literal, with two lines of context, in `{{under}}`",
    "page": f"`grep()`: a page of {LIMIT} of the dense literal, with two lines of context, in `{{under}}`",
    "files": "`files()`",
    "tree": "`tree()`, limited to {limit}",
    "whole tree": "`tree()`, complete",
    "tiny": f"{TIMES} searches of a directory with three files",
    "rank": "`rank()`: eight queries",
    "import": "an import, in a new interpreter",
    "command": "a command, in a directory with three files",
    "mcp": "an MCP server, from its start to the list of its tools",
    "decode": "a match of 250 bytes with one submatch",
}


@dataclass(frozen=True)
class Question:
    """Section of the page, with a plot and the tables of some cases.

    Attributes:
        name: Name of the file with the plot, without `.svg`.
        title: Heading of the section.
        about: Paragraph below the heading.
        cases: Names of the cases in the section.
    """

    name: str
    title: str
    about: str
    cases: tuple[str, ...]


QUESTIONS = (
    Question(
        "stream",
        "How long does it take to stream every match?",
        "Each match of rg's JSON output becomes a Pydantic model. If matches are rare, rg takes most of the time. "
        "If there are hundreds of thousands of matches, Python takes most of the time.",
        ("sparse", "dense", "part", "very dense"),
    ),
    Question(
        "limit",
        "How soon do the first matches arrive?",
        f"The search stops after {LIMIT} matches. For raw rg, the time until rg has ended is not included.",
        ("limit",),
    ),
    Question(
        "page",
        "How long does an answer of `grep()` take?",
        f"`grep()` returns {LIMIT} matches and the number of all matches. If there are very many matches, it first "
        "counts them, and then searches only the files of the page with context; `one run` is `grep()` that does all "
        "work in one run of rg.",
        ("grep", "sparse page", "page"),
    ),
    Question("files", "How long does a list of files take?", "", ("files", "tree", "whole tree")),
    Question(
        "rank",
        "How long does a ranking take?",
        "Each row is eight calls of `rank()`, without an index: some queries are words, some are names. Installed "
        "packages (`site-packages`) are not ranked.",
        ("rank",),
    ),
    Question(
        "tiny",
        "What do many small searches cost?",
        "Each search starts rg. Libraries that run rg's crates in the Python process start no process.",
        ("tiny",),
    ),
    Question(
        "start",
        "How long does a program wait before its first search?",
        "Each row is a new interpreter that imports something, or runs a command; `pass` imports nothing. The server "
        "of the SDK has one tool.",
        ("import", "command", "mcp"),
    ),
    Question(
        "instructions",
        "How much work is a match?",
        "Callgrind counts the CPU instructions for one more match. Other load does not change the count.",
        ("decode",),
    ),
)


@dataclass(frozen=True)
class Budget:
    """Upper limit of a figure, or of its ratio to or difference from another figure.

    Attributes:
        corpus: Name of the corpus that it applies to; `None` is every corpus.
        case, contestant, metric: Figure that is limited.
        limit: Upper limit.
        to: Contestant to compare with; `None` for no comparison.
        to_case, to_metric: Case and metric to compare with; `None` is `case` and `metric`.
        minus: True to limit the difference, False to limit the ratio.
        factor: Factor from the unit of the figure to that of `limit`.
        unit: Unit of `limit`.
        text: Description of the limited figure.
        tried: Explanation that is printed if the budget is missed.
    """

    case: str
    contestant: str
    metric: str
    limit: float
    text: str
    tried: str
    to: str | None = None
    to_case: str | None = None
    to_metric: str | None = None
    corpus: str | None = None
    minus: bool = False
    factor: float = 1.0
    unit: str = "x"

    @property
    def name(self) -> str:
        """Name that no other budget of the same corpus has."""
        return f"{self.case}, {self.contestant}: {self.text}"


DECODING = (
    "Pydantic's validator takes three quarters of the time for a match. Half of that is for creating two models. The "
    "[architecture page](explanation/architecture.md#what-a-match-costs) has the figures of alternatives: "
    "dictionaries, dataclasses, named tuples, validation of whole chunks, and a parser in Python."
)
"""Explanation for budgets that decoding limits."""

_SEARCHES = ("ripwrap", "ripwrap.sync")
_TWIN = (
    "In CPython an async generator takes 0.4 µs more for each item than a plain generator. ripwrap waits for the event "
    "loop only if there is nothing to read, which reduced the share of the loop from 14 % to 9 %."
)
_START = "The difference is the time to start a process from Python, and noise of the machine."
_REAPED = (
    "ripwrap kills rg before it yields the last match, and checks 0.1 ms later whether rg has ended. The rest is the "
    "time in which the kernel removes the process, its threads and memory maps. The timers of asyncio have a "
    "resolution of 1 ms."
)
_LISTED = (
    "Creating a string and resuming a generator takes 0.5 µs for each path (async: 0.9 µs), while rg uses both cores. "
    "Removing `./` from whole chunks instead of single paths takes twice as long."
)
_TREE = "`tree()` lists all paths before it arranges them; see `files()`."
_MEMORY = "Only one chunk of 64 KiB and its lines are in memory."
_IMPORT = "Names are imported at their first use; most of the rest is Pydantic."
_MODELS = (
    "No validator is made at import, and operations and tools are imported one by one. `import ripwrap.models` alone "
    "takes 1.2x to 1.4x. The models cannot be imported later, because agent frameworks evaluate the annotations of the "
    "functions. The rest is logging, subprocess, anyio and the search for rg, which the first search would otherwise "
    "import while an event loop runs."
)

_COMMAND = "Two thirds of it is the import of Pydantic; argparse, with the flags of the command, takes 10 ms."
_LIST = "The list is read from a file, and the tools are imported after it was sent."
_SERVER = "What is left are the models of results and arguments, from which the schemas of the tools are made."
_RANK = (
    "rg counts the words in all files first. Then the words are counted in the chunks of the 40 best files, and the "
    "definitions of these files are found."
)
_COLUMNS = (
    "One regular expression splits a chunk at its matches, all texts are parsed as one JSON array, and paths and spans "
    "are decoded once. The [architecture page](explanation/architecture.md#what-columns-cost) has the figures of "
    "alternatives. rg and Python share two cores: rg writes 270 bytes of JSON for each match, and Python reads them."
)
_COUNTED = (
    "`rg --count` alone takes 0.6 to 0.9 of the time of raw rg, because opening files takes longer than writing JSON. "
    "Before `rg --count`, a first run finds out that there are very many matches; after it, a third run searches the "
    "files of the page."
)

BUDGETS = (
    Budget("dense", "ripwrap", "cpu", 1.15, "CPU relative to `ripwrap.sync`", _TWIN, to="ripwrap.sync"),
    *(Budget("dense", name, "cpu", 0.5, "CPU relative to rpygrep", DECODING, to="rpygrep") for name in _SEARCHES),
    *(
        replace(budget, corpus=LINUX.name)
        for name in _SEARCHES
        for budget in (
            Budget("sparse", name, "wall", 1.10, "wall relative to raw rg", _START, to="raw rg"),
            Budget(
                "sparse",
                name,
                "first",
                10,
                "first item after that of raw rg",
                _START,
                to="raw rg",
                minus=True,
                factor=1000,
                unit=" ms",
            ),
            Budget(
                "limit",
                name,
                "wall",
                1.5,
                f"wall relative to the first {LIMIT} matches of raw rg",
                _REAPED,
                to="raw rg",
                to_metric="first",
            ),
            Budget("files", name, "wall", 1.25, "wall relative to raw rg", _LISTED, to="raw rg"),
            Budget("tree", name, "wall", 2, "wall relative to `files()`", _TREE, to=name, to_case="files"),
            Budget("part", name, "wall", 1.2, "wall relative to rgapi", DECODING, to="rgapi"),
            Budget("part", name, "all_cpu", 1.5, "CPU of Python and rg relative to rgapi", DECODING, to="rgapi"),
            Budget("very dense", name, "memory", 40, "memory after imports", _MEMORY, factor=1e-6, unit=" MB"),
        )
    ),
    *(
        replace(budget, corpus=LINUX.name)
        for budget in (
            Budget("part", "ripwrap", "wall", 1.08, "wall relative to `ripwrap.sync`", _TWIN, to="ripwrap.sync"),
            Budget("part", COLUMNS, "wall", 1.15, "wall relative to rgapi", _COLUMNS, to="rgapi"),
            Budget("part", COLUMNS, "wall", 1.15, "wall relative to raw rg", _COLUMNS, to="raw rg"),
            Budget("very dense", COLUMNS, "wall", 1.3, "wall relative to raw rg", _COLUMNS, to="raw rg"),
            Budget("very dense", "ripwrap.sync", "wall", 3, "wall relative to raw rg", DECODING, to="raw rg"),
            Budget("very dense", "ripwrap", "wall", 1.05, "wall relative to `ripwrap.sync`", _TWIN, to="ripwrap.sync"),
            Budget("page", "ripwrap.sync", "wall", 0.75, "wall relative to raw rg", _COUNTED, to="raw rg"),
            Budget("sparse page", "ripwrap.sync", "wall", 1.05, "wall relative to one run", _START, to=ONE_RUN),
        )
    ),
    Budget("tiny", "ripwrap.sync", "wall", 1.25, "wall relative to `subprocess.run`", _START, to="raw rg"),
    Budget("tiny", "ripwrap", "wall", 1.5, "wall relative to `subprocess.run`", _START, to="raw rg"),
    Budget(
        "import",
        "import ripwrap",
        "wall",
        40,
        "wall beyond `import pydantic`",
        _IMPORT,
        to="import pydantic",
        minus=True,
        factor=1000,
        unit=" ms",
    ),
    *(
        Budget(
            "import",
            name,
            "child_cpu",
            limit,
            f"CPU relative to {what}",
            _MODELS,
            to=to,
        )
        for name, limit, what, to in (
            ("from ripwrap import search", 1.35, "a model of Pydantic", A_MODEL),
            (
                "from ripwrap import Workspace",
                1.7,
                "`from pydantic import BaseModel`",
                "from pydantic import BaseModel",
            ),
        )
    ),
    Budget("decode", "ripwrap", "instructions", 26_000, "instructions for each match", DECODING, unit=""),
    Budget(
        "import",
        "import ripwrap.mcp",
        "child_cpu",
        60,
        "CPU beyond MCP's SDK",
        _SERVER,
        to="from mcp.server.lowlevel import Server",
        minus=True,
        factor=1000,
        unit=" ms",
    ),
    Budget("mcp", SERVERS[0], "first", 1.05, "time to the list, relative to the SDK's server", _LIST, to=SERVERS[1]),
    *(
        Budget("command", name, "child_cpu", limit, "CPU", _COMMAND, factor=1000, unit=" ms")
        for name, limit in (("ripwrap search needle", 200), ("ripwrap files", 200), ("ripwrap --help", 400))
    ),
    *(
        Budget("rank", "ripwrap.sync", metric, limit, text, _RANK, corpus=corpus.name, factor=factor, unit=unit)
        for corpus, metric, limit, text, factor, unit in (
            (STDLIB, "wall", 80, "wall for each query", 1000 / len(STDLIB.queries), " ms"),
            (LINUX, "all_cpu", 2.5, "CPU of Python and rg for each query", 1 / len(LINUX.queries), " s"),
        )
    ),
    Budget("rank", "ripwrap.sync", "memory", 80, "memory after imports", _RANK, factor=1e-6, unit=" MB"),
)
