"""`todo_report.py` reports each mark, with its text escaped for Markdown."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.runs import run

pytestmark = pytest.mark.slow

REPORT = r"""# To do

| tag | count |
| --- | ---: |
| TODO | 4 |
| FIXME | 1 |
| XXX | 1 |
| HACK | 1 |

## a/one.py

| line | tag | owner | text |
| ---: | --- | --- | --- |
| 1 | TODO | ann | rename \_\_x\_\_ \| y |
| 3 | FIXME |  | first |
| 3 | TODO | bob | then |

## b.c

| line | tag | owner | text |
| ---: | --- | --- | --- |
| 1 | HACK |  | é, crlf |
| 2 | XXX |  |  |

## n�.txt

| line | tag | owner | text |
| ---: | --- | --- | --- |
| 1 | TODO |  | not � UTF-8 |

## page\_.html

| line | tag | owner | text |
| ---: | --- | --- | --- |
| 1 | TODO |  | \<b\>more |
"""


def test_report_has_every_mark_by_file_and_line(plant: Callable[..., Path]) -> None:
    folder = plant(
        {
            "a/one.py": "# TODO(ann): rename __x__ | y\n\nx = 1  # FIXME first  # TODO( bob ): then\nTODO_LIST = 1\n",
            "b.c": "/* HACK: é, crlf */\r\n// XXX\n",
            b"n\xff.txt": b"TODO: not \xff UTF-8\n",
            "page_.html": "<!-- TODO: <b>more -->\n",
            "ignored.txt": "TODO: not seen\n",
            "binary": b"\0\nTODO: not seen\n",
            ".gitignore": "ignored.txt\n",
        }
    )
    assert run("todo_report.py", folder) == (0, REPORT, "")


@pytest.mark.posix
def test_report_does_not_follow_links(plant: Callable[..., Path]) -> None:
    folder = plant({"one.txt": "TODO: one\n"})
    (folder / "link.txt").symlink_to("one.txt")
    (folder / "broken").symlink_to("nowhere")
    code, out, err = run("todo_report.py", folder)
    assert (code, out.count("## "), err) == (0, 1, "")


def test_no_mark_is_exit_code_1(plant: Callable[..., Path]) -> None:
    assert run("todo_report.py", plant({"a.txt": "done, todo\n"})) == (1, "No line is marked.\n", "")


def test_todo_report_reports_the_demo_by_default(clone: Path) -> None:
    assert run("todo_report.py", cwd=clone) == run("todo_report.py", "demo", cwd=clone)
    assert "| 5 | TODO |  | taxes |\n" in run("todo_report.py", cwd=clone)[1]


def test_file_instead_of_a_folder_is_an_error(plant: Callable[..., Path]) -> None:
    code, out, err = run("todo_report.py", plant({"a.txt": ""}) / "a.txt")
    assert (code, out, err.count("\n")) == (2, "", 1)
