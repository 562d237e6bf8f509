"""What a type checker sees: mypy and pyright check this file; for both an `ignore` that is not needed is an error."""

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from typing import Literal, assert_type

import ripwrap
from ripwrap import Match, Message, SearchOptions, TreeEntry, sync


async def asynchronous() -> None:
    assert_type(ripwrap.search("x"), AsyncGenerator[Match, None])
    assert_type(ripwrap.search_messages(["x", "y"], cwd="."), AsyncGenerator[Message, None])
    assert_type(ripwrap.files(glob="*.py"), AsyncGenerator[str, None])
    assert_type(ripwrap.tree(limit=None), AsyncGenerator[TreeEntry, None])
    assert_type(await ripwrap.tree_text(), str)
    async with aclosing(ripwrap.search("x", limit=1)) as matches:
        async for match in matches:
            assert_type(match.path, str | None)
            assert_type(match.line_number, int | None)
            assert_type(match.submatches[0].match, str)
            assert_type(match.type, Literal["match"])


def blocking() -> None:
    assert_type(sync.search("x", timeout=1.5), Generator[Match, None, None])
    assert_type(sync.search_messages("x"), Generator[Message, None, None])
    assert_type(sync.files(), Generator[str, None, None])
    assert_type(sync.tree_text(), str)
    for message in sync.search_messages("x"):
        if message.type == "summary":
            assert_type(message.errors, tuple[ripwrap.PathError, ...])


def options_can_be_passed_on() -> None:
    options: SearchOptions = {"glob": ["*.py"], "sort": "path", "max_filesize": "10M"}
    ripwrap.search("x", **options)


def wrong_options_are_errors() -> None:
    ripwrap.search("x", max_cuont=1)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ripwrap.search("x", max_count="1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ripwrap.search("x", sort="size")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    ripwrap.search("x", "src")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    ripwrap.files(ignore_case=True)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    sync.search("x", glob=1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_the_checkers_have_something_to_check() -> None:
    """Both sessions of `types` run over this file; here it only has to be importable."""
    assert callable(asynchronous) and callable(blocking)
