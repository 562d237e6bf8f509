"""Globs of denied paths, which no tool opens; the case and Unicode form of names are ignored.

A glob follows the rules of a line of `.gitignore` (https://git-scm.com/docs/gitignore), except that case is ignored: on
macOS and Windows, `.ENV` opens the file `.env`. A glob with characters outside of ASCII matches both Unicode forms (NFC
and NFD) of a name, because macOS treats them as the same name.

The globs are passed to rg as `--iglob=!…`. The last matching glob decides, and rg reads globs of `--iglob` last. So
they take precedence over types, ignore files, `--hidden` and `--no-ignore`, and rg does not enter a directory that they
match. They do not apply to the paths on rg's command line (rg-facts 53); `Sandbox.locate()` checks these paths.
"""

import functools
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripwrap._system.windows import IS_WINDOWS

if TYPE_CHECKING:
    from ripwrap._ignore.rules import IgnoreRule


SECRET_FILES: tuple[str, ...] = (
    *(".env", ".env.*", "*.env", ".envrc"),
    *("*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.pkcs12", "*.jks", "*.keystore", "*.ppk"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk"),
    *(".ssh/", ".gnupg/", ".aws/", ".azure/", ".kube/", "**/.config/gcloud/", "**/.docker/config.json", ".dockercfg"),
    *(".netrc", "_netrc", ".git-credentials", ".npmrc", ".pypirc", "**/.gem/credentials", "**/.cargo/credentials"),
    *("**/.cargo/credentials.toml", "**/.config/gh/hosts.yml", ".pgpass", ".my.cnf", ".s3cfg", ".htpasswd"),
    *("*.kdb", "*.kdbx", "*.keychain", "*.ovpn", ".vault-token", ".vault_pass*", "credentials.json"),
    *("client_secret*.json", "service{-,_}account*.json", "application_default_credentials.json"),
    *("secrets.{json,toml,yaml,yml}", "*.tfstate", "*.tfstate.*", "*.tfvars", ".terraformrc", ".*_history"),
)  # fmt: skip
"""Globs that match files which usually contain keys, passwords or tokens.

The sources are the signatures of gitrob and shhgit, GitHub's templates of `.gitignore`, and the documented places where
AWS, Azure, Google Cloud, Docker, Kubernetes, git, npm, pip, cargo and OpenSSH keep credentials.
"""

_CACHED_FOLDERS = 10_000
_CACHED_NAMES = 50_000
_PLAIN = frozenset("{}[]\\")
"""Characters that have a special meaning in a glob, besides `*` and `?`."""
_PLAIN_NAME = re.compile(r"[\w.-]+")
_PLAIN_EXTENSION = re.compile(r"\*\.\w+")
_CASES = (str, str.lower, str.upper)


@dataclass(frozen=True, slots=True)
class _Glob:
    """Glob of `deny`, parsed."""

    given: str
    spellings: tuple[str, ...]
    rules: "tuple[IgnoreRule, ...]"


class DenyRules:
    """Rules that deny paths; the paths are relative to a root."""

    def __init__(self, globs: str | Sequence[str], *, roots: Sequence[str] = (), windows: bool = IS_WINDOWS) -> None:
        """Parse the globs; the rest of a glob that begins with one of the directories `roots` applies in every root."""
        given = (globs,) if isinstance(globs, str) else tuple(globs)
        self.globs: tuple[_Glob, ...] = tuple(_parse(one, roots, windows=windows) for one in given)
        self._may_deny = _name_filter([rule for glob in self.globs for rule in glob.rules])
        self._folders: dict[str, str | None] = {}

    def __bool__(self) -> bool:
        """Return True if there are globs."""
        return bool(self.globs)

    def glob_of(self, path: str, *, folder: bool = False) -> str | None:
        """Return the glob that denies a path or a directory above it; `None` if the path is not denied."""
        if not self.globs or path == os.curdir:
            return None
        above = os.path.dirname(path)
        return (self._denied_folder(above) if above else None) or self.glob_of_name(path, folder=folder)

    def glob_of_name(self, path: str, *, folder: bool) -> str | None:
        """Return the glob that denies a path itself, or `None`; directories above the path are not checked."""
        if not self._may_deny(os.path.basename(path)):
            return None
        texts = list(_texts(path))
        for glob in self.globs:
            for rule in glob.rules:
                if (folder or not rule.only_folders) and any(map(rule.pattern.match_file, texts)):
                    return glob.given
        return None

    def _denied_folder(self, path: str) -> str | None:
        """Return the glob that denies a directory or one above it, which is nearly always known; else `None`."""
        # A loop and not recursion: a path may have more parts than Python's stack has room for.
        waiting: list[str] = []
        here = path
        while here and here not in self._folders:
            waiting.append(here)
            # A tree of git or an archive may have a path that begins with `/`, which has no directory above.
            here = "" if (above := os.path.dirname(here)) == here else above
        glob = self._folders.get(here)
        if len(self._folders) + len(waiting) > _CACHED_FOLDERS:
            self._folders = {}
        for folder in reversed(waiting):
            glob = glob or self.glob_of_name(folder, folder=True)
            self._folders[folder] = glob
        return glob


@dataclass(frozen=True, slots=True)
class DeniedPaths:
    """Denied paths of one location (file, directory or several roots), relative to the directory that rg runs in."""

    rules: DenyRules
    roots: tuple[str, ...] = ()

    def glob_of(self, path: str) -> str | None:
        """Return the glob that denies a path, or `None`; the path of a directory ends in a separator."""
        name = path.rstrip(os.sep)
        for root in self.roots:
            if name == root:
                return None
            if name.startswith(root + os.sep):
                name = name[len(root) + 1 :]
                break
        return self.rules.glob_of(name, folder=path.endswith(os.sep))

    def allows(self, path: str) -> bool:
        """Return True if no glob denies a path."""
        return self.glob_of(path) is None

    def iglobs(self) -> list[str]:
        """Return values of rg's option `iglob` that exclude the denied paths."""
        globs = [spelling for glob in self.rules.globs for spelling in glob.spellings]
        if not self.roots:
            return [f"!{glob}" for glob in globs]
        # `?` replaces each byte that is not UTF-8, because rg's globs must be UTF-8.
        roots = [re.sub("[\udc80-\udcff]", "?", escaped(root)) for root in self.roots]
        below = [one.removeprefix("/") if "/" in one.rstrip("/") else f"**/{one}" for one in globs]
        return [f"!/{root}/{glob}" for root in roots for glob in below]


def _parse(given: str, roots: Sequence[str], *, windows: bool) -> _Glob:
    """Parse a glob of `deny`."""
    if not isinstance(given, str):
        raise TypeError(f"a glob in deny must be a str, got {type(given).__name__}")
    if "\0" in given:
        raise ValueError("a NUL character cannot be part of a glob in deny; remove it")
    glob = re.sub(r"\\+(?![\[\]{},!])", "/", given) if windows else given
    for root in roots:
        start = root.replace(os.sep, "/").rstrip("/") + "/"
        if glob.startswith(start) and start != "/":
            glob = f"/{glob[len(start) :]}"
    if glob.startswith("./"):
        glob = glob[1:]
    if glob.startswith("!"):
        raise ValueError(
            f"the glob {given!r} in deny begins with !, but deny cannot allow files again; pass narrower globs"
        )
    if glob.startswith("~/"):
        raise ValueError(
            f"the glob {given!r} in deny matches nothing, because globs are compared with paths below a root; "
            f"write it as **{glob[1:]}"
        )
    if ".." in glob.split("/"):
        raise ValueError(f"the glob {given!r} in deny leads out of the roots; write a glob of paths below a root")
    globs = [glob]
    if glob.endswith("/**") and glob.strip("/*"):
        globs.append(f"{glob[:-2]}" if "/" in glob[:-3] else f"/{glob[:-2]}")  # deny the directory itself, too
    spellings = tuple(dict.fromkeys(one for glob in globs for one in _spellings(glob)))
    folded = () if given.isascii() else (unicodedata.normalize("NFC", glob.casefold()) for glob in globs)
    return _Glob(given, spellings, tuple(_rule(one, given) for one in (*spellings, *folded)))


def _rule(glob: str, given: str) -> "IgnoreRule":
    from ripwrap._ignore.rules import IgnoreRule  # late: it imports pathspec

    try:
        # with `!`, because a leading `#` would begin a comment
        rule = IgnoreRule.parse(f"!{glob}", allow_unclosed=False, ignore_case=True)
    except ValueError as error:
        raise ValueError(f"the glob {given!r} in deny does not parse: {error}") from error
    if rule is None or not glob.strip(" /"):
        raise ValueError(f"the glob {given!r} in deny is empty; leave it out")
    return rule


def _name_filter(rules: "Sequence[IgnoreRule]") -> Callable[[str], bool]:
    """Return a fast function that takes the last part of a path and returns False if no rule can match the path."""
    if not rules:
        return lambda _: False
    from ripwrap._ignore.globs import glob_pattern  # late: it imports pathspec

    names: set[str] = set()
    extensions: set[str] = set()
    regexes: list[str] = []
    for rule in rules:
        above, _, name = rule.glob.rpartition("/")
        regex = getattr(glob_pattern(name, include=True, allow_unclosed=False), "source", None)
        # A character class may match a slash, and alternatives may contain one.
        if regex is None or "[" in name or "**" in name or not _PLAIN.isdisjoint(above):
            return lambda _: True
        if name.isascii() and _PLAIN_NAME.fullmatch(name):
            names.add(name.lower())
        elif name.isascii() and _PLAIN_EXTENSION.fullmatch(name):
            extensions.add(name.lower()[2:])
        else:
            regexes.append(regex)
    others = re.compile("|".join(regexes) or "(?!)", re.IGNORECASE | re.ASCII).match

    def may_deny(name: str) -> bool:
        lower = name.lower()
        known = lower in names or lower.rpartition(".")[2] in extensions
        return known or any(others(text) for text in _texts(name))

    return functools.lru_cache(_CACHED_NAMES)(may_deny)


def _spellings(glob: str) -> Iterable[str]:
    """Yield the glob if it is ASCII, for which rg ignores case; otherwise its three cases, each in NFC and NFD."""
    if glob.isascii():
        yield glob
        return
    for form in ("NFC", "NFD"):
        yield from (unicodedata.normalize(form, case(glob)) for case in _CASES)


def _texts(path: str) -> Iterator[str]:
    """Yield the texts to compare with globs: the path and, if it is not ASCII, the case-folded path in NFC."""
    from ripwrap._ignore.rules import match_text

    yield match_text(path)
    if not path.isascii():
        yield match_text(unicodedata.normalize("NFC", path.casefold()))


def escaped(path: str, sep: str = os.sep) -> str:
    """Return a glob that matches only this path. In globs of rg, separators are slashes, even on Windows."""
    return re.sub(r"([\\*?\[\]{}!])", r"\\\1", path.replace(sep, "/"))
