"""Every operation gives the same results as raw rg, with drawn patterns and options, on a tree with unusual files."""

import base64
import json
import logging
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import ripwrap
from ripwrap import CapabilityError, Columns, SearchError, sync
from ripwrap.binary import RgBinary
from support.effort import times
from support.outcomes import without_context

pytestmark = pytest.mark.rg_matrix

FILES: dict[str | bytes, str | bytes] = {
    "plain.txt": "needle\nNeedle two needle\nother\n\nlast needle",
    "with space.py": "def needle():\n    return 'é needle'\n",
    "-dash.py": "-dash --pre=x needle\n",
    "new\nline.txt": "needle\n",
    b"\xff\xfe.py": b"needle \xff\xfe\n",
    "é/日本.txt": "café needle\n\u0391\u0392\u0393\n",
    ".hidden.py": "needle hidden\n",
    ".hiddendir/x.txt": "needle\n",
    "crlf.txt": "needle\r\nother\r\nneedle end\r\n",
    "empty.txt": "",
    "no-newline.txt": "needle",
    "nul-early.bin": b"\0needle\nneedle\n",
    "nul-late.bin": b"needle\n" + (b" " * 999 + b"\n") * 70 + b"needle \0 needle\n",
    "nul-data": b"needle\0other\0needle\0",
    "utf16.txt": "needle é\nother\n".encode("utf-16"),
    "bom.txt": "\ufeffneedle\nother\n".encode(),
    "latin1.txt": "caf\xe9 needle\n".encode("latin1"),
    "long.txt": "needle " * 300 + "\n",
    "many.txt": "".join(f"{number} {'needle' if number % 7 == 0 else 'x'}\n" for number in range(60)),
    "separators.txt": "a\u2028needle\x0bb\x85c\n\x1cneedle\n",
    ".gitignore": "*.log\nbuild/\n!keep.log\n/top\n",
    "a.log": "needle\n",
    "keep.log": "needle\n",
    "top": "needle\n",
    "build/out.txt": "needle\n",
    "sub/top": "needle\n",
    "sub/.gitignore": "*.tmp\n!important.tmp\n",
    "sub/x.tmp": "needle\n",
    "sub/important.tmp": "needle\n",
    "sub/.ignore": "secret*\n",
    "sub/secret.txt": "needle\n",
    "sub/.rgignore": "*.rgi\n",
    "sub/x.rgi": "needle\n",
    "sub/deep/er/still/f.c": "int needle;\n",
    "repo/.git/config": "needle\n",
    "repo/.git/HEAD": "ref: needle\n",
    "repo/.git/info/exclude": "excluded.txt\n",
    "repo/excluded.txt": "needle\n",
    "repo/src/m.py": "needle = 1\n",
    "worktree/.git": "gitdir: needle\n",
    "worktree/f.py": "needle\n",
    "rules": "plain.txt\n",
    "UPPER.TXT": "NEEDLE\n",
}


@pytest.fixture(scope="module")
def tree(needs_posix: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    for name, content in FILES.items():
        path = folder / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / "nothing" / "inside").mkdir(parents=True)
    (folder / "link.txt").symlink_to("plain.txt")
    (folder / "linked").symlink_to("sub")
    (folder / "broken").symlink_to("nowhere")
    (folder / "sub" / "loop").symlink_to("..")
    return folder


@pytest.fixture(autouse=True, scope="module")
def without_warnings() -> Iterator[None]:
    """Silence the warnings about the paths of the tree that cannot be read."""
    logger = logging.getLogger("ripwrap")
    logger.setLevel(logging.ERROR)
    yield
    logger.setLevel(logging.NOTSET)


globs = st.sampled_from(
    ["*.py", "!*.py", "*.txt", "**/sub/**", "!sub", ".*", "/plain.txt", "*.{c,py}", "*", "!é", "*.TXT", "a[", "[!a]*"]
)
types = st.sampled_from(["py", "txt", "c", "own", "nope"])
counts = st.integers(0, 3)


def several(one: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return one | st.lists(one, max_size=3)


FILE_OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "glob": several(globs),
    "iglob": several(globs),
    "glob_case_insensitive": st.booleans(),
    "type": several(types),
    "type_not": several(types),
    "type_add": st.just("own:*.log"),
    "type_clear": st.sampled_from(["py", "nope"]),
    "hidden": st.booleans(),
    "follow": st.booleans(),
    "include_git": st.booleans(),
    "no_require_git": st.booleans(),
    "ignore_file": st.sampled_from(["rules", "sub/.ignore"]),
    "ignore_file_case_insensitive": st.booleans(),
    **{f"no_ignore{end}": st.booleans() for end in ("", "_dot", "_exclude", "_files", "_global", "_parent", "_vcs")},
    "max_depth": counts,
    "max_filesize": st.sampled_from([0, 10, "1K", "1M"]),
    "one_file_system": st.booleans(),
    "sort": st.sampled_from(["none", "path", "modified", "accessed"]),
    "sortr": st.sampled_from(["none", "path", "modified", "accessed"]),
    "threads": counts,
}
SEARCH_OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    **FILE_OPTIONS,
    "ignore_case": st.booleans(),
    "smart_case": st.booleans(),
    "case_sensitive": st.just(True),  # False alone is refused, since it has no effect
    "fixed_strings": st.booleans(),
    "word_regexp": st.booleans(),
    "line_regexp": st.booleans(),
    "invert_match": st.booleans(),
    "multiline": st.booleans(),
    "multiline_dotall": st.booleans(),
    "stop_on_nonmatch": st.booleans(),
    "pcre2": st.booleans(),
    "engine": st.sampled_from(["default", "pcre2", "auto"]),
    "no_unicode": st.booleans(),
    "dfa_size_limit": st.just("10M"),
    "regex_size_limit": st.sampled_from([1, "1M"]),
    "crlf": st.booleans(),
    "null_data": st.booleans(),
    "binary": st.booleans(),
    "text": st.booleans(),
    "encoding": st.sampled_from(["auto", "none", "utf-8", "latin1", "utf-16le", "klingon"]),
    "mmap": st.booleans(),
    "no_line_number": st.booleans(),
    "max_count": counts,
    "context": counts,
    "before_context": counts,
    "after_context": counts,
    "passthru": st.booleans(),
    "replace": st.sampled_from(["", "$0!", "é", "$1\n"]),
}


def drawn(options: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Draw a few options at a time: with all of them, no search would find anything."""
    keys = st.lists(st.sampled_from(sorted(options)), unique=True, max_size=5)
    return keys.flatmap(lambda keys: st.fixed_dictionaries({key: options[key] for key in keys}))


patterns = several(
    st.sampled_from(
        [
            "needle",
            "Needle",
            "NEEDLE",
            "é",
            r"\w+",
            "^",
            "$",
            "needle$",
            "(",
            "[z-a]",
            "n|o",
            r"\bneedle\b",
            "n.",
            "e.*e",
            r"needle\n",
            "needle\n",
            r"\x00",
            r"(?-u:\xff)",
            "(?=n)",
            r"(e)\1",
            "-dash",
            "--pre=x",
            r"\p{Greek}",
            "x",
            "(n)(e)",
            "\u2028",
            r"\r",
            "other\\s+",
            "absent",
        ]
    )
    | st.text("ne dl(.*)[]+?\\$^|{é\n", min_size=1, max_size=4)
).filter(lambda pattern: pattern != [])


def by_hand(options: Mapping[str, Any]) -> list[str]:
    """Return the flags that a person would type for options, with our defaults."""
    argv: list[str] = []

    def add(key: str, *flags: str) -> None:
        value = options.get(key)
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            argv.extend(flags if one is True else () if one is False else [f"{flags[0]}={one}"])

    if options.get("hidden") is False and options.get("type"):
        argv.append("-g!.*")
    if "context" in options and options.keys() & {"before_context", "after_context"}:
        # In rg 14 and 15, `--context` sets the side that is not given; rg 13 then ignores `--context`.
        options = {"before_context": options["context"], "after_context": options["context"], **options}
    for key in SEARCH_OPTIONS:
        if key not in ("hidden", "follow", "no_require_git", "include_git", "mmap"):
            add(key, "--" + key.replace("_", "-"))
    argv += ["--hidden"] if options.get("hidden", True) else []
    argv += ["-L"] if options.get("follow", True) else []
    argv += ["--no-require-git"] if options.get("no_require_git", True) else []
    argv += {True: ["--mmap"], False: ["--no-mmap"], None: []}[options.get("mmap")]
    if not options.get("include_git"):
        argv += ["-g!.git", "-g!.ripgrep/"]
        argv += ["--iglob=!.git", "--iglob=!.ripgrep/"] if options.get("iglob") else []
    return argv


def raw(rg: RgBinary, folder: Path, *flags: str) -> "subprocess.CompletedProcess[bytes]":
    argv = [rg.path, "--no-config", *flags, "--", "."]
    return subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)


def regexps(pattern: "str | list[str]") -> list[str]:
    return [part for one in ([pattern] if isinstance(pattern, str) else pattern) for part in ("-e", one)]


def listed(
    stream: Callable[..., Any], twin: Callable[..., Any], api: str, *arguments: Any, **options: Any
) -> list[Any]:
    """Collect what an operation yields, blocking or on an event loop."""
    if api == "blocking":
        return list(twin(*arguments, **options))

    async def collected() -> list[Any]:
        generator: AsyncGenerator[Any] = stream(*arguments, **options)
        return [item async for item in generator]

    return anyio.run(collected, backend=api)


def text(value: Any) -> dict[str, str]:
    """Return a text or path of a model as rg writes it."""
    return value if isinstance(value, dict) else {"text": value}


def as_rg(message: Any) -> dict[str, Any]:
    """Return a message model as rg writes it."""
    data = message.model_dump(mode="json")
    kind = data.pop("type")
    for key in ("path", "lines"):
        if data.get(key) is not None:
            data[key] = text(data[key])
    for hit in data.get("submatches", ()):
        hit["match"] = text(hit["match"])
        replacement = hit.pop("replacement")
        hit.update({"replacement": text(replacement)} if replacement is not None else {})
    for key in ("stats", "location", "encoding"):
        data.pop(key, None)
    return {"type": kind, "data": data}


def of_rg(line: bytes) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(line)
    path = record["data"]["path"]
    if "text" in path:
        path["text"] = path["text"].removeprefix("./")
    else:
        path["bytes"] = base64.b64encode(base64.b64decode(path["bytes"]).removeprefix(b"./")).decode()
    record["data"].pop("stats", None)
    return record


def by_file(records: "Iterator[dict[str, Any]]") -> dict[str, list[dict[str, Any]]]:
    """Group records by file: rg keeps the order within a file, but not between files."""
    files = defaultdict(list)
    for record in records:
        files[json.dumps(record["data"]["path"])].append(record)
    return files


def lacks(rg: RgBinary, options: Mapping[str, Any]) -> bool:
    return ("replace" in options and rg.version < (15,)) or (
        bool(options.get("stop_on_nonmatch")) and rg.version < (14,)
    )


def raw_paths(done: "subprocess.CompletedProcess[bytes]") -> list[str]:
    return sorted(os.fsdecode(path).removeprefix("./") for path in done.stdout.split(b"\0")[:-1])


def raw_counts(done: "subprocess.CompletedProcess[bytes]") -> list[tuple[str, int]]:
    found = re.findall(rb"([^\0]+)\0([0-9]+)(?:\r?\n|\0)", done.stdout)
    return sorted((os.fsdecode(path).removeprefix("./"), int(number)) for path, number in found)


MODES: dict[str, tuple[str, Callable[[list[Any]], list[Any]], Callable[[Any], list[Any]]]] = {
    "files_with_matches": ("-l", sorted, raw_paths),
    "files_without_match": ("--files-without-match", sorted, raw_paths),
    "count": ("-c", lambda items: sorted((item.path, item.count) for item in items), raw_counts),
    "count_matches": ("--count-matches", lambda items: sorted((item.path, item.count) for item in items), raw_counts),
}
apis = st.sampled_from(["blocking", "asyncio", "trio"])


examples = settings(
    max_examples=times(8, 500), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@pytest.mark.slow
@pytest.mark.timeout(times(300, 1500))
@examples
@given(patterns, drawn(SEARCH_OPTIONS), apis, st.integers(1, 5))
def test_rows_of_search_columns_equal_the_matches_of_search(
    rg: RgBinary, tree: Path, pattern: Any, options: dict[str, Any], api: str, batch: int
) -> None:
    def rows(found: list[Columns]) -> list[tuple[Any, ...]]:
        parts = [zip(one.path, one.line_number, one.absolute_offset, one.text, one.spans, strict=True) for one in found]
        return sorted((row for part in parts for row in part), key=repr)

    call = (ripwrap.search_columns, sync.search_columns, api, pattern)
    options = without_context(options)
    try:
        matches = list(sync.search(pattern, cwd=tree, rg=rg, **options))
    except (CapabilityError, SearchError) as error:
        with pytest.raises(type(error)):
            listed(*call, cwd=tree, rg=rg, **options)
        return
    found = listed(*call, cwd=tree, rg=rg, batch=batch, **options)
    assert rows(found) == rows([Columns.of(matches)])
    assert all(len(one) == batch for one in found[:-1])


@pytest.mark.slow
@pytest.mark.timeout(times(300, 1500))
@examples
@given(patterns, drawn(SEARCH_OPTIONS), apis)
def test_search_messages_equal_rgs_json(
    rg: RgBinary, tree: Path, pattern: Any, options: dict[str, Any], api: str
) -> None:
    call = (ripwrap.search_messages, sync.search_messages, api, pattern)
    if lacks(rg, options):
        with pytest.raises(CapabilityError):
            listed(*call, cwd=tree, rg=rg, **options)
        return
    done = raw(rg, tree, "--json", *by_hand(options), *regexps(pattern))
    if done.returncode not in (0, 1) and not done.stdout:
        with pytest.raises(SearchError) as caught:
            listed(*call, cwd=tree, rg=rg, **options)
        assert caught.value.returncode == done.returncode
        assert type(caught.value) is not SearchError or options.get("encoding") == "klingon", caught.value
        return
    *messages, summary = listed(*call, cwd=tree, rg=rg, **options) or [None]
    assert by_file(map(as_rg, messages)) == by_file(of_rg(line) for line in done.stdout.split(b"\n")[:-2])
    if summary is None:
        assert options["max_count"] == 0 and not done.stdout
        return
    stats = json.loads(done.stdout.split(b"\n")[-2])["data"]["stats"]
    assert {**summary.stats.model_dump(), "elapsed": 0, "bytes_searched": 0} == {
        **stats,
        "elapsed": 0,
        "bytes_searched": 0,
    }
    assert bool(summary.errors) == (done.returncode == 2)
    if options.get("sort") == "path" and "sortr" not in options:
        assert [as_rg(one)["data"]["path"] for one in messages] == [
            of_rg(one)["data"]["path"] for one in done.stdout.split(b"\n")[:-2]
        ]


@pytest.mark.slow
@pytest.mark.timeout(times(300, 1500))
@examples
@given(st.sampled_from(sorted(MODES)), patterns, drawn(SEARCH_OPTIONS), apis)
def test_modes_list_and_count_as_rg_does(
    rg: RgBinary, tree: Path, mode: str, pattern: Any, options: dict[str, Any], api: str
) -> None:
    call = (getattr(ripwrap, mode), getattr(sync, mode), api, pattern)
    if options.get("stop_on_nonmatch") and rg.version < (14,):
        with pytest.raises(CapabilityError):
            listed(*call, cwd=tree, rg=rg, **options)
        return
    name, ours, theirs = MODES[mode]
    done = raw(rg, tree, name, "-0", *by_hand(options), *regexps(pattern))
    if done.returncode == 2 and not done.stdout and not _only_about_paths(done.stderr):
        with pytest.raises(SearchError):
            listed(*call, cwd=tree, rg=rg, **options)
        return
    found = ours(listed(*call, cwd=tree, rg=rg, **options))
    assert found == theirs(done)


def _only_about_paths(stderr: bytes) -> bool:
    lines = [line.removeprefix(b"rg: ") for line in stderr.splitlines()]
    return all(line.startswith((b"./", b"File system loop")) for line in lines)


@pytest.mark.slow
@pytest.mark.timeout(times(300, 1500))
@examples
@given(drawn(FILE_OPTIONS), apis)
def test_files_lists_what_rg_lists(rg: RgBinary, tree: Path, options: dict[str, Any], api: str) -> None:
    done = raw(rg, tree, "--files", "-0", *by_hand(options))
    if done.returncode == 2 and not done.stdout and not _only_about_paths(done.stderr):
        with pytest.raises(SearchError):
            listed(ripwrap.files, sync.files, api, cwd=tree, rg=rg, **options)
        return
    found = listed(ripwrap.files, sync.files, api, cwd=tree, rg=rg, **options)
    assert sorted(found) == raw_paths(done)


@pytest.mark.slow
@pytest.mark.timeout(times(300, 1500))
@examples
@given(patterns, drawn(SEARCH_OPTIONS), st.integers(1, 5), st.booleans())
def test_grep_returns_and_counts_rgs_matches(
    rg: RgBinary, tree: Path, pattern: Any, options: dict[str, Any], size: int, blocking: bool
) -> None:
    assume(not lacks(rg, options) and options.get("max_count") != 0 and not options.get("passthru"))
    # With context rg may find other submatches (with --null-data --line-regexp), so the raw rg gets the same context.
    context = {} if options.keys() & {"context", "before_context", "after_context"} else {"context": 2}
    done = raw(rg, tree, "--json", *by_hand({**options, **context}), *regexps(pattern))
    if not done.stdout:
        with pytest.raises(SearchError):
            sync.grep(pattern, cwd=tree, rg=rg, **options)
        return
    records = [of_rg(line) for line in done.stdout.split(b"\n")[:-2]]
    # Matches beyond `max_count` are context, although rg calls them matches.
    for found in by_file(iter(records)).values():
        for record in [one for one in found if one["type"] == "match"][options.get("max_count", len(found)) :]:
            record["type"] = "context"
            record["data"]["submatches"] = []
    matches = [record for record in records if record["type"] == "match"]
    result = sync.grep(pattern, cwd=tree, rg=rg, limit=None, timeout=None, **options)
    assert (result.total_matches, result.exact, result.truncated) == (len(matches), True, False)
    assert result.files_matched == len(by_file(iter(matches)))
    given = [as_rg(match) for file in result.files for match in file.matches]
    for one in given:
        one["data"].pop("before"), one["data"].pop("after")
    assert by_file(iter(given)) == by_file(iter(matches))
    page = sync.grep(pattern, cwd=tree, rg=rg, limit=size, offset=size, timeout=None, **options)
    shown = [match for file in page.files for match in file.matches]
    everything = [match for file in result.files for match in file.matches]
    assert [(one.path, one.absolute_offset) for one in shown] == [
        (one.path, one.absolute_offset) for one in everything[size : 2 * size]
    ]
    with_context = [as_rg(line) for file in result.files for line in file.lines()]
    for one in with_context:
        one["data"].pop("before", None), one["data"].pop("after", None)
    wanted = by_file(record for record in records if record["type"] in ("match", "context"))
    after = options.get("after_context", {**options, **context}.get("context", 0))
    assert by_file(iter(with_context)) == {
        path: attached for path in wanted if (attached := _attached(wanted[path], after))
    }


def _attached(lines: list[dict[str, Any]], after: int) -> list[dict[str, Any]]:
    """Drop the context before a match that rg withholds because a NUL byte follows it."""
    last = max((index for index, one in enumerate(lines) if one["type"] == "match"), default=None)
    return [] if last is None else lines[: last + 1 + after]
