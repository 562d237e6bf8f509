"""The blocking twin of `Index`, which is `ripwrap.sync.Index`; a test holds the two to the same signatures."""

from collections.abc import Generator
from types import TracebackType
from typing import Self

from ripwrap._rg.collect import Plan, carry_out_blocking, within
from ripwrap.index.models import Collected, IndexHealth, IndexStatus, Refreshed
from ripwrap.index.plans import LIMIT, Plans, Report, T
from ripwrap.options import check_timeout
from ripwrap.results import RankedChunk


class Index(Plans):
    """As `ripwrap.index.Index`, blocking: for scripts, and code that does not await.

    Several threads may use it at once, and others may use its folder's index by `ripwrap.index.Index`. A call that is
    interrupted (Ctrl-C), or whose `timeout` is over, leaves what there was before. An embedder is asked in an event
    loop of its own, in a thread that ends with the call.

    Use it as `with Index(root) as index:`, which closes the file in the end; or without, and call `close()`, or leave
    that to the garbage collector.
    """

    def refresh(self, progress: Report | None = None, *, anew: bool = False, timeout: float | None = None) -> Refreshed:
        """As `ripwrap.index.Index.refresh()`, blocking; raises `TimeoutError` after `timeout` seconds.

        `progress` is called in this thread, and after a batch of texts in another one.
        """
        plan = self._embedded(progress)
        return self._done(self._anew(plan) if anew else plan, timeout)

    def search(
        self, query: str, *, limit: int | None = LIMIT, refresh: bool = True, timeout: float | None = None
    ) -> list[RankedChunk]:
        """As `ripwrap.index.Index.search()`, blocking; raises `TimeoutError` after `timeout` seconds."""
        return self._done(self._searched(query, limit, first=refresh), timeout)

    def watch(self, *, timeout: float | None = None) -> Generator[Refreshed]:
        """As `ripwrap.index.Index.watch()`, blocking; raises `TimeoutError` after `timeout` seconds.

        To leave early, wrap the generator in `contextlib.closing`.
        """
        from ripwrap.index.watch import watched_blocking

        def refresh(seconds: float | None) -> Refreshed:
            return self.refresh(timeout=seconds)

        return watched_blocking(self._root, self._store.folder, refresh, check_timeout(timeout))

    def status(self, *, timeout: float | None = None) -> IndexStatus:
        """As `ripwrap.index.Index.status()`, blocking; raises `TimeoutError` after `timeout` seconds."""
        return self._done(self._told(), timeout)

    def health(self, *, timeout: float | None = None) -> IndexHealth:
        """As `ripwrap.index.Index.health()`, blocking; raises `TimeoutError` after `timeout` seconds."""
        return self._done(self._checked(), timeout)

    def gc(self, *, timeout: float | None = None) -> Collected:
        """As `ripwrap.index.Index.gc()`, blocking; raises `TimeoutError` after `timeout` seconds."""
        return self._done(self._collected(), timeout)

    def close(self) -> None:
        """Close the file, and end the process that cuts files; a later call begins anew."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _done(self, plan: Plan[T], timeout: float | None) -> T:
        seconds = check_timeout(timeout)
        return carry_out_blocking(plan if seconds is None else within(plan, seconds, None), self._rg)
