"""Every error that ripwrap raises on purpose.

    RipwrapError
    ├── BinaryError                  rg itself: finding, installing, starting
    │   ├── BinaryNotFoundError      no rg where ripwrap looked, and none may be downloaded
    │   ├── UnsupportedPlatformError no release of rg runs here
    │   ├── DownloadFailedError      url, status: a release did not come
    │   │   └── ChecksumMismatchError    expected, actual: what came is not what was released
    │   └── ExtractionFailedError    an archive is not what a release is
    ├── SearchError                  rg ran and failed: argv, returncode, stderr, hint
    │   ├── PatternError             offset: the pattern does not compile  (also ValueError)
    │   ├── GlobError                a glob does not parse                 (also ValueError)
    │   ├── UnknownTypeError         suggestions: no such file type        (also ValueError)
    │   └── CapabilityError          this rg cannot do what was asked
    ├── DecodeError                  rg's output is not what rg writes     (also ValueError)
    ├── EmbeddingError               provider, reason, status, retry_after: texts did not become vectors
    └── AccessDeniedError            path, roots: an agent's tool may not go there   (also PermissionError)

What the standard library has a word for keeps that word: a bad option is pydantic's `ValidationError`, a missing `cwd`
`FileNotFoundError`, a `cwd` that is a file `NotADirectoryError`, a NUL in a pattern or path `ValueError`, a search that
its `timeout` ended `TimeoutError`. `BinaryNotFoundError` is deliberately not a `FileNotFoundError`: a missing `cwd` and
a missing rg must not be caught by the same clause.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias

EmbedReason: TypeAlias = Literal["setup", "refused", "rejected", "unavailable", "garbage"]


class RipwrapError(Exception):
    """The root of ripwrap's own errors."""


class BinaryError(RipwrapError):
    """rg could not be found or started."""


class BinaryNotFoundError(BinaryError):
    """There is no rg in any place that ripwrap looked at; the message lists them, and the ways to install it."""


class UnsupportedPlatformError(BinaryError):
    """No release of rg runs on this platform; the message has what was seen and what is supported."""


class DownloadFailedError(BinaryError):
    """A release could not be downloaded.

    Attributes:
        url: What was asked for, without credentials.
        status: The HTTP status of the last answer; `None` if there was none.
    """

    def __init__(self, message: str, *, url: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.url = url
        self.status = status


class ChecksumMismatchError(DownloadFailedError):
    """What was downloaded is not what was released; it was thrown away.

    Attributes:
        expected: The SHA-256 of the release, in hexadecimal.
        actual: The SHA-256 of what came.
    """

    def __init__(self, message: str, *, url: str = "", expected: str = "", actual: str = "") -> None:
        super().__init__(message, url=url)
        self.expected = expected
        self.actual = actual


class ExtractionFailedError(BinaryError):
    """An archive is broken, or is not what rg's releases are."""


class SearchError(RipwrapError):
    """rg ran and failed without giving an answer.

    Attributes:
        argv: The whole command line, the executable first: what reproduces the failure.
        returncode: rg's exit code; negative is the number of the signal that ended it; `None` if it never started.
        stderr: What rg wrote to stderr (at most 1 MiB of it), undecodable bytes as U+FFFD.
        hint: What to do next, which also ends the message; empty if there is nothing better to say than rg did.
    """

    def __init__(
        self,
        message: str,
        *,
        argv: Sequence[str] = (),
        returncode: int | None = None,
        stderr: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(f"{message}\n{hint}" if hint else message)
        self.argv: tuple[str, ...] = tuple(argv)
        self.returncode = returncode
        self.stderr = stderr
        self.hint = hint


class PatternError(SearchError, ValueError):
    """The pattern does not compile; the message has rg's own words, with its caret.

    Attributes:
        pattern: The pattern that is wrong; `None` if rg does not tell which of several.
        offset: Where it goes wrong, in characters from the start of `pattern`; `None` if rg does not tell.
    """

    pattern: str | None = None
    offset: int | None = None


class GlobError(SearchError, ValueError):
    """A `glob` or `iglob` does not parse."""


class UnknownTypeError(SearchError, ValueError):
    """A `type`, `type_not` or `type_clear` names a file type that this rg does not know.

    Attributes:
        suggestions: Types that this rg knows and that are spelled much the same, the likeliest first.
    """

    suggestions: tuple[str, ...] = ()


class CapabilityError(SearchError):
    """This rg cannot do what was asked (PCRE2 not compiled in, or too old); the message names the way out."""


class DecodeError(RipwrapError, ValueError):
    """A record in rg's output is not one that rg writes.

    Attributes:
        record: The record's first 200 bytes.
    """

    def __init__(self, message: str, *, record: bytes = b"") -> None:
        super().__init__(message)
        self.record: bytes = record[:200]


class EmbeddingError(RipwrapError):
    """Texts did not become vectors: there is no such embedder, or it did not answer, or not with vectors.

    Attributes:
        provider: The provider's name, as it was given.
        reason: What went wrong: 'setup', nothing was sent, because something is unknown or missing here; 'refused', the
            provider said no, and will until something is changed; 'rejected', it does not take these texts;
            'unavailable', it was asked again and again (too many requests, its own errors, no connection);
            'garbage', what came was no answer to what was asked.
        status: The HTTP status of the last answer; `None` if there was none, or none is known.
        retry_after: Seconds that the provider asks to wait; `None` if it does not say.
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


class AccessDeniedError(RipwrapError, PermissionError):
    """A path lies outside of the roots that an agent's tools may use.

    Attributes:
        path: The path, as it was given.
        roots: The directories that may be used.
    """

    def __init__(self, message: str, *, path: str = "", roots: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.path = path
        self.roots: tuple[str, ...] = tuple(roots)
