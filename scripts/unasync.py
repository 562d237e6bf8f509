"""Generate the blocking twins of async modules, as httpcore does.

`python scripts/unasync.py` writes them; `--check` fails with a diff if one is not up to date.

The script makes small edits in the source of a function or class, so that names, comments and layout stay:

- It removes `async` and `await`, and replaces the names in `RENAMED`. `await f(run, …)`, whose argument is a runner,
  becomes `run_blocking(f(run, …))`, since a coroutine over a `BlockingRunner` never suspends.
- It adds a `timeout` to the signature and docstring of each public function without one, and passes it to the calls
  of functions in `TIMED`. A call with `timeout=None` gets it, too.
- It removes `asyncio.run()` and `async def main()` from examples in docstrings.
"""

import argparse
import ast
import builtins
import difflib
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

RENAMED = {
    "AsyncGenerator": "Generator",
    "AsyncRunner": "BlockingRunner",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "aclosing": "closing",
    "run_stream": "run_stream_blocking",
    "run_columns": "run_columns_blocking",
    "run_watch": "run_watch_blocking",
    "run_search_in": "run_search_in_blocking",
    "run_scan": "run_scan_blocking",
    "run_code": "run_code_blocking",
    "AnyItems": "ItemIterable",
}
WORDS = {"aclosing": "closing", "aclose()": "close()", "async with": "with"}
"""Phrases in docstrings of the async code, and their replacements in the blocking twin."""

TIMED = {
    *(
        "AsyncRunner",
        "run_code",
        "run_columns",
        "run_search_in",
        "run_scan",
    ),
    *("run_stream", "run_watch", "_runner"),
}
"""Functions whose blocking twin takes a `timeout`; a function with a `timeout` passes it to these functions."""

RUNNER = re.compile(r"\brun(ner)?\b|\bAsyncRunner\(|\b_runner\(|\b_tools\.begin\(")
"""Match the source of a call whose coroutine `run_blocking()` runs: the call has a runner as argument or object."""

TIMEOUT_ARGUMENT = "timeout: float | None = None"
TIMEOUT_LINE = "timeout: Seconds that the call may take; `None` is no limit."
TIMEOUT_ERROR = "TimeoutError: The call took more than `timeout` seconds."
ALWAYS = {
    "check_timeout": "ripwrap.options",
    "run_blocking": "ripwrap._ripgrep.runner",
}
"""Names that the translation adds, and their modules."""


NONE: Mapping[str, str] = {}


@dataclass(frozen=True)
class Target:
    """A module to generate.

    Attributes:
        path: Path of the module, below `src/`.
        head: Text above the generated definitions: the docstring, imports, and definitions that are not generated.
        sources: Names to translate, by module.
        timeout: True if functions get a `timeout`.
        untimed: Public functions that get no `timeout`.
        renamed: Names to replace, in addition to `RENAMED`.
        timeout_line: Line for `timeout` in docstrings.
        words: Phrases of docstrings to replace, in addition to `WORDS`.
        bodies: Bodies to use instead of a translation, by function.
        imports: Modules of the names in `bodies`.
        bases_of: Class whose base classes with async methods are translated, too.
    """

    path: str
    head: str
    sources: Mapping[str, Sequence[str]]
    timeout: bool = True
    untimed: frozenset[str] = frozenset()
    timeout_line: str = TIMEOUT_LINE
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    bodies: Mapping[str, str] = field(default_factory=dict[str, str])
    imports: Mapping[str, str] = field(default_factory=dict[str, str])
    bases_of: str = ""

    def all_sources(self, root: Path) -> Mapping[str, Sequence[str]]:
        """Return the names to translate, by module; first the base classes of `bases_of` that have async methods."""
        found: dict[str, Sequence[str]] = {}
        for source in (Module(name, root) for name, names in self.sources.items() if self.bases_of in names):
            for name in source.bases(self.bases_of):
                module = str(source.import_of(name, self)).split()[1]
                if Module(module, root).has_async(name):
                    found[module] = [*found.get(module, ()), name]
        return {**found, **self.sources}


REPOSITORIES_HEAD = '''"""The blocking twin of `ripwrap.Repositories`, which is `ripwrap.sync.Repositories`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ripwrap.index.blocking import Index
'''


def _operations(
    module: str,
    *names: str,
    words: Mapping[str, str] = NONE,
    bodies: Mapping[str, str] = NONE,
    imports: Mapping[str, str] = NONE,
) -> Target:
    """Return the target for the blocking twins of operations; `ripwrap.sync` loads its module when it is needed."""
    head = f'"""Blocking twins of the functions of `{module}`, for `ripwrap.sync`."""\n'
    path = f"ripwrap/sync/_{module.rpartition('.')[2]}.py"
    return Target(path, head, {module: names}, words=words, bodies=bodies, imports=imports)


TARGETS = (
    _operations("ripwrap._operations.search", "search", "search_messages"),
    _operations("ripwrap._operations.columns", "search_columns"),
    _operations("ripwrap._operations.grep", "grep"),
    _operations("ripwrap._scan.scan", "scan"),
    _operations("ripwrap._operations.combine", "files_matching"),
    _operations(
        "ripwrap._operations.streams",
        "search_in",
        "grep_in",
        words={
            "Iterable or async iterable of pairs": "Iterable of pairs",
            "An iterable that is not async is read in a worker thread. ripwrap": "ripwrap",
            "The time in which `items` produces items is\n            included.": (
                "The call\n            cannot end while `items` produces an item."
            ),
        },
    ),
    _operations("ripwrap._operations.history", "search_history"),
    _operations(
        "ripwrap._operations.counts",
        "files_with_matches",
        "files_without_match",
        "count",
        "count_matches",
        "file_types",
    ),
    _operations("ripwrap._operations.expand", "expand"),
    _operations("ripwrap._operations.outline", "outline"),
    _operations("ripwrap._operations.coverage", "coverage", "why"),
    _operations("ripwrap._operations.files", "files"),
    _operations("ripwrap._operations.rank", "rank"),
    _operations("ripwrap._operations.references", "references"),
    _operations("ripwrap._edits.replace", "ReplacePlan", "replace", "undo"),
    _operations("ripwrap._edits.structure", "search_code", "replace_code"),
    _operations("ripwrap._operations.tree", "tree", "tree_text", "_yield_entries"),
    _operations("ripwrap._operations.watch", "watch"),
    _operations(
        "ripwrap.binary.resolver",
        "resolve",
        "install",
        words={
            "The work is done in a worker thread; a cancelled call ends a download.": "",
            "The work is done in a worker thread, which calls `progress`, and ends when the call is cancelled.": (
                "`progress` is called in this thread."
            ),
        },
        bodies={
            "resolve": "return find(rg, timeout=check_timeout(timeout))",
            "install": (
                "return install_blocking(version, dest=dest, mirrors=mirrors, sha256=sha256, "
                "allow_unpinned=allow_unpinned, timeout=timeout, progress=progress)"
            ),
        },
        imports={"find": "ripwrap.binary.resolver", "install_blocking": "ripwrap.binary.resolver"},
    ),
    Target(
        path="ripwrap/index/blocking.py",
        head='"""The blocking twin of `ripwrap.index.Index`, which is `ripwrap.sync.Index`."""\n',
        sources={"ripwrap.index.core": ["Index"]},
        untimed=frozenset({"aclose"}),
        timeout_line="timeout: Seconds for the call, including all waits; `None` is no limit.",
        words={
            "By default, there is no embedder, and nothing leaves the machine.": (
                "By default, there is no embedder, and nothing leaves\n    the machine.\n\n"
                "    Each method takes a `timeout` in seconds, after which it raises `TimeoutError`. An embedder runs"
                " in its own\n    event loop, in a thread that ends with the call."
            ),
            "If it is cancelled, it stops": "If it is interrupted, it stops",
            "Function that is called in a worker thread, one call at a time: at the start, after every few files, after"
            " the last file, and after every batch of texts.": (
                "Function that is called in this thread at the start, after every few files and after the last\n"
                "                file, and in another thread after every batch of texts."
            ),
            "calls of other tasks have ended, even if it is cancelled.": "calls of other threads have ended.",
        },
        bodies={
            "aclose": "self._close()",
            "watch": (
                "from ripwrap.index.watch import watch_blocking\n\n"
                "        seconds = check_timeout(timeout)\n"
                "        return watch_blocking(self._root, self._store.folder, self.refresh, seconds)"
            ),
        },
    ),
    Target(
        path="ripwrap/repositories/blocking.py",
        head=REPOSITORIES_HEAD,
        sources={"ripwrap.repositories.core": ["T", "Out", "Repositories"]},
        timeout=False,  # its methods have one, for each root
        renamed={"arrivals": "arrivals_blocking"},
        bodies={
            "indexes": (
                "from ripwrap.index.blocking import Index\n\n"
                "        return {root.name: Index(root.path, rg=self._plan.rg, **settings) for root in self._roots}"
            ),
        },
    ),
    Target(
        path="ripwrap/workspace/blocking.py",
        head='"""Blocking twin of `ripwrap.Workspace`, for code that does not await: `ripwrap.sync.Workspace`."""\n',
        sources={"ripwrap.workspace.core": ["Workspace"]},
        bases_of="Workspace",
        timeout=False,  # a workspace has one for all its tools
        words={
            "The method waits until no other task uses an index; a cancellation does not end the wait.": (
                "The method waits until no other thread uses an index."
            )
        },
        bodies={"aclose": "self._tools.close()"},
    ),
)

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Edit: TypeAlias = tuple[int, int, str]


def format_source(source: str, path: Path) -> str:
    """Return the source with sorted imports, and as ruff formats it."""
    ruff = [sys.executable, "-m", "ruff"]
    where = ["--quiet", f"--stdin-filename={path}", "-"]
    for command in (["check", "--fix-only", "--select=F401,I"], ["format"]):
        done = subprocess.run(
            [*ruff, *command, *where], input=source, stdout=subprocess.PIPE, encoding="utf-8", check=True
        )
        source = done.stdout
    return source


def main(arguments: Sequence[str] | None = None, formatted: Callable[[str, Path], str] = format_source) -> None:
    """Write the generated modules; with `--check`, print their differences and exit with 1 if there are any.

    Args:
        arguments: Command-line arguments; `None` is those of the process.
        formatted: Function that formats the source of a path.
    """
    parser = argparse.ArgumentParser(description="Generate the blocking twins of async modules.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a module would change")
    parser.add_argument(
        "--root", type=Path, default=Path(__file__).parent.parent / "src", help="directory of the package"
    )
    given = parser.parse_args(arguments)
    stale = False
    for target in TARGETS:
        path: Path = given.root / target.path
        before = path.read_text("utf-8") if path.exists() else ""
        after = formatted(generate(target, given.root), path)
        if before != after and given.check:
            stale = True
            lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), str(path), "generated")
            sys.stdout.writelines(lines)
        elif before != after:
            path.write_text(after, "utf-8")
            print(f"wrote {path}")
    if stale:
        sys.exit("generated modules differ from their sources; run python scripts/unasync.py")


def generate(target: Target, root: Path) -> str:
    """Return the source of a generated module, not formatted."""
    sources = target.all_sources(root)
    modules = [Module(name, root) for name in sources]
    for phrase in target.words:
        if not any(_phrase_pattern(phrase).search(module.source) for module in modules):
            raise SystemExit(f"{target.path}: no docstring has the phrase {phrase!r} any more; change `words`")
    own = {name for names in sources.values() for name in names}
    pieces = [module.translate(name, target) for module in modules for name in sources[module.name]]
    body = "\n\n\n".join(pieces)
    known = {**ALWAYS, **target.imports}
    twins = {
        f"from {module} import {name}": f"from {'.'.join(Path(other.path).with_suffix('').parts)} import {name}"
        for other in TARGETS
        for module, names in other.sources.items()
        for name in names
    }
    imports: set[str] = set()
    for name in sorted(_free_names(f"{target.head}\n{body}") - own):
        found = {f"from {known[name]} import {name}"} if name in known else set[str]()
        statements = {one for module in modules if (one := module.import_of(name, target))}
        found |= {twins.get(one, one) for one in statements}
        if len(found) > 1:
            raise SystemExit(f"{target.path}: {name} comes from two modules: {sorted(found)}")
        imports |= found
    # The head begins with the docstring, below which the imports stand.
    docstring_end = ast.parse(target.head).body[0].end_lineno or 0
    lines = target.head.splitlines()
    head = [*lines[:docstring_end], "", *sorted(imports), *lines[docstring_end:]]
    generated = f"# Generated by scripts/unasync.py from {', '.join(sources)}. Do not edit."
    return "\n".join([*_wrapped(generated), *head, "", "", body, ""])


def _wrapped(comment: str) -> list[str]:
    return re.sub(r"(.{1,110})(?: |$)", r"\1\n# ", comment).removesuffix("\n# ").split("\n")


def _free_names(source: str) -> set[str]:
    """Return the names that a module uses and does not define."""
    tree = ast.parse(source)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    # Annotations may be in quotes.
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    used |= {text for text in texts if text.isidentifier() and text[0].isupper()}
    defined = {name for node in ast.walk(tree) for name in _bound_by(node)}
    return used - defined - set(dir(builtins))


def _bound_by(node: ast.AST) -> Iterator[str]:
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (alias.asname or alias.name for alias in node.names)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id


class Module:
    """Async module to translate.

    Attributes:
        name: Name of the module, as imported.
        source: Source text of the module.
    """

    def __init__(self, name: str, root: Path) -> None:
        self.name = name
        self.source: str = (root / Path(*name.split("."))).with_suffix(".py").read_text("utf-8")
        self._tree = ast.parse(self.source)
        self._lines = self.source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self._defined = {name: node for node in self._tree.body for name in _bound_at_top(node)}
        self._imports = [node for node in ast.walk(self._tree) if isinstance(node, (ast.Import, ast.ImportFrom))]

    def bases(self, name: str) -> list[str]:
        """Return the names of the base classes of a class."""
        node = self._defined[name]
        return [base.id for base in node.bases if isinstance(base, ast.Name)] if isinstance(node, ast.ClassDef) else []

    def has_async(self, name: str) -> bool:
        """Return True if a function or class has a coroutine function."""
        return any(isinstance(node, ast.AsyncFunctionDef) for node in ast.walk(self._defined[name]))

    def import_of(self, name: str, target: Target) -> str | None:
        """Return the import statement that gives a translated name in this module."""
        renamed = {new: old for old, new in {**RENAMED, **target.renamed}.items()}
        name, new = renamed.get(name, name), name
        for node in self._imports:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        as_name = f" as {alias.asname}" if alias.asname else ""
                        return f"from {node.module} import {new if name != new else alias.name + as_name}"
            else:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return ast.unparse(ast.Import([alias]))
        return f"from {self.name} import {new}" if name in self._defined else None

    def translate(self, name: str, target: Target) -> str:
        """Return the blocking source of a function with its overloads, or of a class or alias."""
        nodes = [node for node in self._tree.body if name in _bound_at_top(node)]
        return "\n\n\n".join(self._translate(node, target) for node in nodes)

    def _translate(self, node: ast.stmt, target: Target) -> str:
        decorators = node.decorator_list if isinstance(node, (Function, ast.ClassDef)) else []
        first = min([node.lineno, *(one.lineno for one in decorators)]) - 1
        start, end = self._starts[first], self._starts[node.end_lineno or 0]
        edits = [*self._token_edits(start, end, target), *self._node_edits(node, target)]
        return _apply(self.source, start, end, edits).rstrip()

    def _token_edits(self, start: int, end: int, target: Target) -> Iterator[Edit]:
        renamed = {**RENAMED, **target.renamed}
        for token in tokenize.generate_tokens(io.StringIO(self.source).readline):
            at = self._starts[token.start[0] - 1] + token.start[1]
            if not start <= at < end:
                continue
            if token.type == tokenize.NAME and token.string in ("async", "await"):
                yield at, at + len(token.string) + 1, ""
            elif token.type == tokenize.NAME and token.string in renamed:
                yield at, at + len(token.string), renamed[token.string]
            elif token.type == tokenize.COMMENT and token.string.startswith("# noqa: ASYNC"):
                yield at, at + len(token.string), ""

    def _node_edits(self, root: ast.AST, target: Target) -> Iterator[Edit]:
        functions = [node for node in ast.walk(root) if isinstance(node, Function) and _gets_timeout(node, target)]
        timed = {id(node) for function in functions for node in ast.walk(function)}
        for node in ast.walk(root):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield from self._definition_edits(node, target)
            elif isinstance(node, ast.Await) and isinstance(node.value, ast.Call):
                if RUNNER.search(self._source(node.value)):
                    yield self._start(node.value), self._start(node.value), "run_blocking("
                    yield self._end(node.value), self._end(node.value), ")"
            elif isinstance(node, ast.Call):
                function = node.func
                name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
                if name in TIMED and id(node) in timed:
                    end = self._end(node) - 1
                    # The call raises the error about its time limit, and the generator the other errors.
                    timeout = (
                        "timeout=check_timeout(timeout)"
                        if name in RENAMED and name != "AsyncRunner"
                        else "timeout=timeout"
                    )
                    yield end, end, f", {timeout}" if node.args or node.keywords else timeout
                for keyword in node.keywords:
                    if keyword.arg == "timeout" and ast.unparse(keyword.value) == "None":
                        yield self._start(keyword.value), self._end(keyword.value), "timeout"
            elif isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("Awaitable", "Coroutine"):
                inner = node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) else node.slice
                yield self._start(node), self._start(inner), ""
                yield self._end(inner), self._end(node), ""

    def _definition_edits(self, node: Function | ast.ClassDef, target: Target) -> Iterator[Edit]:
        timed = not isinstance(node, ast.ClassDef) and _gets_timeout(node, target)
        if timed and not isinstance(node, ast.ClassDef):
            yield self._timeout_parameter(node)
        docstring = ast.get_docstring(node, clean=False)
        if docstring is not None:
            quoted = node.body[0]
            # The source keeps escapes as they are written; the value does not.
            text = self._source(quoted)
            yield self._start(quoted), self._end(quoted), translate_docstring(text, target, timed=timed)
        if node.name in target.bodies:
            rest = node.body[docstring is not None :]
            yield self._start(rest[0]), self._end(rest[-1]), target.bodies[node.name]

    def _timeout_parameter(self, node: Function) -> Edit:
        arguments = node.args
        if arguments.kwarg is not None:
            at = self._start(arguments.kwarg) - 2
            return at, at, f"{TIMEOUT_ARGUMENT}, "
        named = [*arguments.args, *arguments.kwonlyargs]
        defaults = [one for one in (*arguments.defaults, *arguments.kw_defaults) if one is not None]
        separator = "" if arguments.kwonlyargs or arguments.vararg else "*, "
        at = max((self._end(one) for one in (*named, *defaults)), default=0)
        at = max([at, *(self._end(one.annotation) for one in named if one.annotation)])
        return at, at, f", {separator}{TIMEOUT_ARGUMENT}"

    def _source(self, node: ast.AST) -> str:
        return self.source[self._start(node) : self._end(node)]

    def _start(self, node: ast.AST) -> int:
        return self._offset(getattr(node, "lineno", 0), getattr(node, "col_offset", 0))

    def _end(self, node: ast.AST) -> int:
        return self._offset(getattr(node, "end_lineno", 0), getattr(node, "end_col_offset", 0))

    def _offset(self, line: int, column: int) -> int:
        # The columns of `ast` are bytes of UTF-8.
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())


def _bound_at_top(node: ast.stmt) -> list[str]:
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return [one.id for one in targets if isinstance(one, ast.Name)]
    return [] if isinstance(node, (ast.Import, ast.ImportFrom)) else list(_bound_by(node))


def _gets_timeout(node: Function, target: Target) -> bool:
    """Return True if a function is public and async, has no `timeout`, and must get one."""
    names = {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
    generates = node.returns is not None and ast.unparse(node.returns).startswith("AsyncGenerator")
    return (
        target.timeout
        and (isinstance(node, ast.AsyncFunctionDef) or generates)
        and not node.name.startswith("_")
        and node.name not in target.untimed
        and "timeout" not in names
    )


def _apply(text: str, start: int, end: int, edits: Sequence[Edit]) -> str:
    """Apply edits to a part of a text; drop an edit inside another one."""
    pieces: list[str] = []
    done = start
    for first, last, new in sorted(edits, key=lambda edit: (edit[0], edit[1] == edit[0], -edit[1])):
        if first < done:
            continue
        pieces += text[done:first], new
        done = last
    return "".join((*pieces, text[done:end]))


def translate_docstring(text: str, target: Target, *, timed: bool) -> str:
    """Translate a docstring, including its quotes, for the blocking twin."""
    text = re.sub(r"(?m)^( *)```python\n(?:.*\n)*?\1```", lambda block: _translate_example(block[0], target), text)
    for old, new in {**WORDS, **target.words}.items():
        text = _phrase_pattern(old).sub(new, text)
    text = re.sub(r"\n(?: *\n){2,}", "\n\n", text)
    return _with_timeout(text, target.timeout_line) if timed else text


def _phrase_pattern(phrase: str) -> re.Pattern[str]:
    """Return a pattern that matches a phrase, which may be broken over lines."""
    return re.compile(r"\s+".join(map(re.escape, phrase.split())))


def _with_timeout(text: str, timeout_line: str) -> str:
    """Add the `timeout` to the sections of a docstring; without sections, it refers to another docstring."""
    lines = text.split("\n")
    for heading, entry in (("Args:", timeout_line), ("Raises:", TIMEOUT_ERROR)):
        at = next((number for number, line in enumerate(lines) if line.strip() == heading), None)
        if at is None:
            continue
        indent = lines[at].index(heading) + 4
        end = at + 1
        while end < len(lines) and lines[end].startswith(" " * indent) and not lines[end].strip().startswith("**"):
            end += 1
        lines.insert(end, " " * indent + entry)
    return "\n".join(lines)


def _translate_example(block: str, target: Target) -> str:
    """Translate a fenced example: remove its event loop."""
    indent = re.match(" *", block)
    margin = indent[0] if indent else ""
    lines = [line.removeprefix(margin) for line in block.split("\n")]
    inside = False
    made: list[str] = []
    for line in lines:
        if line == "async def main():":
            inside = True
        elif line in ("import asyncio", "asyncio.run(main())", "print(asyncio.run(main()))"):
            inside = False
        elif inside and line.startswith("    "):
            made.append(re.sub(r"^return (.*)$", r"print(\1)", line.removeprefix("    ")))
        else:
            made.append(line)
    code = "\n".join(made).replace("async for", "for").replace("async with", "with").replace("await ", "")
    code = re.sub(r"asyncio\.run\(((?:[^()]|\([^()]*\))*)\)", r"\1", code)
    if target.path.startswith(("ripwrap/sync/", "ripwrap/repositories/")):
        code = code.replace("import ripwrap\n", "from ripwrap import sync\n").replace("ripwrap.", "sync.")
    code = re.sub(r"(```python)\n+", r"\1\n", re.sub(r"\n{3,}", "\n\n", code))
    code = re.sub(r"\n+```$", "\n```", code)
    return "\n".join(margin + line if line else "" for line in code.split("\n"))


if __name__ == "__main__":
    main()
