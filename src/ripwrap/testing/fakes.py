"""Programs in place of rg: a program that answers from texts or recorded output, and a program that misbehaves."""

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from ripwrap._ripgrep.named_paths import FAKE_FILES
from ripwrap._system.subprocess.worker import is_python

Behavior: TypeAlias = Literal[
    "silent", "slow", "endless", "fails", "killed", "truncated", "garbage", "noisy", "ignores_signals"
]
"""Behavior of a misbehaving rg; see `misbehaving()`."""

FAKE_VERSION = "15.2.0"
"""Version of rg that the programs report."""

_VARIABLE = "RIPWRAP_RG"
_HERE = os.path.dirname(os.path.abspath(__file__))


class FakeRg:
    """Fake rg that `fake()` makes, with a record of its runs.

    Attributes:
        path: Path of the program, for `rg=`. In the block of `fake()`, ripwrap runs this program even without `rg=`.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def calls(self) -> list[tuple[str, ...]]:
        """Arguments of each run so far, without the program; runs that ask for the version do not count."""
        log = self.path.with_name("calls")
        return [tuple(json.loads(line)) for line in log.read_text("utf-8").splitlines()] if log.exists() else []

    @property
    def patterns(self) -> list[tuple[str, ...]]:
        """Patterns of each search so far."""
        flags, given = (call[: (*call, "--").index("--")] for call in self.calls), "--regexp="
        searches = (tuple(one.removeprefix(given) for one in call if one.startswith(given)) for call in flags)
        return [patterns for patterns in searches if patterns]


@contextmanager
def fake(
    texts: Mapping[str, str | bytes] | None = None,
    *,
    recorded: Mapping[str, bytes | str | os.PathLike[str]] | None = None,
    types: Mapping[str, Sequence[str]] | None = None,
) -> Generator[FakeRg]:
    r"""Run a program in place of rg in the `with` block; the program answers searches and listings from `texts`.

    `texts` replace the files below the working directory of each search. Python's `re` searches the texts, line by
    line. So use patterns that mean the same in `re` and in rg; a pattern that `re` rejects is an error. These options
    have an effect: `context`, `before_context`, `after_context`, `ignore_case`, `smart_case`, `case_sensitive`,
    `fixed_strings`, `word_regexp`, `line_regexp`, `max_count`, `include_zero`, `hidden`, `glob`, `type` and `type_not`.
    Files come in path order, or in reverse with `sortr="path"`. A `.gitignore` or other ignore file has no effect. Any
    other flag that changes results is an error, which names the flag. For such flags, use `tree()` with a real rg, or
    `recorded`.

    ```python
    from ripwrap import sync, testing

    with testing.fake({"a.py": "x = 1\n# TODO: two\n", "b.txt": "TODO\n"}) as rg:
        print(sync.grep("TODO", glob="*.py").total_matches, rg.patterns)
    ```

    ```text
    1 [('TODO',)]
    ```

    The block sets `RIPWRAP_RG`, also for child processes. So only one block may be active in a process at a time.
    Operations that read files without rg, such as `rank()` and the tool `read_file`, read the disk and not `texts`.

    Args:
        texts: Text of each file, by its path, with slashes.
        recorded: Map from a pattern to the output of `rg --json` as `bytes`, or to the path of a file with this output.
            If a search has only this pattern, and uses rg's JSON, such as `search()` or `grep()`, the program
            writes this output. The other arguments of the search have no effect.
        types: Globs of the file types that searches may name in `type` and `type_not`; rg's own types are not known.

    Yields:
        The fake rg, which records how it is called.

    Raises:
        FileNotFoundError: A file of `recorded` does not exist.
        NotImplementedError: The system is Windows, which starts no script as a program.
    """
    raw_texts = {path: text.encode() if isinstance(text, str) else text for path, text in (texts or {}).items()}
    outputs = {
        pattern: given if isinstance(given, bytes) else Path(given).read_bytes()
        for pattern, given in (recorded or {}).items()
    }
    settings = {
        "texts": {path: raw.decode("latin-1") for path, raw in raw_texts.items()},
        "recorded": {pattern: raw.decode("latin-1") for pattern, raw in outputs.items()},
        "types": {name: list(globs) for name, globs in (types or {}).items()},
        "path": sys.path,
    }
    with tempfile.TemporaryDirectory(prefix="ripwrap-fake-") as directory:
        Path(directory, "settings.json").write_text(json.dumps(settings), "utf-8")
        program = _write(Path(directory), os.path.join(_HERE, "_fake_program.py"), directory)
        with _named(program):
            yield FakeRg(program)


@contextmanager
def misbehaving(behavior: Behavior) -> Generator[Path]:
    """Run a program in place of rg in the `with` block; the program misbehaves in each search.

    - `silent` writes one match and then waits without end.
    - `slow` pauses before each of five matches.
    - `endless` writes matches without end.
    - `fails` writes a match and an error, and exits with 2.
    - `killed` writes a match, and kills itself in the middle of the next line of its output.
    - `truncated` writes a match, and exits with 0 in the middle of the next line of its output.
    - `garbage` writes a match, a line that is not JSON, and a summary.
    - `noisy` writes 100 MB of errors before a match, and exits with 2.
    - `ignores_signals` does the same as `silent`, and ignores the signals that a process can ignore, except real-time
      signals.

    The block sets `RIPWRAP_RG`, also for child processes. So only one block may be active in a process at a time.

    Yields:
        Path of the program.

    Raises:
        ValueError: There is no such behavior.
        NotImplementedError: The system is Windows, which starts no script as a program.
    """
    if behavior not in get_args(Behavior):
        raise ValueError(f"behavior must be one of {', '.join(get_args(Behavior))}, got {behavior!r}")
    with tempfile.TemporaryDirectory(prefix="ripwrap-fake-") as directory:
        program = _write(Path(directory), os.path.join(_HERE, "behaviors.py"), behavior)
        with _named(program):
            yield program


def _write(directory: Path, *arguments: str) -> Path:
    """Write a program that runs Python with `arguments` and then the program's own arguments, and return its path.

    The program prints its version without starting Python.
    """
    if os.name == "nt":
        raise NotImplementedError(
            "on Windows, a script cannot be started in place of rg; use ripwrap.testing.tree() with a real rg"
        )
    if not is_python():
        raise NotImplementedError(
            "sys.executable is no Python, which a fake rg needs; use ripwrap.testing.tree() and a real rg"
        )
    # The line of `#!` is limited to 127 bytes on some systems, and Python may be in a directory with a long path.
    command = shlex.join([sys.executable, "-IS", *arguments])
    program = directory / "rg"
    version = f'case "$*" in "--version"|"--no-config --version") echo "ripgrep {FAKE_VERSION}"; exit 0;; esac'
    program.write_text(f'#!/bin/sh\n{version}\nexec {command} "$@"\n')
    program.chmod(0o755)
    return program


@contextmanager
def _named(program: Path) -> Generator[None]:
    """Set the environment variables for a program in place of rg until the end of the `with` block."""
    given = {_VARIABLE: str(program), FAKE_FILES: "1"}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
