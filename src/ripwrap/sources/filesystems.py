"""Read objects in object stores and files on other file systems through fsspec, several at a time.

Each object is fetched in a daemon thread. So the program can exit while a server hangs, and the search waits for the
next byte for `stall_seconds` at most. Objects are yielded URL by URL, and within a URL in the order of their names. No
further fetch is started while the objects that are being fetched, or wait to be searched, together have
`MAX_HELD_BYTES` or more.
"""

import errno
import importlib
import io
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar, cast

from ripwrap._text import named, plural, shown
from ripwrap.errors import Hint, HintedText, MissingPackageError, RipwrapError, SearchError
from ripwrap.models import PathError, PathErrorKind
from ripwrap.options import check_limit, check_timeout
from ripwrap.sources.archives import ArchiveSource, Bounds, check_inside
from ripwrap.sources.base import Item, Source, format_of

T = TypeVar("T")

MAX_WORKERS = 256
MAX_HELD_BYTES = 64 << 20
"""Limit in bytes for objects that are being fetched, or are fetched and not yet searched.

No further fetch is started while these objects together have this size or more. A store may report no size, or a false
one. So while the fetched bytes have this size, only the object that is searched next is fetched.
"""

MAX_OBJECT_BYTES = 256 << 20
"""Maximum size of an object in bytes; a larger object is not searched."""

_CHUNK_BYTES = 1 << 20
_POLL_SECONDS = 0.1
"""Seconds between two checks of a fetch. A check notices that the server stalls, or that the search has ended."""

_KINDS: tuple[tuple[type[OSError], PathErrorKind], ...] = ((FileNotFoundError, "missing"), (PermissionError, "denied"))


class _ObjectLeftOutError(Exception):
    """Error for an object that is not searched; the message says why."""


class _SearchTimeoutError(TimeoutError):
    """Error for the time limit of the whole search. Any other `TimeoutError` concerns one object or one listing."""


class _OverError(Exception):
    """Error that ends a fetch, because the limit `max_bytes` is used up."""


def fs(
    urls: str | Iterable[str],
    *,
    workers: int = 32,
    inside: str | Iterable[str] = (),
    max_bytes: int | None = None,
    stall_seconds: float | None = 60.0,
    storage_options: Mapping[str, Any] | None = None,
) -> "FileSystemSource":
    r"""Return objects in object stores, or files on other file systems, as items for `search_in()` and `grep_in()`.

    `fsspec` reads them, with the package for the protocol: `s3fs` for `s3://`, `gcsfs` for `gs://`, `adlfs` for
    `az://`, `aiohttp` for `https://`. The objects of each URL are sorted by name. The name of an item is its URL,
    to which `glob`, `type` and the other options that choose files apply.

    ```py
    import fsspec

    from ripwrap import sources, sync

    fsspec.filesystem("memory").pipe({"/logs/a.txt": b"ok\nTODO: taxes\n", "/logs/b.txt": b"ok\n"})
    source = sources.fs("memory://logs/*.txt")
    for match in sync.search_in("TODO", source):
        print(match.path, match.line_number, match.text)
    print(source.bytes_fetched)
    ```

    ```text
    memory:///logs/a.txt 2 TODO: taxes
    17
    ```

    Args:
        urls: One or more URLs in the syntax of fsspec. The wildcards `*`, `?`, `[…]` and `**` match several objects.
            URLs may be chained, as in `zip://*.py::s3://bucket/a.zip`.
        workers: Number of objects to fetch at the same time, 1 to 256.
        inside: Formats of archives, compressed files, notebooks and documents, as in `search(inside=…)`. The contents
            of such files are searched instead of their bytes: `inside="gz"` searches `a.gz` as `a.gz!/a`.
        max_bytes: Maximum number of bytes to fetch for all objects together. If an object would exceed this number, the
            object is not searched, no further fetch is started, and `errors` of the source names the object. `None` is
            no limit.
        stall_seconds: Seconds to wait for the next byte of an object. After that, the object counts as unreadable.
            `None` is no limit.
        storage_options: Arguments for the file system, such as `{"anon": True}` for public buckets of S3.

    Raises:
        ValueError: A protocol or format is unknown, a number is out of range, or there is no URL.
        RipwrapError: `fsspec`, or the package for a protocol or format, is not installed.
        TypeError: An argument has a wrong type.

    A source is for one search at a time. For each object that cannot be read, the source adds an error to `errors`. The
    search raises `FileNotFoundError` if no object matches any of the URLs, and `SearchError` if a store cannot list its
    objects.
    """
    several = (urls,) if isinstance(urls, str) else tuple(urls)
    if not several or not all(several):
        said = " must be one or more URLs such as 's3://bucket/*.gz'; got no URL, or an empty URL"
        raise ValueError(HintedText(Hint("urls", kind="correct"), said))
    for url in several:
        if not isinstance(url, str):
            raise TypeError(f"a URL must be a str, got {type(url).__name__}")
        fsspec = _fsspec()
        for part in url.split("::"):
            protocol, scheme, _ = part.partition("://")
            if not scheme and (part == url or part not in fsspec.available_protocols()):
                continue  # a path on this machine
            try:
                fsspec.get_filesystem_class(protocol)
            except ImportError as error:
                raise RipwrapError(f"{protocol}:// needs a package that is not installed: {_text(error)}") from error
            except ValueError as error:
                raise ValueError(
                    HintedText(
                        f"fsspec does not know the protocol {protocol!r}; correct ", Hint("urls", kind="correct")
                    )
                ) from error
    if isinstance(workers, bool) or not isinstance(workers, int):
        raise TypeError(f"workers must be an int, got {type(workers).__name__}")
    if not 1 <= workers <= MAX_WORKERS:
        raise ValueError(HintedText(Hint("workers", kind="correct"), f" must be 1 to {MAX_WORKERS}, got {workers}"))
    return FileSystemSource(
        several,
        workers,
        check_inside(inside) if inside else (),
        check_limit(max_bytes, "max_bytes"),
        check_timeout(stall_seconds, "stall_seconds"),
        dict(storage_options or {}),
    )


class FileSystemSource(Source):
    """Source of items that are objects in object stores, or files on other file systems; `fs()` makes it.

    Attributes:
        bytes_fetched: Number of bytes that were fetched, at most `max_bytes`.
    """

    def __init__(
        self,
        urls: tuple[str, ...],
        workers: int,
        inside: tuple[str, ...],
        max_bytes: int | None,
        stall_seconds: float | None,
        storage_options: Mapping[str, Any],
    ) -> None:
        super().__init__()
        self.bytes_fetched: int = 0
        self._urls = urls
        self._workers = workers
        self._inside = inside
        self._max_bytes = max_bytes
        self._stall = stall_seconds
        self._storage_options = storage_options
        self._reserved = 0
        self._lock = threading.Lock()
        self._members: ArchiveSource | None = None
        self._ended = threading.Event()
        self._unsearched = 0
        self._next: _Object | None = None

    def __iter__(self) -> Iterator[Item]:
        self._ended.clear()
        self.errors.clear()
        self.bytes_fetched = self._reserved = self._unsearched = 0
        self._members = ArchiveSource("", (), self._inside, Bounds(), follow=False)
        self._members.selects = self.selects
        self._members.deadline = self.deadline
        self._members.errors = self.errors
        for name, content in self._contents():
            if format_of(name, self._inside):
                yield from self._members.members(name, io.BytesIO(content))
            else:
                yield name, content
            del content  # the next object needs the memory

    def close(self) -> None:
        """End the iteration and fetch no more. A thread that waits for a server ends when the server answers."""
        self._ended.set()
        if self._members is not None:
            self._members.close()

    def _contents(self) -> Iterator[tuple[str, bytes]]:
        """Yield the name and content of each object, in order; at the same time, threads fetch the next objects."""
        objects = self._objects()
        fetching: deque[tuple[_Object, _Task[bytes]]] = deque()
        left_out = self._fill(fetching, objects)
        while fetching:
            found, task = fetching.popleft()
            self._next = found
            try:
                content = self._content(found, task)
            except _EndedError:
                return
            except _OverError:
                left_out, content = left_out or found, None
            with self._lock:
                self._unsearched -= task.done_bytes
            del task
            if content is not None:
                yield found.name, content
            content = None  # the next object needs the memory
            left_out = left_out or self._fill(fetching, objects)
        if left_out is not None:
            text = (
                f"max_bytes={self._max_bytes} would be exceeded, so this and all later objects were not searched; "
                "pass a larger max_bytes"
            )
            self.errors.append(PathError(path=left_out.name, kind="other", message=text))

    def _fill(self, fetching: "deque[tuple[_Object, _Task[bytes]]]", objects: "Iterator[_Object]") -> "_Object | None":
        """Start as many fetches as allowed; return the first object that would exceed `max_bytes`, or `None`."""
        while len(fetching) < self._workers and self._held(fetching) < MAX_HELD_BYTES:
            found = next(objects, None)
            if found is None:
                return None
            if not self._reserve(found):
                return found
            fetching.append((found, _Task(partial(self._read, found))))
        return None

    def _content(self, found: "_Object", task: "_Task[bytes]") -> bytes | None:
        """Return the bytes of an object; record an error and return `None` if the object cannot be read."""
        try:
            return self._wait(task)
        except (_EndedError, _OverError, _SearchTimeoutError):
            raise
        except Exception as error:  # noqa: BLE001 - a file system may raise any error, about this object only
            kinds: list[PathErrorKind] = [kind for type_of_error, kind in _KINDS if isinstance(error, type_of_error)]
            kind = kinds[0] if kinds else "other"
            self.errors.append(PathError(path=found.name, kind=kind, message=_text(error)))
            return None

    def _held(self, fetching: "Iterable[tuple[_Object, _Task[bytes]]]") -> int:
        return sum(max(one.size or 0, task.done_bytes) for one, task in fetching)

    def _objects(self) -> "Iterator[_Object]":
        """Yield the objects of all URLs, without those that options such as `glob` exclude.

        Objects in a format that `inside` names, such as archives, are yielded even if the options exclude them.
        """
        found = False
        for url in self._urls:
            task = _Task(partial(_list, url, self._storage_options))
            try:
                objects = self._wait(task)
            except _EndedError:
                return
            except _SearchTimeoutError:
                raise
            except Exception as error:
                said = f"could not list {shown(url)}: {_text(error)}; check "
                raise SearchError(
                    HintedText(said, Hint("urls", kind="correct"), " and ", Hint("storage_options", kind="correct"))
                ) from error
            found = found or bool(objects)
            for one in objects:
                if format_of(one.name, self._inside) or self.selects(one.name):
                    yield one
        if not found:
            text = HintedText("no object matches; correct ", Hint("urls", kind="correct"))
            raise FileNotFoundError(errno.ENOENT, text, named(self._urls))

    def _wait(self, task: "_Task[T]") -> T:
        """Return the result of a task."""
        while not task.ended.wait(_POLL_SECONDS):
            now = time.monotonic()
            if self._ended.is_set():
                raise _EndedError
            if self.deadline is not None and now >= self.deadline:
                raise _SearchTimeoutError("the time limit was reached before all objects were fetched; allow more time")
            if self._stall is not None and now - task.progressed >= self._stall:
                raise _ObjectLeftOutError(
                    f"the server sent no byte for {self._stall:g} seconds; search again, or pass a larger stall_seconds"
                )
        return task.result()

    def _read(self, found: "_Object", task: "_Task[bytes]") -> bytes:
        """Fetch an object, and return its bytes. This method runs in the thread of `task`."""
        content = io.BytesIO()  # its value is no copy
        reserved = found.size or 0 if self._max_bytes is not None else 0
        if found.size is not None and found.size > MAX_OBJECT_BYTES:
            self._give_back(reserved)
            raise _ObjectLeftOutError(f"not searched: larger than {plural(MAX_OBJECT_BYTES, 'byte')}")
        try:
            with found.filesystem.open(found.path, "rb") as file:
                while self._may_fetch(found, task):
                    if self._max_bytes is None:
                        wanted = _CHUNK_BYTES
                    elif reserved > 0:
                        wanted = min(_CHUNK_BYTES, reserved)
                    elif task.done_bytes == found.size:
                        break
                    else:
                        reserved = wanted = self._take(_CHUNK_BYTES)
                    chunk: bytes = file.read(wanted)
                    if not chunk:
                        break
                    reserved -= len(chunk) if self._max_bytes is not None else 0
                    content.write(chunk)
                    with self._lock:
                        self.bytes_fetched += len(chunk)
                        self._unsearched += len(chunk)
                    task.progress(len(chunk))
                    if task.done_bytes > MAX_OBJECT_BYTES:
                        raise _ObjectLeftOutError(f"not searched: larger than {plural(MAX_OBJECT_BYTES, 'byte')}")
        finally:
            self._give_back(reserved)
        return content.getvalue()

    def _may_fetch(self, found: "_Object", task: "_Task[bytes]") -> bool:
        """Wait until there is room for more bytes of an object; return False if the search has ended."""
        while not self._ended.is_set():
            if self._unsearched < MAX_HELD_BYTES or self._next is found:
                return True
            task.progress(0)  # the server does not stall
            self._ended.wait(_POLL_SECONDS)
        return False

    def _reserve(self, found: "_Object") -> bool:
        """Count the bytes of an object toward `max_bytes` before it is fetched; return False if too few are left."""
        if self._max_bytes is None:
            return True
        with self._lock:
            if self._reserved + (found.size or 0) > self._max_bytes:
                return False
            self._reserved += found.size or 0
        return True

    def _take(self, wanted: int) -> int:
        """Count up to `wanted` more bytes toward `max_bytes`, and return how many bytes may be fetched."""
        with self._lock:
            taken = min(wanted, (self._max_bytes or 0) - self._reserved)
            self._reserved += taken
        if taken <= 0:
            raise _OverError
        return taken

    def _give_back(self, unused: int) -> None:
        with self._lock:
            self._reserved -= unused


class _EndedError(Exception):
    """Error that stops the fetching of objects because the search has ended."""


@dataclass(frozen=True, slots=True)
class _Object:
    """Object of a store."""

    filesystem: Any
    path: str
    name: str
    size: int | None


class _Task(Generic[T]):
    """Call of a function in a daemon thread."""

    def __init__(self, call: "Callable[[_Task[T]], T]") -> None:
        self.ended = threading.Event()
        self.progressed = time.monotonic()
        self.done_bytes = 0
        self._call = call
        self._result: T | None = None
        self._error: Exception | None = None
        threading.Thread(target=self._run, name="ripwrap-fetch", daemon=True).start()

    def _run(self) -> None:
        try:
            self._result = self._call(self)
        except Exception as error:  # noqa: BLE001 - `result()` raises it
            self._error = error
        finally:
            self.ended.set()

    def progress(self, size: int) -> None:
        """Count fetched bytes, and store the time."""
        self.done_bytes += size
        self.progressed = time.monotonic()

    def result(self) -> T:
        """Return the result of the ended call, or raise its error."""
        if self._error is not None:
            raise self._error
        return cast("T", self._result)


def _fsspec() -> Any:
    """Import fsspec."""
    try:
        return importlib.import_module("fsspec")
    except ModuleNotFoundError:
        needed = HintedText("fs() needs fsspec: ", Hint(kind="install", target="ripwrap[fsspec]"))
        raise MissingPackageError(needed, name="fsspec") from None


def _list(url: str, storage_options: Mapping[str, Any], _: "_Task[list[_Object]]") -> list[_Object]:
    """Return the objects of a URL, in the order of their names."""
    filesystem, path = _fsspec().url_to_fs(url, **storage_options)
    first, chained, rest = url.partition("::")

    def name_of(found: str) -> str:
        if "://" not in first:  # a path on this machine, or `simplecache::s3://…`
            return f"{first}::{rest.partition('://')[0]}://{found}" if chained else found
        return f"{filesystem.unstrip_protocol(found)}{chained}{rest}"

    if not any(wildcard in path for wildcard in "*?["):
        return [_Object(filesystem, path, name_of(path), None)]
    infos: dict[str, dict[str, Any]] = filesystem.glob(path, detail=True)
    return [
        _Object(filesystem, found, name_of(found), info.get("size"))
        for found, info in sorted(infos.items())
        if info.get("type") != "directory"
    ]


def _text(error: BaseException) -> str:
    """Return the message of an error that a file system raised; if the error has no message, return its type's name."""
    if isinstance(error, FileNotFoundError) and error.strerror is None:  # some file systems only name the path
        return os.strerror(errno.ENOENT)
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text or type(error).__name__
