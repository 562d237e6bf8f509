"""The protocol of embedders, the limits of requests to them, and the destination of texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from pydantic import Field

from ripwrap.models import Model

if TYPE_CHECKING:
    import numpy.typing as npt

    Vectors: TypeAlias = Sequence[Sequence[float]] | npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of requests to an embedder.

    Attributes:
        concurrency: Maximum number of requests at a time.
        delay: Minimum number of seconds between the starts of two requests.
        batch: Maximum number of texts in a request.
        batch_chars: Maximum number of characters in a request, unless one text alone has more.
        text_chars: Maximum number of characters of a text. Longer texts are cut, because models refuse them or ignore
            the rest.
        tries: Maximum number of attempts for each request.
        pause: Seconds to wait before the second attempt. The wait doubles before each later attempt. A random time, up
            to half of the wait, is added.
        max_pause: Maximum number of seconds to wait. If the provider asks for more (Retry-After), the request fails.
        timeout: Seconds that each attempt of a request may take.
        give_up: Number of failed batches in a row after which no more batches are tried. Texts that the provider
            rejects do not count.
        retry_search_after: Seconds after a failure before a search asks the embedder again; `refresh()` does not wait.
    """

    concurrency: int = 3
    delay: float = 0.5
    batch: int = 64
    batch_chars: int = 100_000
    text_chars: int = 24_000
    tries: int = 5
    pause: float = 0.5
    max_pause: float = 60.0
    timeout: float = 60.0
    give_up: int = 3
    retry_search_after: float = 30.0

    def __post_init__(self) -> None:
        for name in ("concurrency", "batch", "batch_chars", "text_chars", "tries", "give_up"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}= must be 1 or more, got {getattr(self, name)}")
        for name in ("delay", "pause", "max_pause", "timeout", "retry_search_after"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}= must be 0 or more, got {getattr(self, name)}")


@runtime_checkable
class Embedder(Protocol):
    """Protocol of embedding models; `embedder()` returns the embedders of ripwrap.

    An embedder may also have the attributes `limits` (a `Limits`) and `destination` (a `Destination`, which says where
    texts are sent).
    """

    @property
    def name(self) -> str:
        """Name of the model, as `provider:model`. Embeddings of models with different names are never compared."""
        ...

    @property
    def dimension(self) -> int | None:
        """Number of values in a vector; `None` until it is known."""
        ...

    async def embed(self, texts: Sequence[str], *, query: bool) -> "Vectors":
        """Return a vector for each text, in order, as lists or a numpy array; do not retry."""
        ...


class Destination(Model, frozen=True):
    """Destination of texts that are embedded.

    Attributes:
        name: Name of the embedder.
        url: Address of the server, without credentials; `None` if the model runs in this process.
        leaves_machine: True if texts leave this machine; `None` if ripwrap cannot tell. The default is `None` if there
            is a `url`, and otherwise False.
        note: Sentence to show after these facts, such as 'Its package may download the model.'; empty if not needed.
    """

    name: str
    url: str | None = None
    leaves_machine: bool | None = Field(default_factory=lambda known: False if known.get("url") is None else None)
    note: str = ""

    @property
    def is_in_process(self) -> bool:
        """True if the model runs in this process, so that nothing is sent."""
        return self.url is None and self.leaves_machine is False

    def __str__(self) -> str:
        if self.url is not None:
            where = {
                True: ", which is not this machine",
                False: ", on this machine",
                None: "; ripwrap cannot tell if that is this machine",
            }[self.leaves_machine]
            text = f"{self.name}: the text of every chunk and every query is sent to {self.url}{where}."
        elif self.leaves_machine is None:
            text = f"{self.name}: ripwrap does not know this embedder, and cannot tell where texts are sent."
        else:
            text = f"{self.name}: runs on this machine, in this process; nothing is sent."
        return f"{text} {self.note}".rstrip()


def describe(embedder: Embedder) -> Destination:
    """Return the destination to which an embedder sends texts; this call sends nothing."""
    told = getattr(embedder, "destination", None)
    return told if isinstance(told, Destination) else Destination(name=embedder.name, leaves_machine=None)


def limits_of(embedder: Embedder) -> Limits:
    """Return the limits of an embedder; the default limits if the embedder has none."""
    told = getattr(embedder, "limits", None)
    return told if isinstance(told, Limits) else Limits()


def provider_of(embedder: Embedder) -> str:
    """Return the provider of an embedder: the part of the embedder's name before the colon."""
    return embedder.name.partition(":")[0]
