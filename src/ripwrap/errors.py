"""Classes of the errors that ripwrap itself raises.

    RipwrapError                     hints: steps that help, as data
    ├── BinaryError                  rg cannot be found, installed or started
    │   ├── BinaryNotFoundError      rg was not found on this machine, or on a host
    │   ├── UnsupportedPlatformError no release of rg runs on this platform
    │   ├── DownloadFailedError      url, status: a download failed
    │   │   └── ChecksumMismatchError    expected, actual: a download has the wrong hash
    │   └── ExtractionFailedError    a downloaded archive is broken, or is not a release of rg
    ├── SearchError                  rg ran and failed: argv, returncode, stderr, hint
    │   ├── PatternError             offset: the pattern does not compile  (also ValueError)
    │   ├── GlobError                a glob does not parse                 (also ValueError)
    │   ├── UnknownTypeError         suggestions: no such file type        (also ValueError)
    │   ├── CapabilityError          this rg lacks a feature that the search needs
    │   └── RemoteError              a host cannot be reached, refuses the login, or does not run rg
    ├── DecodeError                  record: rg's output is malformed      (also ValueError)
    ├── MissingPackageError          name: a package of an extra is not installed      (also ImportError)
    ├── EmbeddingError               provider, reason, status, retry_after: texts could not be embedded
    ├── ConflictError                paths, reason, journal: files are in an unexpected state; nothing was written
    ├── DiskFullError                errno, filename: a plan could not be written or undone   (also OSError)
    └── AccessDeniedError            path, roots, denied_by: the agent tools may not use a path (also PermissionError)

The names before a colon are attributes.

Other errors have the classes of Python and pydantic. A bad option raises pydantic's `ValidationError`. A missing `cwd`
raises `FileNotFoundError`; so does a missing path in `paths`, and one that cannot be read raises `PermissionError`. An
answer with a place for errors, as of `grep()`, lists such paths instead, unless all are missing. A `cwd` that is a file
raises `NotADirectoryError`. A NUL in a pattern or path raises `ValueError`. A call that reaches its `timeout` raises
`TimeoutError`, unless it returns a partial result, as `grep()` does. `BinaryNotFoundError` is deliberately not a
`FileNotFoundError`: an `except` clause for a missing `cwd` must not also catch a missing rg.

A message that names options, functions or packages is a `HintedText`, in which each of these names is a `Hint`. In
Python, a hint is printed as code, such as `fixed_strings=True`. The command line and the agent tools print the same
message with `spell_error()`, which writes each hint in the syntax of the front end, such as `--fixed-strings`.
"""

import errno
import functools
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, TypeVar, cast

from ripwrap._signature import lists_options
from ripwrap._text import advise, check_kind, shown

F = TypeVar("F", bound=Callable[..., Any])

EmbedReason: TypeAlias = Literal["setup", "refused", "rejected", "unavailable", "garbage"]
ConflictReason: TypeAlias = Literal["changed", "hard_links", "unfinished"]
HintKind: TypeAlias = Literal["pass", "omit", "correct", "call", "install"]


@dataclass(frozen=True, slots=True)
class Hint:
    """Step that a caller can take to fix an error; `str()` writes it as Python code.

    `Hint("fixed_strings", True)` is `fixed_strings=True`, `Hint("location")` is `location=`,
    `Hint("limit", kind="correct")` is `limit`, `Hint("rebuild", True, kind="call", target="refresh")` is
    `refresh(rebuild=True)`, and `Hint(kind="install", target="ripwrap[bin]")` is `pip install "ripwrap[bin]"`, or if
    ripwrap was installed from a clone, `pip install "/path/of/clone[bin]"`.

    Attributes:
        option: Name of an option or argument, as the library spells it; empty if there is none.
        value: Value for `option`; `None` leaves the choice to the caller.
        kind: Kind of step. 'pass': pass `option` with `value`. 'omit': leave out `option`. 'correct': correct the value
            of `option`. 'call': call `target` with `option` as its argument. 'install': install `target`.
        target: Function or method to call, or requirement to install with pip; empty for other kinds.
    """

    option: str = ""
    value: bool | int | str | None = None
    kind: HintKind = "pass"
    target: str = ""

    def __str__(self) -> str:
        """Return the hint as Python code."""
        if self.kind == "install":
            name, bracket, extras = self.target.partition("[")
            source = _source() if name == "ripwrap" else ""
            if source.startswith("git+"):
                return f'pip install "{self.target} @ {source}"'
            option = "-e " if source.startswith("-e ") else ""
            return f'pip install {option}"{source.removeprefix("-e ") or name}{bracket}{extras}"'
        argument = self.option if self.value is None else f"{self.option}={self.value!r}"
        if self.kind == "call":
            return f"{self.target}({argument})"
        return f"{argument}=" if self.kind == "pass" and self.value is None else argument


@functools.cache
def _source() -> str:
    """Return what pip has installed ripwrap from, if it is no package index (PEP 610).

    It is the path of a directory or an archive, after `-e ` if the installation can be edited, or `git+` and a URL.
    """
    import json  # late: these take 15 ms and more
    from importlib import metadata
    from urllib.request import url2pathname

    try:
        found = json.loads(metadata.distribution("ripwrap").read_text("direct_url.json") or "{}")
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return ""
    url = found.get("url", "")
    if url.startswith("file://") and os.path.exists(path := url2pathname(url.removeprefix("file://"))):
        return f"-e {path}" if found.get("dir_info", {}).get("editable") else path
    version = found.get("vcs_info", {})
    return f"git+{url}@{version['commit_id']}" if version.get("vcs") == "git" else ""


Speller: TypeAlias = Callable[[Hint], str | None]
"""Function that writes a hint in the syntax of a front end: Python, the command line or an agent tool. It returns
`None` if the front end has no such option or function.
"""

Clause: TypeAlias = tuple[str | Hint, ...]


class HintedText(str):
    """Text that contains hints. As a `str` it shows them as Python code; `spell()` writes them for another front end.

    ```python
    from ripwrap.errors import Hint, HintedText

    text = HintedText("Fix the pattern, or pass ", Hint("fixed_strings", True), ".")
    print(text)
    print(text.spell(lambda hint: f"--{hint.option.replace('_', '-')}"))
    ```

    ```text
    Fix the pattern, or pass fixed_strings=True.
    Fix the pattern, or pass --fixed-strings.
    ```

    Attributes:
        parts: Texts, hints and clauses, in order. A clause is a tuple of texts and hints. If a front end cannot write a
            hint in a clause, it leaves out the whole clause.
    """

    __slots__ = ("parts",)
    parts: tuple[str | Hint | Clause, ...]

    def __new__(cls, *parts: str | Hint | Clause) -> Self:
        """Join the parts; a `HintedText` among them is replaced by its own parts."""
        flat = tuple(one for part in parts for one in (part.parts if isinstance(part, HintedText) else (part,)))
        text = super().__new__(cls, "".join(map(str, _leaves(flat))))
        text.parts = flat
        return text

    def __reduce__(self) -> tuple[type[Self], tuple[str | Hint | Clause, ...]]:
        """Return the class and the parts, from which `pickle` and `copy` rebuild the text."""
        return type(self), self.parts

    @property
    def hints(self) -> tuple[Hint, ...]:
        """Every hint in the text, in order."""
        return tuple(leaf for leaf in _leaves(self.parts) if isinstance(leaf, Hint))

    def spell(self, speller: Speller) -> str:
        """Return the text with its hints in the syntax of a front end.

        If `speller` returns `None` for a hint, the clause with the hint is left out; a hint outside of a clause is
        written as Python code.
        """
        texts: list[str] = []
        for part in self.parts:
            leaves = part if isinstance(part, tuple) else (part,)
            spelled = [speller(leaf) if isinstance(leaf, Hint) else leaf for leaf in leaves]
            if not isinstance(part, tuple):
                texts.append(spelled[0] or str(part))
            elif None not in spelled:
                texts += filter(None, spelled)
        return "".join(texts)


def combination_error(what: str | Hint, other: Hint, reason: str = "") -> ValueError:
    """Return the error for two options, or for an operation and an option, that cannot be combined.

    Args:
        what: Name of an option or operation, or a hint.
        other: The other option.
        reason: Why they cannot be combined; empty if that is plain.
    """
    wrong = Hint(what, kind="omit") if isinstance(what, str) and what.isidentifier() else what
    because = f": {reason}" if reason else ""
    return ValueError(HintedText(wrong, " cannot be combined with ", other, f"{because}; leave one of them out"))


def named_paths(function: F) -> F:
    """Give a public function better errors for wrong arguments, and a signature that lists its options.

    The error for a path that is passed by position names `paths` and `cwd`. The error for a word of another library,
    such as `regex`, names the argument. An option, `paths` or `cwd` that is `None` is not given.
    """
    lists_options()(function)
    code, keywords = function.__code__, function.__kwdefaults__ or {}
    called = function.__qualname__.removesuffix(".__init__").removeprefix("Base")
    most = code.co_argcount
    known = frozenset(code.co_varnames[: most + code.co_kwonlyargcount])
    required = code.co_varnames[: most - len(function.__defaults__ or ())]
    is_open = bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = " or ".join(f"{name}=" for name in ("paths", "cwd") if name in keywords)

    def checked(given: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        if len(given) > most and names:
            takes = f"{most} positional argument{'' if most == 1 else 's'}"
            raise TypeError(f"{called}() takes {takes} but {len(given)} were given; pass {names} by name")
        missing = set(required[len(given) :]) - named.keys()
        if missing or not is_open:
            for name in named.keys() - known:
                if said := advise(name, missing or known, named[name]):
                    raise TypeError(f"{called}() has no argument {name}; {said}")
        values = {**dict(zip(code.co_varnames[:most], given)), **named}  # noqa: B905 - `roots` are more
        _check_values(values)
        if any(value is None for value in values.values()):
            left_out = inspect.signature(function).parameters.keys() - known | {"cwd", "paths"}
            named = {name: value for name, value in named.items() if value is not None or name not in left_out}
        return named

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        return function(*given, **checked(given, named))

    @functools.wraps(function)
    async def call_async(*given: Any, **named: Any) -> Any:
        return await function(*given, **checked(given, named))

    return cast("F", call_async if inspect.iscoroutinefunction(function) else call)


def _check_values(values: Mapping[str, Any]) -> None:
    """Raise an error if an argument is something else than its name says, or if `cwd` is empty, except on a host."""
    for name, value in values.items():
        check_kind(name, value)
    if values.get("cwd") == "" and values.keys().isdisjoint(("on", "where")):
        said = " does not exist, because it is empty; pass '.' for the current directory"
        raise FileNotFoundError(errno.ENOENT, HintedText(Hint("cwd", kind="correct"), said), "")


def _leaves(parts: Sequence[str | Hint | Clause]) -> Iterator[str | Hint]:
    for part in parts:
        yield from part if isinstance(part, tuple) else (part,)


def spell(text: str, speller: Speller) -> str:
    """Return a text with its hints in the syntax of a front end; a text without hints is returned unchanged."""
    return text.spell(speller) if isinstance(text, HintedText) else text


def spell_error(error: BaseException, speller: Speller) -> str:
    """Return the message of an error with its hints in the syntax of a front end; `str(error)` if it has no hints.

    The front end escapes control characters with all else that it prints.
    """
    if isinstance(error, OSError) and isinstance(error.strerror, HintedText):
        return f"{error.strerror.spell(speller)}: {error.filename!r}"
    text = error.args[0] if error.args else ""
    return text.spell(speller).rstrip("\n") if isinstance(text, HintedText) else str(error)


class RipwrapError(Exception):
    """Base class of ripwrap's own errors; `str()` escapes control characters that a host, file or argument gave."""

    def __str__(self) -> str:
        return shown(super().__str__(), lines=True)

    @property
    def hints(self) -> tuple[Hint, ...]:
        """Hints in the message, in order; empty if it has none."""
        text = self.args[0] if self.args else ""
        return text.hints if isinstance(text, HintedText) else ()


class BinaryError(RipwrapError):
    """rg could not be found, installed or started."""


class BinaryNotFoundError(BinaryError):
    """rg was not found on this machine or on a host, or its file is gone. The message says what to do."""


class UnsupportedPlatformError(BinaryError):
    """The requested release of rg was not published for this platform; the message names the supported platforms."""


class DownloadFailedError(BinaryError):
    """A release of rg could not be downloaded.

    Attributes:
        url: Address of the request, without credentials.
        status: HTTP status of the last answer; `None` if the server gave no answer.
    """

    def __init__(self, message: str, *, url: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.url = url
        self.status = status


class ChecksumMismatchError(DownloadFailedError):
    """A download does not have the hash of the release, and was deleted.

    Attributes:
        expected: SHA-256 of the release, in hexadecimal.
        actual: SHA-256 of the download.
    """

    def __init__(self, message: str, *, url: str = "", expected: str = "", actual: str = "") -> None:
        super().__init__(message, url=url)
        self.expected = expected
        self.actual = actual


class ExtractionFailedError(BinaryError):
    """A downloaded archive is broken, is not a release of rg, or contains something that no release contains."""


class SearchError(RipwrapError):
    """rg failed, so the search has no result.

    Attributes:
        argv: Whole command line, the executable first. It reproduces the failure. Empty if no rg was run.
        returncode: rg's exit code; the negative number of the signal that ended rg; `None` if rg never started.
        stderr: rg's stderr, at most 1 MiB of it; bytes that are not UTF-8 are U+FFFD.
        hint: Advice at the end of the message, in Python's spelling; empty if rg's own message is enough.
        hints: `Hint` objects for the options, functions and packages that the message and `hint` name.
    """

    def __init__(
        self, message: str, *, argv: Sequence[str] = (), returncode: int | None = None, stderr: str = "", hint: str = ""
    ) -> None:
        super().__init__(HintedText(message, "\n", hint) if hint else message)
        self.argv: tuple[str, ...] = tuple(argv)
        self.returncode = returncode
        self.stderr = stderr
        self.hint = hint


class PatternError(SearchError, ValueError):
    """The pattern does not compile; the message quotes rg's error, which often marks the position with a caret.

    Attributes:
        pattern: The pattern with the error; `None` if the search has several patterns and rg does not say which.
        offset: Position of the error, in characters from the start of `pattern`; `None` if rg does not give it.
        rule: In a scan, name of the rule that has the pattern; otherwise `None`.
    """

    pattern: str | None = None
    offset: int | None = None
    rule: str | None = None

    def about_rule(self, rule: str) -> "PatternError":
        """Return a copy of the error for a rule of a scan, with the name of the rule in its message and its `rule`."""
        message = HintedText(f"rule {rule!r}: ", self.args[0])
        error = PatternError(message, argv=self.argv, returncode=self.returncode, stderr=self.stderr)
        error.pattern, error.offset, error.rule, error.hint = self.pattern, self.offset, rule, self.hint
        return error


class GlobError(SearchError, ValueError):
    """A `glob` or `iglob` does not parse."""


class UnknownTypeError(SearchError, ValueError):
    """A `type`, `type_not` or `type_clear` names a file type that this rg does not know.

    Attributes:
        suggestions: Known types with a similar name, the most similar first.
    """

    suggestions: tuple[str, ...] = ()


class CapabilityError(SearchError):
    """This rg lacks a feature: it has no PCRE2, or is too old. The message says what to do."""


class RemoteError(SearchError):
    """A host of `ripwrap.remote` cannot be reached, refuses the login, or does not run rg.

    `argv` is the command line of a local program (such as ssh, docker or podman), `returncode` is its exit code, and
    `stderr` is its error output.
    """


class DecodeError(RipwrapError, ValueError):
    """A part of rg's output is malformed: a JSON record, a path or a count.

    Attributes:
        record: First 200 bytes of that part.
    """

    def __init__(self, message: str, *, record: bytes = b"") -> None:
        super().__init__(message)
        self.record: bytes = record[:200]


class MissingPackageError(RipwrapError, ImportError):
    """A package that belongs to an extra of ripwrap is not installed, or too old; the message has the line for pip.

    Attributes:
        name: Name of the module that could not be imported; `None` if it is not known.
    """


def missing_extra(error: ImportError, what: str, extra: str) -> ImportError:
    """Return the error for an extra that could not be imported; `error` itself if a module of ripwrap is missing.

    Args:
        error: Error of the import.
        what: What needs the extra.
        extra: Name of the extra, which is also the name of its package.
    """
    package, _, module = (error.name or "ripwrap").partition(".")
    if package == "ripwrap":
        return error
    needed = str(error.name)
    if package == extra and (module or not isinstance(error, ModuleNotFoundError)):  # another version is installed
        from importlib import metadata  # late: it takes 15 ms

        requirements = (one.partition(";")[0] for one in metadata.requires("ripwrap") or ())
        needed = next(one for one in requirements if re.match(rf"{extra}\W", one))
        needed += f", and {extra} {metadata.version(extra)} is installed"
    install = Hint(kind="install", target=f"ripwrap[{extra}]")
    missing = MissingPackageError(HintedText(f"{what} needs {needed}: ", install), name=error.name)
    missing.__cause__ = error
    return missing


class EmbeddingError(RipwrapError):
    """Texts could not be embedded: the embedder is unknown, it does not answer, or its answer cannot be used.

    Attributes:
        provider: Name of the provider, as it was given.
        reason: Kind of failure. 'setup': nothing was sent, because a provider, package or key is unknown or missing.
            'refused': the provider rejects every request until the key, the model or the settings are changed.
            'rejected': the provider rejects these texts only. 'unavailable': all retries failed (too many requests,
            server errors, no connection). 'garbage': the answer is malformed, or does not fit the request.
        status: HTTP status of the last answer; `None` if there was no answer, or its status is not known.
        retry_after: Seconds to wait, as the provider asks; `None` if it does not say.
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        reason: EmbedReason = "setup",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.reason: EmbedReason = reason
        self.status = status
        self.retry_after = retry_after


class ConflictError(RipwrapError):
    """A replacement or an undo found files in an unexpected state (for example, changed), so it wrote no file.

    Attributes:
        paths: Paths of these files.
        reason: 'changed': the files have changed, or do not exist any more. 'hard_links': a file has
            several names (hard links), and a replacement would change the file under one name only. 'unfinished': an
            interrupted replacement has changed some of the files; call `ripwrap.undo(journal)` first.
        journal: Path of the journal of the interrupted replacement; empty for other reasons.
    """

    def __init__(
        self, message: str, *, paths: Sequence[str] = (), reason: ConflictReason = "changed", journal: str = ""
    ) -> None:
        super().__init__(message)
        self.paths: tuple[str, ...] = tuple(paths)
        self.reason: ConflictReason = reason
        self.journal = journal


class DiskFullError(RipwrapError, OSError):
    """The disk, or the user's quota on it, is full, so a plan could not be applied or undone.

    The message says that nothing was written: all files have the contents that they had before the call. Only if files
    could not be restored, it says so, and a note of the error names the call that completes the change.

    Attributes:
        errno: `errno.ENOSPC` or `errno.EDQUOT`.
        filename: Path that could not be written.
    """


class AccessDeniedError(RipwrapError, PermissionError):
    """The tools of an agent may not use a path: it is outside of `roots`, or a glob denies it.

    Attributes:
        path: Path, as it was given.
        roots: Directories that the tools may use.
        denied_by: Glob that denies the path; empty if the path is outside of the roots.
    """

    def __init__(self, message: str, *, path: str = "", roots: Sequence[str] = (), denied_by: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.roots: tuple[str, ...] = tuple(roots)
        self.denied_by = denied_by
