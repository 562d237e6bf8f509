"""Compare answers of `Index.grep()` with those of `grep()`."""

from typing import Any

from ripwrap import GrepResult


def same(found: GrepResult, expected: GrepResult) -> bool:
    """Return True if two answers are equal, apart from numbers of candidates and the order of errors."""

    def told(result: GrepResult) -> dict[str, Any]:
        about = result.model_dump(exclude={"candidates", "files_total"})
        return {**about, "errors": sorted(map(str, result.errors))}

    return told(found) == told(expected)
