"""Many directories that are searched with one call, here or on other machines: `Repositories` and its results."""

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
