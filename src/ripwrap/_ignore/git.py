"""Find git's global ignore file in the same way as rg."""

import os
import re
from collections.abc import Mapping

from ripwrap._safe_open import read_start

# The regular expression of ripgrep (`parse_excludes_file()` in `crates/ignore/src/gitignore.rs`). It finds the setting
# in any section of git's configuration.
_MAX_CONFIG_BYTES = 1_048_576
"""Number of bytes at the start of a configuration file that are searched for the setting."""

_EXCLUDES_FILE = re.compile(rb'(?im)^\s*excludesfile\s*=\s*"?\s*(\S+?)\s*"?\s*$')


def global_ignore_file(environment: Mapping[str, str] | None = None) -> str:
    """Return the path that git's setting `core.excludesFile` names, or else git's default; the file may be missing.

    As in rg 15.2, the first of these files that has the setting decides: the file that `GIT_CONFIG_GLOBAL` names,
    `~/.gitconfig`, `$XDG_CONFIG_HOME/git/config`, and the file that `GIT_CONFIG_SYSTEM` names or else `/etc/gitconfig`.
    Earlier versions of rg read only the second and the third of these files. The default is
    `$XDG_CONFIG_HOME/git/ignore`. If `XDG_CONFIG_HOME` is not set, `~/.config` is used in its place.

    Args:
        environment: Environment variables; `None` means those of the process.
    """
    return global_ignore_files(environment)[0]


def global_ignore_files(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return all paths that a version of rg may use as git's global ignore file; the path of rg 15.2 comes first."""
    home, settings = _folders(environment)
    named = (_named_in(path, home) for path in config_files(environment))
    return [*filter(None, named), os.path.join(settings, "git", "ignore")]


def config_files(environment: Mapping[str, str] | None = None) -> list[str]:
    """Return the paths of git's configuration files, in the order in which `global_ignore_file()` reads them."""
    variables = os.environ if environment is None else environment
    home, settings = _folders(environment)
    first = variables.get("GIT_CONFIG_GLOBAL")
    return [
        *([first] if first else []),
        os.path.join(home, ".gitconfig"),
        os.path.join(settings, "git", "config"),
        variables.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig",
    ]


def _folders(environment: Mapping[str, str] | None) -> tuple[str, str]:
    """Return the home directory, and `$XDG_CONFIG_HOME` or, if that is not set, `~/.config`."""
    variables = os.environ if environment is None else environment
    home = variables.get("HOME") or os.path.expanduser("~")
    return home, variables.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")


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
