"""Tests on real files with a real rg."""

from collections.abc import Callable, Mapping
from pathlib import Path

import todos

from ripwrap import testing


def test_authors_are_counted(rg_tree: Callable[[Mapping[str, str]], Path]) -> None:
    root = rg_tree(
        {
            "a.py": "# TODO(ann): one\n# TODO(bob): two, TODO(ann): three\n",
            "b.txt": "TODO(eve): not Python\n",
            ".gitignore": "build/\n",
            "build/c.py": "# TODO(eve): ignored\n",
        }
    )
    assert todos.count(str(root)) == {"ann": 2, "bob": 1}


def test_module_itself_has_no_todo() -> None:
    testing.assert_absent(todos.PATTERN, paths=todos.__file__)
