"""Languages of both backends: one table, and the same sections of plain code."""

import sys
from pathlib import Path

import pytest

from ripwrap._code.languages import LANGUAGES, language_name
from ripwrap._code.outline import Outline
from ripwrap._code.patterns import languages as patterns
from ripwrap._code.patterns.outline import NearbyOutline, PatternOutline
from ripwrap._code.treesitter import languages as grammars
from ripwrap._code.treesitter.parser import is_available, parse_outline
from support.syntax_sections import SyntaxSections

SAMPLES = Path(__file__).parents[1] / "data" / "sections"


def test_language_tables_use_names_of_the_shared_table() -> None:
    assert set(patterns._LANGUAGES) <= LANGUAGES
    assert set(patterns._READ_AS) <= LANGUAGES and set(patterns._READ_AS.values()) <= set(patterns._LANGUAGES)
    assert set(grammars._GRAMMARS) <= LANGUAGES


@pytest.mark.parametrize(
    ("path", "first_line", "name"),
    [
        ("src/a.py", "", "python"),
        ("SRC\\A.PY", "", "python"),
        ("Makefile", "", "make"),
        (".bashrc", "", "bash"),
        ("a.h", "", "c header"),
        ("run", "#!/usr/bin/env python3", "python"),
        ("run", "#!/bin/zsh", "bash"),
        ("run", "#!/bin/false", None),
        ("run", "import os", None),
        ("run.xyz", "#!/bin/sh", None),
        (".xyz", "#!/bin/sh", "bash"),
    ],
)
def test_language_follows_from_name_extension_or_shebang(path: str, first_line: str, name: str | None) -> None:
    assert language_name(path, first_line) == name


@pytest.mark.skipif(not is_available(), reason="needs the extra syntax")
@pytest.mark.parametrize("sample", ["shop.py", "shop.go", "shop.rs", "shop.md"])
def test_backends_agree_on_most_section_names(sample: str) -> None:
    text = (SAMPLES / sample).read_text()
    lines = text.split("\n")
    parsed = parse_outline(sample, text)
    assert parsed is not None
    backends: list[Outline] = [PatternOutline(sample, lines), NearbyOutline(sample, lines), SyntaxSections(parsed)]
    names = [
        [section and section.name for section in map(outline.enclosing, range(1, len(lines)))] for outline in backends
    ]
    for other in names[1:]:
        alike = sum(one == two for one, two in zip(names[0], other, strict=True))
        assert alike >= len(lines) * 0.85, list(zip(range(1, len(lines)), names[0], other, strict=False))


@pytest.mark.skipif(not is_available(), reason="needs the extra syntax")
def test_parsed_section_has_line_text_and_end() -> None:
    text = "# of f\n@cached\ndef f(\n    a,\n):\n    for b in a:\n        def g(): ...\n\nx = 1\n"
    parsed = parse_outline("a.py", text)
    assert parsed is not None
    outline = SyntaxSections(parsed)
    assert [outline.enclosing(line) for line in (0, 8, 9, 10, 99)] == [None] * 5
    section = outline.enclosing(1)
    assert section is not None
    assert (section.name, section.line, section.text, section.end_line) == ("f", 3, "def f(", 7)
    inner = outline.enclosing(7)
    assert inner is not None and (inner.name, inner.line, inner.end_line) == ("f.g", 7, 7)


def test_nearby_section_has_line_numbers_of_the_file() -> None:
    lines = ["x = 1", ""] * 50 + ["class A:", "    a = 1", "", "    def f(self):", "        return 1", "", "y = 2"]
    section = NearbyOutline("a.py", lines).enclosing(105)
    assert section is not None
    assert section == PatternOutline("a.py", lines).enclosing(105)
    assert (section.name, section.line, section.end_line) == ("A.f", 104, 105)


@pytest.mark.slow
def test_patterns_do_not_import_tree_sitter() -> None:
    import subprocess

    code = (
        "import sys; from ripwrap._code.patterns.outline import PatternOutline as P\n"
        "assert P('a.py', ['def f():', '  1']).enclosing(2)\n"
        "assert not [name for name in sys.modules if 'treesitter' in name or name == 'tree_sitter']"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=50)
