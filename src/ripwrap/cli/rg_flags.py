"""Flags of rg that the command line does not have: why, and what to use.

Errors about an unknown flag quote this table, and docs/reference/command-line.md has it.
"""

from typing import NamedTuple


class Missing(NamedTuple):
    """Flags of rg that `ripwrap search` does not have."""

    flags: tuple[str, ...]
    reason: str
    instead: str


MISSING = (
    Missing(
        ("--pre", "--no-pre", "--pre-glob"),
        "rg would start a program for each file",
        "use --inside for archives, notebooks and documents",
    ),
    Missing(("--hostname-bin",), "rg would start a program", "write the name into --hyperlink-format"),
    Missing(("--colors",), "the colors are fixed", "use --color=never for none"),
    Missing(
        ("--context-separator", "--no-context-separator", "--field-context-separator", "--field-match-separator"),
        "the separators are fixed",
        "use --null for paths, or --json",
    ),
    Missing(("--path-separator",), "such paths could not be opened", "replace it in the output"),
    Missing(
        ("--include-zero", "--no-include-zero"), "files without a match have no count", "use --files-without-match"
    ),
    Missing(
        ("--max-columns-preview", "--no-max-columns-preview"),
        "a long line is omitted as a whole",
        "use --only-matching for its matches",
    ),
    Missing(
        ("--no-ignore-messages", "--ignore-messages"),
        "rules that cannot be read are always named, on stderr",
        "send stderr elsewhere",
    ),
    Missing(
        ("--debug", "--trace"), "the log is for developers of rg", "use `ripwrap why FILE`, or --coverage with a search"
    ),
    Missing(("--sort-files", "--no-sort-files"), "it is an old name", "use --sort=path"),
    Missing(("--auto-hybrid-regex", "--no-auto-hybrid-regex"), "it is an old name", "use --engine=auto"),
    Missing(("--no-pcre2-unicode",), "it is an old name", "use --no-unicode"),
    Missing(("--pcre2-unicode",), "it is an old name", "use --unicode"),
    Missing(("--maxdepth",), "it is an old name", "use --max-depth"),
    Missing(("--passthrough",), "it is an old name", "use --passthru"),
    Missing(("--no-encoding",), "it undoes --encoding", "leave both out"),
    Missing(("--no-json",), "records are printed only with --json", "leave it out"),
    Missing(("--generate",), "it makes files for rg", "use `ripwrap --install-completion` for completion"),
    Missing(("--pcre2-version",), "it describes rg", "use `ripwrap doctor`"),
)


def explain_missing(flag: str) -> str:
    """Return an error message about a flag of rg that is missing; empty for any other flag."""
    found = next((one for one in MISSING if flag in one.flags), None)
    return "" if found is None else f"{flag} is not an option of ripwrap: {found.reason}; {found.instead}"
