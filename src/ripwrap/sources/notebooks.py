"""Read the cells of Jupyter notebooks (https://nbformat.readthedocs.io, versions 3 and 4)."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, cast

from ripwrap.models import Location

_TEXT_TYPES = ("text/plain", "text/markdown", "text/html", "text/latex")
"""Text types of an output, best first. Only the best type that an output has is read; images are never read."""


def read_cells(content: bytes) -> Iterator[tuple[Location, str]]:
    """Yield the location and the source of each cell.

    Raises:
        ValueError: The content is not a notebook.
    """
    for location, cell in _cells(content):
        yield location, _joined(cell.get("source", cell.get("input", "")))


def read_cells_and_outputs(content: bytes) -> Iterator[tuple[Location, str]]:
    """Yield the location and the source of each cell; if its outputs have text, yield their location and text, too.

    Raises:
        ValueError: The content is not a notebook.
    """
    for location, cell in _cells(content):
        yield location, _joined(cell.get("source", cell.get("input", "")))
        outputs = "\n".join(filter(None, map(_output, _dicts(cell.get("outputs")))))
        if outputs:
            yield location.model_copy(update={"output": True}), outputs


def _cells(content: bytes) -> Iterator[tuple[Location, dict[str, Any]]]:
    try:
        notebook = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a notebook: it is not valid JSON: {error}") from None
    if not isinstance(notebook, dict):
        raise ValueError("not a notebook: it is not a JSON object")
    top = cast("dict[str, Any]", notebook)
    cells = top.get("cells")
    if cells is None:  # version 3
        sheets = _dicts(top.get("worksheets"))
        cells = [cell for sheet in sheets for cell in _dicts(sheet.get("cells"))] if sheets else None
    if not isinstance(cells, list):
        raise ValueError("not a notebook: it has no list of cells")
    for number, cell in enumerate(cast("list[object]", cells), 1):
        if isinstance(cell, dict):
            known = cast("dict[str, Any]", cell)
            kind = known.get("cell_type")
            yield Location(cell=number, cell_type=kind if isinstance(kind, str) else None), known


def _output(output: dict[str, Any]) -> str:
    """Return the text of an output; empty if it has none.

    For an error, return its name and value, because a traceback has terminal codes.
    """
    if "text" in output:
        return _joined(output["text"]).rstrip("\n")
    if "traceback" in output:
        error = ": ".join(_joined(output.get(name, "")) for name in ("ename", "evalue"))
        return error.strip(": ")
    data = output.get("data")
    if not isinstance(data, dict):
        return ""
    texts = cast("dict[str, Any]", data)
    return next((_joined(texts[kind]).rstrip("\n") for kind in _TEXT_TYPES if kind in texts), "")


def _joined(lines: object) -> str:
    """Return a text that nbformat stores as a string or as a list of lines; empty for any other value."""
    if isinstance(lines, str):
        return lines
    return "".join(line for line in cast("Iterable[object]", lines) if isinstance(line, str)) if _is_list(lines) else ""


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _dicts(values: object) -> list[dict[str, Any]]:
    if not isinstance(values, list):
        return []
    return [cast("dict[str, Any]", value) for value in cast("list[object]", values) if isinstance(value, dict)]
