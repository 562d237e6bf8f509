"""The tools of a workspace whose index has embeddings: what is sent where, what it costs, and failures."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pydantic_ai")
pytest.importorskip("openai")

import anyio

import ripwrap
from ripwrap import EmbeddingError, sync
from ripwrap.index.embeddings.protocol import Limits
from ripwrap.index.embeddings.registry import embedder
from ripwrap.index.storage.files import NAME
from support.embeddings import Provider, hang_up, say
from support.tools import APIS, Asked

pytestmark = [pytest.mark.extra, pytest.mark.slow, pytest.mark.usefixtures("one_certificate")]

Plant = Callable[..., Path]

MODEL = "openai:text-embedding-3-small"
FAILS = say(500, {"error": {"message": "out of order", "type": "server_error"}})
SHOP = {  # text, because an index of code starts a parser process
    "src/biscuits.txt": "def bake_biscuit():\n    return flour\n",
    "src/till.txt": "def pay(amount):\n    return amount\n",
    ".env": "SECRET=1\n",
}


class Meaning:
    """An embedder, in this process or anywhere, for which a cookie is a biscuit."""

    name = "test:meaning"
    dimension: int | None = 2
    limits = Limits(delay=0)

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
        await anyio.lowlevel.checkpoint()
        return [[float("cookie" in text or "biscuit" in text), 0.1] for text in texts]


@pytest.fixture
def shop(plant: Plant) -> Path:
    return plant(SHOP)


@pytest.fixture
def key(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-real-key-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{provider.url}/v1")


def received(provider: Provider) -> list[str]:
    return [text for asked in provider.asked for text in asked.texts]


@pytest.mark.parametrize("api", APIS)
def test_codebase_search_finds_by_meaning_with_the_named_embedder(api: str, shop: Path, home: Path) -> None:
    asked = Asked(api, shop, index=home, embedder=Meaning())
    assert asked.codebase_search_result("cookie").ranking == "files"
    made = asked.index_codebase()
    assert made.startswith(
        f"{shop}: 2 new, 0 changed, 0 removed, 0 unchanged, 0 left out; 2 chunks added, 0 removed, 2 texts embedded\n"
    )
    found = asked.codebase_search_result("cookie")
    assert [place.file for place in found.places] == ["src/biscuits.txt", "src/till.txt"]
    assert (found.ranking, found.notes) == ("hybrid", ())
    assert str(found).endswith("(The 2 best results, ranked with the index and embeddings.)")
    words = Asked(api, shop, index=home, embedder=Meaning(), hybrid_weight=0).codebase_search_result("cookie")
    assert (words.places, words.ranking) == ((), "index")


@pytest.mark.usefixtures("key")
def test_index_status_names_the_model_the_host_and_what_was_sent(shop: Path, home: Path, provider: Provider) -> None:
    provider.behaviours.append(FAILS)  # the first request is sent twice
    asked = sync.Workspace(shop, index=home, embedder=embedder(MODEL, limits=Limits(delay=0, pause=0.005)))
    assert "sent so far" not in asked.index_status()
    asked.index_codebase_result()
    asked.codebase_search_result("cookie")
    sent = received(provider)
    assert sorted(sent) == ["cookie", *sorted([SHOP["src/biscuits.txt"], SHOP["src/till.txt"]] * 2)]
    for workspace in (asked, sync.Workspace(shop, index=home, embedder=MODEL)):  # the second as after a restart
        told = workspace.index_status_result().roots[0]
        assert (told.model, told.sent_texts, told.sent_characters) == (MODEL, 5, sum(map(len, sent)))
        text = workspace.index_status()
        assert f"model {MODEL}" in text
        assert f"is sent to {provider.url}/v1, on this machine." in text
        assert f"\n  sent so far: {sum(map(len, sent))} characters in 5 texts\n" in text
    assert received(provider) == sent


def test_embedder_in_this_process_sends_nothing(shop: Path, home: Path) -> None:
    pytest.importorskip("wordllama")
    workspace = sync.Workspace(shop, index=home, embedder="wordllama")
    workspace.index_codebase_result()
    assert workspace.codebase_search_result("cookie").ranking == "hybrid"
    told = workspace.index_status_result().roots[0]
    assert (told.model, told.sent_texts, told.lacking) == ("wordllama:l2_supercat_256", 0, 0)
    assert "runs on this machine, in this process; nothing is sent." in workspace.index_status()


def test_count_of_what_was_sent_survives_a_rebuild_of_the_content(shop: Path, home: Path) -> None:
    """The index keeps its vectors when another version or chunker rebuilds it, and so what they have cost."""
    sync.Workspace(shop, index=home, embedder=Meaning()).index_codebase_result()
    with sync.Index(shop, location=home, embedder=Meaning(), chunker="windows") as index:
        before = index.status().sent_texts
        index.refresh()
        assert not index.refresh().changed
        assert before and index.status().sent_texts >= before


@pytest.mark.usefixtures("key")
def test_no_call_of_a_tool_sends_texts_to_a_provider_that_was_not_named(
    shop: Path, home: Path, provider: Provider
) -> None:
    asked = sync.Workspace(shop, index=home)
    for name, arguments in (
        ("index_codebase", {}),
        ("index_codebase", {"embedder": "openai"}),
        ("index_codebase", {"hybrid_weight": 1}),
        ("codebase_search", {"query": "cookie"}),
        ("codebase_search", {"query": "cookie", "embedder": "openai"}),
        ("codebase_search", {"query": "cookie", "hybrid_weight": 1}),
        ("index_status", {"embedder": "openai"}),
        ("index_health_check", {}),
    ):
        text = asked.call(name, json.dumps(arguments))
        assert text.startswith("Error: unknown argument") is bool({"embedder", "hybrid_weight"} & arguments.keys())
    assert provider.asked == []
    assert "sent" not in asked.index_status()


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"index": True, "embedder": "auto"}, "embedder must name the provider that may get the texts, got 'auto'"),
        ({"index": True, "embedder": " auto "}, "embedder must name the provider"),
        ({"embedder": MODEL}, "embedder needs an index; pass index=True"),
        ({"index": True, "hybrid_weight": 0.5}, "hybrid_weight needs an embedder"),
        ({"index": True, "embedder": MODEL, "hybrid_weight": 2}, "hybrid_weight must be from 0 to 1, got 2"),
        ({"index": True, "embedder": "opnai"}, "unknown embedder 'opnai'; did you mean 'openai'?"),
        ({"index": True, "embedder": ""}, "unknown embedder ''"),
    ],
)
def test_workspace_refuses_an_embedder_that_is_not_named_or_wrong(
    options: dict[str, Any], says: str, shop: Path, provider: Provider
) -> None:
    with pytest.raises((ValueError, EmbeddingError)) as caught:
        sync.Workspace(shop, **options)
    assert says in str(caught.value)
    assert provider.asked == []


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("api", APIS)
def test_search_falls_back_to_words_and_says_so_when_the_provider_fails(
    api: str, shop: Path, home: Path, provider: Provider
) -> None:
    model = embedder(MODEL, limits=Limits(delay=0, tries=1, retry_search_after=0))
    asked = Asked(api, shop, index=home, embedder=model)
    asked.index_codebase_result()
    provider.behaviours += [hang_up] * 9
    found = asked.codebase_search_result("biscuit")
    assert [place.file for place in found.places] == ["src/biscuits.txt"]
    assert (found.ranking, found.notes) == ("index", (f"Ranked without embeddings: {MODEL} does not answer.",))
    assert not any("without embeddings" in reason for reason in found.places[0].why)
    text = asked.codebase_search("biscuit")
    assert text.endswith(f"ranked with the index. Ranked without embeddings: {MODEL} does not answer.)")
    provider.behaviours.clear()
    assert asked.codebase_search_result("biscuit").ranking == "hybrid"


@pytest.mark.usefixtures("key")
def test_index_is_made_and_says_why_texts_were_not_embedded(shop: Path, home: Path, provider: Provider) -> None:
    model = embedder(MODEL, limits=Limits(delay=0, tries=1, retry_search_after=60))
    asked = sync.Workspace(shop, index=home, embedder=model)
    provider.behaviours += [FAILS] * 2
    text = asked.index_codebase()
    assert "2 new, 0 changed, 0 removed, 0 unchanged, 0 left out; 2 chunks added, 0 removed\n" in text
    assert f"\n  2 texts not embedded: {MODEL} failed: " in text
    assert text.endswith("Texts that were not embedded are found by words only; index_codebase tries them again.)")
    assert "  without an embedding: 2 texts; index_codebase embeds them" in asked.index_status()
    found = asked.codebase_search_result("biscuit")
    assert (found.ranking, found.notes) == ("index", (f"Ranked without embeddings: {MODEL} does not answer.",))
    assert asked.index_codebase_result().roots[0].embedded == 2
    assert asked.index_status_result().roots[0].lacking == 0


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("api", APIS)
def test_search_does_not_wait_longer_than_its_timeout_for_a_provider_that_hangs(
    api: str, shop: Path, home: Path, provider: Provider
) -> None:
    model = embedder(MODEL, limits=Limits(delay=0))
    asked = Asked(api, shop, index=home, embedder=model, timeout=4)
    asked.index_codebase_result()
    provider.behaviours.append(provider.waits)
    found = asked.codebase_search_result("biscuit")
    assert [place.file for place in found.places] == ["src/biscuits.txt"]
    said = f"Ranked without embeddings: {MODEL} did not answer within "
    assert found.ranking == "index" and found.notes[0].startswith(said)
    asks = len(provider.asked)
    assert asked.codebase_search_result("biscuit").ranking == "index"
    assert len(provider.asked) == asks  # it is not asked again for half a minute


@pytest.mark.posix
@pytest.mark.usefixtures("key")
def test_texts_that_no_tool_shows_are_not_sent(shop: Path, home: Path, provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("OUTSIDE = 1\n")
    (shop / "link.txt").symlink_to(tmp_path / "outside.txt")
    (shop / ".gitignore").write_text("ignored.txt\n")
    (shop / "ignored.txt").write_text("IGNORED = 1\n")
    workspace = sync.Workspace(shop, index=home, embedder=MODEL, follow=True)
    workspace.index_codebase_result()
    assert sorted(received(provider)) == sorted([SHOP["src/biscuits.txt"], SHOP["src/till.txt"]])


@pytest.mark.usefixtures("key")
def test_denied_files_and_masked_secrets_are_not_sent(plant: Plant, home: Path, provider: Provider) -> None:
    token = f"ghp_{'a1B2' * 9}"
    folder = plant({"a.txt": f"biscuit = '{token}'\n", "id_rsa": "KEY\n", "deep/x.pem": "KEY\n", "till.txt": "till\n"})
    asked = sync.Workspace(folder, index=home, embedder=MODEL, deny=ripwrap.Workspace.SECRETS, redact=True)
    asked.index_codebase_result()
    assert asked.codebase_search_result(f"biscuit {token}").ranking == "hybrid"
    assert sorted(received(provider)) == [
        "biscuit = '[redacted: github-token]'\n",
        "biscuit [redacted: github-token]",
        "till\n",
    ]
    assert f"is sent to {provider.url}/v1" in asked.index_status()


def test_several_roots_share_the_embedder_and_name_a_failure_once(plant: Plant, home: Path) -> None:
    class Broken(Meaning):
        async def embed(self, texts: Sequence[str], *, query: bool) -> list[list[float]]:
            if query:
                raise EmbeddingError("it is broken", provider="test", reason="unavailable")
            return await super().embed(texts, query=query)

    folder = plant({"one/a.txt": "biscuit = 1\n", "two/b.txt": "biscuit = 2\n"})
    workspace = sync.Workspace(folder / "one", folder / "two", index=home, embedder=Broken())
    assert [root.embedded for root in workspace.index_codebase_result().roots] == [1, 1]
    found = workspace.codebase_search_result("biscuit")
    assert len(found.places) == 2
    assert found.notes == ("Ranked without embeddings: test:meaning does not answer.",)
    assert (home / NAME).is_file()
