"""Blocks of the pages: each runs where a reader runs it, in a clone with the demo, in the order of its page."""

import ast
import inspect
import os
import re
import shlex
import subprocess
import sys
from itertools import groupby, takewhile
from pathlib import Path
from typing import NamedTuple

import pytest

import ripwrap
from ripwrap import binary, places, sync, workspace
from ripwrap.sync import resolve
from support import forks

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if not {"_build", "_generated"} & set(page.parts)),
]
FENCE = re.compile(
    r"^```(?P<kind>[^\n]*)\n(?P<code>.*?)^```$(?:\n\n```text\n(?P<output>.*?)^```$)?", re.MULTILINE | re.DOTALL
)

OTHER_KINDS = {
    "dockerfile": "needs Docker and a registry",
    "json": "is configuration of another program; `test_mcp.py` reads that of MCP clients",
    "text": "is what a program prints or an error says",
    "toml": "is configuration of another program",
    "typescript": "is code of OpenCode",
    "yaml": "is configuration of another program",
}
"""Kinds of blocks that no reader runs, and the reason; the directives of Sphinx begin with a brace."""

NOT_RUN = {
    ("README.md", "python3 -m venv"): "needs PyPI; `nox -s fresh` runs it on fresh machines",
    ("agent-frameworks.md", ""): "needs frameworks; `frameworks/test_how_to.py` runs it",
    ("air-gapped.md", "python -m pip wheel"): "needs PyPI",
    ("air-gapped.md", "python -m pip install"): "needs the wheels that PyPI has",
    ("air-gapped.md", "RIPWRAP_MIRROR="): "needs a mirror; `binary/test_install.py` has one",
    ("air-gapped.md", "ripwrap install --mirror"): "needs a mirror; `binary/test_install.py` has one",
    ("air-gapped.md", "$ RIPWRAP_MIRROR="): "needs a mirror with a wrong file; `binary/test_download.py` has one",
    ("docker.md", "docker run"): "needs Docker and a registry",
    ("docker.md", "export RIPWRAP_CACHE_DIR"): "downloads rg; `binary/test_install.py` has the calls",
    ("fastapi.md", "# app.py"): "is a server; `examples/test_fastapi.py` runs it",
    ("fastapi.md", "# starlette_app.py"): "is a server; `examples/test_fastapi.py` runs it",
    ("finding-rg.md", "ripwrap install"): "downloads rg; `binary/test_install.py` has the calls",
    ("finding-rg.md", "RIPWRAP_MIRROR="): "needs a mirror; `binary/test_install.py` has one",
    ("frozen.md", "pyinstaller"): "needs PyInstaller; `test_frozen.py` freezes programs",
    ("from-grep-tools.md", "from python_ripgrep"): "needs the library that is replaced",
    ("from-grep-tools.md", "from rgapi"): "needs the library that is replaced",
    ("from-ripgrepy.md", "from ripgrepy"): "needs the library that is replaced",
    ("from-rpygrep.md", "from pathlib import Path\n\nfrom rpygrep"): "needs the library that is replaced",
    ("items.md", "from ripwrap import sources, sync"): "needs a bucket; the tests in `stores` have one",
    (
        "many-repositories.md",
        "$ ripwrap search TODO --repositories '/srv",
    ): "needs a cluster; `cluster` has tests with one",
    ("mcp.md", "pip install"): "needs PyPI, and then waits for a client; `test_mcp.py` has clients",
    ("notebooks.md", "import ripwrap\n\nawait"): "needs a kernel; `examples/test_notebook.py` runs it",
    ("notebooks.md", "from contextlib import aclosing"): "needs a kernel; `examples/test_notebook.py` runs it",
    ("notebooks.md", "[path async for"): "needs a kernel; `examples/test_notebook.py` runs it",
    ("notebooks.md", "result.to_pandas"): "needs a kernel; `examples/test_notebook.py` runs it",
    ("mcp.md", "ripwrap mcp --http"): "waits for clients; `test_mcp.py` has clients",
    ("remote.md", "import asyncio"): "needs another machine; the tests in `remote` have a server",
    ("remote.md", "ripwrap search"): "needs another machine; the tests in `remote` have a server",
    ("remote.md", "rg = await host.install()"): "needs another machine; the tests in `remote` have a server",
    ("scan.md", "$ ripwrap scan --redact"): "needs a file of rules; `_scan/test_rule_file.py` has some",
    (
        "tests.md",
        "from ripwrap import sync\n\n\ndef test_",
    ): "is a file for pytest; `examples/downstream` has such a file",
    ("trio.md", "# conftest.py"): "is a file for pytest; the test below runs it",
    ("trio.md", "# test_todos.py"): "is a file for pytest; the test below runs it",
    ("tutorial.md", "python3 scripts/demo.py"): "is run before the first page",
    ("tutorial.md", "python3 -m venv"): "needs PyPI; the first line of README does the same",
    ("watch.md", "import asyncio"): "never ends; `_operations/test_watch.py` has its calls",
}
"""Page and beginning of a block that cannot run here, and the reason, with the test that has its calls if any."""


class Block(NamedTuple):
    """Code of a page, and the output that the page shows below it."""

    page: Path
    kind: str
    code: str
    output: str | None
    line: int


OPTIONAL = {"_code(": "ast_grep_py", "to_pandas(": "pandas"}
"""Calls that need an optional package, and the module of the package."""
COMMAND_LINE = "from ripwrap.__main__ import main\nmain()"
ALWAYS = {"anyio", "pydantic", "pytest", "ripwrap", "trio"}


def reason(block: Block) -> str:
    """Return the reason not to run a block, or nothing."""
    named = (why for (page, start), why in NOT_RUN.items() if block.page.name == page and block.code.startswith(start))
    return OTHER_KINDS.get(block.kind) or next(named, "")


def optional(block: Block) -> tuple[str, ...]:
    """Return the modules that a block needs and that not every session has."""
    if block.kind != "python":
        return ()
    imported = set(re.findall(r"^\s*(?:from|import) (\w+)", block.code, re.MULTILINE))
    called = {module for call, module in OPTIONAL.items() if call in block.code}
    return tuple(sorted(imported - ALWAYS - sys.stdlib_module_names | called))


def blocks(page: Path, text: str) -> list[Block]:
    return [
        Block(page, found["kind"], found["code"], found["output"], text.count("\n", 0, found.start()) + 1)
        for found in FENCE.finditer(text)
        if not found["kind"].startswith("{")
    ]


ALL = [block for page in PAGES for block in blocks(page, page.read_text("utf-8"))]
KINDS = ("python", "py", "sh", "console")
RUN = [block for block in ALL if not reason(block)]
GROUPS = [
    pytest.param(
        [block for block in of_page if optional(block) == modules],
        id="-".join([page.stem, *modules]),
        marks=[pytest.mark.extra] if modules else [],
    )
    for page, of_page in ((page, list(group)) for page, group in groupby(RUN, lambda block: block.page))
    for modules in dict.fromkeys(optional(block) for block in of_page)
]
MODULES = (ripwrap, sync, binary, places, workspace)
TOLD = MODULES + tuple(getattr(module, name) for module in MODULES for name in module.__all__)
DOCSTRINGS = [
    block
    for text in dict.fromkeys(inspect.getdoc(thing) or "" for thing in TOLD)
    for block in blocks(Path("help"), text)
]


def run(block: Block, clone: Path) -> str:
    """Run a block, and return how its output differs from the one on the page, or nothing."""
    path = os.pathsep.join([os.path.dirname(resolve().path), os.environ["PATH"]])
    env = {**os.environ, "HOME": str(clone.parent / "home"), "PATH": path}
    if block.kind == "python":
        done = forks.run(["-c"], block.code, cwd=clone, env=env)
        said, wanted = done.stdout + done.stderr, block.output
        failed = done.returncode != 0 or done.stderr != ""
    else:
        lines = block.code.splitlines(keepends=True)
        wanted = "".join(line for line in lines if block.kind == "console" and not line.startswith("$ ")) or None
        said, failed, cwd = "", False, clone
        for line in (line for line in lines if block.kind == "sh" or line.startswith("$ ")):
            words = shlex.split(line.removeprefix("$ "), comments=True)
            given = dict(word.split("=", 1) for word in takewhile(re.compile(r"[A-Z_]+=").match, words))
            program, *arguments = words[len(given) :]
            if program == "cd":
                cwd = cwd.joinpath(*arguments)
                continue
            assert program == "ripwrap", f"{block.page.name} runs {program}; why not here is a line of NOT_RUN"
            done = forks.run([program, *arguments], COMMAND_LINE, cwd=cwd, env={**env, **given})
            said += done.stdout + done.stderr
            failed |= wanted is None and done.returncode > 1  # 1 says that nothing was found, or that `scan` found
    if failed or wanted not in (None, said):
        return f"{block.page.name}:{block.line} printed\n{said}--- and not\n{wanted}"
    return ""


def changed(clone: Path) -> list[str]:
    """Return what git says about new and changed files of the clone and of the demo in it."""
    status = ["git", "status", "--porcelain", "--untracked-files=all"]
    lines = [
        line
        for folder in (clone, clone / "demo")
        for line in subprocess.run(status, cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()
    ]
    return [line for line in lines if line[1] != " "]  # others are staged: they are changed here, too


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_blocks_of_a_page_print_the_output_below_them(group: list[Block], clone: Path) -> None:
    for module in optional(group[0]):
        pytest.importorskip(module)
    wrong = [*filter(None, (run(block, clone) for block in group)), *changed(clone)]
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.mark.slow
@pytest.mark.parametrize("block", DOCSTRINGS, ids=lambda block: f"{block.output}".partition("\n")[0])
def test_docstring_block_prints_the_output_below_it(block: Block, clone: Path) -> None:
    for module in optional(block):
        pytest.importorskip(module)
    if wrong := run(block, clone):
        pytest.fail(wrong, pytrace=False)


def test_every_block_is_run_or_has_a_reason() -> None:
    assert len(RUN) > 150
    assert {block.kind for block in RUN} == {*KINDS} - {"py"}
    assert {reason(block) for block in ALL} == {"", *OTHER_KINDS.values(), *NOT_RUN.values()}
    for block in ALL:
        if block.kind == "py":  # `python` is what a program may have, and is run
            compile(block.code, "block", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)


def test_pages_that_search_the_demo_name_the_command_that_makes_it() -> None:
    pages = {block.page for block in ALL if re.search(r"\bdemo\b", block.code) and block.kind in KINDS}
    assert len(pages) > 30
    pages.discard(ROOT / "docs" / "index.md")  # it begins with the README
    assert [page.name for page in pages if "python3 scripts/demo.py" not in page.read_text("utf-8")] == []


@pytest.mark.parametrize("arguments", [["--help"], ["demo", "more"]])
def test_demo_is_not_made_for_wrong_arguments(tmp_path: Path, arguments: list[str]) -> None:
    command = [sys.executable, str(ROOT / "scripts/demo.py"), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "usage: python3 scripts/demo.py [DIRECTORY]\n")
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_tests_on_the_trio_page_pass(tmp_path: Path) -> None:
    for block in ALL:
        if block.page.name == "trio.md" and block.kind == "py":
            (tmp_path / block.code.partition("\n")[0].removeprefix("# ")).write_text(block.code)
    # With its own --basetemp it deletes no directories of other sessions, which may take a minute at the end.
    argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-W", "error", "--basetemp=.tmp", "."]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=50)
    assert "2 passed" in done.stdout


def test_docstrings_have_examples() -> None:
    assert len(DOCSTRINGS) >= 6
