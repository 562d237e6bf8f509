"""Read the cells of Jupyter notebooks (https://nbformat.readthedocs.io, versions 3 and 4)."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from ripwrap.models import Location

_TEXT_KEYS = ("text", "html", "latex", "markdown")
"""Keys of the texts of an output in version 3; version 4 has `text` only for what was printed."""

_TERMINAL_CODE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
"""Escape sequence of ECMA-48 (5.4 and 5.6): colors, movements of the cursor, and links."""


def read_cells(content: bytes) -> Iterator[tuple[Location, str]]:
    """Yield the location and the source of each cell."""
    for location, cell in _cells(content):
        yield location, _joined(cell.get("source", cell.get("input", "")))


def read_cells_and_outputs(content: bytes) -> Iterator[tuple[Location, str]]:
    """Yield the location and the source of each cell; if its outputs have text, yield their location and text, too."""
    for location, cell in _cells(content):
        yield location, _joined(cell.get("source", cell.get("input", "")))
        outputs = "\n".join(filter(None, map(_output, _dicts(cell.get("outputs")))))
        if outputs:
            yield location.model_copy(update={"output": True}), outputs


def _cells(content: bytes) -> Iterator[tuple[Location, dict[str, Any]]]:
    try:
        notebook = json.loads(content, parse_int=float)  # Python refuses an int of 4,300 digits; no number is searched
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
    """Return the different texts of an output, one after another, without terminal codes; empty if it has none."""
    data = output.get("data")
    rich = cast("dict[str, object]", data) if isinstance(data, dict) else {}
    kinds = sorted((kind for kind in rich if kind.startswith("text/")), key=lambda kind: kind != "text/plain")
    # The traceback of an error ends with its name and value.
    error = ": ".join(_joined(output.get(name)) for name in ("ename", "evalue")).strip(": ")
    frames = output.get("traceback")
    lines = "\n".join(map(_joined, cast("Iterable[object]", frames))) if _is_list(frames) else ""
    traceback = _TERMINAL_CODE.sub("", lines)
    traceback = traceback if error in traceback else f"{traceback}\n{error}".strip("\n")
    texts = [*(output.get(key) for key in _TEXT_KEYS), traceback, *(rich[kind] for kind in kinds)]
    plain = (_TERMINAL_CODE.sub("", _joined(text)).rstrip("\n") for text in texts)
    return "\n".join(filter(None, dict.fromkeys(plain)))


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
