"""Corpora of issues: texts about functions that were broken, and the files and lines of these functions."""

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from retrieval.issues.broken import find_function
from retrieval.issues.text import Failure, text_of
from retrieval.packages import CACHE, SDISTS, UnavailableError, sdist
from retrieval.queries import Corpus, Query

ISSUES = "issues"
IN_TRACEBACK, ELSEWHERE = "file in the traceback", "file not in the traceback"
"""Categories of the queries."""

RECIPES = Path(__file__).with_name("recipes.json")
"""Functions, the nodes of their syntax trees that are changed, and the tests that fail then, by package."""

TESTS: Mapping[str, tuple[str, str]] = {
    "babel": ("tests", "."),
    "beautifulsoup4": ("bs4/tests", "."),
    "boltons": ("tests", "."),
    "jinja2": ("tests", "src"),
    "mako": ("test", "."),
    "marshmallow": ("tests", "src"),
    "pyparsing": ("tests", "."),
    "sqlglot": ("tests", "."),
    "starlette": ("tests", "."),
    "werkzeug": ("tests --ignore=tests/test_serving.py", "src"),
}
"""Arguments of pytest, and folder for `PYTHONPATH`, in each source distribution."""

_PLUGIN = "retrieval.issues.broken"
_TIMEOUT = 600
_MIN_CHARS = 500


def issues() -> Iterator[Corpus]:
    """Yield a corpus for each package with recipes; run its tests once, and store the texts.

    Raises:
        UnavailableError: A package cannot be downloaded, or its tests do not run.
    """
    for package, recipes in json.loads(RECIPES.read_text()).items():
        stored = CACHE / f"{ISSUES}-{SDISTS[package].replace('==', '-')}-{_version(recipes)}"
        if not stored.exists():
            with tempfile.TemporaryDirectory(dir=CACHE) as folder:
                _write(package, recipes, Path(folder))
                Path(folder, "written").rename(stored)
        texts = json.loads((stored / "queries.json").read_text())
        queries = tuple(
            Query(one["text"], (one["path"],), one["category"], {one["path"]: tuple(one["lines"])}) for one in texts
        )
        yield Corpus(f"{ISSUES}/{package}", stored / "tree", queries, ISSUES)


def _version(recipes: list[dict[str, Any]]) -> str:
    """Return a digest of what the texts are made from, besides the package."""
    made_by = (Path(__file__).with_name(f"{name}.py").read_text() for name in ("broken", "text"))
    return hashlib.sha256("".join([json.dumps(recipes), *made_by]).encode()).hexdigest()[:8]


def run_tests(package: str, root: Path, tests: Sequence[str], environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """Run tests of a package with the plugin, and return the recipes with their failures.

    Args:
        package: Name of the package.
        root: Folder of its files, which the tests may change.
        tests: Arguments of pytest, such as files of tests.
        environment: Environment variables of the plugin.

    Raises:
        UnavailableError: pytest failed.
    """
    failures = root.parent / "failures.json"
    benchmarks = Path(__file__).parents[2]
    path = os.pathsep.join(map(str, (root / TESTS[package][1], benchmarks)))
    fixed = {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "TZ": "UTC"}
    options = ["-q", "-p", "no:cacheprovider", "-p", _PLUGIN, *tests]
    command = [sys.executable, "-m", "pytest", *options]
    variables = {**os.environ, **environment, **fixed, "RIPWRAP_FAILURES": str(failures)}
    try:
        done = subprocess.run(
            command,
            cwd=root,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"the tests of {package} do not end within {_TIMEOUT} seconds") from error
    if not failures.exists():
        raise UnavailableError(f"the tests of {package} do not run: {done.stdout[-2_000:]}{done.stderr[-2_000:]}")
    sys.stderr.write("".join(line + "\n" for line in done.stderr.split("\n") if line.startswith(str(root))))
    found: list[dict[str, Any]] = json.loads(failures.read_text())
    return found


def failures_of(package: str, root: Path, found: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], Failure]]:
    """Yield the recipes whose tests failed, with their failures; leave out texts that would be too short."""
    version = SDISTS[package].partition("==")[2]
    for recipe in found:
        test_file, *names = recipe["test"].split("[")[0].split("::")
        source = (root / test_file).read_text("utf-8")
        module = ast.parse(source)
        test = find_test(module, names)
        if "frames" in recipe and test is not None:
            lines = source.split("\n")[test.body[0].lineno - 1 : test.end_lineno]
            imports = [one for one in module.body if isinstance(one, ast.Import | ast.ImportFrom)]
            failure = Failure(
                package, version, str(root), recipe["path"], recipe["name"], test_file, test, imports,
                "\n".join(lines), recipe,
            )  # fmt: skip
            if len(text_of(failure)) >= _MIN_CHARS:
                yield recipe, failure


def find_test(module: ast.Module, names: list[str]) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return a test by the names of its classes and its own; `None` if it is inherited."""
    body: list[ast.stmt] = module.body
    for name in names:
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
                if not isinstance(node, ast.ClassDef):
                    return node
                body = node.body
                break
        else:
            return None
    return None


def replay(package: str, recipes: list[dict[str, Any]], folder: Path) -> list[tuple[dict[str, Any], Failure]]:
    """Run the tests of recipes in a copy of the package in a folder, and return those that fail, with the failures.

    Raises:
        UnavailableError: The package cannot be downloaded, or its tests do not run.
    """
    root, names = folder / package, folder / "recipes.json"
    shutil.copytree(sdist(package), root)
    names.write_text(json.dumps(recipes))
    files = sorted({recipe["test"].split("::")[0] for recipe in recipes})
    return list(failures_of(package, root, run_tests(package, root, files, {"RIPWRAP_RECIPES": str(names)})))


def _write(package: str, recipes: list[dict[str, Any]], folder: Path) -> None:
    """Run the tests, and write the texts and a copy of the package without these tests into `folder / "written"`."""
    failures = replay(package, recipes, folder)
    root = folder / package
    texts: list[dict[str, Any]] = []
    tests: dict[str, list[ast.stmt]] = defaultdict(list)
    for recipe, failure in failures:
        module = ast.parse((root / recipe["path"]).read_text("utf-8"))
        function = find_function(module, recipe["name"].rpartition(".")[2], recipe["line"])
        assert function is not None
        tests[failure.test_file].append(failure.test)
        category = IN_TRACEBACK if failure.in_traceback else ELSEWHERE
        lines = [function.lineno, function.end_lineno]
        texts.append({"text": text_of(failure), "path": recipe["path"], "category": category, "lines": lines})
    if len(texts) != len(recipes):
        print(f"SKIPPED: {len(recipes) - len(texts)} issues of {package}: their tests pass here", file=sys.stderr)
    written = folder / "written"
    shutil.copytree(sdist(package), written / "tree")
    for file, nodes in tests.items():
        target = written / "tree" / file
        target.write_text(_without(target.read_text("utf-8"), nodes), "utf-8")
    (written / "queries.json").write_text(json.dumps(texts, indent=1))


def _without(source: str, nodes: list[ast.stmt]) -> str:
    """Return a module with statements replaced by `pass`."""
    lines: list[str | None] = [*source.split("\n")]
    for node in nodes:
        decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []
        first, last = min([node.lineno, *(one.lineno for one in decorators)]), node.end_lineno or node.lineno
        lines[first - 1 : last] = [" " * node.col_offset + "pass", *[None] * (last - first)]
    return "\n".join(line for line in lines if line is not None)
