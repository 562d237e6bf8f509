"""Search many directories with one call, on this machine or on others: `Repositories` and the models of its results."""

from ripwrap.repositories.core import Repositories
from ripwrap.repositories.models import (
    RepositoriesRanking,
    RepositoriesResult,
    Root,
    RootChunk,
    RootCount,
    RootError,
    RootFile,
    RootMatch,
    RootMatches,
    Worker,
)

__all__ = [
    "Repositories",
    "RepositoriesRanking",
    "RepositoriesResult",
    "Root",
    "RootChunk",
    "RootCount",
    "RootError",
    "RootFile",
    "RootMatch",
    "RootMatches",
    "Worker",
]
