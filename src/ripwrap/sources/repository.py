"""Find the repository of a directory, check where it leads, and prepare a directory from which git reads it.

A repository may be hostile: its configuration can include any file (errors of git quote it), name programs and servers,
and `.git`, `commondir`, `alternates` and links can lead to the repositories of other people. So git never reads the
repository's own directory. This module finds that directory without git, and makes a temporary one, as git's
`contrib/workdir/git-new-workdir` does: links to the refs and reflogs, and a new configuration that has only the formats
of the repository and the upstreams of its branches. git gets the objects as `GIT_OBJECT_DIRECTORY`. The page
https://git-scm.com/docs/gitrepository-layout describes these files.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from ripwrap._system.safe_open import open_regular_file
from ripwrap._system.windows import IS_WINDOWS, is_foreign_path
from ripwrap._text import plural, shown
from ripwrap.errors import AccessDeniedError, Hint, HintedText, SearchError
from ripwrap.options import Directories

_MAX_LINE_BYTES = 64 << 10
"""Maximum size in bytes of files with one line, such as `HEAD` and a file `.git`."""

_MAX_FILE_BYTES = 16 << 20
"""Maximum size in bytes of a configuration, and of a list of other directories of objects."""

_MAX_ALTERNATES = 100

_PSEUDO_REF = re.compile(r"[A-Z_]*HEAD")
"""Names of refs beside `refs`, such as `HEAD` and `FETCH_HEAD`."""

_KEPT_FORMAT = re.compile(rb"core\.(repositoryformatversion|precomposeunicode)|extensions\.(?!partialclone\Z)[a-z0-9]+")
_KEPT_UPSTREAM = re.compile(rb"branch\..*\.(remote|merge)|remote\..*\.fetch", re.DOTALL)
"""Settings that are kept. With them alone, git knows no server: it reads `remote.*.fetch` only for `@{upstream}`."""

_WORD = re.compile(rb"[A-Za-z0-9]*")
"""Values of settings of the format. Newer versions of git also know `extensions.refStorage` with a path, as in
`reftable:///path`."""

_ESCAPES = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n"}


@dataclass(frozen=True, slots=True)
class Repository:
    """Directories of a git repository, as real paths."""

    top: str
    git: str
    common: str
    objects: str


def real_directories(folders: Directories) -> tuple[str, ...]:
    """Return the real paths of directories, which need not exist."""
    several = (folders,) if isinstance(folders, (str, os.PathLike)) else tuple(folders)
    if not all(os.fspath(folder) for folder in several):
        raise ValueError(
            HintedText(Hint("repositories", kind="correct"), " has an empty path, which is no directory; name one")
        )
    return tuple(os.path.realpath(os.path.expanduser(folder)) for folder in several)


class RepositoryFinder:
    """Finder of the repository of a directory. It opens nothing outside of the allowed directories."""

    def __init__(self, cwd: str, allowed: tuple[str, ...] | None, check: Callable[[], object]) -> None:
        self._cwd = cwd
        self._allowed = allowed
        self._check = check

    def find(self) -> Repository | None:
        """Return the repository; `None` if the directory is in none."""
        here = os.path.realpath(self._cwd)
        ceilings = os.environ.get("GIT_CEILING_DIRECTORIES", "").split(os.pathsep)
        across = os.environ.get("GIT_DISCOVERY_ACROSS_FILESYSTEM", "").lower() in ("1", "true", "yes", "on")
        device = os.stat(here).st_dev
        for folder in map(str, (here, *PurePath(here).parents)):
            if folder != here and (folder in ceilings or (not across and os.stat(folder).st_dev != device)):
                return None
            own = os.path.join(folder, ".git")
            if os.path.lexists(own) and (found := self._read(folder, self._target(folder, own))):
                return found
            if self._is_allowed(folder) and (found := self._read("", folder)):
                return found
        return None

    def check_contents(self, repository: Repository) -> None:
        """Check that no link and no list of other directories leads out of the allowed directories."""
        if self._allowed is None:
            return
        waiting = [*self._object_directories(repository.objects), *self._ref_directories(repository)]
        seen: set[str] = set()
        while waiting:
            here = waiting.pop()
            if here in seen:
                continue
            seen.add(here)
            self._check()
            with suppress(FileNotFoundError, NotADirectoryError), os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_symlink():
                        waiting.append(self.real(entry.path))
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif not entry.is_file(follow_symlinks=False):
                        raise self._denied()

    def read(self, folder: str, name: str, max_bytes: int = _MAX_LINE_BYTES, *, cut: bool = False) -> bytes:
        """Return the content of a file of the repository; empty if it does not exist, or is not a regular file."""
        path = self.real(os.path.join(folder, name))
        try:
            with open_regular_file(os.path.dirname(path), os.path.basename(path), follow=False) as file:
                content = file.read(max_bytes + 1)
        except OSError:
            return b""
        if len(content) > max_bytes and not cut:
            raise SearchError(f"{name} of the git repository is larger than {plural(max_bytes, 'byte')}; repair it")
        return content[:max_bytes]

    def real(self, path: str) -> str:
        """Return the real path of a file or directory of the repository."""
        if IS_WINDOWS and is_foreign_path(path, [PurePath(self._cwd).anchor]):
            raise self._denied()  # the check alone would send credentials to the other computer
        try:
            found = os.path.realpath(path)
        except ValueError:  # a NUL
            raise self._denied() from None
        if not self._is_allowed(found):
            raise self._denied()
        return found

    def _target(self, folder: str, own: str) -> str:
        """Return the directory that `.git` is, or that the file `.git` names."""
        if os.path.isdir(self.real(own)):
            return own
        text = self.read(folder, ".git")
        named = os.fsdecode(text.removeprefix(b"gitdir:").strip()) if text.startswith(b"gitdir:") else ""
        return os.path.join(folder, named) if named else own

    def _read(self, top: str, folder: str) -> Repository | None:
        """Return the repository with this directory; `None` if the directory is none of a repository."""
        git = self.real(folder)
        if not os.path.lexists(os.path.join(git, "HEAD")):
            return None
        text = os.fsdecode(self.read(git, "commondir").rstrip(b"\r\n"))
        common = self.real(os.path.join(git, text)) if text else git
        objects = self.real(os.path.join(common, "objects"))
        if not os.path.isdir(objects) or not os.path.isdir(self.real(os.path.join(common, "refs"))):
            return None
        return Repository(top, git, common, objects)

    def _object_directories(self, objects: str) -> Iterator[str]:
        """Yield a directory of objects and its alternates, with their alternates."""
        waiting, seen = [objects], set[str]()
        while waiting:
            folder = waiting.pop()
            if folder in seen:
                continue
            seen.add(folder)
            yield folder
            for line in self.read(os.path.join(folder, "info"), "alternates", _MAX_FILE_BYTES).split(b"\n"):
                if len(seen) + len(waiting) > 2 * _MAX_ALTERNATES:  # each has two readings
                    raise SearchError(f"the git repository has more than {_MAX_ALTERNATES} directories of objects")
                if not line or line.startswith(b"#"):
                    continue
                if line.startswith(b'"'):  # quoted as in C; git itself never writes that
                    raise self._denied()
                named = os.path.join(folder, os.fsdecode(line))
                # git removes `..` before it resolves links, unlike the system. Both readings must be allowed.
                waiting += {self.real(named), self.real(os.path.normpath(named))}

    def _ref_directories(self, repository: Repository) -> Iterator[str]:
        for folder, name in ((repository.common, "refs"), (repository.common, "logs"), (repository.common, "reftable")):
            yield self.real(os.path.join(folder, name))
        for line in self.read(os.path.join(repository.common, "reftable"), "tables.list", _MAX_FILE_BYTES).split(b"\n"):
            if b"/" in line or b"\\" in line:  # a name of a file, which git does not check
                raise self._denied()

    def _is_allowed(self, path: str) -> bool:
        return self._allowed is None or any(PurePath(path).is_relative_to(folder) for folder in self._allowed)

    def _denied(self) -> AccessDeniedError:
        # The error neither names the path nor tells if it exists.
        said = (
            f"the git repository of {shown(self._cwd)} is not allowed, because its directories are not all inside "
            "the allowed directories: its .git, one of its links or its alternates lead out of them, or the "
            "repository begins above them; if you trust it, allow its .git directory with "
        )
        return AccessDeniedError(
            HintedText(said, Hint("repositories", kind="correct")), path=self._cwd, roots=self._allowed or ()
        )


def prepare(
    repository: Repository, finder: RepositoryFinder, folder: str, parse: Callable[[bytes], bytes]
) -> Mapping[str, str]:
    """Fill an empty directory from which git reads a repository, and return the environment variables for git."""
    git, common = repository.git, repository.common
    with os.scandir(git) as entries:
        names = [entry.name for entry in entries if _PSEUDO_REF.fullmatch(entry.name)]
    for name in names:
        Path(folder, name).write_bytes(_pseudo_ref(git, name) or finder.read(git, name, cut=True))
    os.mkdir(os.path.join(folder, "logs"))
    linked = ((common, "refs"), (common, "reftable"), (common, "packed-refs"), (common, "shallow"))
    for source, name in (*linked, (git, os.path.join("logs", "HEAD")), (common, os.path.join("logs", "refs"))):
        _link(finder.real(os.path.join(source, name)), os.path.join(folder, name))
    settings = _settings(parse(finder.read(common, "config", _MAX_FILE_BYTES)))
    Path(folder, "config").write_bytes(settings + (b"" if repository.top else b"[core]\n\tbare = true\n"))
    tree = {"GIT_WORK_TREE": repository.top} if repository.top else {}
    return {"GIT_DIR": folder, "GIT_OBJECT_DIRECTORY": repository.objects, **tree}


def _pseudo_ref(git: str, name: str) -> bytes:
    """Return the text of a symbolic ref that is a link (core.preferSymlinkRefs in git-config(1)); otherwise nothing."""
    with suppress(OSError):
        target = os.readlink(os.path.join(git, name))
        if target.startswith("refs/"):
            return b"ref: " + os.fsencode(target) + b"\n"
    return b""


def _link(source: str, target: str) -> None:
    """Make a link to a file or directory that exists; where a user may make no links, as on Windows, copy it."""
    if os.path.isdir(source):
        copy: Callable[[str, str], object] = shutil.copytree
    elif os.path.isfile(source):
        copy = shutil.copyfile
    else:
        return
    try:
        os.symlink(source, target)
    except OSError:
        copy(source, target)


def _settings(listed: bytes) -> bytes:
    """Return a configuration with the settings that git needs to read the objects and refs."""
    kept: list[str] = []
    for one in listed.split(b"\0"):
        key, _, value = one.partition(b"\n")
        if _KEPT_UPSTREAM.fullmatch(key) or (_KEPT_FORMAT.fullmatch(key) and _WORD.fullmatch(value)):
            section, _, rest = os.fsdecode(key).partition(".")
            name, _, last = rest.rpartition(".")
            head = f'{section} "{name.translate(_ESCAPES)}"' if name else section
            kept.append(f'[{head}]\n\t{last} = "{os.fsdecode(value).translate(_ESCAPES)}"\n')
    return os.fsencode("".join(kept))
