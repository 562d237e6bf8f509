"""Why a file is searched or not: the reason of rg's own log, and counts that add up to a walk through all files."""

import os
import re
import stat
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import ripwrap
from ripwrap import Coverage, FileOptions, GlobError, Hint, Reason, UnknownTypeError, sync
from ripwrap._operations.coverage import coverage_request, log_of, run_coverage
from ripwrap._ripgrep.command import files_query, render
from ripwrap._ripgrep.process import without_upward_links
from ripwrap._ripgrep.runner import BlockingRunner, run_blocking
from ripwrap.binary import RgBinary
from ripwrap.errors import HintedText
from support import rgs, strace
from support.effort import times
from support.trees import NAMES, ODD, PIECES, grown, texts, trees

Plant: TypeAlias = Callable[..., Path]

pytestmark = [pytest.mark.usefixtures("leaks_nothing")]

rg15 = rgs.provide("15.2.0")

_ESCAPE = re.compile(r"\\(?:u\{([0-9a-f]+)\}|(.))")
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}
_LOGGED = re.compile(r"ignoring (.*?): (Ignore\(IgnoreMatch\(.*|[0-9]+ bytes|failed to pass .*)")
_GITIGNORE = re.compile(r'Gitignore\(Glob \{ from: Some\("(.*?)"\), original: "(.*?)", actual: ')
_OVERRIDE = re.compile(r'Override\(Glob\(Matched\(Glob \{ from: None, original: "(.*?)", actual: ')


@dataclass(frozen=True)
class Logged:
    """Reason in rg's log."""

    kinds: tuple[str, ...]
    file: str | None = None
    glob: str | None = None


def unescaped(text: str) -> str:
    """Undo the escapes of Rust's `{:?}`."""
    return _ESCAPE.sub(
        lambda found: chr(int(found[1], 16)) if found[1] else _PLAIN_ESCAPES.get(found[2], found[2]), text
    )


def logged(says: str) -> Logged:
    if found := _GITIGNORE.search(says):
        return Logged(("ignored",), unescaped(found[1]), unescaped(found[2]))
    if found := _OVERRIDE.search(says):
        glob = unescaped(found[1])
        return Logged(("hidden", "glob") if glob == "!.*" else ("glob",), glob=glob)
    for mark, kinds in {
        "Override(": ("glob",),
        "Types(": ("type",),
        "Hidden": ("hidden",),
        " bytes": ("too_large",),
        "failed to pass": ("link", "special"),
    }.items():
        if mark in says:
            return Logged(kinds)
    raise AssertionError(says)


@dataclass(frozen=True)
class Log:
    """Output of `rg --debug --files`: the files that it lists, and for other paths the reason."""

    listed: frozenset[str]
    ignored: dict[str, Logged]
    errors: str

    @classmethod
    def of(cls, rg: RgBinary, root: Path, options: FileOptions, paths: tuple[str, ...] = ()) -> "Log":
        argv = [rg.path, "--debug", *render(without_upward_links(files_query(root, paths, options)))]
        done = subprocess.run(argv, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        stderr = os.fsdecode(done.stderr)
        found = (_LOGGED.search(line) for line in stderr.split("\n") if "DEBUG|" in line)
        ignored = {one[1].removeprefix("./"): logged(one[2]) for one in found if one}
        return cls(
            frozenset(os.fsdecode(path).removeprefix("./") for path in done.stdout.split(b"\0")[:-1]),
            # Only a link that leads up has such a glob. ripwrap names it as a loop, of which rg logs nothing.
            {path: one for path, one in ignored.items() if not (one.glob or "").startswith("!/")},
            "\n".join(line for line in stderr.split("\n") if "DEBUG|" not in line),
        )

    def above(self, path: str) -> tuple[str, Logged] | None:
        """Return the first of the directories above a path, or the path, that rg left out, and the reason."""
        parts = path.split("/")
        prefixes = ("/".join(parts[:end]) for end in range(1, len(parts) + 1))
        return next(((prefix, self.ignored[prefix]) for prefix in prefixes if prefix in self.ignored), None)


def plain_walk(root: Path, *, follow: bool) -> Iterator[str]:
    """Yield every entry that is no directory; with `follow`, links to directories are directories, unless they lead up.

    A link leads up to a directory above it, also above `root`.
    """

    def below(folder: Path, above: tuple[tuple[int, int], ...]) -> Iterator[str]:
        for name in os.listdir(folder):
            path = folder / name
            try:
                info = path.stat() if follow else path.lstat()
            except OSError:
                info = path.lstat()
            key = (info.st_dev, info.st_ino)
            if stat.S_ISDIR(info.st_mode) and not (path.is_symlink() and key in above):
                yield from below(path, (*above, key))
            else:
                yield str(path.relative_to(root))

    above = [folder.stat() for folder in (root, *root.resolve().parents)]
    yield from below(root, tuple((one.st_dev, one.st_ino) for one in above))


def total(coverage: Coverage) -> int:
    assert coverage.skipped_files == sum(group.files for group in coverage.skipped)
    return coverage.searched + coverage.skipped_files


def with_hints(options: FileOptions, hints: tuple[Hint, ...]) -> FileOptions:
    changed: dict[str, Any] = {**options}
    for hint in hints:
        if hint.kind == "omit":
            changed.pop(hint.option)
        else:
            changed[hint.option] = hint.value
    changed.pop("text", None)
    return cast("FileOptions", changed)


def check_reason(root: Path, path: str, reason: Reason, log: Log, options: FileOptions) -> None:
    """Compare a reason with rg's."""
    known = log.above(path)
    if known is not None:
        matched, expected = known
        assert (reason.matched, reason.kind in expected.kinds) == (matched, True), (reason, known)
        if expected.glob is not None and reason.kind != "hidden":
            assert reason.glob == expected.glob, (reason, known)
        if expected.file is not None:
            assert reason.file is not None and reason.line is not None
            assert os.path.samefile(root / reason.file, root / expected.file), (reason, known)
            lines = (root / reason.file).read_bytes().replace(b"\r\n", b"\n").split(b"\n")
            assert lines[reason.line - 1].decode().lstrip("\ufeff").startswith(reason.glob or "?"), reason
    elif (root / path).is_dir() and not (root / path).is_symlink():
        assert reason.kind in ("searched", "max_depth", "unreadable"), reason
    elif path in log.listed:
        assert reason.kind in ("searched", "binary"), reason
    elif reason.kind == "link":  # rg logs no link that it does not follow, be it to a directory or to nothing
        assert os.path.islink(root / path) and options.get("follow") is False
    else:
        assert reason.kind in ("max_depth", "unreadable"), (reason, log.errors)


BOOLS = {name: st.booleans() for name in ("hidden", "no_require_git", "include_git")}
RARELY = {
    name: st.sampled_from([False] * 4 + [True])
    for name in (
        "no_ignore", "no_ignore_dot", "no_ignore_exclude", "no_ignore_files", "no_ignore_global", "no_ignore_parent",
        "no_ignore_vcs", "follow", "ignore_file_case_insensitive", "glob_case_insensitive",
    )
}  # fmt: skip
PLAIN_GLOBS = ["*.b", "!*.b", "a", "!a", "A", "/a/**", "!b/", ".a", "[ab]*", "{a,c}"]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "glob": st.lists(st.sampled_from(PLAIN_GLOBS), min_size=1, max_size=2),
    "iglob": st.sampled_from(["A", "!A", "!*.B"]),
    "type": st.sampled_from(["own", "py"]),
    "type_not": st.just("own"),
    "max_depth": st.integers(0, 3),
    "max_filesize": st.sampled_from([0, 3, "1K"]),
    "ignore_file": st.sampled_from(["../rules", ["../rules", "../more"]]),
}
LEAVES: tuple[Any, ...] = (b"", b"", b"text\n", b"te\0xt\n", "a", "b", "..", {})
SIMPLE = [name for name in NAMES if name not in ("\udcff", "a\nb")]
KINDS = (".rgignore", ".ignore", ".gitignore", ".git/info/exclude")


def options() -> st.SearchStrategy[dict[str, Any]]:
    rare = st.dictionaries(st.sampled_from(sorted(VALUES)), st.none(), max_size=2).flatmap(
        lambda names: st.fixed_dictionaries({name: VALUES[name] for name in names})
    )
    drawn = st.tuples(st.fixed_dictionaries({**BOOLS, **RARELY}), rare)
    return drawn.map(lambda both: {**both[0], **both[1], "type_add": "own:*.b"})


@pytest.fixture(scope="module", autouse=True)
def global_ignore_file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Set git's global ignore file."""
    config = tmp_path_factory.mktemp("config")
    (config / "git").mkdir()
    (config / "git/ignore").write_text("ab\n/c\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(config))
        patch.setenv("HOME", str(config))
        yield


def check_tree(rg: RgBinary, data: st.DataObject) -> None:
    with grown(data.draw(trees(KINDS, PIECES + ODD, SIMPLE, LEAVES), "tree")) as (root, _):
        drawn = cast("FileOptions", data.draw(options(), "options"))
        for name in ("rules", "more", ".gitignore", ".ignore"):
            (root.parent / name).write_bytes(data.draw(texts(PIECES), name))
        log = Log.of(rg, root, drawn)
        coverage = sync.coverage(cwd=root, rg=rg, **drawn)
        entries = sorted(plain_walk(root, follow=drawn.get("follow") is not False))
        assert total(coverage) == len(entries), coverage
        assert coverage.searched + coverage.files("binary") == len(log.listed), coverage
        assert coverage.exact and not coverage.files("other"), coverage
        folders = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_dir())
        for path in data.draw(st.lists(st.sampled_from([*entries, *folders]), max_size=3, unique=True), "paths"):
            reason = sync.why(path, cwd=root, rg=rg, **drawn)
            check_reason(root, path, reason, log, drawn)
            if reason.hints and (root / path).is_file():
                assert path in Log.of(rg, root, with_hints(drawn, reason.hints)).listed, reason
        for group in coverage.skipped:
            for reason in group.examples:
                assert reason.kind == group.kind
                check_reason(root, reason.path, reason, log, drawn)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("version", ["13.0.0", "14.1.0", "15.2.0"])
@settings(max_examples=times(8, 400), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_reasons_equal_rgs_and_counts_add_up(version: str, data: st.DataObject) -> None:
    check_tree(sync.resolve(rgs.provide(version)), data)


REASONS: list[tuple[str, dict[str, Any], str]] = [
    ("src/a.py", {}, "searched"),
    ("src", {}, "searched"),
    (".", {}, "searched"),
    ("scripts/a", {}, "ignored by .gitignore:3 `scripts/*`; no_ignore=True searches it"),
    ("build/x/a.o", {}, "its directory build is ignored by .gitignore:2 `build/`; no_ignore=True searches it"),
    ("build", {}, "ignored by .gitignore:2 `build/`; no_ignore=True searches it"),
    ("src/b.py", {}, "ignored by src/.ignore:1 `b.py`; no_ignore=True searches it"),
    ("src/c.py", {}, "ignored by src/.rgignore:1 `/c.py`; no_ignore=True searches it"),
    ("d.log", {}, "ignored by .git/info/exclude:1 `*.log`; no_ignore=True searches it"),
    ("d.log", {"no_ignore_exclude": True}, "searched"),
    ("e", {"ignore_file": "rules"}, "ignored by rules:2 `e`; no_ignore_files=True searches it"),
    ("e", {"ignore_file": "rules", "no_ignore": True}, "ignored by rules:2 `e`; no_ignore_files=True searches it"),
    ("global", {}, "ignored by {config}/git/ignore:3 `global`; no_ignore=True searches it"),
    ("global", {"no_ignore_global": True}, "searched"),
    (".env", {}, "searched"),
    (".env", {"hidden": False}, "hidden; hidden=True searches it"),
    (".a/b", {"hidden": False}, "its directory .a is hidden; hidden=True searches it"),
    (".d.py", {"hidden": False, "type": "py"}, "hidden; hidden=True searches it"),
    (".d.py", {"hidden": False, "glob": "*.py"}, "searched"),
    (".e.o", {"hidden": False}, "ignored by .gitignore:4 `*.o`; no_ignore=True, hidden=True search it"),
    ("bin", {}, "binary (NUL at byte 17); text=True searches it"),
    ("bin", {"text": True}, "searched"),
    ("bin", {"binary": True}, "searched"),
    ("bin", {"null_data": True}, "searched"),
    ("bin", {"paths": ["bin"]}, "searched"),
    ("bin", {"max_filesize": 3}, ("too large (18 bytes); it would be searched with text=True and "
        "without the option max_filesize")),
    ("utf-16", {}, "searched"),
    ("utf-16", {"encoding": "none"}, "binary (NUL at byte 3); text=True searches it"),
    ("utf-16-nul", {}, "binary; text=True searches it"),
    ("src/a.py", {"max_filesize": "1K"}, "searched"),
    ("big", {"max_filesize": "1K"}, "too large (1025 bytes); it would be searched without the option max_filesize"),
    ("src/a.py", {"glob": "*.md"}, "matched by no glob; it would be searched without the option glob"),
    ("src/a.py", {"glob": "!*.py"}, "left out by the glob `!*.py`; it would be searched without the option glob"),
    ("src/a.py", {"iglob": "!*.PY"}, "left out by the glob `!*.PY`; it would be searched without the option iglob"),
    ("e", {"glob": "!E", "glob_case_insensitive": True}, ("left out by the glob `!E`; "
"it would be searched without the option glob")),
    ("src/a.py", {"glob": "!src/"}, ("its directory src is left out by the glob `!src/`; "
"it would be searched without the option glob")),
    (".git/HEAD", {}, "its directory .git is left out by the glob `!.git`; include_git=True searches it"),
    ("src/a.py", {"type": "md"}, "not of type md; it would be searched without the option type"),
    ("src/a.py", {"type": ["md", "js"]}, "not of type md or js; it would be searched without the option type"),
    ("src/a.py", {"type_not": "py"}, "of type py; it would be searched without the option type_not"),
    ("src/a.py", {"type_not": "all"}, "of type all; it would be searched without the option type_not"),
    ("src/a.py", {"type": "all"}, "searched"),
    ("rules", {"type": "all"}, "not of type all; it would be searched without the option type"),
    ("src/a.py", {"max_depth": 1}, "its directory src is too deep; it would be searched without the option max_depth"),
    ("src/a.py", {"max_depth": 0}, "its directory src is too deep; it would be searched without the option max_depth"),
    (".", {"max_depth": 0}, "too deep; it would be searched without the option max_depth"),
    ("link", {}, "searched"),
    ("link", {"follow": False}, "a symbolic link; follow=True searches it"),
    ("linked/a.py", {"follow": False}, "its directory linked is a symbolic link; follow=True searches it"),
    ("loop", {}, "unreadable (a link to a directory above it)"),
    ("broken", {}, "unreadable (No such file or directory)"),
    ("broken", {"follow": False}, "a symbolic link"),
    ("fifo", {}, "neither a file nor a directory"),
    ("src/a.py", {"paths": ["scripts"]}, "outside of the searched paths"),
    ("scripts/a", {"paths": ["src", "scripts/a"]}, "searched"),
    ("build/x/a.o", {"paths": ["src", "build/x"]}, "ignored by .gitignore:4 `*.o`; no_ignore=True searches it"),
    ("../outer", {"paths": [".."]}, "ignored by {outer}:1 `outer`; no_ignore=True searches it"),
    ("inner", {}, "ignored by {outer}:2 `inner`; no_ignore=True searches it"),
    ("inner", {"no_ignore_parent": True}, "searched"),
    ("inner", {"no_require_git": False}, "searched"),
    ("nested/x.tmp", {}, "ignored by .gitignore:5 `*.tmp`; no_ignore=True searches it"),
    ("nested/x.tmp", {"no_require_git": False}, "searched"),
    ("nested/y", {"no_require_git": False}, "ignored by nested/.gitignore:1 `y`; no_ignore=True searches it"),
    ("worktree/z", {"no_require_git": False}, "ignored by {common}/info/exclude:1 `z`; no_ignore=True searches it"),
    ("worktree/z", {}, "searched"),
    ("SRC2", {"ignore_file_case_insensitive": True}, "ignored by .gitignore:6 `src2`; no_ignore=True searches it"),
    ("SRC2", {}, "searched"),
]  # fmt: skip


@pytest.fixture
def example(needs_posix: None, plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a file for each reason."""
    files = ["src/a.py", "src/b.py", "src/c.py", "scripts/a", "build/x/a.o", ".e.o", "d.log", "e", "global", ".env"]
    files += [".a/b", ".d.py", "inner", "nested/x.tmp", "nested/y", "nested/.jj/a", "worktree/z", "SRC2"]
    root = plant(
        {
            ".gitignore": "# comment\nbuild/\nscripts/*\n*.o\n*.tmp\nsrc2\n",
            ".git/info/exclude": "*.log\n",
            ".git/HEAD": "",
            "src/.ignore": "b.py\n",
            "src/.rgignore": "/c.py\n",
            "rules": "\ne\n",
            "nested/.gitignore": "y\n",
            "worktree/.git": f"gitdir: {tmp_path}/own\n",
            "bin": b"x" * 17 + b"\0",
            "big": "x" * 1025,
            "utf-16": b"\xff\xfea\0b\0",
            "utf-16-nul": b"\xff\xfea\0\0\0",
            **dict.fromkeys(files, "text\n"),
        }
    )
    for name, target in {"link": "e", "linked": "src", "loop": ".", "broken": "gone"}.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "fifo")
    (tmp_path / "outer").write_text("")
    (tmp_path / ".gitignore").write_text("outer\ninner\n")
    (tmp_path / "own").mkdir()
    (tmp_path / "own/commondir").write_text("../common\n")
    (tmp_path / "common/info").mkdir(parents=True)
    (tmp_path / "common/info/exclude").write_text("z\n")
    (tmp_path / "config/git").mkdir(parents=True)
    (tmp_path / "config/git/ignore").write_text("\n\nglobal\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return root


@pytest.mark.slow
@pytest.mark.parametrize(("path", "chosen", "text"), REASONS, ids=str)
def test_reason_has_its_text(example: Path, tmp_path: Path, path: str, chosen: dict[str, Any], text: str) -> None:
    places = {"config": tmp_path / "config", "outer": tmp_path / ".gitignore", "common": tmp_path / "common"}
    reason = sync.why(path, cwd=example, rg=rg15, **chosen)
    assert str(reason) == text.format(**places)
    assert (reason.path, bool(reason)) == (path, text == "searched")
    assert Reason.model_validate_json(reason.model_dump_json()) == reason
    file_options = {name: value for name, value in chosen.items() if name in FileOptions.__annotations__}
    if (example / path).is_file():
        listed = Log.of(sync.resolve(rg15), example, cast("FileOptions", file_options), chosen.get("paths", ())).listed
        assert (path in listed) == (reason.kind in ("searched", "binary"))
    counted = sync.coverage(cwd=example, rg=rg15, **chosen)
    if "paths" not in chosen:
        assert total(counted) == len(set(plain_walk(example, follow=chosen.get("follow", True))))


def test_why_reads_the_configuration_of_git(plant: Plant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = plant({"a": "", "b": ""})
    (tmp_path / "rules").write_text("a\n")
    (tmp_path / "gitconfig").write_text(f"[core]\n\texcludesFile = {tmp_path}/rules\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    reason = sync.why("a", cwd=root, rg=rg15)
    assert str(reason) == f"ignored by {tmp_path}/rules:1 `a`; no_ignore=True searches it"
    assert list(sync.files(cwd=root, rg=rg15)) == ["b"]


@pytest.mark.slow
@pytest.mark.posix
def test_why_finds_a_file_by_another_path_to_it(plant: Plant, tmp_path: Path) -> None:
    root = plant({"a/b": "", ".gitignore": "b\n"})
    (tmp_path / "link").symlink_to(root)
    for cwd, path in ((tmp_path / "link", root / "a/b"), (root, tmp_path / "link/a/b"), (root / "a", "../a/b")):
        assert str(sync.why(path, cwd=cwd, rg=rg15)).startswith("ignored by ")


@pytest.mark.slow
def test_unreadable_file_and_directory_are_named(unprivileged: Path, plant: Plant) -> None:
    root = plant({"a": "", "b/c": "", "d": ""})
    (root / "a").chmod(0)
    (root / "b").chmod(0)
    try:
        why = str(sync.why("a", cwd=root, rg=unprivileged))  # rg's words if this process could read the file itself
        assert why in ("unreadable (Permission denied (os error 13))", "unreadable (Permission denied)")
        found = sync.grep("x", cwd=root, rg=unprivileged, coverage=True)
        assert found.coverage is not None
        assert (found.coverage.searched, found.coverage.files("unreadable")) == (1, 1)
        assert {error.path for error in found.errors} == {"a", "b"}
    finally:
        (root / "b").chmod(0o755)


def test_other_file_system_is_left_out() -> None:
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == shared.parent.stat().st_dev:
        pytest.skip("/dev/shm is no file system of its own here")
    reason = sync.why("shm", cwd="/dev", one_file_system=True, rg=rg15)
    assert str(reason) == "on another file system; one_file_system=False searches it"
    assert reason.hints == (Hint("one_file_system", value=False),)


def test_hints_are_spelled_by_front_ends(plant: Plant) -> None:
    message = sync.why(".a", cwd=plant({".a": ""}), hidden=False, max_depth=0, rg=rg15).message
    assert isinstance(message, HintedText)
    assert message.hints == (Hint("hidden", value=True), Hint("max_depth", kind="omit"))
    assert (
        message.spell(lambda hint: f"--{hint.option}")
        == "too deep; it would be searched with --hidden and without the option --max_depth"
    )


def test_why_and_coverage_refuse_what_a_search_refuses(plant: Plant) -> None:
    root = plant({"a": ""})
    with pytest.raises(FileNotFoundError, match="no such file or directory; check path or cwd: 'gone'"):
        sync.why("gone", cwd=root, rg=rg15)
    with pytest.raises(FileNotFoundError):
        sync.why("a", cwd=root / "gone", rg=rg15)
    asks: list[Callable[..., object]] = [
        partial(sync.why, "a", cwd=root, rg=rg15),
        partial(sync.coverage, cwd=root, rg=rg15),
    ]
    for ask in asks:
        with pytest.raises(GlobError):
            ask(glob="{a")
        with pytest.raises(UnknownTypeError):
            ask(type="pythn")
        with pytest.raises(ValidationError, match="unknown option max_size; did you mean max_filesize"):
            ask(max_size=1)
    with pytest.raises(FileNotFoundError):
        sync.coverage(cwd=root, paths=["gone"], rg=rg15)
    with pytest.raises(ValueError, match="NUL"):
        sync.why("a\0", cwd=root, rg=rg15)


def test_coverage_counts_overlapping_paths_once(plant: Plant) -> None:
    root = plant({"a/b": "", "a/.c": "", ".gitignore": "d\n", "d/e": "", "d/f": ""})
    for paths in ((".", "a"), ("a", ".", "a/b"), (root, "."), ("d/e", ".", "./d/e")):
        coverage = sync.coverage(cwd=root, paths=paths, rg=rg15)
        assert total(coverage) == 5, paths
        assert coverage.files("ignored") == (1 if "d/e" in paths else 2)


def test_coverage_has_the_first_paths_as_examples(plant: Plant) -> None:
    root = plant({".gitignore": "[a-f]\n", **dict.fromkeys("fedcba", ""), "g": "\0", "h": ""})
    coverage = sync.coverage(cwd=root, rg=rg15)
    assert str(coverage) == "2 files searched; 7 not: 6 ignored, 1 binary."
    ignored, binary = coverage.skipped
    assert [reason.path for reason in ignored.examples] == ["a", "b", "c"]
    assert str(binary.examples[0]) == "binary (NUL at byte 0); text=True searches it"
    assert Coverage.model_validate_json(coverage.model_dump_json()) == coverage


def test_coverage_that_reads_no_files_enters_no_excluded_directory(plant: Plant) -> None:
    root = plant({"a": "", "denied/b": "", "denied/c/d": ""})
    request = coverage_request(root, (), {"iglob": "!denied/"}, read=False)
    found = run_blocking(run_coverage(BlockingRunner(rg15), request))
    assert [(group.kind, group.files, group.examples[0].path) for group in found.skipped] == [("glob", 1, "denied")]


@pytest.mark.rg_matrix
@pytest.mark.posix
def test_log_opens_no_directory_that_a_glob_excludes(rg: RgBinary, plant: Plant, tmp_path: Path) -> None:
    root = plant({"a": "", "denied/b": ""})
    query = log_of(files_query(root, (), {"iglob": "!denied/"}))
    log = tmp_path / "calls"
    command = (*strace.provide(), "-f", "-y", "-qq", "-e", strace.WATCHED, "-o", str(log), rg.path, *render(query))
    subprocess.run(command, cwd=root, capture_output=True, check=True)
    opened = {event.opened for event in strace.events(log.read_text()) if event.opens}
    assert str(root) in opened
    assert str(root / "denied") not in opened


def test_coverage_after_its_time_limit_is_a_lower_bound(plant: Plant) -> None:
    coverage = sync.coverage(cwd=plant({"a": "", "b": ""}), timeout=0, rg=rg15)
    assert not coverage.exact
    assert str(coverage).startswith("At least ")


@pytest.mark.parametrize("pattern", ["text", "gone"])
def test_grep_has_coverage_only_if_asked(plant: Plant, pattern: str) -> None:
    root = plant({"a": "text", ".b": "text"})
    assert sync.grep(pattern, cwd=root, rg=rg15).coverage is None
    found = sync.grep(pattern, cwd=root, rg=rg15, coverage=True, hidden=False, context=0, sort="path")
    assert str(found.coverage) == "1 file searched; 1 not: 1 hidden."


@pytest.mark.slow
@pytest.mark.anyio
async def test_async_why_and_coverage_answer_as_the_blocking_ones(plant: Plant, anyio_backend: str) -> None:
    root = plant({"a": "", ".b": ""})
    assert await ripwrap.why(".b", cwd=root, rg=rg15, hidden=False) == sync.why(".b", cwd=root, rg=rg15, hidden=False)
    assert await ripwrap.coverage(cwd=root, rg=rg15) == sync.coverage(cwd=root, rg=rg15)


def test_invalid_ignore_line_makes_no_file_unreadable(plant: Plant) -> None:
    """rg's note about the line begins with the path of the ignore file, as an error about that path does."""
    root = plant({".gitignore": "{\n*\n", "a": ""})
    (ignored,) = sync.coverage(cwd=root, rg=rg15).skipped
    assert (ignored.kind, ignored.files) == ("ignored", 2)
    assert str(ignored.examples[0]) == "ignored by .gitignore:2 `*`; no_ignore=True searches it"
