"""The collector when several threads observe, and the order of its log.

What an observer writes in rows of the taking node all threads share. Counts of events and kinds,
the log, and whose messages were forwarded each thread has of its own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gossamer.sim.engine.windows.collectors import Collectors
from gossamer.sim.studies.peers.running.collector import (
    LOG_NODE,
    UNWRITTEN,
    WRITTEN,
    Collector,
)

_SUMS = ("costs", "kinds", "messages", "sent_bytes", "forwarded")
_LOG = ("log", "logged")


class CollectorParts(Collectors):
    """Divides a `Collector`, and brings its log in an order that no thread has a say in."""

    def __init__(self) -> None:
        self._logs: list[npt.NDArray[np.int64]] = []

    def part(self, whole: Collector) -> Collector:
        """A collector for one thread."""
        own = {name: np.zeros_like(getattr(whole, name)) for name in (*_SUMS, *_LOG)}
        shared = {name: getattr(whole, name) for name in Collector.__annotations__}
        return Collector(**(shared | own))

    def end_window(self, whole: Collector, parts: list[Collector]) -> None:
        """Keep what the threads have logged, window by window."""
        for part in parts:
            if part is not whole and part.logged[WRITTEN]:
                self._logs.append(part.log[: part.logged[WRITTEN]].copy())
                part.logged[WRITTEN] = 0

    def gather(self, whole: Collector, parts: list[Collector]) -> None:
        """Add up the threads' counts, and bring the log in order."""
        for part in parts:
            if part is whole:
                continue
            for name in _SUMS:
                own = getattr(part, name)
                getattr(whole, name)[...] += own
                own[...] = 0
            whole.logged[UNWRITTEN] += part.logged[UNWRITTEN]
            part.logged[UNWRITTEN] = 0
        for rows in self._logs:
            written = int(whole.logged[WRITTEN])
            kept = rows[: len(whole.log) - written]
            whole.log[written : written + len(kept)] = kept
            whole.logged[WRITTEN] += len(kept)
            whole.logged[UNWRITTEN] += len(rows) - len(kept)
        self._logs.clear()
        sort_log(whole)


def sort_log(collector: Collector) -> None:
    """Sort the log by node; what one node took stays in order of time, in which it was logged."""
    log = collector.log[: collector.logged[WRITTEN]]
    log[:] = log[np.argsort(log[:, LOG_NODE], kind="stable")]
