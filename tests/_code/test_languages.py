"""Names of languages, and the grammars that have them."""

import pytest

from ripwrap._code.languages import LANGUAGES, language_name
from ripwrap._code.treesitter.languages import _GRAMMARS, _READ_AS
from ripwrap._code.treesitter.parser import _load_language

_SCRIPTS = ("javascript", "typescript", "tsx")


def test_language_tables_use_names_of_the_shared_table() -> None:
    assert set(_GRAMMARS) <= LANGUAGES
    assert set(_READ_AS) <= LANGUAGES and set(_READ_AS.values()) <= set(_GRAMMARS)


@pytest.mark.parametrize("names", [_SCRIPTS, *((name,) for name in sorted({*_GRAMMARS} - {*_SCRIPTS}))])
def test_node_types_of_the_table_are_those_of_the_grammars(names: tuple[str, ...]) -> None:
    """JavaScript and TypeScript share a table."""
    tables = [_GRAMMARS[name] for name in names]
    languages = [_load_language(table.name) for table in tables]
    for table in tables:
        types = {*table.definitions, *table.containers, *table.wrappers, *table.constants, *table.attributes}
        unknown = [
            kind for kind in types - {"ERROR"} if not any(one and one.id_for_node_kind(kind, True) for one in languages)
        ]
        assert sorted(unknown) == []


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
