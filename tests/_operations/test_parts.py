"""`inside=` for notebooks and for adapters of entry points: locations, faults, and the cache. No package is needed."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ripwrap
from _operations.test_inside import zipped
from ripwrap import Location, RipwrapError, sync
from ripwrap.models import Summary
from ripwrap.sources import base
from ripwrap.sources.base import find_format
from ripwrap.sources.reading import DocumentError, DocumentReader, TextCache
from support.adapters import register

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("temporary", "leaks_nothing")]

NOTEBOOK = json.dumps(
    {
        "cells": [
            {"cell_type": "markdown", "source": ["# title\n", "a needle\n"]},
            {
                "cell_type": "code",
                "source": "import os\n\nneedle = 1",
                "outputs": [
                    {"output_type": "stream", "text": ["one\n", "needle out\n"]},
                    {"output_type": "display_data", "data": {"image/png": "needle", "text/plain": ["needle plain"]}},
                    {"output_type": "error", "ename": "NeedleError", "evalue": "needle", "traceback": ["\u001b[0m"]},
                ],
            },
            {"cell_type": "raw", "source": []},
        ],
        "metadata": {"needle": 1},
        "nbformat": 4,
    }
)
OLD = json.dumps({"worksheets": [{"cells": [{"cell_type": "code", "input": ["needle"], "outputs": []}]}]})


@pytest.fixture
def adapted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Return a function that registers adapters of `support.adapters`, e.g. `adapted(mail="lines")`."""

    def make(**formats: str) -> None:
        register(tmp_path / "site", monkeypatch, **{name: f"support.adapters:{to}" for name, to in formats.items()})

    yield make
    base._added.cache_clear()


def found(folder: Path, inside: Any, **options: Any) -> list[tuple[str | None, int | None, str]]:
    return [
        (match.path, match.line_number, match.text)
        for match in sync.search("needle", cwd=folder, inside=inside, **options)
    ]


class TestNotebooks:
    def test_matches_have_the_cell_and_the_line_in_it(self, plant: Callable[..., Path]) -> None:
        folder = plant({"n.ipynb": NOTEBOOK, "a.txt": "needle\n"})
        plain, first, second = sync.search("needle", cwd=folder, inside="ipynb")
        assert (plain.path, plain.location) == ("a.txt", None)
        assert (first.path, first.line_number, first.text) == ("n.ipynb!/cell 1", 2, "a needle")
        assert first.location == Location(cell=1, cell_type="markdown")
        assert (second.path, second.line_number, second.text) == ("n.ipynb!/cell 2", 3, "needle = 1")
        assert type(second).model_validate_json(second.model_dump_json()) == second

    def test_outputs_are_searched_only_if_asked_for(self, plant: Callable[..., Path]) -> None:
        folder = plant({"n.ipynb": NOTEBOOK})
        assert [path for path, _, _ in found(folder, "ipynb")] == ["n.ipynb!/cell 1", "n.ipynb!/cell 2"]
        for inside in ("ipynb-outputs", ["ipynb", "ipynb-outputs"]):
            assert found(folder, inside)[2:] == [
                ("n.ipynb!/cell 2 output", 2, "needle out"),
                ("n.ipynb!/cell 2 output", 3, "needle plain"),
                ("n.ipynb!/cell 2 output", 4, "NeedleError: needle"),
            ]

    @pytest.mark.slow
    def test_old_notebooks_and_those_in_archives_are_read(self, plant: Callable[..., Path]) -> None:
        packed = zipped({"old.ipynb": OLD.encode(), "deep.zip": zipped({"x.zip": zipped({"n.ipynb": OLD.encode()})})})
        folder = plant({"a.zip": packed, "old.ipynb": OLD})
        assert [path for path, _, _ in found(folder, ["zip", "ipynb"])] == [
            "a.zip!/old.ipynb!/cell 1",
            "a.zip!/deep.zip!/x.zip!/n.ipynb!/cell 1",
            "old.ipynb!/cell 1",
        ]

    def test_globs_types_and_paths_choose_notebooks(self, plant: Callable[..., Path]) -> None:
        folder = plant({"n.ipynb": OLD, "sub/m.ipynb": OLD, ".h.ipynb": OLD, "a.py": "needle\n", ".gitignore": "sub\n"})
        cells = {name: (f"{name}!/cell 1", 1, "needle") for name in ("n.ipynb", "sub/m.ipynb", ".h.ipynb")}
        assert found(folder, "ipynb", glob="*.ipynb") == [cells[".h.ipynb"], cells["n.ipynb"]]
        assert found(folder, "ipynb", glob="!*.ipynb") == [("a.py", 1, "needle")]
        assert found(folder, "ipynb", type="py") == [("a.py", 1, "needle")]
        assert found(folder, "ipynb", hidden=False, no_ignore=True)[1:] == [cells["n.ipynb"], cells["sub/m.ipynb"]]
        assert found(folder, "ipynb", paths=["sub/m.ipynb"], glob="*.py") == [cells["sub/m.ipynb"]]
        assert found(folder, "ipynb", limit=1) == [("a.py", 1, "needle")]
        assert found(folder, "ipynb", limit=2) == [("a.py", 1, "needle"), cells[".h.ipynb"]]
        assert found(folder, "ipynb", limit=0) == []

    def test_matches_in_the_bytes_of_a_notebook_do_not_count_for_the_limit(self, plant: Callable[..., Path]) -> None:
        folder = plant({"n.ipynb": NOTEBOOK, "z.txt": "needle\n"})
        assert found(folder, "ipynb", limit=1, sort="path") == [("z.txt", 1, "needle")]

    def test_broken_notebook_is_a_warning(self, plant: Callable[..., Path], caplog: pytest.LogCaptureFixture) -> None:
        not_json = "not a notebook: it is not valid JSON"
        broken: dict[str, tuple[str | bytes, str]] = {
            "half": ("{", not_json),
            "bytes": (b"\xff\xfe\x00", not_json),
            "deep": ("[" * 200_000, f"{not_json}: "),
            "list": ("[]", "not a notebook: it is not a JSON object"),
            "number": ('{"cells": 7}', "not a notebook: it has no list of cells"),
            "empty": ("", not_json),
        }
        folder = plant({"z.ipynb": OLD, **{f"{name}.ipynb": content for name, (content, _) in broken.items()}})
        assert found(folder, "ipynb") == [("z.ipynb!/cell 1", 1, "needle")]
        for name, (_, text) in broken.items():
            assert f"{name}.ipynb: {text}" in caplog.text

    @pytest.mark.slow
    def test_odd_cells_are_left_out(self, plant: Callable[..., Path]) -> None:
        cells = [7, None, {"source": {"a": 1}}, {"source": [1, "needle"], "outputs": [3, {"data": 1}, {"text": 7}]}]
        folder = plant({"n.ipynb": json.dumps({"cells": cells})})
        assert found(folder, "ipynb-outputs") == [("n.ipynb!/cell 4", 1, "needle")]


class TestOtherOperations:
    @pytest.fixture
    def mixed(self, plant: Callable[..., Path]) -> Path:
        files = {"b.txt": b"needle\n", "dir/c.txt": b"one\nneedle\nthree\n"}
        return plant({"a.txt": "needle\nneedle\n", "f.zip": zipped(files), "n.ipynb": NOTEBOOK, "bad.zip": b"junk"})

    @pytest.mark.parametrize(
        "limit", [2, *(pytest.param(limit, marks=pytest.mark.slow) for limit in (1, 3, 4, 5, 6, 9, None))]
    )
    def test_pages_of_grep_have_each_match_once(self, mixed: Path, limit: int | None) -> None:
        whole = sync.grep("needle", cwd=mixed, inside=["zip", "ipynb"], context=1)
        expected = [(file.path, match.line_number) for file in whole for match in file.matches]
        assert expected == [
            ("a.txt", 1),
            ("a.txt", 2),
            ("f.zip!/b.txt", 1),
            ("f.zip!/dir/c.txt", 2),
            ("n.ipynb!/cell 1", 2),
            ("n.ipynb!/cell 2", 3),
        ]
        assert (whole.total_matches, whole.files_matched, whole.truncated) == (6, 5, False)
        assert [line.text for line in whole.files[2].lines()] == ["one", "needle", "three"]
        assert whole.files[3].matches[0].location == Location(cell=1, cell_type="markdown")
        assert [error.path for error in whole.errors] == ["bad.zip"]
        assert "6 matches in 5 files. 1 path could not be read, the first: bad.zip: broken" in whole.message
        pages: list[tuple[str, int | None]] = []
        offset: int | None = 0
        while offset is not None:
            page = sync.grep("needle", cwd=mixed, inside=["zip", "ipynb"], limit=limit, offset=offset)
            pages += [(file.path, match.line_number) for file in page for match in file.matches]
            offset = page.next_offset
        assert pages == expected
        few = sync.grep("needle", cwd=mixed, inside=["zip", "ipynb"], max_files=2, offset=1)
        assert ([file.path for file in few], few.stop_reason) == (["a.txt", "f.zip!/b.txt"], "max_files")

    @pytest.mark.anyio
    async def test_async_functions_look_inside(self, mixed: Path) -> None:
        result = await ripwrap.grep("needle", cwd=mixed, inside="ipynb")
        assert [file.path for file in result] == ["a.txt", "n.ipynb!/cell 1", "n.ipynb!/cell 2"]
        async for match in ripwrap.search("needle", cwd=mixed, inside="ipynb", limit=3):
            assert match.path != "n.ipynb"
        assert match.location == Location(cell=1, cell_type="markdown")
        *_, end = [one async for one in ripwrap.search_messages("needle", cwd=mixed, inside="ipynb")]
        assert isinstance(end, Summary)

    def test_messages_have_one_summary_with_all_errors(self, mixed: Path) -> None:
        messages = list(sync.search_messages("needle", cwd=mixed, inside=["zip", "ipynb"], context=1))
        assert [message.type for message in messages].count("summary") == 1
        assert [message.path for message in messages if message.type == "begin"][1:3] == [
            "f.zip!/b.txt",
            "f.zip!/dir/c.txt",
        ]
        summary = messages[-1]
        assert isinstance(summary, Summary)
        assert [error.path for error in summary.errors] == ["bad.zip"]
        assert (summary.stats.matches, summary.stats.searches_with_match) == (6, 5)
        few = list(sync.search_messages("needle", cwd=mixed, inside=["zip", "ipynb"], limit=3))
        assert [message.type for message in few].count("match") == 3
        assert few[-1].type == "match"

    @pytest.mark.parametrize("given", [{"coverage": True}, {"inside": "rar"}, {"inside": [1]}], ids=str)
    def test_arguments_that_do_not_go_together_are_errors(self, folder: Path, given: dict[str, Any]) -> None:
        with pytest.raises((ValueError, TypeError), match="inside"):
            sync.grep("x", cwd=folder, **{"inside": "zip", **given})


class TestAdapters:
    def test_entry_point_adds_a_format(self, plant: Callable[..., Path], adapted: Callable[..., None]) -> None:
        adapted(mail="lines")
        folder = plant({"x.mail": "one\nneedle\n", "f.zip": zipped({"Y.MAIL": b"needle"})})
        assert found(folder, ["zip", "mail"]) == [
            ("f.zip!/Y.MAIL!/line 1", 1, "needle"),
            ("x.mail!/line 2", 1, "needle"),
        ]
        with pytest.raises(ValueError, match=r"inside must be .* 'xlsx' or 'mail', got 'post'"):
            sync.search("x", inside="post")

    @pytest.mark.slow
    def test_fault_of_a_reader_is_a_warning_and_ends_nothing(
        self, plant: Callable[..., Path], caplog: pytest.LogCaptureFixture, adapted: Callable[..., None]
    ) -> None:
        faults: dict[str, tuple[list[int], str]] = {
            "chatter": ([1], ""),
            "confuse": ([], "b.confuse: its adapter must yield (Location, str or Exception), got 'needle'"),
            "fail": ([1, 3], "b.fail!/page 2: 'no font'; b.fail: the rest is junk"),
            "crash": ([], "b.crash: not searched: the process that reads it crashed, or needed too much memory"),
            "hoard": ([1], "b.hoard: reading it needed too much memory"),
            "leave": ([], "b.leave: not searched: the process that reads it crashed, or needed too much memory"),
            "missing": ([], "b.missing: module 'support.adapters' has no attribute 'missing'"),
            "none": ([], "b.none: 'NoneType' object is not iterable"),
            "recurse": ([], "b.recurse: broken: it is nested too deeply"),
        }
        adapted(**{name: name for name in faults})
        folder = plant({"z.ipynb": OLD, **{f"b.{name}": "needle" for name in faults}})
        paths = [path for path, _, _ in found(folder, [*faults, "ipynb"])]
        pages = [f"b.{name}!/page {number}" for name, (numbers, _) in faults.items() for number in numbers]
        assert paths == [*pages, "z.ipynb!/cell 1"]
        (record,) = caplog.records
        for _, text in faults.values():
            assert text in record.getMessage()
        assert "chatter" not in record.getMessage()

    @pytest.mark.slow
    def test_reader_that_hangs_is_killed(self, adapted: Callable[..., None]) -> None:
        adapted(odd="hang", mail="lines")
        odd, mail = find_format("odd"), find_format("mail")
        assert odd is not None and mail is not None
        reader = DocumentReader(None, seconds=2)
        try:
            with pytest.raises(DocumentError, match="the process that reads it was stopped after 2 seconds"):
                reader.read(odd, b"x")
            assert [text for _, text in reader.read(mail, b"needle").parts] == [b"needle"]
        finally:
            reader.close()

    @pytest.mark.slow
    def test_time_limit_of_the_search_ends_a_reader_that_hangs(
        self, plant: Callable[..., Path], adapted: Callable[..., None]
    ) -> None:
        adapted(odd="hang")
        folder = plant({"b.odd": "x", "a.txt": "needle\n"})
        matches = sync.search("needle", cwd=folder, inside="odd", timeout=2)
        assert next(matches).path == "a.txt"
        with pytest.raises(TimeoutError):
            next(matches)
        result = sync.grep("needle", cwd=folder, inside="odd", timeout=2)
        assert (result.stop_reason, result.total_matches, result.exact) == ("timeout", 1, False)

    @pytest.mark.slow
    @pytest.mark.anyio
    async def test_time_limit_of_an_async_search_ends_a_reader_that_hangs(
        self, plant: Callable[..., Path], adapted: Callable[..., None]
    ) -> None:
        adapted(odd="hang")
        folder = plant({"b.odd": "x", "a.txt": "needle\n"})
        result = await ripwrap.grep("needle", cwd=folder, inside="odd", timeout=2)
        assert (result.stop_reason, result.total_matches, result.exact) == ("timeout", 1, False)


class TestCache:
    @pytest.fixture
    def cache(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(tmp_path / "cache"))
        return tmp_path / "cache/documents"

    def test_text_is_read_once(
        self, plant: Callable[..., Path], adapted: Callable[..., None], tmp_path: Path, cache: Path
    ) -> None:
        adapted(odd="counted")
        log = tmp_path / "log"
        content = f"{log}\nneedle\n"
        folder = plant({"b.odd": content, "copy/c.odd": content})
        expected = [("b.odd!/page 1", 2, "needle"), ("copy/c.odd!/page 1", 2, "needle")]
        assert found(folder, "odd") == expected == found(folder, "odd")
        assert log.read_text() == "read\n"
        (stored,) = cache.iterdir()
        assert stored.stat().st_mode & 0o077 == 0 or os.name != "posix"
        stored.write_bytes(stored.read_bytes()[:-1])
        assert found(folder, "odd") == expected
        assert log.read_text() == "read\nread\n"

    @pytest.mark.slow
    def test_text_of_a_broken_document_is_not_stored(
        self, plant: Callable[..., Path], adapted: Callable[..., None], cache: Path
    ) -> None:
        adapted(odd="fail")
        assert len(found(plant({"b.odd": "x"}), "odd")) == 2
        assert not cache.exists()

    @pytest.mark.slow
    def test_cache_that_cannot_be_written_changes_nothing(
        self, plant: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        (tmp_path / "file").touch()
        monkeypatch.setenv("RIPWRAP_CACHE_DIR", str(tmp_path / "file"))
        assert found(plant({"n.ipynb": OLD}), "ipynb") == [("n.ipynb!/cell 1", 1, "needle")]

    def test_least_used_texts_are_deleted(self, tmp_path: Path) -> None:
        cache = TextCache(tmp_path / "texts", max_bytes=1000)
        keys = [cache.key("reader", bytes([number])) for number in range(5)]
        for number, key in enumerate(keys):
            cache.put(key, bytes(268))
            os.utime(tmp_path / "texts" / key, (number, number))
        assert cache.get(keys[0]) == bytes(268)  # now the newest
        cache.trim()
        assert [key for key in keys if cache.get(key) is not None] == [keys[0], keys[3], keys[4]]
        cache.put("large", bytes(2000))
        assert cache.get("large") is None
        assert len(list((tmp_path / "texts").iterdir())) == 3

    def test_left_over_of_a_killed_process_is_deleted(self, tmp_path: Path) -> None:
        texts = tmp_path / "texts"
        texts.mkdir()
        for name in ("writing-old", "writing-new"):
            (texts / name).touch()
        os.utime(texts / "writing-old", (0, 0))
        cache = TextCache(texts)
        cache.put("key", b"x")
        cache.trim()
        assert sorted(path.name for path in texts.iterdir()) == ["key", "writing-new"]


@pytest.mark.parametrize(
    ("name", "module", "package"),
    [("pdf", "pypdf", "pypdf"), ("docx", "docx", "python-docx"), ("xlsx", "python_calamine", "python-calamine")],
)
def test_missing_package_is_an_error_that_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str, package: str
) -> None:
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(RipwrapError, match=rf"'{name}' needs the package {package}: pip install .ripwrap\[documents\]"):
        sync.search("x", inside=["zip", name])
