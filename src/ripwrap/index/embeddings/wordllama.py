"""Embedder without a network: it uses the weights of the package `wordllama`, without the code of the package.

The code of the package has three problems. `wordllama.WordLlama.load()` looks for the tokenizer in a directory that the
wheel does not have, and then downloads the tokenizer. Importing the package adds a handler to the root logger. The
package pads a batch to its longest text, so that a long text takes gigabytes. An embedding is the mean of token
vectors, and this module computes the mean itself. A test compares the results with the results of the package.
"""

import functools
import threading
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from ripwrap.errors import EmbeddingError, Hint
from ripwrap.index.embeddings.protocol import Destination, Limits

if TYPE_CHECKING:
    from ripwrap.index.embeddings.vectors import Matrix

_WEIGHTS_PATH = "weights/l2_supercat_256.safetensors"
_TOKENIZER_PATH = "tokenizers/l2_supercat_tokenizer_config.json"
_LOAD_LOCK = threading.Lock()
_INSTALL = Hint(kind="install", target="ripwrap[vectors]")
_REINSTALL_COMMAND = 'pip install --force-reinstall --no-deps "wordllama>=0.4"'
"""Command that replaces the files of an installed package. Without `--force-reinstall`, pip would keep them."""


class WordLlama:
    """Embedder that runs offline, in this process. It embeds about 1,500 chunks of 1,000 characters a second."""

    name = "wordllama:l2_supercat_256"
    dimension: int | None = 256
    limits: Limits = Limits(concurrency=1, delay=0, tries=1, timeout=600)

    def __init__(self) -> None:
        missing = [name for name in ("wordllama", "tokenizers", "safetensors", "numpy") if find_spec(name) is None]
        if missing:
            raise _unusable_error(f"it needs the packages {', '.join(missing)}: {_INSTALL}")
        self.destination: Destination = Destination(name=self.name)
        self._model: tuple[Any, Any] | None = None

    async def embed(self, texts: Sequence[str], *, query: bool) -> "Matrix":  # noqa: ARG002 - the model embeds queries as documents
        """Return the mean of the token vectors of each text; zeros for a text without tokens."""
        done = threading.Event()
        try:
            return await anyio.to_thread.run_sync(self._embed, list(texts), done, abandon_on_cancel=True)
        finally:
            done.set()

    def _embed(self, texts: list[str], done: threading.Event) -> "Matrix":
        import numpy as np  # late: the import takes a tenth of a second

        tokenizer, weights = self._get_model()
        found = np.zeros((len(texts), weights.shape[1]), np.float32)
        for number, text in enumerate(texts):
            if done.is_set():
                break
            # Encode one text at a time: a batch starts threads, after which each fork of the process logs warnings.
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            if ids:
                found[number] = weights[np.minimum(ids, len(weights) - 1)].mean(axis=0, dtype=np.float32)
        return found

    def _get_model(self) -> tuple[Any, Any]:
        with _LOAD_LOCK:
            if self._model is None:
                self._model = _load()
            return self._model


@functools.cache
def _load() -> tuple[Any, Any]:
    """Load the tokenizer and the weights of the model (33 MB of memory); all indexes of a process share them."""
    found = find_spec("wordllama")
    folder = Path(found.origin).parent if found and found.origin else Path()
    for name in (_WEIGHTS_PATH, _TOKENIZER_PATH):
        if not (folder / name).is_file():
            raise _unusable_error(f"{folder / name} is missing; install wordllama 0.4 or later: {_REINSTALL_COMMAND}")
    try:
        tokenizer = import_module("tokenizers").Tokenizer.from_file(str(folder / _TOKENIZER_PATH))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        with import_module("safetensors").safe_open(folder / _WEIGHTS_PATH, framework="np", device="cpu") as file:
            weights = file.get_tensor("embedding.weight").astype("float32")
    except Exception as error:  # the packages do not document what they raise
        raise _unusable_error(f"{folder} is damaged ({error}); install it again: {_REINSTALL_COMMAND}") from error
    return tokenizer, weights


def _unusable_error(why: str) -> EmbeddingError:
    return EmbeddingError(f"the offline embedder wordllama cannot be used: {why}", provider="wordllama")
