"""Fit the structured answer of a tool, the JSON that MCP sends beside the text, into the budget of the text; no I/O."""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, cast

from ripwrap._text import cut_text, shown, shown_path

Values: TypeAlias = dict[str, Any]

_KEPT_CHARS = (1000, 300, 100, 30)
"""Maximum lengths of strings, tried in this order, in an answer that is too long even with one entry."""

_PATHS = frozenset({"path", "root", "file", "files", "denied", "entries"})
"""Names of fields that have paths."""


def json_chars(values: Values) -> int:
    """Return the length of values as `json.dumps()` writes them; other writers need less."""
    return len(json.dumps(values))


def shown_values(value: Any, show: Callable[..., str] = shown) -> Any:
    """Return JSON values with all strings and keys as `shown()` shows them: they reach a model, as the text does.

    Paths are as `shown_path()` shows them.
    """
    if isinstance(value, str):
        return show(value, lines=True)
    if isinstance(value, dict):
        return {
            show(key, lines=True): shown_values(one, shown_path if key in _PATHS else show)
            for key, one in cast("Values", value).items()
        }
    if isinstance(value, list):
        entries: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return [shown_values(one, show) for one in entries]
    return value


def first_entries(values: Values, names: Iterable[str], count: int) -> Values:
    """Return values with only the first `count` entries of the lists and maps that have these names."""
    few = {name: _first(values[name], count) for name in names if name in values}
    return values | few


def _first(entries: Any, count: int) -> Any:
    if isinstance(entries, dict):
        return dict([*cast("Values", entries).items()][:count])
    return entries[:count]


def fit(values: Values, max_chars: int, most: int, fewer: Callable[[int], Values]) -> Values:
    """Return values that fit into `max_chars` characters of JSON: whole, with fewer entries or shorter strings."""
    if json_chars(values) <= max_chars:
        return values
    made = values
    for length in _KEPT_CHARS:

        def cut(count: int, length: int = length) -> Values:
            # The pattern that a caller gave, the message and notes are cut before entries are left out.
            few = _noted(fewer(count), count, most, max_chars)
            return {
                name: _cut(one, length, deep=name == "notes" or length < _KEPT_CHARS[0]) for name, one in few.items()
            }

        fits = bisect_left(range(1, most + 1), True, key=lambda count: json_chars(cut(count)) > max_chars)
        made = cut(fits)
        if json_chars(made) <= max_chars and (fits or not most):
            break
    return made


def _noted(values: Values, count: int, most: int, max_chars: int) -> Values:
    note = f"These values were cut to max_chars={max_chars}: they have {count} of {most} entries of the text."
    return values | {"truncated": True, "notes": [note, *values.get("notes", ())][:5]}


def _cut(value: Any, length: int, *, deep: bool) -> Any:
    """Return values with strings of at most `length` characters; if `deep` is False, entries are not cut."""
    if isinstance(value, str):
        return cut_text(value, length)
    if isinstance(value, dict) and deep:
        return {name: _cut(one, length, deep=deep) for name, one in cast("Values", value).items()}
    if isinstance(value, list) and deep:
        entries: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return [_cut(one, length, deep=deep) for one in entries]
    return value  # pyright: ignore[reportUnknownVariableType]
