"""Find links that lead up, to a directory that holds the searched one, so that rg does not enter them.

rg finds a loop only if the link leads to the searched directory or one below it. Behind a link to a directory above, rg
would search all that lies there, beside the searched directory.
"""

import os
import re
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice

from ripwrap._ripgrep.query import Query
from ripwrap.options import EXCLUDED

MAX_ENTRIES = 500
"""Maximum number of names of the searched directories, level by level, among which links are looked for.

rg starts in several milliseconds, and this takes one or two at most. Behind a link below these levels, rg does search.
"""

_SPECIAL = re.compile(r"[*?\[\]{}\\ ]" if os.sep == "/" else r"[*?\[\]{} ]")
"""Characters of globs, and the space, which rg removes at the end of a glob."""


def without_upward_links(query: Query) -> Query:
    """Return the query with a glob that leaves out each link that leads up; the query itself if there are none."""
    if query.on is not None or query.mode == "types" or not query.follows or query.options.get("max_depth", 2) < 2:
        return query
    links = [*_upward_links(query)]
    if not links:
        return query
    globs = [f"!{_SPECIAL.sub(_escaped, link.replace(os.sep, '/'))}" for link in links]
    # rg compares an absolute path that is outside of its working directory with the whole glob.
    globs = [one.replace("!", "!**" if one.startswith("!/") else "!/", 1) for one in globs]
    if query.values("iglob"):  # these apply after `glob`
        return query.with_(iglob=[*query.values("iglob"), *globs])
    return query.with_(glob=[*query.values("glob"), *globs])


def _upward_links(query: Query) -> Iterator[str]:
    """Yield the paths of links that lead up, relative to the working directory of the query if they are below it."""
    named = ((path, os.path.join(query.cwd, path)) for path in query.paths[:MAX_ENTRIES])
    roots = {path: os.path.realpath(full) for path, full in named if os.path.isdir(full)}
    here, left = os.path.realpath(query.cwd) if roots else "", MAX_ENTRIES
    # With each directory go the targets of the links above it: a directory with two links to it is read behind both.
    waiting = deque((path, path, frozenset({target})) for path, target in roots.items())
    while waiting and left > 0:
        root, folder, followed = waiting.popleft()
        number, folders = _folders(os.path.join(query.cwd, folder), left)
        left -= max(1, number)
        for entry in folders:
            path = entry.name if folder == os.curdir else os.path.join(folder, entry.name)
            target = os.path.realpath(entry.path) if entry.is_symlink() else ""
            if target and _leads_up(target, roots[root], here):
                yield os.path.normpath(path.removeprefix(os.path.join(query.cwd, "")))
            elif target not in followed:
                waiting.append((root, path, followed | ({target} - {""})))


def _folders(folder: str, most: int) -> tuple[int, Sequence["os.DirEntry[str]"]]:
    """Return the number of names in a directory, at most `most`, and the directories among them, also linked ones."""
    with suppress(OSError), os.scandir(folder) as entries:
        names = list(islice(entries, most))
        return len(names), [entry for entry in names if entry.name not in EXCLUDED and _is_folder(entry)]
    return 0, ()


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def _leads_up(target: str, root: str, cwd: str) -> bool:
    """Return True if a directory holds the working directory or the searched directory, and rg would enter it."""
    return not _holds(root, target) and (_holds(target, cwd) or _holds(target, root))


def _holds(folder: str, path: str) -> bool:
    return path == folder or path.startswith(os.path.join(folder, ""))


def _escaped(found: "re.Match[str]") -> str:
    return "\\\\" if found[0] == "\\" else f"[{found[0]}]"
