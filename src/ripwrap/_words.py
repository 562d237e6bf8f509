"""Names that callers use for arguments of ripwrap, from rg and other programs, and what errors say about them."""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from inspect import getattr_static
from typing import Any, cast

ALIASES: Mapping[str, tuple[str, ...]] = {
    "pattern": ("query", "regex"),
    "query": ("question", "search_term", "q"),
    "path": ("paths", "search_path", "directory", "dir", "target_directory", "dir_path", "cwd", "file_path"),
    "start_line": ("offset", "start", "line"),
    "end_line": ("end",),
    "ranges": ("view_range", "line_range"),
    "context_lines": ("context", "-C", "C"),
    "before_context": ("-B", "B"),
    "after_context": ("-A", "A"),
    "max_matches": ("head_limit", "limit", "max_results", "-m"),
    "limit": ("head_limit", "max_results", "max_entries"),
    "file_pattern": ("glob", "include", "include_pattern", "-g"),
    "file_type": ("type", "-t"),
    "entry_type": ("type", "-t", "-type"),
    "case_insensitive": ("-i", "ignore_case"),
    "fixed_strings": ("-F", "literal", "literal_text"),
    "multiline": ("-U",),
    "include_hidden": ("hidden",),
    "include_ignored": ("no_ignore",),
    "ignore": ("exclude", "exclude_patterns"),
    "max_depth": ("depth",),
}
"""Map the name of an argument to its other names in the library, in rg and in other programs.

The agent tools accept all of these names. If a call of the library has an unknown name, the error suggests the name
that the called function has for the same argument.
"""


_WORDS: Mapping[str, str] = {
    "root": "cwd",
    "folder": "cwd",
    "regexp": "pattern",
    "regexes": "pattern",
    "patterns": "pattern",
    "expression": "pattern",
    "needle": "pattern",
    "replace": "replacement",
    "repl": "replacement",
    "new": "replacement",
    "file": "path",
    "filename": "path",
    "insensitive": "ignore_case",
    "icase": "ignore_case",
    "nocase": "ignore_case",
    "whole_word": "word_regexp",
    "whole_words": "word_regexp",
    "word": "word_regexp",
    "whole_line": "line_regexp",
    "fixed": "fixed_strings",
    "invert": "invert_match",
    "dotall": "multiline_dotall",
    "before": "before_context",
    "after": "after_context",
    "follow_links": "follow",
    "follow_symlinks": "follow",
    "max_size": "max_filesize",
    "max_file_size": "max_filesize",
    "sort_by": "sort",
    "jobs": "threads",
    "num_threads": "threads",
    "language": "lang",
    "host": "on",
    "revision": "rev",
    "commit": "rev",
    "executable": "rg",
    "rg_path": "rg",
}
"""Map a word of other libraries to the argument with that meaning, for errors only."""

_INSTEAD: Mapping[str, str] = {
    "timeout": "cancel the call instead, as in `async with asyncio.timeout(5)` or `with anyio.fail_after(5)`",
    "root": "pass directories by position",
}
"""Map a word of other libraries to what ripwrap has instead of such an argument, as an end of an error message."""

_DEFAULT = "leave it out, because this is the default"
_REGEX, _GITIGNORE = (_DEFAULT, "pass fixed_strings=True"), (_DEFAULT, "pass no_ignore=True")
_LINE_NUMBERS, _NO_HIDDEN = (_DEFAULT, "pass no_line_number=True"), ("pass hidden=False", "pass hidden=True")
SWITCHES: Mapping[str, tuple[str, str]] = {
    "case_sensitive": (_DEFAULT, "pass ignore_case=True"),
    **dict.fromkeys(("regex", "regexp", "is_regex", "use_regex"), _REGEX),
    **dict.fromkeys(("respect_gitignore", "gitignore", "use_gitignore", "respect_ignore"), _GITIGNORE),
    **dict.fromkeys(("line_number", "line_numbers"), _LINE_NUMBERS),
    **dict.fromkeys(("no_hidden", "skip_hidden", "ignore_hidden", "exclude_hidden"), _NO_HIDDEN),
    "no_follow": ("pass follow=False", "pass follow=True"),
    "recursive": (_DEFAULT, "pass max_depth=1"),
    "unicode": (_DEFAULT, "pass no_unicode=True"),
    "search_zip": ("pass inside=['gz', 'bz2', 'xz', 'zst'] instead", _DEFAULT),
    "only_matching": ("match.submatches has the parts that matched", _DEFAULT),
}
"""Map a word of other libraries for a switch to the ends of error messages for its values True and False."""


def _is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike))


def _are_paths(value: object) -> bool:
    if not isinstance(value, Iterable) or isinstance(value, (bytes, bytearray)):
        return _is_path(value)
    # An iterator can be read only once, so its paths are checked when they are used.
    return not isinstance(value, (list, tuple)) or all(map(_is_path, cast("Iterable[object]", value)))


def _are_texts(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (bytes, bytearray))


def _has(*names: str) -> Callable[[object], bool]:
    """Return a check for attributes, which are not computed: the version of an `RgBinary` runs rg."""
    return lambda value: (
        not isinstance(value, type) and all(getattr_static(value, name, None) is not None for name in names)
    )


_PATH, _PATHS = (_is_path, "a path, as a str or os.PathLike"), (_are_paths, "a path or an iterable of paths")
KINDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("cwd", "path", "root", "journal", "journals", "lease_folder", "location"), _PATH),
    **dict.fromkeys(("paths", "repositories"), _PATHS),
    **dict.fromkeys(("all_of", "any_of", "none_of"), (_are_texts, "a pattern or an iterable of patterns")),
    "exclude": (_are_texts, "an iterable of names"),
    "rg": (lambda value: _is_path(value) or _has("path", "version")(value), "a path or name of rg, or an RgBinary"),
    "where": (_has("plan"), "a place, such as ripwrap.places.Directory('src') or ripwrap.places.Revision('main')"),
    "on": (_has("command_line"), "a host, such as ripwrap.remote.ssh('name') or ripwrap.remote.docker('name')"),
    "match": (_has("path"), "a match, a line of context or a chunk, as search() and rank() return it"),
}
"""Map the names of arguments that are objects to what they may be: a check, and a phrase for an error."""


def check_kind(name: str, value: object) -> None:
    """Raise `TypeError` if an argument that has a kind is something else; `None` is no value."""
    if name in KINDS and value is not None and not KINDS[name][0](value):
        shown = f"{value[:60]!r}" if isinstance(value, str) else type(value).__name__
        raise TypeError(f"{name} must be {KINDS[name][1]}, got {shown}")


def suggest(name: str, known: Collection[str]) -> str:
    """Return the known argument that an unknown name stands for, or is similar to; empty if no argument fits.

    For a name such as `exclude`, return `glob="!…"` if `glob` is known.
    """
    for key, others in ALIASES.items():
        row = (key, *others)
        if name in row and (meant := next((one for one in row if one in known), "")):
            return meant
    if _WORDS.get(name) in known:
        return _WORDS[name]
    if name in ("ignore", *ALIASES["ignore"]) and "glob" in known:
        return 'glob="!…"'
    import difflib  # late: only errors need it

    # Never suggest the opposite, such as files_without_match for files_with_matches.
    alike = [one for one in known if ("without" in one) == ("without" in name)]
    return next(iter(difflib.get_close_matches(name, alike, 1, cutoff=0.8)), "")


def advise(name: str, known: Collection[str], value: object = None) -> str:
    """Return the end of an error about an unknown argument, such as `did you mean cwd?`; empty without any advice."""
    if name in SWITCHES and isinstance(value, bool):
        return SWITCHES[name][not value]
    if meant := suggest(name, known):
        return f"did you mean {meant}?"
    return _INSTEAD.get(name, "")
