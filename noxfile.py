"""Everything that is checked, by `python -m nox`: tests, lint, types."""

import os
import pathlib
import shutil
import subprocess
import sys

import nox

nox.options.sessions = ["tests", "lowest", "extras", "docs", "lint", "types"]
nox.options.reuse_existing_virtualenvs = True

SUPPORTED = ["3.11", "3.12", "3.13"]
PARALLEL = ["--numprocesses=5", "--dist=worksteal"]  # most tests wait for one rg at a time
FRAMEWORKS = ["tests/frameworks", "tests/test_mcp.py"]  # they have a session of their own, on one Python
AGENTS = "test_the_example_runs"  # of those, the tests of `examples/agents_*.py`
EXAMPLES = "tests/examples"  # and they
NEEDY = (
    "test_apart.py",
    "test_embed.py",
    "test_hybrid.py",
    "test_syntax.py",
    "test_vectors.py",
    "test_watch.py",
)
INDEX = [f"tests/index/{name}" for name in NEEDY]  # and they
SINGLE = (  # and, of other files, these
    "tests/test_cli.py::test_a_terminal_is_shown_how_far_embedding_is",
    "tests/test_cli.py::test_watching_tells_of_each_refresh_and_ends_quietly",
    "tests/test_codebase.py::test_no_process_is_left_behind",
)
LEFT = [f"--ignore={path}" for path in (*FRAMEWORKS, EXAMPLES, *INDEX)]
LONG = ["--ignore=tests/test_faults.py", "--ignore=tests/test_load.py"]  # of Python, so not for the lowest packages
BETWEEN = [*LONG, "--ignore=tests/test_cli.py"]  # what the first and the last Python pass, those between them pass, too
EVERYTHING = {f"RIPWRAP_ALL_{what}": "1" for what in ("FRAMEWORKS", "EXAMPLES", "EXTRAS")}  # or say what is missing
GROUPS = nox.project.load_toml("pyproject.toml")


def _runs(version: str) -> bool:
    """Whether a Python is here and starts: a pyenv shim may be on PATH and refuse to."""
    found = shutil.which(f"python{version}")
    if found is None:
        return False
    return subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0


def _pythons() -> list[str]:
    """The supported Pythons that are here, and the running one in any case; says which are left out."""
    here = [version for version in SUPPORTED if _runs(version)]
    if missing := [version for version in SUPPORTED if version not in here]:
        print(f"nox: left out, not installed here: Python {', '.join(missing)}", file=sys.stderr)
        if os.environ.get("RIPWRAP_ALL_PYTHONS"):
            raise SystemExit("nox: RIPWRAP_ALL_PYTHONS is set, so that is an error")
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    return here if running in here else [*here, running]


def _install(session: nox.Session, *groups: str, extras: str = "bin,cli") -> None:
    """The built wheel, as a user gets it, and dependency groups."""
    needed = [one for group in groups for one in nox.project.dependency_groups(GROUPS, group)]
    session.install(f".[{extras}]", *needed)


PYTHONS = _pythons()
MEASURED = "3.12" if "3.12" in PYTHONS else PYTHONS[0]  # the budgets are for 3.12; the table says which it was
RGS = ["", "14.1.0", "15.2.0"]  # which rg a Python is tested with: the first one with all of them


def _test(session: nox.Session, rg: str, *arguments: str) -> None:
    """All tests, or, with one rg of the matrix, those that say something of Python."""
    some = ["-m", "not once"] if rg else []
    session.run("pytest", *PARALLEL, *LEFT, *some, *arguments, *session.posargs, env={"RIPWRAP_RGS": rg})


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The tests, on asyncio and trio, on the first Python with every rg of the matrix; arguments go to pytest.

    Between the first and the last Python the longest are left out.
    """
    _install(session, "test", extras="bin,cli,deflate64")
    # It has no wheels, and takes its time; where it is not, one test says that it is left out.
    if shutil.which("cc"):
        session.install("zipfile-deflate64")
    left = BETWEEN if session.python in PYTHONS[1:-1] else []
    _test(session, RGS[min(PYTHONS.index(str(session.python)), len(RGS) - 1)], *left)


@nox.session
def lowest(session: nox.Session) -> None:
    """The tests with the lowest versions of all that `pyproject.toml` names, but the longest."""
    project = GROUPS["project"]
    named = [*project["dependencies"], *project["optional-dependencies"]["cli"]]
    pins = [requirement.replace(">=", "==") for requirement in (*named, "trio>=0.30")]
    session.install(".[bin,cli]", *pins, "zipfile-deflate64", *nox.project.dependency_groups(GROUPS, "test"))
    _test(session, "13.0.0", *LONG)


@nox.session
def extras(session: nox.Session) -> None:
    """All that needs other people's packages: agent frameworks, MCP, the examples, the index's extras."""
    _install(session, "test", "frameworks", "examples", "extras", extras="bin,cli,mcp,index")
    session.run("pytest", *PARALLEL, *(session.posargs or [*FRAMEWORKS, EXAMPLES, *INDEX, *SINGLE]), env=EVERYTHING)


@nox.session
def frameworks(session: nox.Session) -> None:
    """Of those, the tools in the agent frameworks themselves, and over MCP."""
    _install(session, "test", "frameworks", extras="bin,cli,mcp")
    everything = {"RIPWRAP_ALL_FRAMEWORKS": "1"}
    session.run("pytest", *PARALLEL, *(session.posargs or FRAMEWORKS), env=everything)


@nox.session
def examples(session: nox.Session) -> None:
    """Of those, every program in `examples/`, the notebook, and the pages whose code needs data frames or a kernel."""
    _install(session, "test", "frameworks", "examples", extras="bin,cli,mcp")
    everything = {"RIPWRAP_ALL_FRAMEWORKS": "1", "RIPWRAP_ALL_EXAMPLES": "1"}
    session.run("pytest", *PARALLEL, *(session.posargs or [EXAMPLES]), env=everything)
    if not session.posargs:
        session.run("pytest", *PARALLEL, FRAMEWORKS[0], "-k", AGENTS, env=everything)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation into `docs/_build`, its pictures made anew, its links followed, two pages as screenshots."""
    _install(session, "docs", extras="bin,cli,mcp")
    site, screenshots = "docs/_build/html", "docs/_build/screenshots"
    shutil.rmtree("docs/_build", ignore_errors=True)
    session.run("python", "scripts/pictures.py", env={"PYTHONPATH": "tests"})
    session.run("sphinx-build", "--fail-on-warning", "--keep-going", "--builder=html", "--quiet", "docs", site)
    session.run("python", "scripts/check_site.py", site, screenshots)


@nox.session
def lint(session: nox.Session) -> None:
    """Format, lint, and the order of the layers."""
    _install(session, "lint")
    session.run("ruff", "format", "--check", "--diff", ".")
    session.run("ruff", "check", ".")
    session.run("lint-imports")


@nox.session
def types(session: nox.Session) -> None:
    """Mypy, pyright, and whether the public interface is typed in full."""
    _install(session, "typing", extras="bin,cli,mcp,index")
    session.run("mypy")
    session.run("pyright")
    session.run("pyright", "--verifytypes", "ripwrap", "--ignoreexternal")


def _peers(session: nox.Session) -> str:
    """The Python of an environment that has what ripwrap is compared with."""
    python = pathlib.Path(session.create_tmp(), "peers/bin/python")
    if not python.exists():
        session.run("python", "-m", "venv", str(python.parent.parent))
    # ripgrep 14.1.0 from PyPI: what is newer has no wheel for Linux and would be built.
    pip = [str(python), "-m", "pip", "--quiet", "install", "--only-binary=ripgrep"]
    session.run(*pip, *nox.project.dependency_groups(GROUPS, "peers"), external=True)
    return str(python)


@nox.session(python=MEASURED)
def bench(session: nox.Session) -> None:
    """Ratios to raw rg and to the peers, with their budgets; `-- --large` also on Debian's Linux sources."""
    _install(session, "bench")
    session.run("python", "benchmarks/bench.py", f"--peers={_peers(session)}", *session.posargs)


@nox.session(python=MEASURED)
def retrieval(session: nox.Session) -> None:
    """How good and how fast ranked search is, into `docs/retrieval.md`; `-- DIR` is where annotated queries are."""
    _install(session, extras="bin,cli,index")
    session.install("pip")
    arguments = session.posargs or ["../shared/retrieval", "--page=docs/retrieval.md"]
    session.run("python", "benchmarks/retrieval/run.py", *arguments)


@nox.session(python=MEASURED)
def instructions(session: nox.Session) -> None:
    """How many instructions a decoded match takes, counted by callgrind: repeatable on a noisy machine."""
    _install(session)
    session.run("python", "benchmarks/instructions.py", f"--peers={_peers(session)}")


@nox.session
def stress(session: nox.Session) -> None:
    """What the tests do for a moment, done long and with a clock: a table of promises; under ten minutes."""
    _install(session, "test")
    session.run("python", "-W", "error", "tests/stress.py")


@nox.session
def fuzz(session: nox.Session) -> None:
    """Coverage-guided fuzzing of what reads bytes, a minute for each target; an argument says how many seconds."""
    _install(session, "fuzz", extras="deflate64")
    session.run("python", "fuzz/run.py", session.create_tmp(), *session.posargs)
