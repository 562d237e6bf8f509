"""Names that callers use for arguments of ripwrap, from rg and other programs, and what errors say about them."""

from collections.abc import Collection, Mapping

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
    "search_zip": "pass inside=['gz', 'bz2', 'xz', 'zst'] instead",
    "only_matching": "match.submatches has the parts that matched",
    "line_number": "matches have line numbers, unless you pass no_line_number=True",
    "line_numbers": "matches have line numbers, unless you pass no_line_number=True",
    "respect_gitignore": "ignore files apply, unless you pass no_ignore=True",
    "gitignore": "ignore files apply, unless you pass no_ignore=True",
}
"""Map a word of other libraries to what ripwrap has instead of such an argument, as an end of an error message."""


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


def advise(name: str, known: Collection[str]) -> str:
    """Return the end of an error about an unknown argument, such as `did you mean cwd?`; empty without any advice."""
    if meant := suggest(name, known):
        return f"did you mean {meant}?"
    return _INSTEAD.get(name, "")
