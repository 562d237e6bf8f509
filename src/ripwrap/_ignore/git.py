"""Find git's global ignore file in the same way as rg."""

import os
import re

from ripwrap._safe_open import read_start

# The regular expression of ripgrep (`parse_excludes_file()` in `crates/ignore/src/gitignore.rs`). It finds the setting
# in any section of git's configuration.
_MAX_CONFIG_BYTES = 1_048_576
"""Number of bytes at the start of a configuration file that are searched for the setting."""

_EXCLUDES_FILE = re.compile(rb'(?im)^\s*excludesfile\s*=\s*"?\s*(\S+?)\s*"?\s*$')


def global_ignore_files() -> list[str]:
    """Return all paths that a version of rg may use as git's global ignore file; the path of rg 15.2 comes first.

    As in rg 15.2, the first of these files that has git's setting `core.excludesFile` decides: the file that
    `GIT_CONFIG_GLOBAL` names, `~/.gitconfig`, `$XDG_CONFIG_HOME/git/config`, and the file that `GIT_CONFIG_SYSTEM`
    names or else `/etc/gitconfig`. Earlier versions of rg read only the second and the third of these files. The
    default is `$XDG_CONFIG_HOME/git/ignore`. If `XDG_CONFIG_HOME` is not set, `~/.config` is used in its place. The
    ignore files may be missing.
    """
    home, settings = _folders()
    named = (_named_in(path, home) for path in config_files())
    return [*filter(None, named), os.path.join(settings, "git", "ignore")]


def config_files() -> list[str]:
    """Return the paths of git's configuration files, in the order in which `global_ignore_files()` reads them."""
    home, settings = _folders()
    first = os.environ.get("GIT_CONFIG_GLOBAL")
    return [
        *([first] if first else []),
        os.path.join(home, ".gitconfig"),
        os.path.join(settings, "git", "config"),
        os.environ.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig",
    ]


def _folders() -> tuple[str, str]:
    """Return the home directory, and `$XDG_CONFIG_HOME` or, if that is not set, `~/.config`."""
    home = os.environ.get("HOME") or os.path.expanduser("~")
    return home, os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")


def _named_in(path: str, home: str) -> str | None:
    """Return the path of the global ignore file that a configuration file of git names.

    The path has `home` in place of `~`. Return `None` if the configuration file names no global ignore file or cannot
    be read, or if the path is not UTF-8.
    """
    try:
        found = _EXCLUDES_FILE.search(read_start(path, _MAX_CONFIG_BYTES))
        return None if found is None else found[1].decode().replace("~", home)
    except (OSError, UnicodeDecodeError):
        return None
