"""Compare answers of `Index.grep()` with those of `grep()`."""

from typing import Any

from ripwrap import GrepResult


def same(found: GrepResult, expected: GrepResult) -> bool:
    """Return whether two answers are the same, but for how they were found; errors are in any order."""

    def told(result: GrepResult) -> dict[str, Any]:
        about = result.model_dump(exclude={"candidates", "files_total"})
        return {**about, "errors": sorted(map(str, result.errors))}

    return told(found) == told(expected)
