"""Sources of items to search: files of a git revision, members of archives, objects in object stores.

An item is a pair of a name and the content to search. `fs()` makes a source for `search_in()` and `grep_in()`.
"""

from ripwrap.sources.filesystems import FileSystemSource, fs

__all__ = ["FileSystemSource", "fs"]
