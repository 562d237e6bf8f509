"""Cache the vectors of the last queries; all indexes of a process share the cache."""

import threading
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ripwrap.index.embeddings.vectors import Matrix

MAX_QUERIES = 64
"""Maximum number of cached queries; an embedding takes a few kilobytes."""

QueryKey: TypeAlias = tuple[str, str | None, str]
"""Key of a cached query: name of the model, address of its server, and text of the query."""


class QueryCache:
    """Cache of the vectors of at most `size` queries. The query whose last use is the oldest is dropped first."""

    def __init__(self, size: int = MAX_QUERIES) -> None:
        self._size = size
        self._vectors: dict[QueryKey, Matrix] = {}  # in the order of use
        self._lock = threading.Lock()

    def get(self, key: QueryKey, dimension: int) -> "Matrix | None":
        """Return the cached embedding of a query; `None` if it is not cached, or if its length is not `dimension`."""
        with self._lock:
            vector = self._vectors.pop(key, None)
            if vector is None or len(vector) != dimension:
                return None
            self._vectors[key] = vector
            return vector

    def add(self, key: QueryKey, vector: "Matrix") -> None:
        """Add the embedding of a query to the cache."""
        with self._lock:
            self._vectors.pop(key, None)
            self._vectors[key] = vector
            if len(self._vectors) > self._size:
                del self._vectors[next(iter(self._vectors))]

    def clear(self) -> None:
        """Remove all embeddings from the cache."""
        with self._lock:
            self._vectors.clear()


QUERIES = QueryCache()
"""Cache that all indexes of this process share."""
