"""Sources of items to search: files in git, members of archives, parts of documents, and objects in object stores.

An item is a pair of a name and the content to search. `fs()` makes a source for `search_in()` and `grep_in()`; the
other sources are used by options such as `inside=` and `rev=`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ripwrap.sources.filesystems import FileSystemSource, fs

__all__ = ["FileSystemSource", "fs"]

if not TYPE_CHECKING:  # with `__getattr__()`, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name in __all__:  # late, because other modules of this package are imported by each search
            from ripwrap.sources import filesystems

            return getattr(filesystems, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
