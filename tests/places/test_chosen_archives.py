"""Globs and types with `inside=`: an archive is chosen by its own name, and its members by theirs."""

import gzip
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ripwrap import sync
from ripwrap.places import Inside, Items
from support.cli import output

pytestmark = pytest.mark.usefixtures("leaks_nothing")


def zipped(members: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


FILES = {
    "a.txt.gz": gzip.compress(b"needle\n"),
    "sub/b.log.gz": gzip.compress(b"needle\n"),
    "z.zip": zipped({"m.py": b"needle\n", "d/n.md": b"needle\n", "in.gz": gzip.compress(b"needle\n")}),
    "p.py": b"needle\n",
}
GZ = ["a.txt.gz!/a.txt", "sub/b.log.gz!/b.log"]
ZIP = ["z.zip!/d/n.md", "z.zip!/in.gz!/in", "z.zip!/m.py"]

CHOICES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, [*GZ, "p.py", *ZIP]),
    ({"glob": "*.gz"}, [*GZ, ZIP[1]]),
    ({"iglob": "*.GZ"}, [*GZ, ZIP[1]]),
    ({"type": "gzip"}, [*GZ, ZIP[1]]),
    ({"glob": "a.txt.gz"}, GZ[:1]),
    ({"glob": "*.zip"}, ZIP),
    ({"glob": ["*.zip", "*.gz"]}, [*GZ, *ZIP]),
    ({"glob": "sub/*.gz"}, GZ[1:]),
    ({"glob": ["*.zip", "!*.md"]}, ZIP[1:]),
    ({"glob": "*.zip", "type": "py"}, ZIP[2:]),
    ({"glob": "*.zip", "type_not": "py"}, ZIP[:2]),
    ({"glob": "*.py"}, ["p.py", ZIP[2]]),
    ({"type": "py"}, ["p.py", ZIP[2]]),
    ({"glob": "!*.gz"}, ["p.py", ZIP[0], ZIP[2]]),
    ({"type_not": "gzip"}, ["p.py", ZIP[0], ZIP[2]]),
    ({"glob": "!*.zip"}, [*GZ, "p.py"]),
    ({"glob": ["*.py", "!*.zip"]}, ["p.py"]),
    ({"glob": ["!*.zip", "z.zip"]}, ZIP),
    ({"glob": "!sub"}, [GZ[0], "p.py", *ZIP]),
]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archives")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("options", "found"), CHOICES, ids=str)
def test_globs_and_types_choose_archives_by_name_or_members(
    options: dict[str, Any], found: list[str], planted: Path
) -> None:
    """`glob="*.gz"` with `inside=` found nothing, where `rg -z -g '*.gz'` searches these files."""
    inside, found = ("zip", "gz"), sorted(found)
    assert sorted(match.path or "" for match in sync.search("needle", cwd=planted, inside=inside, **options)) == found
    assert sorted(one.path for one in sync.count("needle", cwd=planted, inside=inside, **options)) == found
    items = Inside(Items([*FILES.items()]), inside)
    assert sorted(match.path or "" for match in sync.search("needle", where=items, **options)) == found


def test_named_archive_is_searched_even_if_a_glob_excludes_it(planted: Path) -> None:
    """As rg searches each file that is named; members are still chosen by their own names."""
    for options, expected in (({"glob": "!*.zip"}, ZIP), ({"glob": ["!*.zip", "!*.py"]}, ZIP[:2])):
        found = sync.search("needle", cwd=planted, paths="z.zip", inside=("zip", "gz"), **options)
        assert sorted(match.path for match in found if match.path and "!/" in match.path) == expected
    below = sync.search("needle", cwd=planted, paths="sub", glob="!sub", inside="gz")
    assert [match.path for match in below] == GZ[1:]


def test_tool_and_command_choose_archives_by_name(planted: Path) -> None:
    """The same holds for the tool and the command line."""
    answer = sync.Workspace(planted).grep_content("needle", file_pattern="*.gz", inside="gz")
    assert all(name in answer for name in GZ)
    assert "p.py" not in answer
    lines = output("search", "needle", "--inside=gz", "-g", "*.gz", "-l", cwd=planted).split()
    assert sorted(lines) == GZ
    assert output("search", "needle", "--inside=zip", "-g", "z.zip", "-c", cwd=planted).split() == [
        f"{name}:1" for name in ("z.zip!/m.py", "z.zip!/d/n.md")
    ]
