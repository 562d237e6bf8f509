"""Denied files: globs, links, spellings, and how listings show them."""

import io
import os
import tarfile
import unicodedata
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripwrap import AccessDeniedError, sync
from ripwrap.binary import RgBinary
from ripwrap.workspace.deny import DeniedPaths, DenyRules
from ripwrap.workspace.listing import find_denied
from ripwrap.workspace.sandbox import Sandbox
from ripwrap.workspace.scope import Settings, scope_of_root
from support.opening import on_open
from support.paths import native, slashed
from support.tools import APIS, Asked

Plant = Callable[..., Path]

GLOBS = ("**/.env*", "*.pem", "secrets/", "/top", "a/**/z", "é")
NAMES = st.sampled_from(["a", "z", "A", ".env", ".ENV.x", "k.pem", "K.Pem", "secrets", "top", "Top", "b", "é", "É"])
TREES = st.dictionaries(st.lists(NAMES, min_size=1, max_size=4).map("/".join), st.just("needle\n"), max_size=12)


@pytest.fixture
def tree(plant: Plant) -> Path:
    return plant(
        {
            ".env": "needle\n",
            "sub/.ENV": "needle\n",
            "sub/key.pem": "needle\n",
            "secrets/a.py": "needle\n",
            "sub/ok.py": "a needle\n",
            "ok.py": "needle\n",
        }
    )


@pytest.mark.parametrize(
    ("glob", "denied", "allowed"),
    [
        ("*.pem", ["a.pem", "x/y/A.PEM"], ["pem", "a.pem.txt"]),
        ("**/.env*", [".env", "x/.env.local", ".envrc", ".env/deep/file", "x/.ENV"], ["env", "x/a.env"]),
        ("secrets/", ["secrets/", "x/Secrets/y", "secrets/a"], ["secrets", "x/secrets"]),
        ("secrets/**", ["secrets/", "secrets/a", "secrets/a/b"], ["x/secrets/a", "secrets"]),
        ("/a", ["a", "a/b", "A"], ["x/a"]),
        ("./a", ["a", "a/b"], ["x/a"]),
        ("a/b", ["a/b", "A/B/c"], ["x/a/b", "a"]),
        ("{a,b}.key", ["a.key", "x/B.KEY"], ["c.key"]),
        ("id_[rd]sa", ["id_rsa", "ID_DSA"], ["id_rsa.pub", "id_xsa"]),
        ("#x", ["#x"], ["x"]),
        ("é.txt", ["é.txt", "É.TXT", unicodedata.normalize("NFD", "é.txt")], ["e.txt"]),
        ("*a*a*a*a*b", ["aaaab", "x/AAAAb"], ["aaab"]),
    ],
)
def test_globs_have_the_rules_of_gitignore_and_ignore_case(glob: str, denied: list[str], allowed: list[str]) -> None:
    paths = DeniedPaths(DenyRules([glob]))
    assert {path: paths.glob_of(native(path)) for path in denied} == dict.fromkeys(denied, glob)
    assert {path: paths.glob_of(native(path)) for path in allowed} == dict.fromkeys(allowed)


@pytest.mark.parametrize(
    ("glob", "says"),
    [
        ("", "'' in deny is empty; leave it out"),
        ("  ", "'  ' in deny is empty"),
        ("/", "'/' in deny is empty"),
        ("!x", "'!x' in deny begins with !, but deny cannot allow files again"),
        ("~/.ssh", r"write it as \*\*/.ssh"),
        ("a/../b", "'a/../b' in deny leads out of the roots"),
        ("[a", r"'\[a' in deny does not parse: unclosed character class"),
        ("a\0b", "a NUL character cannot be part of a glob in deny; remove it"),
    ],
)
def test_invalid_glob_is_an_error(glob: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        DenyRules([glob])


def test_glob_that_is_no_string_is_an_error() -> None:
    with pytest.raises(TypeError, match="a glob in deny must be a str, got bytes"):
        DenyRules([b"*.pem"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


def test_string_is_one_glob_and_a_path_below_a_root_is_about_the_root(tree: Path) -> None:
    assert [glob.given for glob in DenyRules("*.pem").globs] == ["*.pem"]
    rules = DenyRules(f"{tree}/sub", roots=[str(tree)])
    assert rules.glob_of("sub/x") == f"{tree}/sub"
    assert rules.glob_of("x/sub") is None


@pytest.mark.parametrize("path", ["/etc/secret", "//secret", "/", "/secret/x"])
def test_absolute_path_of_a_tree_of_git_ends(path: str) -> None:
    assert (DeniedPaths(DenyRules(["secret"])).glob_of(path) == "secret") == ("secret" in path)


def test_backslashes_are_separators_on_windows() -> None:
    assert DenyRules("a\\b", windows=True).globs[0].spellings == ("a/b",)
    assert DenyRules("a\\b", windows=False).glob_of("ab") == "a\\b"


def test_unknown_way_to_show_denied_files_is_an_error(tree: Path) -> None:
    with pytest.raises(ValueError, match="show_denied must be 'hide', 'count' or 'name', got 'no'"):
        sync.Workspace(tree, show_denied="no")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("path", [".env", "./.env", "sub/.ENV", ".Env", "missing/.env", "sub/../.env", ".env/below"])
def test_named_path_is_denied_whether_it_exists_or_not(api: str, tree: Path, path: str) -> None:
    asked = Asked(api, tree, deny=["**/.env*"])
    text = f'Error: {path} is denied by "**/.env*"; pass another path'
    assert asked.grep_content("needle", path) == text
    assert asked.read_file(path) == text
    for tool in (asked.ls, asked.tree):
        assert tool(path) == text
    assert asked.find_files("*", path) == text
    assert asked.codebase_search("needle", path) == text


def test_error_has_the_glob(tree: Path) -> None:
    with pytest.raises(AccessDeniedError) as caught:
        sync.Workspace(tree, deny="*.pem").read_file_result("sub/key.pem")
    assert (caught.value.denied_by, caught.value.path) == ("*.pem", "sub/key.pem")


@pytest.mark.posix
@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("plain", ".env"),
        ("plain", "sub/../.env"),
        ("chain", "sub/one"),
        ("open", "secrets"),
        ("gone", "sub/.env.gone"),
        ("x.pem", "ok.py"),
    ],
)
def test_link_to_a_denied_file_or_with_a_denied_name_is_denied(tree: Path, name: str, target: str) -> None:
    (tree / "sub" / "one").symlink_to("../secrets/a.py")
    (tree / name).symlink_to(target)
    workspace = sync.Workspace(tree, deny=GLOBS)
    assert workspace.read_file(name).startswith(f"Error: {name} is denied by ")
    assert workspace.grep_content("needle", name).startswith(f"Error: {name} is denied by ")
    below = f"{name}/a.py"
    assert workspace.read_file(below).startswith(f"Error: {below} ")


@pytest.mark.posix
def test_link_on_the_way_is_denied_although_the_file_is_not(tree: Path) -> None:
    (tree / "way.pem").symlink_to("sub")
    workspace = sync.Workspace(tree, deny="*.pem")
    assert workspace.read_file("way.pem/ok.py") == 'Error: way.pem/ok.py is denied by "*.pem"; pass another path'
    assert "needle" in workspace.read_file("sub/ok.py")


@pytest.mark.posix
def test_followed_link_shows_no_denied_file(tree: Path) -> None:
    (tree / "plain").symlink_to(".env")
    (tree / "open").symlink_to("secrets")
    workspace = sync.Workspace(tree, deny=GLOBS, follow=True)
    everything = {"include_hidden": True, "include_ignored": True}
    found = workspace.grep_content_result("needle", **everything)  # type: ignore[arg-type]
    assert {file.path for file in found.files} == {"ok.py", "sub/ok.py"}
    assert found.total_matches == 2
    assert set(workspace.find_files_result(**everything).files) == {"ok.py", "sub/ok.py"}  # type: ignore[arg-type]
    assert {place.file for place in workspace.codebase_search_result("needle").places} == {"ok.py", "sub/ok.py"}


PARTS = st.sampled_from(["a", "b", "..", ".", ".env", "SECRETS", "secrets", "k.pem", "x", ""])
TARGETS = st.lists(PARTS, min_size=1, max_size=4).map("/".join).filter(lambda target: bool(target.strip("/")))
LINKS = st.dictionaries(st.sampled_from(["a", "b", "x", "a/x", "b/a", "secrets/x", "k.pem", "b/.env"]), TARGETS)


@pytest.mark.posix
@pytest.mark.slow
@given(links=LINKS, paths=st.lists(TARGETS, max_size=8), follow=st.booleans())
def test_no_path_through_any_links_shows_a_denied_file(
    links: dict[str, str], paths: list[str], follow: bool, rg: RgBinary, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("tree")
    for name in ("a/ok", "b/ok", "a/.env", "b/k.pem", "secrets/in", "a/secrets/in", "b/SECRETS/in"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("shown\n" if name.endswith("ok") else "denied!\n")
    for name, target in links.items():
        if not (root / name).exists() and (root / name).parent.is_dir():
            (root / name).unlink(missing_ok=True)
            (root / name).symlink_to(target)
    workspace = sync.Workspace(root, rg=rg.path, deny=GLOBS, follow=follow)
    everything = {"include_hidden": True, "include_ignored": True}
    assert "denied!" not in workspace.call("grep_content", {"pattern": "e", **everything})
    assert "denied!" not in workspace.codebase_search("denied shown")
    for path in (*paths, *links):
        assert "denied!" not in workspace.read_file(path)
        assert "denied!" not in workspace.call("grep_content", {"pattern": "e", "path": path, **everything})
        for tool in ("ls", "tree", "find_files"):
            assert "/in\n" not in workspace.call(tool, {"path": path, **everything})


@pytest.mark.slow
def test_roots_have_the_globs_each(tmp_path: Path) -> None:
    for name in ("secrets/one", "two[x]"):
        (tmp_path / name / "top").mkdir(parents=True)
        (tmp_path / name / "x" / "top").mkdir(parents=True)
        for file in ("top/a", "x/top/b", "k.pem", "ok"):
            (tmp_path / name / file).write_text(f"needle of {name}/{file}\n")
    # Above a root no glob counts.
    workspace = sync.Workspace(tmp_path / "secrets/one", tmp_path / "two[x]", deny=["/top", "*.pem", "secrets/"])
    expected = {str(tmp_path / name / file) for name in ("secrets/one", "two[x]") for file in ("x/top/b", "ok")}
    assert {file.path for file in workspace.grep_content_result("needle").files} == expected
    assert set(workspace.find_files_result().files) == expected
    assert {place.file for place in workspace.codebase_search_result("needle").places} == expected
    assert workspace.read_file("top/a") == 'Error: top/a is denied by "/top"; pass another path'


@pytest.mark.slow
@pytest.mark.rg_ends
@given(tree=TREES)
def test_rg_and_python_deny_the_same_paths(
    tree: dict[str, str], rg: RgBinary, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("tree")
    for name, text in tree.items():
        try:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        except OSError:  # a file where a directory is wanted
            continue
    written = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    (root / ".ignore").write_text("!.env*\n!*.pem\n!secrets\n")
    rules = DeniedPaths(DenyRules(GLOBS))
    allowed = {path for path in written if rules.glob_of(path) is None}
    workspace = sync.Workspace(root, rg=rg.path, deny=GLOBS)
    found = workspace.grep_content_result("needle", include_hidden=True, output_mode="files_with_matches")
    assert {file.path for file in found.files} == allowed
    entries = workspace.find_files_result(entry_type="any", include_hidden=True, limit=1000).files
    assert {entry for entry in entries if not entry.endswith("/")} - {".ignore"} == allowed
    for path in written:
        denied = workspace.read_file(path).startswith("Error: ")
        assert denied == (path not in allowed)


def test_listings_show_denied_files_as_the_user_wants(tree: Path) -> None:
    def answers(show: str) -> tuple[str, str, str]:
        workspace = sync.Workspace(tree, deny=GLOBS, show_denied=show)  # type: ignore[arg-type]
        return (
            workspace.ls("sub", include_hidden=True),
            workspace.tree(include_hidden=True),
            slashed(workspace.find_files("*", entry_type="any", include_hidden=True)),
        )

    assert answers("hide") == (
        "- sub/\n  - ok.py\n\n(1 file.)",
        "sub/\n    ok.py\nok.py\n\n(2 files.)",
        "ok.py\nsub/\nsub/ok.py\n\n(3 entries.)",
    )
    assert answers("count") == (
        "- sub/\n  - ok.py\n\n(1 file. 2 denied files or directories not listed.)",
        "sub/\n    ok.py\nok.py\n\n(2 files. 4 denied files or directories not listed.)",
        "ok.py\nsub/\nsub/ok.py\n\n(3 entries. 4 denied files or directories not listed.)",
    )
    assert answers("name") == (
        "- sub/\n  - .ENV [denied]\n  - key.pem [denied]\n  - ok.py\n\n(1 file.)",
        (
            "secrets/ [denied]\nsub/\n    .ENV [denied]\n    key.pem [denied]\n    ok.py\n.env [denied]\nok.py\n\n"
            "(2 files.)"
        ),
        (
            ".env [denied]\nok.py\nsecrets/ [denied]\nsub/\nsub/.ENV [denied]\nsub/key.pem [denied]\nsub/ok.py\n\n"
            "(7 entries.)"
        ),
    )


def test_denied_files_of_several_roots_are_named(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "secrets").mkdir(parents=True)
        (tmp_path / name / "k.pem").write_text("")
        (tmp_path / name / "ok").write_text("")
    workspace = sync.Workspace(tmp_path / "one", tmp_path / "two", deny=GLOBS, show_denied="name")
    names = [f"{tmp_path / name / file}" for name in ("one", "two") for file in ("k.pem", "ok")]
    assert list(workspace.find_files_result().files) == names
    listed = workspace.ls_result().entries
    assert {entry.path for entry in listed if entry.denied} == {
        str(tmp_path / name / file) for name in ("one", "two") for file in ("k.pem", "secrets")
    }


def test_denied_files_that_there_is_no_time_to_find_are_noted(tree: Path) -> None:
    def found(seconds: float) -> tuple[list[str], bool]:
        sandbox = Sandbox([tree], deny=GLOBS)
        settings = Settings(sandbox, False, False, False, seconds, 20_000, 500)
        scope = replace(scope_of_root(settings, str(tree)), options={"hidden": True})
        return find_denied(scope, scope.options)

    denied, late = found(60)
    assert (set(map(slashed, denied)), late) == ({"secrets/", "sub/.ENV", "sub/key.pem", ".env"}, False)
    assert found(-1) == ([], True)


def test_named_denied_files_keep_to_the_other_arguments(tree: Path) -> None:
    workspace = sync.Workspace(tree, deny=GLOBS, show_denied="name")
    assert slashed(workspace.find_files("*.pem")) == "sub/key.pem [denied]\n\n(1 file.)"
    assert "key.pem" not in workspace.ls(ignore=["*.pem"])
    assert ".env" not in workspace.ls()
    found = workspace.find_files_result("*", sort="newest", include_hidden=True, limit=3)
    assert found.denied == (".env",)
    assert found.files[2] == ".env"
    assert (found.total_files, found.next_offset) == (5, 3)
    listed = workspace.ls_result(include_hidden=True, max_depth=1)
    assert [entry.path for entry in listed.entries if entry.denied] == ["secrets", ".env"]
    assert {"path": ".env", "denied": True} in listed.structured()["entries"]


@pytest.mark.slow
def test_glob_does_not_bring_denied_files_back(tree: Path) -> None:
    workspace = sync.Workspace(tree, deny=GLOBS)
    for glob in (".env", "*.pem", "**/*.pem", "sub/*", "secrets/**"):
        found = workspace.grep_content_result("needle", file_pattern=glob, include_hidden=True, include_ignored=True)
        assert {file.path for file in found.files} <= {native("sub/ok.py")}
    assert workspace.grep_content_result("needle", file_type="all").total_matches == 2


@pytest.mark.slow
@pytest.mark.posix
def test_empty_answer_names_no_denied_link(tree: Path) -> None:
    for name in ("a.pem", "secrets/link", "zlink"):
        (tree / name).symlink_to("ok.py")
    text = sync.Workspace(tree, deny=GLOBS).grep_content("nothing of that kind")
    assert "Not searched: 1 symbolic link, which is not followed: zlink." in text
    assert "e.g. a.pem" in sync.Workspace(tree).grep_content("nothing of that kind")


@pytest.mark.slow
@pytest.mark.posix
def test_empty_answer_names_no_link_to_a_denied_file(tree: Path) -> None:
    for name, target in (("alink", ".env"), ("blink", "secrets"), ("clink", "blink/a.py")):
        (tree / name).symlink_to(target)
    workspace = sync.Workspace(tree, deny=GLOBS)
    for text in (workspace.grep_content("nothing of that kind"), workspace.find_files("*link")):
        assert "3 symbolic links, which are not followed." in text
    (tree / "b0link").symlink_to("ok.py")
    for text in (workspace.grep_content("nothing of that kind"), workspace.find_files("*link")):
        assert "4 symbolic links, which are not followed, e.g. b0link." in text


@pytest.mark.slow
@pytest.mark.parametrize("glob", [".env", "**/*.pem", "sub/key.pem", "*.py,*.pem", "/secrets/x", "./.env.missing"])
def test_answer_says_that_a_glob_is_denied_even_if_no_file_matches(tree: Path, glob: str) -> None:
    workspace = sync.Workspace(tree, deny=GLOBS)
    for text in (workspace.grep_content("needle", file_pattern=glob), workspace.find_files(glob)):
        assert f'{glob.rpartition(",")[2]} is denied by "' in text
        assert "is denied" not in workspace.grep_content("needle", file_pattern="*.py,!*.pem")


@pytest.mark.slow
def test_index_has_no_denied_files_and_a_denied_change_is_no_change(tree: Path, tmp_path: Path, rg: RgBinary) -> None:
    opened: list[str] = []
    plain = sync.Workspace(tree, rg=rg.path, index=tmp_path / "index")
    assert plain.index_codebase_result().roots[0].added == 4  # with key.pem and secrets/a.py, but no hidden file
    plain.close()
    with on_open(opened.append):
        denying = sync.Workspace(tree, rg=rg.path, index=tmp_path / "index", deny=GLOBS)
        assert not denying.index_status_result().roots[0].built
        assert denying.codebase_search_result("needle").ranking == "files"
        assert denying.index_codebase_result().roots[0].added == 2
        found = denying.codebase_search_result("needle")
        assert (found.ranking, {place.file for place in found.places}) == ("index", {"ok.py", "sub/ok.py"})
        (tree / "secrets" / "a.py").write_bytes(b"needle needle\n")
        assert {file.path for file in denying.grep_content_result("needle").files} == {"ok.py", "sub/ok.py"}
        denying.close()
    names = {os.path.basename(path) for path in opened if path.startswith(str(tree))} - {"a.py"}
    assert not names & {".env", ".ENV", "key.pem", "secrets"}


class Recorder:
    """Embedder that notes the texts it is sent."""

    name = "test:recorder"
    dimension = 2

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        self.texts += texts
        return [[1.0, 0.0] for _ in texts]


@pytest.mark.extra
def test_embedder_is_sent_no_text_of_a_denied_file_that_another_index_has(plant: Plant, tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    root, recorder = plant({"ok.py": "allowed\n", "key.pem": "denied\n", "secrets/a.py": "denied\n"}), Recorder()
    with sync.Index(root, location=tmp_path / "home") as shared:
        assert shared.refresh().added == 3
    iglob = DeniedPaths(DenyRules(GLOBS)).iglobs()
    with sync.Index(root, location=tmp_path / "home", embedder=recorder, iglob=iglob) as denying:
        assert denying.refresh().embedded == 1
        assert {result.path for result in denying.search("denied allowed")} == {"ok.py"}
    assert any("allowed" in text for text in recorder.texts)
    assert {text for text in recorder.texts if "denied" in text} <= {"denied allowed"}


@pytest.mark.slow
@pytest.mark.posix
def test_unsure_candidates_of_an_index_bring_no_denied_file(plant: Plant, tmp_path: Path, rg: RgBinary) -> None:
    root = plant({"late.bin": b"a needle\n" * 9_000 + b"\0needle\n", "k.pem": "needle\n", ".env": "needle\n"})
    spy, log = tmp_path / "rg-spy", tmp_path / "log"
    spy.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> "{log}"\nexec "{rg.path}" "$@"\n')
    spy.chmod(0o755)
    with sync.Workspace(root, rg=spy, index=tmp_path / "index", deny=GLOBS) as workspace:
        workspace.index_codebase()
        log.write_text("")
        found = workspace.grep_content_result("needle")
    assert {file.path for file in found.files} <= {"late.bin"}
    searches = [line for line in log.read_text().splitlines() if "--regexp=" in line]
    assert any("--max-depth=1" in line for line in searches)
    assert all("--iglob=!*.pem" in line or "--max-depth=0" in line for line in searches)


def test_secrets_deny_usual_files_and_keep_others() -> None:
    paths = DeniedPaths(DenyRules(sync.Workspace.SECRETS))
    denied = ".env a/.env.local prod.env tls/server.key cert.pem x/.ssh/config .ssh/id_ed25519 .aws/credentials"
    denied += " .docker/config.json x/.docker/config.json .npmrc infra/terraform.tfstate service-account-prod.json"
    denied += " SERVICE_ACCOUNT.json config/secrets.yml .bash_history .kube/config"
    assert [path for path in denied.split() if paths.glob_of(path) is None] == []
    allowed = "src/env.py environment.md keys.py id_rsa.pub docs/config.json secrets.py package.json"
    assert [path for path in allowed.split() if paths.glob_of(path)] == []


def test_spelling_of_a_root_does_not_matter(tree: Path) -> None:
    sandbox = Sandbox([tree], deny="*.pem")
    assert sandbox.denied_by(str(tree / "sub" / "KEY.PEM")) == "*.pem"
    assert sandbox.denied_by(str(tree).upper() + "/sub/key.pem") == "*.pem"
    assert sandbox.denied_by(str(tree.parent / "key.pem")) is None


@pytest.mark.parametrize(
    "tool", ["ls", "grep_content", "find_files", "read_file", "replace_content", "find_references"]
)
def test_error_about_a_missing_path_names_no_denied_file(plant: Plant, tmp_path: Path, tool: str) -> None:
    outside = tmp_path / "outside"
    outside.write_text("x")
    root = plant({"denied.txt": "", "src/denied.txt": "", "other.txt": ""})
    (root / "linked.txt").symlink_to(outside)
    given = {
        "grep_content": ("x",),
        "find_files": ("*",),
        "replace_content": ("x", "y"),
        "find_references": ("x",),
    }.get(tool, ())
    for deny in (["denied.txt"], []):
        workspace = sync.Workspace(root, deny=deny, write=True)
        for missing in ("denied.tx", "src/denied.tx", "linked.tx", "other.tx"):
            answer = getattr(workspace, tool)(*given, path=missing)
            named = missing == "other.tx" or ("denied" in missing and not deny)
            assert "does not exist" in answer
            assert (f"{missing}t" in answer) is named, answer


@pytest.mark.parametrize("suffix", ["zip", "WHL", "jar", "tar", "gem"])
@pytest.mark.parametrize(
    "given", [{}, {"output_mode": "count"}, {"inside": "gz"}, {"inside": "zip,tar"}, {"expand": "definition"}]
)
def test_bytes_of_an_archive_show_no_denied_member(tree: Path, suffix: str, given: dict[str, str]) -> None:
    archive = tree / f"a.{suffix}"
    members = {".env": "the hidden word\n", "sub/seen.py": "a visible word\n"}
    if suffix in ("tar", "gem"):
        with tarfile.open(archive, "w") as tar:
            for name, text in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text.encode()))
    else:
        with zipfile.ZipFile(archive, "w") as stored:
            for name, text in members.items():
                stored.writestr(name, text)
    workspace = sync.Workspace(tree, deny=GLOBS)
    for path in (archive.name, ".", None):
        named = {} if path is None else {"path": path}
        assert "No matches found" in (
            answer := workspace.call("grep_content", {"pattern": "hidden word", **named, **given})
        )
        assert "There would be" not in answer  # or the answers to many patterns would tell the text
    seen = workspace.call("grep_content", {"pattern": "(visible|hidden) word", "path": archive.name, **given})
    assert f"{archive.name}!/sub/seen.py" in seen
    assert "env" not in seen
