"""Stress test: run the scenarios of `load.py` in large sizes and print a table (`nox -s stress`)."""

import gc
import resource
import sys
import time
from collections.abc import Iterator

from support.load import SCENARIOS, Row

REAP = 0.1  # seconds in which rg must exit after a search is ended early
LAG = 0.05  # seconds for which the event loop may be blocked


def _table(rows: list[Row]) -> Iterator[str]:
    yield (
        f"{'guarantee':<62} {'tries':>9} {'failures':>8} {'worst reap':>10} {'memory':>8} {'fds':>5} {'worst lag':>9}"
    )
    for row in rows:
        reap = "" if row.reap is None else f"{row.reap * 1000:.0f} ms"
        lag = "" if row.lag is None else f"{row.lag * 1000:.0f} ms"
        yield (
            f"{row.guarantee:<62} {row.tries:>9,} {len(row.failures):>8} {reap:>10} {row.memory:>5.0f} MB"
            f" {row.fds:>5} {lag:>9}"
        )


def main() -> int:
    """Run all scenarios and return 1 if one of them failed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # 500 streams need 1,000 descriptors
    gc.freeze()  # the collector skips imported modules, so that its passes do not count as lag
    rows: list[Row] = []
    for try_it, _, number, apis in SCENARIOS:
        for api in apis:
            begun = time.monotonic()
            row = try_it(number, api)
            rows.append(row)
            if row.reap is not None:
                row.check(row.reap <= REAP, f"{row.reap * 1000:.0f} ms until rg had exited")
            if row.lag is not None:
                row.check(row.lag <= LAG, f"the event loop was blocked for {row.lag * 1000:.0f} ms")
            print(f"{row.guarantee}: {time.monotonic() - begun:.0f} s", *row.failures[:5], sep="\n    ", flush=True)
    print("", *_table(rows), sep="\n")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    print(f"All scenarios ran in one process, whose memory was at most {most:.0f} MB")
    return 1 if any(row.failures for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
