"""Search once more for a pattern that was not found, as a name in other spellings or without escapes of grep."""

import re
from dataclasses import replace
from typing import Any, cast

from ripwrap._ripgrep.page_collector import PageRequest
from ripwrap._ripgrep.protocols import Runner
from ripwrap._text import plural
from ripwrap.errors import SearchError
from ripwrap.options import SearchOptions
from ripwrap.workspace.anchors import MAX_QUOTED_CHARS
from ripwrap.workspace.content_call import ContentCall
from ripwrap.workspace.notes import GREP_ESCAPE
from ripwrap.workspace.results import shown_start

SECONDS = 1.0
"""Time limit in seconds for the search."""

_NAME = re.compile(r"(?:\\b)?([A-Za-z][A-Za-z0-9_-]{2,63})(?:\\b)?")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MAX_WORDS = 8


def other_pattern(pattern: str, *, fixed_strings: bool) -> str | None:
    r"""Return a regular expression for what a pattern may mean; `None` if it is clear.

    `\|` and the like lose their backslash, which grep needs. `getUserName` becomes a name of the same words in snake,
    camel or kebab case, in the singular or plural. The case is ignored.
    """
    if not fixed_strings and GREP_ESCAPE.search(pattern):
        return GREP_ESCAPE.sub(r"\1\2", pattern)
    name = _NAME.fullmatch(pattern)
    words = _WORD.findall(name[1]) if name else []
    if not 0 < len(words) <= _MAX_WORDS or len(words[-1]) < 3:
        return None
    *first, last = (word.lower() for word in words)
    return "(?i)" + "[-_]?".join((*first, _either_number(last)))


def _either_number(word: str) -> str:
    """Return a regular expression for the singular and the plural of a word."""
    if word.endswith("ies") or (word.endswith("y") and word[-2] not in "aeiou"):
        return f"{word.removesuffix('ies').removesuffix('y')}(?:y|ies)"
    return word if word.endswith("ss") or word[-1].isdigit() else f"{word.removesuffix('s')}s?"


async def other_spellings_note(run: Runner, call: ContentCall) -> str:
    """Return a sentence about matches of another pattern, with the pattern; empty if there are none in `SECONDS`."""
    arguments = call.arguments
    pattern = other_pattern(arguments.pattern, fixed_strings=arguments.fixed_strings)
    if pattern is None:
        return ""
    own = {"pattern": pattern, "fixed_strings": False, "multiline": False}
    other = replace(call, arguments=arguments.model_copy(update=own), progress=None, candidates=None)
    options: dict[str, Any] = {**other.options, "before_context": 0, "after_context": 0}
    timeout = SECONDS if call.scope.timeout is None else min(SECONDS, call.scope.timeout)
    try:
        found = await run.collect(other.step(cast("SearchOptions", options), PageRequest(0, 1, 1, 0, 0, None), timeout))
    except SearchError:
        return ""
    if not found.matches:
        return ""
    least = "at least " if found.timed_out else ""
    much = f"{least}{plural(found.matches, 'match', 'es')} in {plural(found.files, 'file')}"
    return f'pattern="{shown_start(pattern)[:MAX_QUOTED_CHARS]}" has {much}.'
