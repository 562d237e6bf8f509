"""What an embedder is, how it wants to be asked, and where it sends what it is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel

if TYPE_CHECKING:
    import numpy.typing as npt

    Vectors: TypeAlias = Sequence[Sequence[float]] | npt.NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How a provider is asked.

    Attributes:
        concurrency: How many requests there may be at a time.
        delay: Seconds between the starts of two.
        batch: How many texts a request has at most.
        batch_chars: How many characters they have together, unless one alone has more.
        text_chars: What is longer is cut: models read only so much, and some refuse more.
        tries: How often a request is made before it has failed.
        pause: Seconds before the second try; doubled before each further one, and up to half as much again by chance.
        max_pause: No pause is longer; a provider that asks for more (Retry-After) has failed for now.
        timeout: Seconds that a request may take.
        give_up: After as many batches in a row have failed, the others are not tried.
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

    def __post_init__(self) -> None:
        for name in ("concurrency", "batch", "batch_chars", "text_chars", "tries", "give_up"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} should be 1 or more, not {getattr(self, name)}")
        for name in ("delay", "pause", "max_pause", "timeout"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} should be 0 or more, not {getattr(self, name)}")


@runtime_checkable
class Embedder(Protocol):
    """What makes vectors of texts. Any object with these three will do; `embedder()` gives ripwrap's own.

    It may also have `limits`, `Limits` that say how it is asked, and `destination`, a `Destination` that says where
    texts are sent.
    """

    @property
    def name(self) -> str:
        """What identifies the model, as `provider:model`: vectors of one name can be compared."""
        ...

    @property
    def dimension(self) -> int | None:
        """How many numbers a vector has; `None` until that is known."""
        ...

    async def embed(self, texts: Sequence[str], *, query: bool) -> "Vectors":
        """One vector for each text, in order; a numpy array will do. Tries once.

        Args:
            texts: At least one.
            query: Whether they are searched for, and not searched in: some models tell one from the other.

        Raises:
            EmbeddingError: There are no vectors, and why.
        """
        ...


class Destination(BaseModel, frozen=True):
    """Where texts go if they are embedded.

    Attributes:
        name: The embedder's.
        url: The server that is asked, without credentials; `None` if the model runs in this process.
        leaves_machine: Whether texts leave this machine; `None` if ripwrap cannot tell.
        note: What else there is to know; empty if nothing.
    """

    name: str
    url: str | None = None
    leaves_machine: bool | None = False
    note: str = ""

    def __str__(self) -> str:
        if self.url is not None:
            where = "which is not this machine" if self.leaves_machine else "on this machine"
            said = f"{self.name}: the text of every chunk and every query is sent to {self.url}, {where}."
        elif self.leaves_machine is None:
            said = f"{self.name}: an embedder that ripwrap does not know; it cannot tell where texts are sent."
        else:
            said = f"{self.name}: runs in this process; no text leaves it."
        return f"{said} {self.note}".rstrip()


def describe(embedder: Embedder) -> Destination:
    """What would be sent where, without sending anything."""
    told = getattr(embedder, "destination", None)
    return told if isinstance(told, Destination) else Destination(name=embedder.name, leaves_machine=None)


def limits_of(embedder: Embedder) -> Limits:
    """How an embedder wants to be asked."""
    told = getattr(embedder, "limits", None)
    return told if isinstance(told, Limits) else Limits()


def provider_of(embedder: Embedder) -> str:
    """The provider's part of an embedder's name."""
    return embedder.name.partition(":")[0]
