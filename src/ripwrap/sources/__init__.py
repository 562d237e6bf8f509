"""Sources of items to search: revisions of git, members of archives, objects of stores.

An item is a name with a content. `fs()` makes the source that `search_in()` and `grep_in()` take.
"""

from ripwrap.sources.filesystems import FileSystemSource, fs

__all__ = ["FileSystemSource", "fs"]
