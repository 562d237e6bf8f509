"""Cases, and the budget of each, with what was tried where a budget is missed."""

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
        kind: Method of a contestant that runs it.
        given: Arguments of that method besides `cwd`.
        contestants: Contestants, in the order of a round.
        baseline: Contestant that the ratios are to.
        under: Folder of the corpus that is searched.
        rounds: Highest number of rounds; some cases take long.
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
        """Return the cases that are measured on it."""
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
    "dense": "a dense literal (`{pattern}`)",
    "part": "the same, in `{under}/`",
    "very dense": "a very dense literal (`{pattern}`)",
    "limit": f"the first {LIMIT} of the dense literal",
    "grep": f"`grep()`: a page of {LIMIT}, all matches counted",
    "files": "`files()`",
    "tree": "`tree()`, limited to {limit}",
    "whole tree": "`tree()`, complete",
    "tiny": f"{TIMES} searches of a folder with three files",
    "import": "an import, in a new interpreter",
}


@dataclass(frozen=True)
class Budget:
    """An upper bound for a measure of one contestant, or for its ratio to another's, or for the difference.

    Attributes:
        corpus: Corpus on which it holds; `None` is every one.
        case, contestant, metric: Measure.
        limit: Bound.
        to: Contestant, and the case if it is another one, to compare with; `None` compares with none.
        to_metric: Its metric, if it is another one.
        minus: Compare by difference, not by ratio.
        factor: Factor from the measure to the unit of `limit`.
        unit: Unit of `limit`.
        text: Budget in words.
        tried: Reason and attempts, printed where the budget is missed.
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
"""Budget of instructions for a decoded match."""

DECODING = (
    "Three quarters of the cost of a match is Pydantic's validator, and half of that is making two models. [What was "
    "tried](explanation/architecture.md#what-a-match-costs): dictionaries, dataclasses, named tuples, whole chunks at "
    "once and a parser in Python, with their figures."
)
"""Reason and attempts where decoding takes the time."""

_SEARCHES = ("ripwrap", "ripwrap.sync")
_TWIN = (
    "In CPython an async generator takes 0.4 µs more for each item than a plain one. ripwrap waits for the event loop "
    "only if there is nothing to read, which reduced its share from 14 % to 9 %."
)
_START = "The rest is starting a process from Python, and noise of the machine."
_REAPED = (
    "rg is killed before its last match is yielded, and polled 0.1 ms later. The rest is the kernel, which removes a "
    "process with its threads and maps, and on asyncio a clock with a resolution of 1 ms."
)
_LISTED = (
    "A path takes 0.5 µs, async 0.9: a string and a step of a generator, while rg keeps both cores busy. Removing `./` "
    "from a whole chunk instead of path by path takes twice as long."
)
_TREE = "All paths are listed before they are arranged; see `files()`."
_MEMORY = "Only a chunk of 64 KiB and its lines are in memory."
_IMPORT = "Names are loaded at first use; most of the rest is Pydantic."

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
