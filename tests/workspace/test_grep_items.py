"""`grep_content(inside=…)` and `grep_content(rev=…)`; sandbox, `deny` and `redact` hold there, too."""

import bz2
import gzip
import io
import json
import lzma
import os
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from _operations.test_inside import tarred, zipped
from _operations.test_revisions import git
from ripwrap import AccessDeniedError, RipwrapError, Workspace, sync
from ripwrap._text import plural
from ripwrap.workspace.grep_content_models import OutputMode
from support.bombs import xlsx
from support.effort import some

Plant = Callable[..., Path]
pytestmark = pytest.mark.slow

KEY = "ghp_" + "a1B2" * 9
CELLS = {"cells": [{"cell_type": "code", "source": ["one\n", "needle"], "outputs": [{"text": "needle out"}]}]}
MEMBERS = {
    "src/a.py": b"one\nneedle\nthree\n",
    ".env": b"needle\n",
    "secrets/b.txt": b"needle\n",
    "x/K.PEM": b"needle\n",
}
DENY = ["**/.env*", "*.pem", "secrets/", "/conf/prod.yml"]


@pytest.fixture
def tree(plant: Plant) -> Path:
    return plant(
        {
            "plain.txt": "needle\nneedle\n",
            "f.zip": zipped({**MEMBERS, "conf/prod.yml": b"needle\n"}),
            "sub/g.tgz": tarred({"deep/c.py": b"needle\n", "in.zip": zipped(MEMBERS)}),
            "n.ipynb": json.dumps(CELLS),
            ".hidden.zip": zipped({"a.py": b"needle\n"}),
            ".gitignore": "ignored.zip\n",
            "ignored.zip": zipped({"a.py": b"needle\n"}),
        }
    )


@pytest.fixture
def repository(plant: Plant) -> Path:
    files = {"src/a.py": "one\nneedle\n", ".env": "needle\n", "secrets/b.txt": "needle\n", "x/K.PEM": "needle\n"}
    folder = plant({**files, "conf/prod.yml": "needle\n", ".github/w.yml": "needle\n", "sub/secrets/d": "needle\n"})
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A", "--force")
    git(folder, "commit", "-qm", "first")
    git(folder, "tag", "v1")
    (folder / "src/a.py").write_text("gone\n")
    git(folder, "commit", "-qam", "second")
    return folder


def paths(workspace: sync.Workspace, **arguments: Any) -> list[str]:
    result = workspace.grep_content_result("needle", max_matches=1000, **arguments)
    assert result.total_matches == len(result.matches)
    return sorted({match.file for match in result.matches})


class TestInside:
    @pytest.mark.slow
    def test_answer_has_files_members_and_cells(self, tree: Path) -> None:
        workspace = sync.Workspace(tree)
        assert workspace.grep_content("needle", inside="zip, tar,ipynb", context_lines=1, file_type="py") == (
            "File: f.zip!/src/a.py\n  1- one\n  2: needle\n  3- three\n\n---\n\n"
            "File: sub/g.tgz!/deep/c.py\n  1: needle\n\n---\n\n"
            "File: sub/g.tgz!/in.zip!/src/a.py\n  1- one\n  2: needle\n  3- three\n\n(3 matches in 3 files.)"
        )
        assert paths(workspace, inside="ipynb") == ["n.ipynb!/cell 1", "plain.txt"]
        assert paths(workspace) == ["n.ipynb", "plain.txt"]
        assert paths(workspace, inside="zip", include_ignored=True, file_pattern="*.py") == [
            "f.zip!/src/a.py",
            "ignored.zip!/a.py",
        ]
        hidden = paths(workspace, inside="zip", include_hidden=True)
        assert {".hidden.zip!/a.py", "f.zip!/.env"} <= set(hidden)
        assert paths(workspace, path="sub/g.tgz", inside=["tar"]) == ["sub/g.tgz!/deep/c.py"]

    def test_matches_of_files_and_members_are_taken_in_rotation(self, tree: Path) -> None:
        workspace = sync.Workspace(tree)
        seen: list[tuple[str, int]] = []
        offset: int | None = 0
        while offset is not None:
            page = workspace.grep_content_result("needle", inside="zip,ipynb", max_matches=2, offset=offset)
            assert (page.total_matches, page.files_matched, page.exact) == (7, 6, True)
            seen += [(match.file, match.line) for match in page.matches]
            offset = page.next_offset
        assert len(seen) == len(set(seen)) == 7
        assert seen[-1] == ("plain.txt", 2)

    @pytest.mark.parametrize("mode", ["files_with_matches", "count"])
    def test_other_modes_list_files_and_members(self, tree: Path, mode: OutputMode) -> None:
        result = sync.Workspace(tree).grep_content_result(
            "needle", inside="zip,ipynb", output_mode=mode, file_pattern="*.{py,txt,ipynb}"
        )
        counts = {file.path: file.count for file in result.files}
        counted = {"plain.txt": 2, "f.zip!/src/a.py": 1, "f.zip!/secrets/b.txt": 1, "n.ipynb!/cell 1": 1}
        assert counts == (counted if mode == "count" else dict.fromkeys(counted))
        assert result.files_matched == 4
        first = sync.Workspace(tree).grep_content_result("needle", inside="zip", output_mode=mode, max_matches=1)
        assert (len(first.files), first.next_offset, first.truncated) == (1, 1, True)

    def test_bytes_of_a_named_archive_show_no_denied_member(self, tmp_path: Path) -> None:
        """Members that are not compressed were found in the bytes of the archive."""
        files = {"k.key": b"needle secret", "a.py": b"needle"}
        (tmp_path / "f.zip").write_bytes(zipped(files, zipfile.ZIP_STORED))
        (tmp_path / "f.tar").write_bytes(tarred(files, "w"))
        workspace = sync.Workspace(tmp_path, deny=["*.key"])
        for name in ("f.zip", "f.tar"):
            assert paths(workspace, path=name, inside="zip,tar") == [f"{name}!/a.py"]
            modes: tuple[OutputMode, ...] = ("files_with_matches", "count")
            for mode in modes:
                (file,) = workspace.grep_content_result("needle", name, inside="zip,tar", output_mode=mode).files
                assert file.path == f"{name}!/a.py"

    def test_denied_members_and_archives_are_not_searched(self, tree: Path) -> None:
        workspace = sync.Workspace(tree, deny=DENY)
        everything = {"include_hidden": True, "include_ignored": True}
        assert paths(workspace, inside="zip,tar", **everything) == [
            ".hidden.zip!/a.py",
            "f.zip!/src/a.py",
            "ignored.zip!/a.py",
            "n.ipynb",
            "plain.txt",
            "sub/g.tgz!/deep/c.py",
            "sub/g.tgz!/in.zip!/src/a.py",
        ]
        closed = sync.Workspace(tree, deny=["*.zip", "n.*"])
        assert paths(closed, inside="zip,tar,ipynb", **everything) == ["plain.txt", "sub/g.tgz!/deep/c.py"]
        with pytest.raises(AccessDeniedError):
            closed.grep_content_result("needle", "f.zip", inside="zip")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
    def test_denied_directories_are_not_entered(self, tree: Path) -> None:
        for folder in ("secrets", "sub/secrets/deep"):
            (tree / folder).mkdir(parents=True)
            (tree / folder / "in.zip").write_bytes(zipped(MEMBERS))
            os.mkfifo(tree / folder / ".ignore")  # rg would wait for its rules
        workspace = sync.Workspace(tree, deny=DENY, timeout=5)
        for given in ({}, {"include_hidden": True}, {"path": "sub"}):
            found = workspace.grep_content_result("needle", inside="zip", **given)
            assert found.exact
            assert not any("secrets" in file.path for file in found.files)
            assert any(file.path.endswith((".zip!/src/a.py", "plain.txt")) for file in found.files) or "path" in given

    def test_ignored_and_hidden_archives_and_members_need_their_arguments(self, tree: Path) -> None:
        def archives(**given: Any) -> set[str]:
            found = paths(sync.Workspace(tree, deny=["secrets/"]), inside="zip", **given)
            return {path.partition("!")[0] for path in found if "!" in path}

        assert archives() == {"f.zip"}
        assert archives(include_hidden=True) == {"f.zip", ".hidden.zip"}
        assert archives(include_ignored=True) == {"f.zip", "ignored.zip"}
        hidden = paths(sync.Workspace(tree, deny=["secrets/"]), inside="zip", include_hidden=True)
        assert "f.zip!/.env" in hidden
        assert "f.zip!/.env" not in paths(sync.Workspace(tree), inside="zip")

    @pytest.mark.parametrize(
        "name", ["../.env", "/.env", "a\\.ENV", "./secrets//b", "secrets/../secrets/b", "x/.env.gz!/y", ".env!/y"]
    )
    def test_odd_names_of_members_do_not_get_around_deny(self, plant: Plant, name: str) -> None:
        folder = plant({"f.zip": zipped({name: b"needle\n", "ok": b"needle\n"})})
        assert paths(sync.Workspace(folder, deny=DENY), inside="zip", include_hidden=True) == ["f.zip!/ok"]

    def test_rules_for_a_directory_hold_for_the_archive_in_it(self, plant: Plant) -> None:
        folder = plant({"conf/f.zip": zipped({"prod.yml": b"needle\n", "ok": b"needle\n"})})
        assert paths(sync.Workspace(folder, deny=DENY), inside="zip") == ["conf/f.zip!/ok"]

    def test_errors_do_not_name_denied_members(self, plant: Plant) -> None:
        content = bytearray(zipped({"secrets/b": b"needle"}, zipfile.ZIP_STORED))
        content[6] |= 1
        content[content.index(b"PK\x01\x02") + 8] |= 1
        folder = plant({"f.zip": bytes(content), "z.zip": b"junk"})
        answer = sync.Workspace(folder, deny=DENY).grep_content("needle", inside="zip")
        assert "secrets" not in answer
        assert "1 path could not be read, the first: z.zip: broken" in answer
        assert "secrets/b: encrypted" in sync.Workspace(folder).grep_content("needle", inside="zip")

    def test_links_and_members_lead_to_nothing_outside(self, plant: Plant, tmp_path: Path) -> None:
        (tmp_path / "outside.zip").write_bytes(zipped({"a": b"needle"}))
        folder = plant({"ok.txt": "needle\n"})
        (folder / "link.zip").symlink_to(tmp_path / "outside.zip")
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            link = tarfile.TarInfo("link")
            link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "outside.zip")
            archive.addfile(link)
        (folder / "f.tar").write_bytes(packed.getvalue())
        for follow in (False, True):
            assert paths(sync.Workspace(folder, follow=follow), inside="zip,tar") == ["ok.txt"]

    def test_secrets_in_members_are_masked(self, plant: Plant) -> None:
        key = (
            b"-----BEGIN RSA " + b"PRIVATE KEY-----\n" + b"needleMIIEowIBAAKCAQEA0123456789abcdefghijklmnopqrstuv\n" * 3
        )
        content = f"needle {KEY}\n".encode()
        short = key + b"needleMIIE=\n-----END RSA PRIVATE KEY-----\n"
        utf16 = short.decode().encode("utf-16")
        cells = {"cells": [{"source": part.decode()} for part in (short[:120], short[120:])]}
        files = {"a.txt": content, "k": short, "u": utf16, "n.ipynb": json.dumps(cells).encode()}
        folder = plant({"f.zip": zipped(files), "sub/p.txt": short})
        answer = sync.Workspace(folder, redact=True).grep_content("needle|MIIE", inside="zip,ipynb")
        assert "needle [redacted: github" in answer
        assert KEY not in answer
        assert "MIIE" not in answer
        assert answer.count("[redacted: private-key]") >= 17

    @pytest.mark.filterwarnings("ignore:Duplicate name")
    def test_key_in_the_first_of_two_members_with_a_name_is_masked(self, plant: Plant) -> None:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("k", "-----BEGIN " + "PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----\n")
            archive.writestr("k", "needle")
        answer = sync.Workspace(plant({"f.zip": out.getvalue()}), redact=True).grep_content("MIIE", inside="zip")
        assert "[redacted: private-key]" in answer
        assert "MIIE" not in answer

    def test_several_roots_have_absolute_names(self, tree: Path, tmp_path: Path) -> None:
        other = tmp_path / "other"
        other.mkdir()
        (other / "h.zip").write_bytes(zipped({"../../up.py": b"needle", ".env": b"needle"}))
        found = paths(sync.Workspace(tree, other, deny=DENY), inside="zip", file_type="py", include_hidden=True)
        assert found == sorted([f"{other}/h.zip!/../../up.py", f"{tree}/.hidden.zip!/a.py", f"{tree}/f.zip!/src/a.py"])


class TestRevision:
    def test_answer_with_rev_shows_the_files_of_the_commit(self, repository: Path) -> None:
        workspace = sync.Workspace(repository)
        answer = workspace.grep_content("needle", "src", rev="v1", context_lines=1)
        assert answer == "File: src/a.py\n  1- one\n  2: needle\n\n(1 match in 1 file.)"
        assert "No matches found." in workspace.grep_content("needle", "src", rev="HEAD")
        assert paths(workspace, rev="v1") == ["conf/prod.yml", "secrets/b.txt", "src/a.py", "sub/secrets/d", "x/K.PEM"]
        assert paths(workspace, rev="v1", file_pattern="**/*.yml") == ["conf/prod.yml"]
        assert paths(workspace, rev="v1", file_pattern="**/*.yml", include_hidden=True)[0] == ".github/w.yml"
        assert paths(workspace, rev="v1", path=".github") == [".github/w.yml"]
        assert paths(workspace, rev="v1", path="src/a.py") == ["src/a.py"]

    def test_denied_paths_of_a_commit_stay_denied(self, repository: Path) -> None:
        workspace = sync.Workspace(repository, deny=DENY)
        assert paths(workspace, rev="v1", include_hidden=True) == [".github/w.yml", "src/a.py"]
        assert paths(workspace, rev="v1", include_hidden=True, file_pattern="*") == [".github/w.yml", "src/a.py"]
        for path in ("secrets", "secrets/b.txt", ".env", "conf/prod.yml"):
            with pytest.raises(AccessDeniedError):
                workspace.grep_content_result("needle", path, rev="v1")

    def test_tree_of_a_directory_is_no_revision(self, repository: Path) -> None:
        tree = git(repository, "rev-parse", "v1:secrets")
        for rev in (tree, "v1:secrets", "v1^{tree}", git(repository, "rev-parse", "v1:.env")):
            answer = sync.Workspace(repository, deny=DENY).grep_content("needle", rev=rev)
            assert answer.startswith("Error: rev is not a revision")

    def test_paths_above_the_root_are_not_searched(self, repository: Path) -> None:
        workspace = sync.Workspace(repository / "sub", repositories=repository / ".git")
        assert paths(workspace, rev="v1") == ["secrets/d"]
        assert paths(sync.Workspace(repository / "sub", deny="secrets/", repositories=[repository]), rev="v1") == []
        assert workspace.grep_content("needle", "../src", rev="v1").startswith("Error: ")

    def test_secrets_of_a_commit_are_masked(self, repository: Path) -> None:
        (repository / "src/a.py").write_text(f"needle {KEY}\n")
        git(repository, "commit", "-qam", "third")
        (repository / "src/a.py").write_text("needle\n")
        answer = sync.Workspace(repository, redact=True).grep_content("needle", "src", rev="HEAD")
        assert "needle [redacted: github" in answer
        assert KEY not in answer


@pytest.mark.anyio
async def test_async_tools_search_revisions_and_archives(repository: Path) -> None:
    (repository / "f.zip").write_bytes(zipped({"z.py": b"needle\n"}))
    workspace = Workspace(repository)
    assert "File: src/a.py" in await workspace.grep_content("needle", rev="v1")
    assert "File: f.zip!/z.py" in await workspace.grep_content("needle", inside="zip")


def test_archives_of_a_revision_are_searched(repository: Path) -> None:
    members = {"z.py": b"needle\n", ".hidden.py": b"needle\n", "k.py": f"needle {KEY}\n".encode()}
    for name in ("all.zip", "secret.zip"):
        (repository / name).write_bytes(zipped(members))
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "archives")
    for name in ("all.zip", "secret.zip"):
        (repository / name).unlink()
    workspace = sync.Workspace(repository, deny=["secret*"], redact=True)
    answer = workspace.grep_content("needle", rev="HEAD", inside="zip")
    assert "File: all.zip!/z.py" in answer
    assert "[redacted: github" in answer
    assert all(text not in answer for text in (KEY, "secret", ".hidden"))
    counts = workspace.grep_content_result("needle", rev="HEAD", inside="zip", output_mode="count")
    assert {(one.path, one.count) for one in counts.files} >= {("all.zip!/z.py", 1), ("all.zip!/k.py", 1)}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"rev": "--output=x"}, "rev must be a revision of git"),
        ({"rev": "nope"}, "rev is not a revision"),
        ({"inside": "rar"}, "inside must be 'zip'"),
        ({"inside": "zip", "sections": True}, "sections cannot be combined with inside; leave one of them out"),
        ({"rev": "HEAD", "expand": "definition"}, "expand cannot be combined with rev; leave one of them out"),
        ({"rev": "HEAD", "file_type": "nope"}, "nope"),
        ({"inside": "zip", "file_pattern": "[z"}, "[z"),
    ],
    ids=str,
)
def test_bad_arguments_are_one_error(repository: Path, arguments: dict[str, Any], text: str) -> None:
    answer = sync.Workspace(repository).grep_content("needle", **arguments)
    assert answer.startswith("Error: ")
    assert text in answer


def test_directory_without_a_repository_is_an_error(folder: Path) -> None:
    assert "rev needs a git repository" in sync.Workspace(folder).grep_content("needle", rev="HEAD")


def test_pattern_that_needs_pcre2_is_searched_inside(tree: Path) -> None:
    assert "2: needle" in sync.Workspace(tree).grep_content("(?<=n)eedle", inside="zip", file_type="py")
    answer = sync.Workspace(tree).grep_content("needle(", inside="zip")
    assert answer.startswith("Error: ")


def test_denied_file_whose_path_looks_like_that_of_an_item_is_not_searched(plant: Plant) -> None:
    root = plant({"x!/secret.txt": "needle\n", "x!/open.txt": "needle\n", "a.zip": zipped({"z.py": b"needle\n"})})
    workspace = sync.Workspace(root, deny=["secret*"])
    for mode in ("content", "files_with_matches", "count"):
        result = workspace.grep_content_result("needle", inside="zip", output_mode=mode)
        assert sorted(one.path for one in result.files) == ["a.zip!/z.py", "x!/open.txt"], mode


ZIP, TGZ, NESTED = "f.zip!/src/a.py", "sub/g.tgz!/deep/c.py", "sub/g.tgz!/in.zip!/src/a.py"


@pytest.mark.parametrize("mode", ["content", "files_with_matches", "count"])
@pytest.mark.parametrize(
    ("glob", "file_type", "found"),
    [
        ("*.py", "py", [ZIP, TGZ, NESTED]),
        ("**/src/*.py", "", [ZIP, NESTED]),
        ("**/{a,K}.*", "", [ZIP, NESTED]),
        ("**/{a,c}.*,plain*", "", ["plain.txt", ZIP, TGZ, NESTED]),
        ("f.zip!/**", "", [ZIP]),
        ("!**/src/*", "", ["plain.txt", "n.ipynb", TGZ]),
    ],
)
def test_every_mode_has_the_items_that_globs_with_slashes_choose(
    tree: Path, mode: OutputMode, glob: str, file_type: str, found: list[str]
) -> None:
    """For such globs, the files on the disk are compared with a listing, in which no item is."""
    result = sync.Workspace(tree, deny=DENY).grep_content_result(
        "needle", inside="zip,tar", output_mode=mode, file_pattern=glob, file_type=file_type, max_matches=1000
    )
    assert sorted(one.path for one in result.files) == sorted(found)


@pytest.mark.parametrize("mode", ["content", "files_with_matches", "count"])
def test_every_mode_has_the_files_of_a_revision_that_are_gone_from_the_disk(repository: Path, mode: OutputMode) -> None:
    (repository / "src/a.py").unlink()
    found = sync.Workspace(repository).grep_content_result(
        "needle", rev="v1", file_pattern="src/*.py,x/*", output_mode=mode
    )
    assert sorted(one.path for one in found.files) == ["src/a.py", "x/K.PEM"]


def damaged(content: bytes, old: bytes, new: bytes) -> bytes:
    assert content.count(old) == 1
    return content.replace(old, new)


UNKNOWN_ENTITY = '<sheetData><row r="1"><c r="A1" t="str"><v>&unknown;</v></c></row></sheetData>'


def sheet(xml: str) -> bytes:
    file: Any = io.BytesIO()
    xlsx(file, xml)
    return bytes(file.getvalue())


STORED = zipped({"ok.txt": b"ok", "bad.txt": b"some text"}, zipfile.ZIP_STORED)
PACKED = {"gz": gzip.compress(b"some text"), "bz2": bz2.compress(b"some text"), "xz": lzma.compress(b"some text")}
BROKEN: dict[str, bytes] = {
    "crc.zip": damaged(STORED, b"some text", b"same text"),
    "cut.zip": STORED[:40],
    "not.zip": b"some text",
    "cut.tgz": tarred({"a": b"some text"})[:-20],
    "cut.tar": tarred({"a": b"some text" * 200}, "w:")[:900],
    "crc.gz": PACKED["gz"][:-8] + b"\\0" * 4 + PACKED["gz"][-4:],
    "cut.gz": PACKED["gz"][:-6],
    "cut.bz2": PACKED["bz2"][:-6],
    "cut.xz": PACKED["xz"][:-6],
    "outer.zip": zipped({"in.zip": damaged(STORED, b"some text", b"same text")}),
    "bad.ipynb": b'{"cells": [{"cell_type": "code", "source": [',
}


@pytest.mark.parametrize("mode", ["content", "count"])
@pytest.mark.parametrize("name", [*some(BROKEN, 6), pytest.param("bad.xlsx", marks=pytest.mark.extra)])
def test_error_about_a_member_is_shown_whatever_path_names(plant: Plant, name: str, mode: OutputMode) -> None:
    """With the archive itself as path, a wrong checksum was not mentioned."""
    content = BROKEN[name] if name in BROKEN else sheet(UNKNOWN_ENTITY)
    folder = plant({f"sub/{name}": content})
    inside = "zip,tar,gz,bz2,xz,ipynb"
    if name == "bad.xlsx":
        pytest.importorskip("python_calamine")
        inside += ",xlsx"
    first, *more = sync.grep("needle", cwd=folder, inside=inside.split(",")).errors
    says = f"{plural(len(more) + 1, 'path')} could not be read, the first: {first.path}: "
    for path in (".", "sub", f"sub/{name}"):
        result = sync.Workspace(folder).grep_content_result("needle", path, inside=inside, output_mode=mode)
        assert result.notes[0].startswith(says), result
        assert (first.path or "").startswith(f"sub/{name}")
        closed = sync.Workspace(folder, deny=["bad.txt"] if name == "crc.zip" else [f"sub/{name}"])
        hidden = closed.call("grep_content", {"pattern": "needle", "path": path, "inside": inside, "output_mode": mode})
        assert "could not be read" not in hidden
    (folder / "sub" / f".{name}").write_bytes(content)
    assert sync.Workspace(folder).grep_content("needle", "sub", inside=inside).count(says) == 1


NUL = b"\0\nneedle\nneedle\n"
HIDING: dict[str, bytes] = {
    "a.zip": zipped({"m": NUL}),
    "b.zip": zipped({"m": NUL, "n": b"other\n"}),
    "a.tgz": tarred({"m": NUL}),
    "a.tar": tarred({"m": NUL, "o": NUL[:1]}, "w:"),
    "m.gz": gzip.compress(NUL),
    "m.bz2": bz2.compress(NUL),
    "m.xz": lzma.compress(NUL),
    "outer.zip": zipped({"in.zip": zipped({"m": NUL})}),
    "outer.tgz": tarred({"in.zip": zipped({"m": NUL})}),
    "n.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": [NUL.decode()], "outputs": []}]}).encode(),
}


@pytest.mark.parametrize("mode", ["content", "files_with_matches"])
@pytest.mark.parametrize("name", some(HIDING, 6))
def test_text_after_a_nul_in_a_member_is_mentioned_as_in_a_file(plant: Plant, name: str, mode: OutputMode) -> None:
    """The members with a NUL were 'No matches found.', without a word about them."""
    says = "There would be 2 matches in 1 file in binary files ("
    folder = plant({name: HIDING[name]})
    workspace = sync.Workspace(folder)
    given: dict[str, Any] = {"inside": "zip,tar,gz,bz2,xz,ipynb", "output_mode": mode}
    assert says in workspace.grep_content_result("needle", **given).message
    assert workspace.grep_content_result("absent", **given).message.endswith(" found nothing: in binary files.")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    assert says in workspace.grep_content_result("needle", rev="main", **given).message
    (folder / name).write_bytes(NUL)
    assert "There would be 2 matches" in workspace.grep_content_result("needle", output_mode=mode).message


@pytest.mark.parametrize(
    "name",
    [
        *("k.key", "k.key.", "k.key ", "k.key. .", "K.KEY.", "d/k.key./x", "d/k.key::$DATA", "k.key:stream"),
        *("a/../k.key.", "secrets/a", "secrets /a", "secrets./a", "x/secrets. /y/z", "d\\k.key "),
    ],
)
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_member_is_denied_under_the_name_that_windows_gives_it(
    plant: Plant, name: str, pack: Callable[[dict[str, bytes]], bytes]
) -> None:
    """Windows drops dots and spaces at the end of a name, and what follows a colon is a stream of the file."""
    suffix = "zip" if pack is zipped else "tgz"
    folder = plant({f"a.{suffix}": pack({name: b"needle\n", "k.keys": b"needle\n", ".. /k.key.txt": b"needle\n"})})
    workspace = sync.Workspace(folder, deny=["*.key", "secrets/"])
    found = workspace.grep_content_result("needle", inside="zip,tar", include_hidden=True)
    assert {match.file.partition("!/")[2] for match in found.matches} == {"k.keys", ".. /k.key.txt"}


@pytest.mark.parametrize(
    "name",
    [
        *("conf/prod.yml", "/conf/prod.yml", "./conf//prod.yml", "../conf/prod.yml", "../../conf/./prod.yml"),
        *("conf/../conf/prod.yml", "x/../conf/prod.yml", "conf/x/../prod.yml", "x/y/../../conf/prod.yml"),
        *("conf/../prod.yml", "x\\..\\conf\\prod.yml", "..\\conf\\prod.yml", "../x/../conf/prod.yml."),
    ],
)
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_member_is_denied_with_and_without_the_names_before_its_dots(
    plant: Plant, name: str, pack: Callable[[dict[str, bytes]], bytes]
) -> None:
    """unzip drops `..` from the name of a member, and tar writes to the directory above."""
    suffix, others = "zip" if pack is zipped else "tgz", ["x/conf/prod.yml", "../x.yml", "conf/a/../b.yml"]
    folder = plant({f"a.{suffix}": pack(dict.fromkeys([name, *others], b"needle\n"))})
    workspace = sync.Workspace(folder, deny=["/conf/prod.yml"])
    found = workspace.grep_content_result("needle", inside="zip,tar", include_hidden=True)
    assert {match.file.partition("!/")[2] for match in found.matches} == {*others}


@pytest.mark.parametrize("cells", [1, 2])
def test_lines_of_a_key_in_a_document_are_masked_one_by_one(plant: Plant, cells: int) -> None:
    """A document may have the lines of a key without its first line, e.g. as paragraphs or cells."""
    line = "MIIEpAIBAAKCAQEA" + "a1B2c3D4" * 6
    sources = [["first\n", f"{line}\n", "last"]] * cells
    notebook = {"cells": [{"cell_type": "code", "source": source, "outputs": []} for source in sources]}
    workspace = sync.Workspace(plant({"n.ipynb": json.dumps(notebook)}), redact=True)
    answer = workspace.grep_content("MIIE|first", inside="ipynb")
    assert (answer.count("first"), answer.count("[redacted: private-key]"), "MIIE" in answer) == (cells, cells, False)


@pytest.mark.parametrize("place", ["nbformat", "execution_count", "width", "line"])
@pytest.mark.parametrize("number", ["9" * 5_000, "-" + "9" * 5_000, "1e" + "9" * 5_000])
def test_notebook_with_a_long_number_is_searched(plant: Plant, place: str, number: str) -> None:
    cell = {
        "cell_type": "code",
        "source": ["needle"],
        "outputs": [{"data": {"text/plain": ["x"]}, "width": 0}],
        "line": 0,
    }
    notebook = json.dumps({"cells": [{**cell, "execution_count": 0}], "nbformat": 0})
    folder = plant({"n.ipynb": notebook.replace(f'"{place}": 0', f'"{place}": {number}')})
    found = sync.grep("needle", cwd=folder, inside=["ipynb"])
    assert (found.total_matches, found.errors) == (1, ())


@pytest.mark.parametrize(
    ("path", "rev", "file"),
    [
        ("main", "main", "main/src/a.py"),
        ("main/src", "HEAD", "main/src/a.py"),
        ("main/src/a.py", "main", "main/src/a.py"),
        ("tree", "other", "tree/src/a.py"),
        ("tree", "HEAD", "tree/src/a.py"),
        ("tree/src", "HEAD", "tree/src/a.py"),
        ("tree/src/a.py", "other", "tree/src/a.py"),
        ("tree", "main", "tree/src/a.py"),
        ("outer/main", "main", "outer/main/src/a.py"),
        ("outer/main/src", "HEAD", "outer/main/src/a.py"),
        ("outer", "HEAD", "outer/o.py"),
        ("outer/o.py", "HEAD", "outer/o.py"),
    ],
)
def test_revision_is_of_the_repository_or_worktree_that_has_the_path(
    plant: Plant, path: str, rev: str, file: str
) -> None:
    """With a root above several repositories, each call was an error, because the root is in none."""
    top = plant({"main/src/a.py": "needle\n", "main/b.key": "needle\n", "outer/o.py": "needle\n", "x": "needle\n"})
    for name in ("main", "outer"):
        git(top / name, "init", "-q", "-b", "main")
        git(top / name, "add", "-A")
        git(top / name, "commit", "-qm", "first")
    git(top / "main", "worktree", "add", "-q", "-b", "other", "../tree")
    git(top / "outer", "clone", "-q", "../main", "main")
    for folder in ("main", "tree", "outer/main"):
        (top / folder / "src/a.py").write_text("gone\n")
    for deny, found in ((["*.key"], {file}), (["*.key", f"/{file}"], set[str]())):
        workspace = sync.Workspace(top, deny=deny)
        for mode in ("content", "count"):
            if deny[1:] and path == file:
                with pytest.raises(AccessDeniedError):
                    workspace.grep_content_result("needle", path, rev=rev)
            else:
                result = workspace.grep_content_result("needle", path, rev=rev, output_mode=mode)
                assert {one.path for one in result.files} == found
    with pytest.raises(RipwrapError, match="is not allowed, because its directories are not all inside"):
        sync.Workspace(top / "tree").grep_content_result("needle", rev=rev)
    chosen = sync.Workspace(top).grep_content_result("needle", path, rev=rev, file_pattern=file)
    assert [one.path for one in chosen.files] == [file]
