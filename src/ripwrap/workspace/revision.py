"""Places of a tool call that are not on the disk: where a path of a revision is, and which items an answer may name.

An item is a file in a revision, or a part of an archive or document. The globs of `deny` exclude items, too, and hidden
items are left out without `include_hidden`. Paths are those of the revision, so no link on the disk is followed to find
one. A revision must be a commit. In the tree object of a subdirectory, paths lack the name of the subdirectory, so the
globs might not match them.
"""

import io
import os
import posixpath
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import cast

from ripwrap._system.concurrency import CANCELLED
from ripwrap._text import path_from_shown, shown_path
from ripwrap.errors import AccessDeniedError
from ripwrap.sources.base import SEPARATOR, UNPACKED, check_installed, find_format, format_of, installed_formats
from ripwrap.sources.git import RevisionTree
from ripwrap.sources.reading import DocumentReader
from ripwrap.workspace.deny import DeniedPaths
from ripwrap.workspace.sandbox import MissingPathError, RootLocation, Sandbox, places_in

MAX_MEMBER_BYTES = 32 << 20
"""Maximum size in bytes of a member of an archive that is read as a file."""


def member_format(name: str) -> str | None:
    """Return the format of an archive or document whose members or parts are read as files; `None` for other files."""
    documents = ("ipynb-outputs", "pdf", "docx", "xlsx", *installed_formats())
    return format_of(name, (*UNPACKED, "gz", "bz2", "xz", "zst", *documents))


def locate_in_revision(
    sandbox: Sandbox,
    repositories: Sequence[str],
    rev: str,
    path: str,
    timeout: float | None,
    *,
    must_exist: bool = True,
) -> RootLocation:
    """Return the location of a path in a revision; blocking. A path that need not exist is taken for that of a file.

    The root must contain the repository with all directories that it uses, unless `repositories` have them.
    """
    if len(sandbox.roots) > 1 and os.path.normpath(path) == os.curdir:
        raise ValueError(
            "with rev, only one root can be searched; set path to the root whose git repository has this revision"
        )
    failed: Exception | None = None
    for root, relative in sandbox.candidates(path, in_revision=True):
        below = _repository_below(root, relative)
        tree = RevisionTree(root, rev, below, (*sandbox.roots, *repositories))
        try:
            with CANCELLED.get().child(), closing(tree.source((relative,), timeout)) as source:
                commit, kind, detail = source.find()
        except (ValueError, AccessDeniedError) as error:  # another root may have the revision
            failed = failed or error
            continue
        except FileNotFoundError:  # the revision does not have the root
            continue
        if glob := sandbox.deny.glob_of(relative, folder=kind in ("tree", "")):
            said = f'{shown_path(path)} is denied by "{glob}"; pass another path'
            raise AccessDeniedError(said, path=path, roots=sandbox.roots, denied_by=glob)
        if not kind and not must_exist:
            kind = "file"
        if kind in ("link", "submodule"):
            raise _no_file_error(path, relative.replace(os.sep, "/"), rev, kind, detail)
        if kind:
            found = replace(tree, commit=commit, is_file=kind == "file")
            return RootLocation(root, (relative,), root if len(sandbox.roots) > 1 else "", revision=found)
    raise failed or _missing_error(sandbox, path, rev)


def _no_file_error(path: str, name: str, rev: str, kind: str, detail: str) -> ValueError:
    """Return the error about a link or a submodule, whose `detail` is its target or its commit."""
    said = f"{shown_path(path)} is a {kind} in {rev}"
    if kind == "link":
        target = shown_path(posixpath.normpath(posixpath.join(posixpath.dirname(name), detail)))
        return ValueError(f"{said}, and no link is followed there; pass the path that it leads to, {target}")
    commit = detail[:12]
    return ValueError(f"{said}, at commit {commit} of another repository; if that is checked out, pass rev={commit}")


def _missing_error(sandbox: Sandbox, path: str, rev: str) -> MissingPathError:
    try:
        sandbox.locate(path)
    except (OSError, ValueError):
        instead = "find_files with this rev lists the files"
    else:
        instead = "it is on the disk, so leave out rev, or pass a revision that has it"
    return MissingPathError(f"{shown_path(path)} does not exist in {rev}; {instead}")


def _repository_below(root: str, path: str) -> str:
    """Return the directory of the repository or worktree below a root that has a path; empty if it is the root's."""
    while path not in ("", os.curdir):
        folder = os.path.join(root, path)
        if os.path.realpath(folder) == folder and os.path.lexists(os.path.join(folder, ".git")):
            return path.replace(os.sep, "/")
        path = os.path.dirname(path)
    return ""


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """Member of an archive, which is opened as a file of a revision is."""

    content: bytes
    is_file: bool = True

    def open(self, _path: str, _timeout: float | None) -> io.BufferedReader:
        """Open the member."""
        return io.BufferedReader(cast("io.RawIOBase", io.BytesIO(self.content)))


def locate_member(sandbox: Sandbox, path: str, timeout: float | None) -> tuple[RootLocation, RootLocation]:
    """Return the locations of an archive and of the member in a path such as `a.zip!/b.py:3`; blocking.

    A document stands for an archive of its parts, as in `a.xlsx!/sheet Prices:3` and `a.ipynb!/cell 7 output`.
    """
    from ripwrap.places.inside import document_cache
    from ripwrap.sources.archives import ArchiveSource, Bounds  # late: few calls name a member

    at = path.find(SEPARATOR)
    outer = sandbox.locate(path[:at])
    parts = path.split(SEPARATOR)
    kinds = [kind for kind in map(member_format, (outer.paths[0], *parts[1:-1])) if kind]
    if not outer.is_file or member_format(outer.paths[0]) is None:
        raise MissingPathError(f"{shown_path(path)} is not in an archive or document; ls lists the files")
    for kind in kinds:
        if document := find_format(kind):
            check_installed(document)
    spelled = [*dict.fromkeys((path_from_shown(path[at:]), path[at:]))]
    readings: dict[str, tuple[int, int] | None] = dict.fromkeys(f"{outer.paths[0]}{one}" for one in spelled)
    for one in spelled:
        readings |= {f"{outer.paths[0]}{name}": (start, end) for name, start, end in places_in(one)}
    allows = ItemFilter(outer, sandbox.denied_paths(outer), hidden=True).allows
    deadline = None if timeout is None else time.monotonic() + timeout
    bounds, reader = Bounds(member_bytes=MAX_MEMBER_BYTES), DocumentReader(document_cache(), until=deadline)
    named = frozenset(outer.paths)
    source = ArchiveSource(outer.cwd, outer.paths, kinds, bounds, follow=False, named=named, reader=reader)
    source.selects = lambda name: any(one == name or one.startswith(f"{name}{SEPARATOR}") for one in readings)
    source.deadline = deadline
    found: dict[str, bytes] = {}
    with closing(source):
        for name, content in source:
            if str(name) in readings and isinstance(content, bytes | str):
                found[str(name)] = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    chosen = next((name for name in readings if name in found), "")
    if not chosen:
        why = next((f"; {error}" for error in source.errors), "")
        raise MissingPathError(
            f"{shown_path(path)} is not in {shown_path(outer.name)}{why}; grep_content names its members"
        )
    if not allows(chosen):
        raise AccessDeniedError(f"{shown_path(path)} is denied; pass another path", path=path, roots=sandbox.roots)
    member = cast("RevisionTree", ArchiveMember(found[chosen]))
    return outer, replace(outer, paths=(chosen,), lines=readings[chosen], revision=member)


@dataclass(frozen=True, slots=True)
class ItemFilter:
    """Filter for items by name: the path in a revision, or the path of an archive and that of its member."""

    location: RootLocation
    denied: DeniedPaths | None
    hidden: bool

    def allows(self, name: str) -> bool:
        """Return True if an answer may show an item."""
        file, *members = name.split(SEPARATOR)
        denied = self.denied
        if denied is not None:
            if not denied.allows(file.replace("/", os.sep)):
                return False
            # Globs are compared with the path of a member from the top of the archive, and with the path that the
            # member would have if the archive were unpacked in its own directory.
            # Programs drop a `..` (unzip), or follow it (tar).
            readings = [path for member in members for path in (member, _collapsed(member))]
            inner = [path for reading in readings for path in (_plain(reading), _as_unpacked(reading))]
            paths = (*inner, *(os.path.join(os.path.dirname(file), path) for path in inner))
            if any(denied.rules.glob_of(path) for path in paths if path):
                return False
        if self.hidden:
            return True
        return not any(part.startswith(".") for part in self._below(file)) and not any(
            part.startswith(".") for member in members for part in _plain(member).split(os.sep)
        )

    def _below(self, file: str) -> list[str]:
        """Return the parts of a path below the location, without the location itself, because that may be hidden."""
        for root in self.location.paths:
            start = root.replace(os.sep, "/")
            if file == start:
                return []
            if file.replace(os.sep, "/").startswith(f"{start}/"):
                return file[len(start) + 1 :].replace(os.sep, "/").split("/")
        return [part for part in file.replace(os.sep, "/").split("/") if part not in ("", os.curdir)]


def _plain(member: str) -> str:
    """Return the path of an archive's member for comparison with globs: without a leading slash."""
    parts = member.replace("\\", "/").split("/")
    return os.sep.join(part for part in parts if part not in ("", os.curdir))


def _collapsed(member: str) -> str:
    """Return the path of an archive's member without the names that each `..` takes back."""
    return posixpath.normpath("/" + member.replace("\\", "/"))


def _as_unpacked(member: str) -> str:
    """Return the path that Windows makes of a member: no `..`, and no dots, spaces or streams after names."""
    return _plain("/".join(part.partition(":")[0].rstrip(". ") for part in _plain(member).split(os.sep)))
