"""Embedders against a real server that misbehaves, and the offline embedder."""

import logging
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pydantic_ai")
pytest.importorskip("openai")
pytest.importorskip("google.genai")
pytest.importorskip("tokenizers")
pytest.importorskip("wordllama")

import anyio
import numpy as np
import psutil

from ripwrap import EmbeddingError, index
from ripwrap.errors import Hint, HintedText
from ripwrap.index.embeddings import registry
from ripwrap.index.embeddings.batching import Embedded, embed_all, embed_query, split_into_batches
from ripwrap.index.embeddings.protocol import Destination, Embedder, Limits, describe, limits_of
from ripwrap.index.embeddings.registry import WordLlama, detect, embedder
from support.embeddings import Behaviour, Provider, drips, half_an_answer, hang_up, say, serving, vector, vectors
from support.waiting import until, until_blocking

pytestmark = [
    pytest.mark.extra,
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.loops("asyncio"),
    pytest.mark.usefixtures("one_certificate"),
]

KEY = "sk-not-a-real-key-0123456789"
QUICK = Limits(concurrency=2, delay=0, batch=4, tries=3, pause=0.005, max_pause=5, timeout=20)
TEXTS = [(number, f"def function_{number}(): ...") for number in range(10)]


@pytest.fixture
def openai(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Embedder:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")
    return embedder("openai:text-embedding-3-small", limits=QUICK)


@pytest.fixture
def no_socket_left() -> Iterator[None]:
    """Check that no socket is left open."""
    me = psutil.Process()
    before = len(me.net_connections())
    yield
    until_blocking(lambda: len(me.net_connections()) <= before)  # the server needs a moment to close its side


async def all_of(model: Embedder, items: Any = TEXTS, **options: Any) -> tuple[dict[int, Any], Any]:
    """Return all vectors by key, and the run."""
    found: dict[int, Any] = {}
    async with embed_all(model, items, **options) as batches:
        async for done in batches:
            assert isinstance(done, Embedded)
            found.update(zip(done.keys, done.vectors, strict=True))
    return found, batches


def right(found: dict[int, Any], keys: Sequence[int] = range(10)) -> bool:
    assert sorted(found) == list(keys)
    for key in keys:
        expected = np.array(vector(TEXTS[key][1]))
        assert np.allclose(found[key], expected / np.linalg.norm(expected), atol=1e-6)
    return True


# Requests


@pytest.mark.loops("asyncio", "trio")
async def test_openai_request_has_only_texts_model_and_key(
    openai: Embedder, provider: Provider, no_socket_left: None
) -> None:
    found, batches = await all_of(openai)
    assert right(found)
    assert (batches.embedded, batches.failed, batches.stopped) == (10, [], None)
    assert sorted(text for asked in provider.asked for text in asked.texts) == sorted(text for _, text in TEXTS)
    assert sorted(len(asked.texts) for asked in provider.asked) == [2, 4, 4]
    for asked in provider.asked:
        assert asked.path == "/v1/embeddings"
        assert asked.headers["authorization"] == f"Bearer {KEY}"
        assert set(asked.body) == {"input", "model", "encoding_format"}
        assert asked.body["model"] == "text-embedding-3-small"
    assert (openai.name, openai.dimension) == ("openai:text-embedding-3-small", 8)


async def test_ollama_is_used_at_the_address_of_ollama_host(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", provider.url.removeprefix("http://"))
    model = embedder("ollama:all-minilm", limits=QUICK)
    found, _ = await all_of(model)
    assert right(found)
    assert {asked.body["model"] for asked in provider.asked} == {"all-minilm"}
    assert describe(model).url == f"{provider.url}/v1"
    assert describe(model).leaves_machine is False


@pytest.mark.parametrize("name", ["google", "google-gla:gemini-embedding-001", "gemini"])
async def test_google_request_for_a_query_has_the_query_task_type(
    name: str, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", provider.url)
    model = embedder(name, limits=QUICK)
    found, _ = await all_of(model)
    assert right(found)
    provider.asked.clear()
    await embed_query(model, "parse arguments")
    (asked,) = provider.asked
    assert asked.texts == ["parse arguments"]
    assert asked.body["requests"][0]["taskType"] == "RETRIEVAL_QUERY"
    assert asked.headers["x-goog-api-key"] == KEY


async def test_embedded_query_is_one_normalised_row(openai: Embedder, provider: Provider) -> None:
    row = await embed_query(openai, "where is it")
    expected = np.array(vector("where is it"))
    assert row.shape == (8,)
    assert row.dtype == np.float32
    assert np.allclose(row, expected / np.linalg.norm(expected), atol=1e-6)


async def test_requests_to_this_machine_use_no_proxy(
    openai: Embedder, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(Provider()) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        found, _ = await all_of(openai)
        assert right(found)
        assert proxy.asked == []


async def test_redirect_from_a_local_server_is_not_followed(openai: Embedder, provider: Provider) -> None:
    with serving(Provider()) as elsewhere:
        provider.behaviours += [say(307, Location=f"{elsewhere.url}/v1/embeddings")] * 9
        found, batches = await all_of(openai)
        assert found == {}
        assert len(batches.failed) == 2  # one for each concurrent request
        assert elsewhere.asked == []


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize(
    ("name", "path"),
    [("openai", "/v1/embeddings"), ("google", "/v1beta/models/gemini-embedding-001:batchEmbedContents")],
)
async def test_redirect_from_a_remote_server_is_not_followed(
    name: str, path: str, status: int, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = provider.url.replace("127.0.0.1", "0.0.0.0")  # ripwrap takes this for another machine
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", f"{address}/v1")
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", address)
    model = embedder(name, limits=QUICK)
    assert describe(model).leaves_machine is True
    with serving(Provider()) as elsewhere:
        provider.behaviours += [say(status, Location=f"{elsewhere.url}{path}")] * 9
        with pytest.raises(EmbeddingError):
            await embed_query(model, "x")
        assert (len(provider.asked), elsewhere.asked) == (1, [])


async def test_offline_mode_sends_nothing_to_another_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RIPWRAP_OFFLINE", "1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "https://user:secret@ripwrap.invalid/v1")
    model = embedder("openai")
    with pytest.raises(EmbeddingError, match="RIPWRAP_OFFLINE") as caught:
        await embed_query(model, "x")
    assert caught.value.reason == "setup"
    assert describe(model).leaves_machine is True
    assert str(describe(model)) == (
        "openai:text-embedding-3-small: the text of every chunk and every query is sent to "
        "https://***@ripwrap.invalid/v1, which is not this machine."
    )


async def test_address_that_changed_after_describe_is_rejected(
    openai: Embedder, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v2")
    with pytest.raises(EmbeddingError, match="address has changed"):
        await embed_query(openai, "x")
    assert provider.asked == []


# Failures and invalid answers


@pytest.mark.parametrize(
    "behaviour", [say(500), say(503, {"error": {"message": "overloaded"}}), hang_up, half_an_answer]
)
async def test_transient_failure_is_retried_by_ripwrap_alone(
    behaviour: Behaviour, openai: Embedder, provider: Provider
) -> None:
    provider.behaviours += [behaviour, behaviour]
    row = await embed_query(openai, "x")
    assert row.shape == (8,)
    assert len(provider.asked) == 3


@pytest.mark.loops("asyncio", "trio")
async def test_retry_after_delays_all_requests(openai: Embedder, provider: Provider) -> None:
    provider.behaviours += [say(429, {"error": {"message": "slow down"}}, Retry_After="1")]
    found, _ = await all_of(openai, limits=Limits(concurrency=1, delay=0, batch=4, pause=0))
    assert right(found)
    first, second = provider.asked[:2]
    assert second.at - first.at >= 0.99
    assert first.texts == second.texts


async def test_retry_after_beyond_the_longest_pause_raises(openai: Embedder, provider: Provider) -> None:
    provider.behaviours += [say(429, Retry_After="1000")]
    with pytest.raises(
        EmbeddingError, match=r"answered 429.*tried once; the provider asks to wait 1000 seconds"
    ) as caught:
        await embed_query(openai, "x")
    error = caught.value
    assert (error.provider, error.reason, error.status, error.retry_after) == ("openai", "unavailable", 429, 1000)
    assert len(provider.asked) == 1


@pytest.mark.parametrize(
    ("after", "tries"),
    [
        ("Wed, 21 Oct 2015 07:28:00 GMT", 2),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 1),
        ("99999999999999999999", 1),
        ("-5", 2),
        ("nan", 2),
        ("1e999", 2),
        ("soon", 2),
    ],
)
async def test_wait_for_any_retry_after_is_bounded(
    after: str, tries: int, openai: Embedder, provider: Provider
) -> None:
    provider.behaviours += [say(429, {"error": {"message": "slow down"}}, Retry_After=after)] * 9
    with pytest.raises(EmbeddingError, match="answered 429: slow down") as caught:
        await embed_query(openai, "x", limits=Limits(delay=0, tries=2, pause=0))
    assert (caught.value.reason, len(provider.asked)) == ("unavailable", tries)


async def test_tries_are_limited_and_failures_in_a_row_stop_the_run(openai: Embedder, provider: Provider) -> None:
    provider.behaviours += [say(500)] * 1000
    items = iter([(number, "text") for number in range(1000)])
    limits = Limits(concurrency=1, delay=0, batch=4, tries=2, pause=0, give_up=3)
    found, batches = await all_of(openai, items, limits=limits)
    assert found == {}
    assert [failed.keys for failed in batches.failed] == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9, 10, 11)]
    assert batches.stopped is batches.failed[-1].error
    assert "answered 500" in str(batches.stopped)
    assert "tried 2 times" in str(batches.stopped)
    assert len(provider.asked) == 6
    assert len(list(items)) >= 980  # the rest was never read


async def test_failed_batch_is_reported_and_later_ones_are_embedded(openai: Embedder, provider: Provider) -> None:
    provider.behaviours += [say(500)] * 2
    limits = Limits(concurrency=1, delay=0, batch=4, tries=2, pause=0)
    found, batches = await all_of(openai, limits=limits)
    assert right(found, range(4, 10))
    assert [failed.keys for failed in batches.failed] == [(0, 1, 2, 3)]
    assert batches.stopped is None


@pytest.mark.parametrize(("status", "body"), [(401, None), (403, None), (404, None), (429, "insufficient_quota")])
async def test_refusal_stops_the_run_at_once(
    status: int, body: str | None, openai: Embedder, provider: Provider
) -> None:
    provider.behaviours += [say(status, {"error": {"message": f"no, {KEY} is not welcome", "code": body}})] * 9
    found, batches = await all_of(openai, limits=Limits(concurrency=1, delay=0, batch=2, pause=0))
    assert found == {}
    assert len(provider.asked) == 1
    assert (batches.stopped.reason, batches.stopped.status) == ("refused", status)
    assert "is not welcome" in str(batches.stopped)
    assert KEY not in str(batches.stopped)


async def test_truncated_error_message_contains_no_part_of_a_key(openai: Embedder, provider: Provider) -> None:
    for before in range(151, 200, 3):  # it is cut after 200 characters, so within the key from 173 on
        provider.behaviours = [say(401, {"error": {"message": f"{'x' * before} {KEY}"}})]
        _, batches = await all_of(openai, TEXTS[:1], limits=Limits(concurrency=1, delay=0))
        assert "xx" in str(batches.stopped) and KEY[:4] not in str(batches.stopped)


async def test_rejected_text_fails_without_the_rest_of_its_batch(openai: Embedder, provider: Provider) -> None:
    provider.rejects = "function_6("
    found, batches = await all_of(openai)
    assert right(found, [0, 1, 2, 3, 4, 5, 7, 8, 9])
    assert [failed.keys for failed in batches.failed] == [(6,)]
    assert batches.failed[0].error.reason == "rejected"
    assert "this input is too long" in str(batches.failed[0].error)
    assert batches.stopped is None


GOOD = [0.5] * 8
GARBAGE = {
    "too few": vectors([GOOD]),
    "too many": vectors([GOOD] * 3),
    "none": vectors([]),
    "ragged": vectors([GOOD, GOOD[:-1]]),
    "NaN": vectors([GOOD, [*GOOD[1:], float("nan")]]),
    "infinity": vectors([GOOD, [*GOOD[1:], 1e999]]),
    "another dimension": vectors([GOOD[1:], GOOD[1:]]),
    "words": vectors([GOOD, ["a"] * 8]),
    "numbers as words": vectors([["1"] * 8, ["1"] * 8]),
    "null": vectors([GOOD, None]),
    "empty": vectors([[], []]),
    "not base64": vectors(["äöü", "äöü"]),
    "another shape": say(200, {"embeddings": [GOOD, GOOD]}),
    "a list": say(200, [1, 2]),
    "not JSON": say(200, b"<html>Sign in</html>"),
    "a page": say(200, b"<html>Sign in</html>", "text/html"),
    "no body": say(200),
    "not UTF-8": say(200, b'{"object": "\xff"}'),
}


@pytest.mark.parametrize("garbage", GARBAGE)
async def test_garbage_answer_raises_and_yields_no_vectors(garbage: str, openai: Embedder, provider: Provider) -> None:
    provider.behaviours += [GARBAGE[garbage]]
    items = TEXTS[:2]
    found, batches = await all_of(openai, items, dimension=8)
    assert found == {}
    ((keys, error),) = [(failed.keys, failed.error) for failed in batches.failed]
    assert keys == (0, 1)
    assert error.reason == "garbage", error
    assert error.provider == "openai"
    assert len(provider.asked) == 1


async def test_texts_with_garbage_answers_are_embedded_in_the_next_run(openai: Embedder, provider: Provider) -> None:
    provider.behaviours += [vectors([[1.0] * 5] * 4)]
    found, batches = await all_of(openai, limits=Limits(concurrency=1, delay=0, batch=4, pause=0), dimension=8)
    again = [(key, text) for key, text in TEXTS if key not in found]
    assert [key for key, _ in again] == [0, 1, 2, 3]
    more, batches = await all_of(embedder("openai", limits=QUICK), again, dimension=8)
    assert right(found | more)
    assert batches.failed == []


async def test_vectors_as_lists_of_numbers_are_accepted(openai: Embedder, provider: Provider) -> None:
    provider.behaviours += [vectors([vector("x")])]
    assert np.allclose(await embed_query(openai, "x"), await embed_query(openai, "x"), atol=1e-6)


async def test_answer_in_single_bytes_does_not_extend_the_timeout(
    openai: Embedder, provider: Provider, no_socket_left: None
) -> None:
    provider.behaviours += [drips]
    with pytest.raises(EmbeddingError, match=r"did not answer within 0\.3 seconds; .* \(tried once\)"):
        await embed_query(openai, "x", limits=Limits(delay=0, tries=1, timeout=0.3))


@pytest.mark.parametrize("row", [[0.0] * 8, [1e40] * 8, [1] * 8, [-1e-320] * 8])
async def test_any_finite_numbers_are_accepted(row: list[float], openai: Embedder, provider: Provider) -> None:
    provider.behaviours += [vectors([row])]
    found = await embed_query(openai, "x")
    assert np.linalg.norm(found) == pytest.approx(1 if any(row) else 0)


@pytest.mark.loops("asyncio", "trio")
async def test_slow_provider_is_abandoned_after_the_timeout(
    openai: Embedder, provider: Provider, no_socket_left: None
) -> None:
    provider.behaviours += [provider.waits] * 2
    with pytest.raises(EmbeddingError, match=r"did not answer within 0\.2 seconds; .* \(tried 2 times\)") as caught:
        await embed_query(openai, "x", limits=Limits(delay=0, tries=2, pause=0, timeout=0.2))
    assert caught.value.reason == "unavailable"
    # On a busy machine, no request may have reached the provider in time.
    await until(lambda: provider.gone.is_set() or not provider.asked)


async def test_refused_connection_raises_unavailable(monkeypatch: pytest.MonkeyPatch) -> None:
    model = embedder("ollama")
    with pytest.raises(EmbeddingError, match=r"the connection to the server failed.*tried 2 times") as caught:
        await embed_query(model, "x", limits=Limits(delay=0, tries=2, pause=0))
    assert (caught.value.reason, caught.value.status) == ("unavailable", None)


# Limits of requests, batches and texts


@pytest.mark.loops("asyncio", "trio")
async def test_concurrent_requests_stay_within_the_limit(openai: Embedder, provider: Provider) -> None:
    provider.slowly = 0.02
    items = [(number, f"text {number}") for number in range(24)]
    _, batches = await all_of(openai, items, limits=Limits(concurrency=3, delay=0, batch=2))
    assert batches.embedded == 24
    assert len(provider.asked) == 12
    assert 2 <= provider.at_once <= 3


@pytest.mark.loops("asyncio", "trio")
async def test_request_starts_are_separated_by_the_delay() -> None:
    begun, starts = anyio.current_time(), list[float]()

    class Noting(Own):
        async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
            starts.append(anyio.current_time())
            return await super().embed(texts, query=query)

    _, batches = await all_of(Noting(), limits=Limits(concurrency=3, delay=0.03, batch=2))
    assert batches.embedded == 10
    assert len(starts) == 5
    assert all(start - begun >= number * 0.0299 for number, start in enumerate(starts))


async def test_limits_of_providers_equal_the_documented_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "GOOGLE_API_KEY", "GITHUB_COPILOT_API_KEY"):
        monkeypatch.setenv(name, KEY)
    limits = {name: limits_of(embedder(name)) for name in ("copilot", "openai", "google", "ollama")}
    assert {name: (one.concurrency, one.delay) for name, one in limits.items()} == {
        "copilot": (1, 4),
        "openai": (3, 0.5),
        "google": (5, 0.2),
        "ollama": (5, 0),
    }


def test_batches_are_split_by_count_and_size() -> None:
    limits = Limits(batch=3, batch_chars=10, text_chars=8)
    texts = ["a", "b", "c", "d", "e" * 9, "f" * 3, "g" * 100, ""]
    cut = [keys for keys, _ in split_into_batches(enumerate(texts), limits)]
    assert cut == [(0, 1, 2), (3, 4), (5,), (6, 7)]
    assert list(split_into_batches([], limits)) == []


async def test_long_texts_are_truncated_and_sent(openai: Embedder, provider: Provider) -> None:
    await embed_query(openai, "x" * 100_000, limits=Limits(delay=0, text_chars=50))
    assert provider.asked[0].texts == ["x" * 50]


@pytest.mark.parametrize(
    "wrong",
    [
        {"concurrency": 0},
        {"batch": 0},
        {"tries": 0},
        {"delay": -1},
        {"timeout": float("nan")},
        {"retry_search_after": -1},
    ],
)
def test_invalid_limits_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Limits(**wrong)


# Cancellation and early exit


@pytest.mark.loops("asyncio", "trio")
async def test_cancelled_run_leaves_no_request_or_thread(
    openai: Embedder, provider: Provider, no_socket_left: None
) -> None:
    provider.behaviours += [provider.waits] * 9
    threads = threading.active_count()
    with anyio.move_on_after(20) as scope:
        async with anyio.create_task_group() as tasks:

            async def cancel() -> None:
                await until(lambda: len(provider.asked) == 2)
                scope.cancel()

            tasks.start_soon(cancel)
            await all_of(openai)
    assert scope.cancelled_caught
    await until(provider.gone.is_set)
    assert len(provider.asked) == 2
    await until(lambda: threading.active_count() <= threads + 3)  # idle threads of the event loop and of the server


@pytest.mark.loops("asyncio", "trio")
async def test_break_after_one_batch_stops_further_requests(openai: Embedder, provider: Provider) -> None:
    items = iter([(number, f"text {number}") for number in range(1000)])
    async with embed_all(openai, items, limits=Limits(concurrency=1, delay=0, batch=1)) as batches:
        async for done in batches:
            assert done.keys == (0,)
            break
    assert len(provider.asked) <= 3
    assert len(list(items)) >= 990  # the rest was never read


@pytest.mark.loops("asyncio", "trio")
async def test_exception_of_the_consumer_is_raised_unchanged(openai: Embedder) -> None:
    with pytest.raises(LookupError, match="disk full"):
        async with embed_all(openai, TEXTS) as batches:
            async for _ in batches:
                raise LookupError("disk full")


async def test_exception_of_the_texts_iterator_is_raised_unchanged(openai: Embedder) -> None:
    def items() -> Iterator[tuple[int, str]]:
        yield from TEXTS
        raise LookupError("no such chunk")

    with pytest.raises(LookupError, match="no such chunk"):
        await all_of(openai, items())


async def test_no_texts_cause_no_request(openai: Embedder, provider: Provider) -> None:
    found, batches = await all_of(openai, [])
    assert (found, batches.failed, provider.asked) == ({}, [], [])


def test_embedder_works_in_one_event_loop_after_another(openai: Embedder) -> None:
    for backend in ("asyncio", "trio", "asyncio"):
        row = anyio.run(embed_query, openai, "x", backend=backend)
        assert row.shape == (8,)


# Choice of an embedder


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("opnai:text-embedding-3-small", "did you mean 'openai'"),
        ("nobody", "unknown embedder 'nobody'"),
        ("openai", "set OPENAI_API_KEY"),
        ("google", "set GOOGLE_API_KEY or GEMINI_API_KEY"),
        ("github-copilot", "GitHub does not document Copilot's embeddings API"),
        ("azure:", "does not name a model; write 'azure:MODEL'"),
        ("cerebras:some-model", "CEREBRAS_API_KEY"),
        ("wordllama:l3", "has only the model l2_supercat_256, got l3"),
    ],
)
def test_unusable_embedder_raises_with_a_hint(name: str, says: str | None) -> None:
    if says is None:
        assert embedder(name).name == "wordllama:l2_supercat_256"
        return
    with pytest.raises(EmbeddingError, match=says) as caught:
        embedder(name)
    assert caught.value.reason == "setup"


@pytest.mark.skipif(find_spec("voyageai") is not None, reason="is about its absence")
def test_missing_package_error_names_the_install_command() -> None:
    with pytest.raises(EmbeddingError, match=r'pip install "ripwrap\[hosted\]" "pydantic-ai-slim\[voyageai\]"'):
        embedder("voyageai")


def test_embedder_of_another_type_raises_type_error() -> None:
    with pytest.raises(TypeError, match="got int"):
        embedder(3)  # type: ignore[arg-type]


class Own:
    """Custom embedder."""

    name = "own:length"
    dimension: int | None = None

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        return [[len(text), 1.0] for text in texts]


async def test_object_with_the_protocol_is_an_embedder() -> None:
    model = embedder(Own())
    found, _ = await all_of(model, limits=QUICK)
    assert len(found) == 10
    assert describe(model).leaves_machine is None
    assert "cannot tell where texts are sent" in str(describe(model))


async def test_copilot_failure_says_that_its_api_is_undocumented(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_COPILOT_API_KEY", KEY)
    monkeypatch.setenv("GITHUB_COPILOT_BASE_URL", provider.url)
    provider.behaviours += [say(404, b"not found", "text/plain")]
    model = embedder("github-copilot", limits=QUICK)
    with pytest.raises(EmbeddingError, match=r"answered 404.*GitHub does not document Copilot's") as caught:
        await embed_query(model, "x")
    assert caught.value.reason == "refused"
    assert "GitHub does not document" in str(describe(model))


def test_auto_stays_offline_without_a_configured_provider() -> None:
    assert [(found.provider, found.embedder) for found in detect()] == [
        ("github-copilot", None),
        ("openai", None),
        ("google", None),
        ("ollama", None),
    ]
    assert embedder("auto").name == "wordllama:l2_supercat_256"


def test_detection_has_a_fixed_order_and_sends_no_text(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", provider.url)
    assert embedder("auto").name == "ollama:nomic-embed-text"
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    assert embedder("auto").name == "google:gemini-embedding-001"
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert embedder("auto").name == "openai:text-embedding-3-small"
    monkeypatch.setenv("COPILOT_GITHUB_TOKEN", KEY)
    assert embedder("auto").name == "openai:text-embedding-3-small"
    assert "GitHub does not document" in detect()[0].why
    monkeypatch.setenv("COPILOT_API_URL", provider.url)
    assert embedder("auto").name == "github-copilot:text-embedding-3-small"
    assert {(asked.path, str(asked.body)) for asked in provider.asked} == {("/api/tags", "{}")}
    assert embedder(None).name == "wordllama:l2_supercat_256"  # the default, even if providers are configured


def test_ollama_without_an_embedding_model_is_not_detected(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    provider.models = ["llama3:latest"]
    monkeypatch.setenv("OLLAMA_HOST", provider.url)
    assert detect()[3].embedder is None
    assert "ollama pull nomic-embed-text" in detect()[3].why


def test_ollama_on_another_machine_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://ollama.ripwrap.invalid:11434")
    why = detect()[3].why
    assert isinstance(why, HintedText) and why.hints == (Hint("embedder", "ollama"),)
    assert "another machine" in why
    assert describe(embedder("ollama")).leaves_machine is True


@pytest.mark.parametrize("junk", [say(200, b"junk"), say(200, {"models": 3}), say(200, []), say(500), hang_up])
def test_another_server_at_the_ollama_address_is_not_detected(
    junk: Behaviour, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.behaviours += [junk]
    monkeypatch.setenv("OLLAMA_HOST", provider.url)
    assert detect()[3].embedder is None


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:8080", "http://127.0.0.1:8080/v1"),
        (":8080", "http://127.0.0.1:8080/v1"),
        ("[::]", "http://127.0.0.1:11434/v1"),
        ("[::]:8080", "http://127.0.0.1:8080/v1"),
        ("http://:8080/", "http://127.0.0.1:8080/v1"),
        ("10.0.0.0", "http://10.0.0.0:11434/v1"),
        ("[::1]:99", "http://[::1]:99/v1"),
        ("https://ollama.example/api/", "https://ollama.example/api/v1"),
        ("http://localhost:11434/v1/", "http://localhost:11434/v1"),
    ],
)
def test_every_form_of_ollama_host_is_accepted(host: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    told = describe(embedder("ollama"))
    assert told.url == url
    assert told.leaves_machine is not ("127.0.0.1" in url or "localhost" in url or "[::1]" in url)


# The offline embedder

WITHOUT_NETWORK = """
import logging, sys
attempts = []

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        attempts.append((event, arguments[1:]))
        raise OSError("no network here")

sys.addaudithook(refuse)
"""


def run_offline(program: str) -> str:
    """Return the output of a program that runs without a network and without a cache."""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_NETWORK + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={"HOME": "/nonexistent", "PATH": "/nonexistent", "TOKENIZERS_PARALLELISM": ""},
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def test_offline_embedder_returns_wordllamas_vectors_without_network() -> None:
    said = run_offline("""
        import threading
        import anyio, numpy
        from ripwrap.index.embeddings.registry import embedder
        texts = ["parse command line arguments", "", "ä 日本 🎉", "def f(x):\\n    return x + 1\\n" * 50, "\\x00"]
        model = embedder()
        for backend in ("asyncio", "trio"):
            async def main():
                return await model.embed(texts, query=False)
            ours = anyio.run(main, backend=backend)
        assert not attempts, attempts
        assert not logging.getLogger().handlers, logging.getLogger().handlers
        assert "wordllama" not in sys.modules
        import pathlib, wordllama
        theirs = wordllama.WordLlama.load(cache_dir=pathlib.Path(wordllama.__file__).parent, disable_download=True)
        expected = theirs.embed([text for text in texts if text])
        assert not attempts, attempts
        assert numpy.allclose(numpy.delete(ours, 1, axis=0), expected, atol=1e-5)
        assert not ours[1].any()
        print(ours.shape, ours.dtype)
    """)
    assert said == "(5, 256) float32\n"


@pytest.mark.parametrize("content", [None, b"junk"])
def test_damaged_offline_model_says_how_to_install_it_again(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("__init__.py", registry._WEIGHTS_PATH, registry._TOKENIZER_PATH):
        file = tmp_path / "wordllama" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if content is not None or name == "__init__.py":
            file.write_bytes(content or b"")
    monkeypatch.delitem(sys.modules, "wordllama", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EmbeddingError, match=r"; install .*: pip install --force-reinstall .*wordllama"):
        registry.load_wordllama.__wrapped__()


def test_protocol_for_custom_embedders_is_public() -> None:
    assert index.embedder is embedder and set(index.__all__) <= set(dir(index))
    assert (index.Embedder, index.Limits, index.Destination) == (Embedder, Limits, Destination)
    with pytest.raises(AttributeError, match=r"module 'ripwrap\.index' has no attribute 'embeder'"):
        index.embeder  # type: ignore[attr-defined]  # noqa: B018


def test_importing_ripwrap_imports_no_package_of_the_extra() -> None:
    said = run_offline("""
        import ripwrap, ripwrap.index, ripwrap.index.embeddings.batching
        from ripwrap import search, Workspace
        extra = ("numpy", "wordllama", "tokenizers", "safetensors", "usearch", "pydantic_ai", "openai")
        print([name for name in extra if name in sys.modules])
    """)
    assert said == "[]\n"


async def test_offline_embedder_finds_text_by_meaning() -> None:
    model = embedder()
    texts = ["parse command line arguments", "open a network socket", "read options given by the user in a shell"]
    found, batches = await all_of(model, enumerate(texts))
    assert batches.failed == []
    query = await embed_query(model, "command line option parser")
    assert max(found, key=lambda key: float(found[key] @ query)) == 0
    assert str(describe(model)) == "wordllama:l2_supercat_256: runs on this machine, in this process; nothing is sent."
    assert model.dimension == 256


def test_concurrent_threads_share_one_offline_model() -> None:
    model = embedder()
    rows: list[Any] = []

    def work() -> None:
        rows.append(anyio.run(embed_query, model, "the same text"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(rows) == 8
    assert all((row == rows[0]).all() for row in rows)


@pytest.mark.loops("asyncio", "trio")
async def test_cancelled_offline_embedding_stops_after_the_current_text() -> None:
    model = WordLlama()
    await model.embed(["loaded"], query=False)
    assert model._model is not None
    tokenizer, weights = model._model
    begun, go_on, ended, cut = threading.Event(), threading.Event(), threading.Event(), []

    class Slow:
        """A tokenizer that waits in the first text until the task is cancelled."""

        def encode(self, text: str, **options: Any) -> Any:
            cut.append(text)
            begun.set()
            assert go_on.wait(20)
            return tokenizer.encode(text, **options)

        def __del__(self) -> None:
            ended.set()  # the thread has returned

    model._model = Slow(), weights
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(model.embed, ["a text"] * 1000, query=False))
            await until(begun.is_set)
            tasks.cancel_scope.cancel()
    finally:
        model._model = None
        go_on.set()
    await until(ended.is_set)
    assert len(cut) == 1  # the rest was never tokenized


def test_keys_are_never_logged(openai: Embedder, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        anyio.run(embed_query, openai, "x")
    assert KEY not in caplog.text
