"""Outputs of notebooks: every text that Jupyter shows is found."""

import json
from typing import Any

import pytest

from ripwrap.sources.notebooks import read_cells_and_outputs


def outputs(*several: dict[str, Any]) -> list[str]:
    """Return the lines of the outputs of a cell."""
    cell = {"cell_type": "code", "source": "", "outputs": several}
    parts = read_cells_and_outputs(json.dumps({"cells": [cell]}).encode())
    return [line for location, text in parts if location.output for line in text.splitlines()]


@pytest.mark.parametrize("kind", ["text/html", "text/markdown", "text/latex", "text/x-rst"])
def test_each_text_of_an_output_is_read(kind: str) -> None:
    """`text/plain` of a rich output is often only `<IPython.core.display.HTML object>`."""
    data = {"image/png": "pixels", "text/plain": ["<object>"], kind: ["one\n", "needle"]}
    assert outputs({"output_type": "display_data", "data": data}) == ["<object>", "one", "needle"]
    assert outputs({"data": {kind: "needle", "text/plain": "needle"}}) == ["needle"]
    assert outputs({"data": {kind: 7, "text/plain": None}}) == []


def test_texts_of_version_3_are_read() -> None:
    """Nbformat 3 has the types as keys of the output."""
    known = {"output_type": "pyout", "text": ["<object>"], "html": ["<b>needle</b>"], "latex": "x", "png": "pixels"}
    assert outputs(known) == ["<object>", "<b>needle</b>", "x"]


def test_tracebacks_are_read_without_their_colors() -> None:
    """IPython writes a traceback with terminal codes, which may be within a word."""
    red, off = "\x1b[0;31m", "\x1b[0m"
    lines = [f"{red}-----{off}", f"File {red}/a/till.py:7{off}, in pay()\n    7 {red}ne{off}edle()", f"{red}E{off}: no"]
    assert outputs({"output_type": "error", "ename": "E", "evalue": "no", "traceback": lines}) == [
        "-----",
        "File /a/till.py:7, in pay()",
        "    7 needle()",
        "E: no",
    ]
    assert outputs({"ename": "E", "evalue": "no", "traceback": ["cut"]}) == ["cut", "E: no"]
    assert outputs({"ename": "E", "evalue": "no", "traceback": []}) == ["E: no"]
    assert outputs({"ename": "E", "evalue": "no"}) == ["E: no"]


def test_colors_of_printed_texts_are_left_out() -> None:
    """Progress bars and test runners print terminal codes, too."""
    text = "\x1b]8;;http://x\x1b\\nee\x1b]8;;\x07dle\x1b[38;5;9m!\x1b[K"
    assert outputs({"output_type": "stream", "text": text}) == ["needle!"]
