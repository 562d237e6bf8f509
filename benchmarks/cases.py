"""What is measured, and what is promised of it (issue 7), with what was tried where a promise is not kept."""

from dataclasses import dataclass, field, replace
from typing import Any

SUBPROCESS = ("raw rg", "ripwrap", "ripwrap.sync")
PEERS = ("rpygrep", "ripgrepy", "python-ripgrep", "rgapi")
BOUNDED = ("rpygrep", "rgapi")  # those that do not hold two million matches in memory
LIMIT = 100
TIMES = 200
OUR_IMPORTS = (
    "pass",
    "import pydantic",
    "from pydantic import BaseModel",
    "import ripwrap",
    "from ripwrap import search",
)
PEER_IMPORTS = ("import rpygrep", "import ripgrepy", "import rgapi")


@dataclass(frozen=True)
class Case:
    """One row group of the table.

    Attributes:
        name: Its title.
        kind: Which method of a contestant does it.
        given: What that method is given besides `cwd`.
        contestants: Who takes part, in the order in which they are run, again and again.
        baseline: Whom the ratios are to.
        under: The folder of the corpus that is searched.
        rounds: How often everybody has a turn, at most: some cases take long.
    """

    name: str
    kind: str
    contestants: tuple[str, ...]
    given: dict[str, Any] = field(default_factory=dict[str, Any])
    baseline: str = "raw rg"
    under: str = "."
    rounds: int = 100


@dataclass(frozen=True)
class Corpus:
    """A folder, and what to look for in it.

    Attributes:
        name: Its title.
        sparse: A literal that a few lines have.
        dense: One that many have.
        very_dense: And one that most have.
        part: The folder of it in which ripwrap is compared with rg's crates in the process.
    """

    name: str
    sparse: str
    dense: str
    very_dense: str
    part: str = "."

    def cases(self) -> tuple[Case, ...]:
        """All that is measured on it."""
        return (
            Case("sparse", "search", (*SUBPROCESS, *PEERS), {"pattern": self.sparse}),
            Case("dense", "search", (*SUBPROCESS, *PEERS), {"pattern": self.dense}),
            Case("part", "search", (*SUBPROCESS, "rgapi"), {"pattern": self.dense}, under=self.part),
            Case("very dense", "search", (*SUBPROCESS, *BOUNDED), {"pattern": self.very_dense}, rounds=3),
            Case("limit", "limit", (*SUBPROCESS, "rgapi"), {"pattern": self.dense, "limit": LIMIT}),
            Case("grep", "grep", SUBPROCESS, {"pattern": self.dense, "limit": LIMIT}),
            Case("files", "files", (*SUBPROCESS, "rpygrep", "python-ripgrep", "rgapi")),
            Case("tree", "tree", SUBPROCESS[1:], {"limit": 50}, baseline="ripwrap"),
            Case("whole tree", "tree", SUBPROCESS[1:], {"limit": None}, baseline="ripwrap"),
        )


STDLIB = Corpus("standard library", sparse="zipimporter", dense="self", very_dense="e")
LINUX = Corpus("Linux 6.1", sparse="sched_clock_register", dense="static int", very_dense="struct", part="drivers")
SMALL = Case("tiny", "tiny", (*SUBPROCESS, *PEERS), {"pattern": "needle", "times": TIMES})
IMPORT = Case("import", "imports", (*OUR_IMPORTS, *PEER_IMPORTS), baseline="import pydantic")

TITLES = {
    "sparse": "a sparse literal (`{pattern}`)",
    "dense": "a dense one (`{pattern}`)",
    "part": "the same, in `{under}/`",
    "very dense": "a very dense one (`{pattern}`)",
    "limit": f"the first {LIMIT} of the dense one",
    "grep": f"`grep()`: a page of {LIMIT}, all of them counted",
    "files": "`files()`",
    "tree": "`tree()`, with its limit of {limit}",
    "whole tree": "`tree()`, all of it",
    "tiny": f"{TIMES} searches of a folder with three files",
    "import": "an import, in a fresh interpreter",
}


@dataclass(frozen=True)
class Budget:
    """A promise: a measure of one contestant, as a ratio to another's or minus it, is at most so much.

    Attributes:
        corpus: The corpus on which it is held; `None` is every one.
        case, contestant, metric: What is measured.
        limit: The promise.
        to: The contestant, and the case if it is another one, that it is compared with; `None` is nobody.
        to_metric: What of that is compared, if it is something else.
        minus: Whether the difference counts, and not the ratio.
        factor: What the measure is multiplied with to have the unit of `limit`.
        unit: That unit.
        text: What is promised.
        tried: What was done for it, and what is left: told where it is missed.
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


INSTRUCTIONS = 22_000
"""How many a decoded match may take."""

DECODING = (
    "Three quarters of what a match costs is Pydantic's validator, and of that half is what makes two models out of "
    "what it has read; [what was tried](explanation/architecture.md#what-a-match-costs) has dictionaries, dataclasses, "
    "named tuples, whole chunks at once and a parser of our own, with their figures."
)
"""What was tried where decoding is what takes the time."""

_SEARCHES = ("ripwrap", "ripwrap.sync")
_TWIN = (
    "An async generator takes 0.4 µs more for each item than a plain one, which is CPython's; an event loop is "
    "waited for only where there is nothing to read, which took its part from 14 % to 9 %."
)
_START = "What is left is starting a process from Python, and the machine's noise."
_REAPED = (
    "rg is killed before its last match is given, and looked for 0.1 ms later; what is left is the kernel's taking "
    "down of a process with its threads and maps, and on asyncio a clock that counts in ms."
)
_LISTED = (
    "A path takes 0.5 µs, asynchronously 0.9: a string and a generator's turn, while rg keeps both cores busy. Taking "
    "`./` off a chunk at once instead of path by path was tried and takes twice as long."
)
_TREE = "All is listed before it is arranged; see `files()`."
_MEMORY = "Nothing is kept but a chunk of 64 KiB and its lines."
_IMPORT = "Names are loaded when they are first used; most of what is left is Pydantic's."

BUDGETS = (
    Budget("dense", "ripwrap", "cpu", 1.15, "CPU, to the blocking twin", _TWIN, to="ripwrap.sync"),
    *(Budget("dense", name, "cpu", 0.5, "CPU, to rpygrep", DECODING, to="rpygrep") for name in _SEARCHES),
    *(
        replace(budget, corpus=LINUX.name)
        for name in _SEARCHES
        for budget in (
            Budget("sparse", name, "wall", 1.10, "wall, to raw rg", _START, to="raw rg"),
            Budget(
                "sparse",
                name,
                "first",
                10,
                "first, beyond raw rg",
                _START,
                to="raw rg",
                minus=True,
                factor=1000,
                unit=" ms",
            ),
            Budget(
                "limit", name, "wall", 1.5, f"reaped, to raw rg's {LIMIT}th", _REAPED, to="raw rg", to_metric="first"
            ),
            Budget("files", name, "wall", 1.25, "wall, to raw rg", _LISTED, to="raw rg"),
            Budget("tree", name, "wall", 2, "wall, to files()", _TREE, to=name, to_case="files"),
            Budget("part", name, "wall", 1.2, "wall, to rgapi", DECODING, to="rgapi"),
            Budget("part", name, "all_cpu", 1.5, "all CPU, to rgapi", DECODING, to="rgapi"),
            Budget("very dense", name, "memory", 40, "memory, beyond imports", _MEMORY, factor=1e-6, unit=" MB"),
        )
    ),
    Budget("tiny", "ripwrap.sync", "wall", 1.25, "wall, to subprocess.run", _START, to="raw rg"),
    Budget("tiny", "ripwrap", "wall", 1.5, "wall, to subprocess.run", _START, to="raw rg"),
    Budget(
        "import",
        "import ripwrap",
        "wall",
        40,
        "wall, beyond import pydantic",
        _IMPORT,
        to="import pydantic",
        minus=True,
        factor=1000,
        unit=" ms",
    ),
)
