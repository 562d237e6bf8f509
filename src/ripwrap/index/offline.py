"""The embedder that needs no network: the weights that the package `wordllama` ships, read without its code.

`WordLlama.load()` looks for its tokenizer in a folder that its wheel does not have, and downloads what it does not
find; importing it gives the root logger a handler; and it pads a batch to its longest text, so that a long one takes
gigabytes. What it computes is a mean of token vectors. That is what is computed here, and a test compares the two.
"""

import functools
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from ripwrap.errors import EmbeddingError
from ripwrap.index.embed import Destination, Limits

if TYPE_CHECKING:
    from ripwrap.index.vectors import Matrix

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_LOADING = threading.Lock()
_INSTALL = 'pip install "ripwrap[vectors]"'


class WordLlama:
    """Static vectors of 256 numbers, on this machine: about 1,500 chunks of 1,000 characters a second.

    Attributes:
        name: 'wordllama:l2_supercat_256'.
        dimension: 256.
        limits: One batch at a time, without a pause.
    """

    name = "wordllama:l2_supercat_256"
    dimension: int | None = 256
    limits: Limits = Limits(concurrency=1, delay=0, tries=1, timeout=600)

    def __init__(self) -> None:
        missing = [name for name in ("wordllama", "tokenizers", "safetensors", "numpy") if find_spec(name) is None]
        if missing:
            raise _unusable(f"it needs the packages {', '.join(missing)}: {_INSTALL}")
        self.destination: Destination = Destination(name=self.name)
        self._model: tuple[Any, Any] | None = None

    async def embed(self, texts: Sequence[str], *, query: bool) -> "Matrix":  # noqa: ARG002 - they are alike to it
        """The mean of each text's token vectors; zeros if it has no tokens."""
        done = threading.Event()
        try:
            return await anyio.to_thread.run_sync(self._embed, list(texts), done, abandon_on_cancel=True)
        finally:
            done.set()

    def _embed(self, texts: list[str], done: threading.Event) -> "Matrix":
        import numpy as np

        tokenizer, weights = self._loaded()
        found = np.zeros((len(texts), weights.shape[1]), np.float32)
        for number, text in enumerate(texts):
            if done.is_set():
                break
            # One at a time: a batch starts threads of its own, which a process that forks is warned about.
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            if ids:
                found[number] = weights[np.minimum(ids, len(weights) - 1)].mean(axis=0, dtype=np.float32)
        return found

    def _loaded(self) -> tuple[Any, Any]:
        with _LOADING:
            if self._model is None:
                self._model = _load()
            return self._model


@functools.cache
def _load() -> tuple[Any, Any]:
    """Tokenizer and weights, 33 MB of memory that all indexes of a process share; from files alone."""
    found = find_spec("wordllama")
    folder = Path(found.origin).parent if found and found.origin else Path()
    for name in (_WEIGHTS, _TOKENIZER):
        if not (folder / name).is_file():
            raise _unusable(f"{folder / name} is missing; is this wordllama 0.4 or later? {_INSTALL}")
    try:
        tokenizer = import_module("tokenizers").Tokenizer.from_file(str(folder / _TOKENIZER))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        with import_module("safetensors").safe_open(folder / _WEIGHTS, framework="np", device="cpu") as file:
            weights = file.get_tensor("embedding.weight").astype("float32")
    except Exception as error:  # both raise what they like
        raise _unusable(f"{folder} is damaged ({error}); install it again: {_INSTALL}") from error
    return tokenizer, weights


def _unusable(why: str) -> EmbeddingError:
    return EmbeddingError(f"The offline embedder wordllama cannot be used: {why}", provider="wordllama")
