"""Types as mypy and pyright infer them; an unneeded `type: ignore` is an error for both."""

from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any, Literal, assert_type

import ripwrap
from ripwrap import (
    CodeMatch,
    FileCount,
    GrepResult,
    Match,
    Message,
    Range,
    ReplacePlan,
    RepositoriesResult,
    RootCount,
    RootError,
    RootMatch,
    SearchOptions,
    Tree,
    TreeEntry,
    sync,
)


async def asynchronous() -> None:
    assert_type(ripwrap.search("x"), AsyncGenerator[Match, None])
    assert_type(ripwrap.search_messages(["x", "y"], cwd="."), AsyncGenerator[Message, None])
    assert_type(ripwrap.files(glob="*.py"), AsyncGenerator[str, None])
    assert_type(ripwrap.files(cwd=None, paths=None, glob=None, hidden=None, max_depth=None), AsyncGenerator[str, None])
    assert_type(ripwrap.tree(limit=None), AsyncGenerator[TreeEntry, None])
    assert_type(await ripwrap.tree_text(), Tree)
    async for hit in ripwrap.search_code("f($A)", lang="python"):
        if hit.type == "match":
            assert_type(hit, CodeMatch)
            assert_type(hit.metavariables, dict[str, str])
    assert_type(await ripwrap.replace_code("f($A)", "g($A)", lang="python"), ReplacePlan)
    assert_type(ripwrap.files_with_matches("x"), AsyncGenerator[str, None])
    assert_type(ripwrap.files_without_match(["x"]), AsyncGenerator[str, None])
    assert_type(ripwrap.count("x", include_zero=True), AsyncGenerator[FileCount, None])
    assert_type(ripwrap.count_matches("x"), AsyncGenerator[FileCount, None])
    assert_type(await ripwrap.file_types(), dict[str, tuple[str, ...]])
    result = await ripwrap.grep("x", limit=None, context=1, timeout=None)
    assert_type(result, GrepResult)
    assert_type(result.files[0].matches[0].before[0].type, Literal["context"])
    assert_type(result.stop_reason, Literal["end", "limit", "max_files", "timeout"])
    async with aclosing(ripwrap.search("x", limit=1)) as matches:
        async for match in matches:
            assert_type(match.path, str)
            assert_type(match.line_number, int | Any)
            assert_type(match.submatches[0].match, str)
            assert_type(match.type, Literal["match"])
            assert_type(match.ranges(), tuple[Range, ...])


async def many_roots() -> None:
    repositories = ripwrap.Repositories("src/*", only="a*", executor=ThreadPoolExecutor)
    assert_type(repositories.search("x", per_root=1), AsyncGenerator[RootMatch | RootError, None])
    assert_type(repositories.count("x"), AsyncGenerator[RootCount | RootError, None])
    assert_type(await repositories.grep("x", shards=2), RepositoriesResult)
    async for found in repositories.files(type="py"):
        if found.type == "file":
            assert_type(found.path, str)
    assert_type(sync.Repositories.below(".").search("x"), Generator[RootMatch | RootError, None, None])
    assert_type(sync.Repositories(".").rank("x").chunks, tuple[ripwrap.RootChunk, ...])


def blocking() -> None:
    assert_type(sync.search("x", timeout=1.5), Generator[Match, None, None])
    assert_type(sync.search("(x)", captures=True, type="py"), Generator[ripwrap.CapturedMatch, None, None])
    assert_type(ripwrap.search("(x)", captures=True), AsyncGenerator[ripwrap.CapturedMatch, None])
    for match in sync.search("(?P<one>x)", captures=True):
        assert_type((match.groups, match.named), tuple[tuple[str | None, ...], dict[str, str | None]])
    for plain in sync.search("(x)"):
        plain.groups  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # noqa: B018
    assert_type(sync.search_messages("x"), Generator[Message, None, None])
    assert_type(sync.files(), Generator[str, None, None])
    assert_type(sync.count("x"), Generator[FileCount, None, None])
    assert_type(sync.grep("x", offset=1), GrepResult)
    assert_type(sync.tree_text(), Tree)
    for message in sync.search_messages("x"):
        if message.type == "summary":
            assert_type(message.errors, tuple[ripwrap.PathError, ...])


def options_can_be_passed_on() -> None:
    options: SearchOptions = {"glob": ["*.py"], "sort": "path", "max_filesize": "10M"}
    ripwrap.search("x", **options)


def wrong_options_are_errors() -> None:
    ripwrap.search("x", max_cuont=1)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    ripwrap.search("x", max_count="1")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    ripwrap.search("x", sort="size")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    ripwrap.search("x", "src")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    ripwrap.files(ignore_case=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ripwrap.search("x", file="patterns")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    ripwrap.search("x", engine="perl")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    ripwrap.search("x", mmap=1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    ripwrap.count("x", max_matches=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    sync.grep("x", max_matchs=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    sync.grep("x", max_files="1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    sync.search("x", glob=1)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]


def test_typing_module_is_importable() -> None:
    """mypy and pyright check this file in `nox -s types`; pytest only imports it."""
    assert callable(asynchronous) and callable(blocking)
