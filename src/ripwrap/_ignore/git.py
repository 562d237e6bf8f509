"""Find git's global ignore file, as rg finds it."""

import os
import re
from collections.abc import Iterator, Mapping

# The regular expression of ripgrep (`parse_excludes_file()` in `crates/ignore/src/gitignore.rs`), which ignores
# sections.
_EXCLUDES_FILE = re.compile(rb'(?im)^\s*excludesfile\s*=\s*"?\s*(\S+?)\s*"?\s*$')


def global_ignore_file(environment: Mapping[str, str] | None = None) -> str:
    """Return the path in git's setting `core.excludesFile`, or git's default; the file may not exist.

    The order is that of rg 15.2: `GIT_CONFIG_GLOBAL`, `~/.gitconfig`, `$XDG_CONFIG_HOME/git/config`,
    `GIT_CONFIG_SYSTEM` or `/etc/gitconfig`, and then `$XDG_CONFIG_HOME/git/ignore`. Earlier versions do not read the
    two environment variables of git and the system's configuration.

    Args:
        environment: Environment variables; `None` means those of the process.
    """
    variables = os.environ if environment is None else environment
    home = variables.get("HOME") or os.path.expanduser("~")
    config = variables.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    for path in _config_files(variables, home, config):
        try:
            with open(path, "rb") as file:
                found = _EXCLUDES_FILE.search(file.read())
        except OSError:
            continue
        if found is not None:
            try:
                return found[1].decode().replace("~", home)
            except UnicodeDecodeError:
                continue
    return os.path.join(config, "git", "ignore")


def _config_files(variables: Mapping[str, str], home: str, config: str) -> Iterator[str]:
    if path := variables.get("GIT_CONFIG_GLOBAL"):
        yield path
    yield os.path.join(home, ".gitconfig")
    yield os.path.join(config, "git", "config")
    yield variables.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"
