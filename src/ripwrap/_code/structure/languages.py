"""Table of ast-grep's languages: names, aliases, extensions, and the character that stands for `$` in patterns.

The source is `crates/language/src/lib.rs` of ast-grep; a test compares the table with the installed version.
"""

from difflib import get_close_matches
from typing import NamedTuple


class Language(NamedTuple):
    """Language that ast-grep can parse."""

    name: str
    extensions: tuple[str, ...]
    expando: str


_TABLE = {
    "bash": ("", "bash bats cgi command env fcgi ksh sh tmux tool zsh", "$"),
    "c": ("", "c h", "\U00010000"),
    "cpp": ("cc c++ cxx", "cc hpp cpp c++ hh cxx cu ino", "\U00010000"),
    "csharp": ("cs", "cs", "µ"),
    "css": ("", "css scss", "_"),
    "dart": ("", "dart", "$"),
    "elixir": ("ex", "ex exs", "µ"),
    "go": ("golang", "go", "µ"),
    "haskell": ("hs", "hs", "µ"),
    "hcl": ("", "hcl nomad tf tfvars workflow", "µ"),
    "html": ("", "html htm xhtml", "z"),
    "java": ("", "java", "$"),
    "javascript": ("js jsx", "cjs js mjs jsx", "$"),
    "json": ("", "json", "$"),
    "kotlin": ("kt", "kt ktm kts", "µ"),
    "lua": ("", "lua", "$"),
    "markdown": ("md", "markdown md", "$"),
    "nix": ("", "nix", "_"),
    "php": ("", "php", "µ"),
    "python": ("py", "py py3 pyi bzl bazel", "µ"),
    "ruby": ("rb", "rb rbw gemspec", "µ"),
    "rust": ("rs", "rs", "µ"),
    "scala": ("", "scala sc sbt", "$"),
    "solidity": ("sol", "sol", "$"),
    "swift": ("", "swift", "µ"),
    "tsx": ("", "tsx", "$"),
    "typescript": ("ts", "ts cts mts", "$"),
    "yaml": ("yml", "yaml yml", "$"),
    "zig": ("", "zig", "_"),
}

LANGUAGES = {
    name: Language(name, tuple(extensions.split()), expando) for name, (_, extensions, expando) in _TABLE.items()
}
"""Languages by name."""

_ALIASES = {alias: name for name, (aliases, _, _) in _TABLE.items() for alias in aliases.split()}


def find_language(name: str) -> Language:
    """Return the language with this name or alias; case is ignored."""
    lower = name.lower()
    found = LANGUAGES.get(_ALIASES.get(lower, lower))
    if found is None:
        similar = get_close_matches(lower, [*LANGUAGES, *_ALIASES], 3)
        hint = f"did you mean {' or '.join(similar)}?" if similar else f"known languages are {', '.join(LANGUAGES)}"
        raise ValueError(f"unknown language {name!r}; {hint}")
    return found
