"""Errors carry hints as data; each front end spells them in its own terms."""

import copy
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

import ripwrap
from ripwrap import Hint, MissingPackageError, PatternError, RipwrapError, SearchError, errors
from ripwrap._ripgrep.exit_status import Exit
from ripwrap._ripgrep.query import Query
from ripwrap.binary import RgBinary
from ripwrap.errors import HintedText, missing_extra, spell, spell_error
from ripwrap.index import CheckResult
from ripwrap.options import check_limit
from ripwrap.workspace.arguments import spell_as_argument

SOURCE = errors._source  # tests replace it
SEARCH = Query("json", str(Path.cwd()), ())


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        (Hint("fixed_strings", True), "fixed_strings=True"),
        (Hint("hidden", False), "hidden=False"),
        (Hint("threads", 1), "threads=1"),
        (Hint("chunker", "syntax"), "chunker='syntax'"),
        (Hint("glob"), "glob="),
        (Hint("limit", kind="correct"), "limit"),
        (Hint("word_regexp", kind="omit"), "word_regexp"),
        (Hint("max_count", 0, "omit"), "max_count=0"),
        (Hint("rebuild", True, "call", "refresh"), "refresh(rebuild=True)"),
        (Hint(kind="call", target="file_types"), "file_types()"),
        (Hint(kind="install", target="ripwrap[bin]"), 'pip install "ripwrap[bin]"'),
    ],
)
def test_library_spells_a_hint_in_python(hint: Hint, shown: str) -> None:
    assert str(hint) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ({"url": "file://{}", "dir_info": {}}, 'pip install "{}[bin,cli]"'),
        ({"url": "file://{}", "dir_info": {"editable": True}}, 'pip install -e "{}[bin,cli]"'),
        ({"url": "file://{}/a%20wheel.whl", "archive_info": {}}, 'pip install "{}/a wheel.whl[bin,cli]"'),
        ({"url": "file://{}/gone", "dir_info": {}}, 'pip install "ripwrap[bin,cli]"'),
        (
            {"url": "https://git.example/ripwrap", "vcs_info": {"vcs": "git", "commit_id": "1a2b"}},
            'pip install "ripwrap[bin,cli] @ git+https://git.example/ripwrap@1a2b"',
        ),
        ({"url": "https://example.org/ripwrap.whl", "archive_info": {}}, 'pip install "ripwrap[bin,cli]"'),
        (None, 'pip install "ripwrap[bin,cli]"'),
    ],
)
@pytest.mark.posix  # paths of URLs
def test_hint_installs_ripwrap_from_where_it_came(
    url: dict[str, Any] | None, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hints named a package that no index has."""
    (tmp_path / "a wheel.whl").touch()
    metadata = tmp_path / "ripwrap-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: ripwrap\nVersion: 0\n")
    if url is not None:
        (metadata / "direct_url.json").write_text(json.dumps({**url, "url": url["url"].format(tmp_path)}))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(errors, "_source", SOURCE.__wrapped__)
    assert str(Hint(kind="install", target="ripwrap[bin,cli]")) == shown.format(tmp_path)
    assert str(Hint(kind="install", target="tqdm")) == 'pip install "tqdm"'


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        (Hint("fixed_strings", True), "fixed_strings=True"),
        (Hint("ignore_case", True), "case_insensitive=True"),
        (Hint("hidden", True), "include_hidden=True"),
        (Hint("no_ignore", True), "include_ignored=True"),
        (Hint("glob"), "file_pattern"),
        (Hint("text", True), None),
        (Hint("rg"), None),
        (Hint(kind="call", target="file_types"), None),
        (Hint("rebuild", True, kind="call", target="refresh"), "index_codebase"),
        (Hint(kind="call", target="prune"), "index_codebase"),
        (Hint("location"), "index="),
        (Hint("location", "project"), "index='project'"),
        (Hint("refresh", False), None),
        (Hint(kind="install", target="ripwrap[bin]"), 'pip install "ripwrap[bin]"'),
    ],
)
def test_tool_spells_a_hint_as_its_argument(hint: Hint, shown: str | None) -> None:
    assert spell_as_argument(hint) == shown


def test_search_error_has_its_hints_as_data() -> None:
    error = Exit(
        SEARCH, ("rg", "x"), 2, b"rg: regex parse error:\n    (?:foo()\n    ^\nerror: unclosed group"
    ).failure()
    assert isinstance(error, PatternError)
    assert error.hints == (Hint("fixed_strings", True),)
    assert error.hint == "Fix the pattern, or pass fixed_strings=True to search for it literally."
    assert str(error).endswith(error.hint)
    assert SearchError("rg failed").hints == ()
    assert SearchError("rg failed", hint="Try again.").hints == ()


@pytest.mark.parametrize(
    ("stderr", "shown"),
    [
        (
            b"rg: unrecognized file type: x",
            "unrecognized file type: x\nTo select files by a pattern, pass file_pattern.",
        ),
        (b"rg: compiled regex exceeds size limit", "compiled regex exceeds size limit\nPass a smaller pattern."),
        (b"rg: pattern contains \\0, impossible to match", "pattern contains \\0, impossible to match"),
    ],
)
def test_tool_drops_hints_that_a_model_cannot_follow(stderr: bytes, shown: str) -> None:
    assert spell_error(Exit(SEARCH, ("rg", "x"), 2, stderr).failure(), spell_as_argument) == shown


def test_unknown_hint_outside_a_clause_is_spelled_in_python() -> None:
    text = HintedText("it is full; pass ", Hint("location"), (", or ", Hint("rg")))
    assert text.spell(lambda _: None) == "it is full; pass location="
    assert spell("plain text=True", lambda _: "never") == "plain text=True"


def test_hinted_text_keeps_its_hints_when_nested_and_pickled() -> None:
    inner = HintedText("pass ", Hint("location"), (" or ", Hint("rg")))
    text = HintedText("it is full; ", inner, ".")
    assert text == "it is full; pass location= or rg=."
    assert text.hints == (Hint("location"), Hint("rg"))
    for copied in (pickle.loads(pickle.dumps(text)), copy.deepcopy(text)):
        assert (copied, copied.parts) == (text, text.parts)
    error = pickle.loads(pickle.dumps(SearchError("rg failed", hint=text)))
    assert (str(error), error.hints) == (f"rg failed\n{text}", text.hints)


def test_builtin_error_has_hints_in_its_message() -> None:
    with pytest.raises(ValueError, match=r"^limit must be 0 or more, or None for all; got -1$") as caught:
        check_limit(-1)
    assert caught.value.args[0].hints == (Hint("limit", kind="correct"),)


def test_health_check_messages_keep_their_hints() -> None:
    message = HintedText("There is no index yet; ", Hint(kind="call", target="refresh"), " makes it.")
    told = CheckResult(ok=True, checked="ok", files=0, blobs=0, chunks=0, indexed=0, orphans=0, messages=(message,))
    assert told.messages[0] is message
    assert CheckResult.model_validate_json(told.model_dump_json()) == told


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ModuleNotFoundError("no", name="mcp"), r'the server needs mcp: pip install "ripwrap[mcp]"'),
        (ModuleNotFoundError("no", name="anyio_x"), r'the server needs anyio_x: pip install "ripwrap[mcp]"'),
    ],
)
def test_missing_extra_is_one_class_of_error(error: ImportError, says: str) -> None:
    """`from ripwrap import mcp` was a `ModuleNotFoundError` without the line for pip."""
    found = missing_extra(error, "the server", "mcp")
    assert isinstance(found, MissingPackageError) and isinstance(found, RipwrapError) and isinstance(found, ImportError)
    assert (str(found), found.name, found.__cause__) == (says, error.name, error)
    assert pickle.loads(pickle.dumps(found)).args == found.args
    own = ModuleNotFoundError("no", name="ripwrap.mcp.gone")
    assert missing_extra(own, "the server", "mcp") is own


@pytest.mark.parametrize(
    ("package", "code"),
    [
        ("mcp", "from ripwrap import mcp"),
        ("mcp", "import ripwrap.mcp"),
        ("watchfiles", "next(sync.watch('x'))"),
        ("charset_normalizer", "sync.search('x', encoding='detect')"),
        ("ast_grep_py", "sync.search_code('x', lang='python')"),
        ("tantivy", "sync.Index('.')"),
        ("fsspec", "from ripwrap.sources import fs; fs('memory://x')"),
        ("openai", "import ripwrap.frameworks.openai"),
        ("pandas", "sync.grep('x', rg=RG).to_pandas()"),
    ],
)
def test_call_without_its_extra_names_the_line_for_pip(
    package: str, code: str, newest: RgBinary, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same class of error for every extra."""
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, package, None)
    for name in [
        name for name in sys.modules if name.startswith((f"{package}.", "ripwrap.mcp", "ripwrap.frameworks.o"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(ripwrap, "mcp", raising=False)
    if package == "ast_grep_py":
        monkeypatch.setattr("ripwrap._code.structure.client.find_spec", lambda _: None)
    if package == "tantivy":
        monkeypatch.setattr("ripwrap.index.base.has_engine", lambda: False)
    with pytest.raises(MissingPackageError, match=r"pip install ['\"](ripwrap\[\S+\]|pandas)['\"]"):
        exec(code, {"sync": ripwrap.sync, "RG": newest})
