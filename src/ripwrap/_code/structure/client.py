"""Search texts with ast-grep in worker processes, because hostile source may make a parser hang or crash."""

import json
import shlex
import sys
import time
from difflib import get_close_matches
from importlib.util import find_spec
from typing import NamedTuple

from pydantic import ValidationError

from ripwrap._system.subprocess.worker import StartError, WorkerPool, WorkerProcess, is_python, usable_cpus
from ripwrap._text import in_seconds
from ripwrap.errors import Hint, HintedText, MissingPackageError, PatternError, RipwrapError
from ripwrap.models import CodeErrorKind, Model


class Language(NamedTuple):
    """Language that ast-grep can parse."""

    name: str
    extensions: tuple[str, ...]
    expando: str


# The table is that of `crates/language/src/lib.rs` of ast-grep; a test compares it with the installed version.
_TABLE = {
    "bash": ("", "bash bats cgi command env fcgi ksh sh tmux tool zsh", "$"),
    "c": ("", "c h", "\U00010000"),
    "cpp": ("cc c++ cxx", "cc hpp cpp c++ hh cxx cu ino", "\U00010000"),
    "csharp": ("cs", "cs", "µ"),
    "css": ("", "css scss", "_"),
    "dart": ("", "dart", "$"),
    "elixir": ("ex", "ex exs", "µ"),
    "go": ("golang", "go", "µ"),
    "haskell": ("hs", "hs", "µ"),
    "hcl": ("", "hcl nomad tf tfvars workflow", "µ"),
    "html": ("", "html htm xhtml", "z"),
    "java": ("", "java", "$"),
    "javascript": ("js jsx", "cjs js mjs jsx", "$"),
    "json": ("", "json", "$"),
    "kotlin": ("kt", "kt ktm kts", "µ"),
    "lua": ("", "lua", "$"),
    "markdown": ("md", "markdown md", "$"),
    "nix": ("", "nix", "_"),
    "php": ("", "php", "µ"),
    "python": ("py", "py py3 pyi bzl bazel", "µ"),
    "ruby": ("rb", "rb rbw gemspec", "µ"),
    "rust": ("rs", "rs", "µ"),
    "scala": ("", "scala sc sbt", "$"),
    "solidity": ("sol", "sol", "$"),
    "swift": ("", "swift", "µ"),
    "tsx": ("", "tsx", "$"),
    "typescript": ("ts", "ts cts mts", "$"),
    "yaml": ("yml", "yaml yml", "$"),
    "zig": ("", "zig", "_"),
}


LANGUAGES = {
    name: Language(name, tuple(extensions.split()), expando) for name, (_, extensions, expando) in _TABLE.items()
}
"""Languages by name."""


_ALIASES = {alias: name for name, (aliases, _, _) in _TABLE.items() for alias in aliases.split()}


def find_language(name: str) -> Language:
    """Return the language with this name or alias; case is ignored."""
    lower = name.lower()
    found = LANGUAGES.get(_ALIASES.get(lower, lower))
    if found is None:
        similar = get_close_matches(lower, [*LANGUAGES, *_ALIASES], 3)
        hint = f"did you mean {' or '.join(similar)}?" if similar else f"known languages are {', '.join(LANGUAGES)}"
        raise ValueError(f"unknown language {name!r}; {hint}")
    return found


_IDLE_SECONDS = 60.0
_CODE = "from ripwrap._code.structure.worker import serve; serve({seconds!r}, {idle!r})"
_FILES_FOR_ANOTHER = 16
"""Number of files for each further process: searching so many files takes as long as starting a process."""


class UnsearchedError(Exception):
    """Error for a text that could not be searched."""

    def __init__(self, kind: CodeErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind: CodeErrorKind = kind


class Replacement(NamedTuple):
    """Replacement for a match."""

    start: int
    end: int
    text: str


class Hit(NamedTuple):
    """Match in a text; offsets are in bytes."""

    start: int
    end: int
    spans: dict[str, tuple[int, int]]
    edit: Replacement | str | None


class StructureMatches(Model, frozen=True):
    """Matches in a text."""

    hits: list[Hit]
    error_line: int | None
    broken_line: int | None


class _Checked(Model, frozen=True):
    literals: tuple[str, ...] = ()
    pattern_error: str | None = None
    fix_error: str | None = None


class CodeWorkers:
    """Worker processes that search texts for one pattern."""

    def __init__(self, pattern: str, language: Language, fix: str | None, seconds: float) -> None:
        """Set the pattern, the template of the replacements and the limit for each text; no process is started yet."""
        self._pattern = pattern
        self._language = language
        self._head = json.dumps([pattern, language.name, fix]).encode()
        self._seconds = seconds
        code = _CODE.format(seconds=seconds, idle=_IDLE_SECONDS)
        self.pool = WorkerPool(code, usable_cpus(), seconds, _IDLE_SECONDS)

    def count(self, files: int) -> int:
        """Return the number of processes to use for `files` files."""
        return min(len(self.pool.workers), 1 + files // _FILES_FOR_ANOTHER)

    def check(self) -> tuple[str, ...]:
        """Check the pattern and the fix, and return the texts that each match contains; see `Pattern.literals`."""
        try:
            answer = self._request(self.pool.workers[0], None)
            found = _Checked.model_validate_json(answer)
        except (UnsearchedError, ValidationError):
            found = _Checked(pattern_error="ast-grep crashes on it, or takes too long; use a simpler pattern")
        if found.pattern_error is not None:
            error = PatternError(f"the pattern {self._pattern!r} cannot be used: {found.pattern_error}")
            error.pattern = self._pattern
            raise error
        if found.fix_error is not None:
            raise ValueError(found.fix_error)
        return found.literals

    def search(self, worker: WorkerProcess, text: bytes) -> StructureMatches:
        """Return the matches in a text, which is UTF-8; raise `UnsearchedError` if the parser hangs or crashes."""
        try:
            return StructureMatches.model_validate_json(self._request(worker, text))
        except ValidationError:
            raise UnsearchedError("crash", "the parser gave an invalid answer; search this file as text") from None

    def _request(self, worker: WorkerProcess, text: bytes | None) -> bytes:
        begun = time.monotonic()
        try:
            answer = worker.request([self._head] if text is None else [self._head, text])
        except StartError as error:
            message = f"the process that parses code cannot be started: {error}"
            if is_python():
                command = shlex.join((sys.executable, "-c", "import ripwrap._code.structure.worker"))
                message += f"; to see the reason, run {command}"
            raise RipwrapError(message) from error
        if answer is not None:
            return answer[0]
        if time.monotonic() - begun >= self._seconds:
            seconds = in_seconds(self._seconds)
            message = f"the parser was stopped after {seconds}; increase file_timeout, or search this file as text"
            raise UnsearchedError("timeout", message)
        raise UnsearchedError("crash", "the parser crashed, or needed too much memory; search this file as text")


def check_installed() -> None:
    """Raise `MissingPackageError` if ast-grep-py is not installed."""
    if find_spec("ast_grep_py") is None:
        raise MissingPackageError(
            HintedText("search by syntax needs ast-grep-py: ", Hint(kind="install", target="ripwrap[structure]"))
        )
