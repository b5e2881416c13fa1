"""The workers of a cluster, watched: Spark itself waits without end for some to come."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from gossamer.spark.errors import NO_WORKERS
from gossamer.spark.jobs import java_may_be_gone

_LOOKING_S: Final = 0.5


@contextmanager
def workers_watched(session: Any, patience_s: float) -> Iterator[None]:
    """Cancel jobs that no worker of a cluster has been there for, for ``patience_s`` seconds.

    `jobs.explained` makes of that what users are told. A session of this machine, whose one worker
    is Spark itself, and one of Spark Connect, which tells nothing of workers, are left alone.
    """
    context = _context(session)
    if context is None or context.master.startswith("local"):
        yield
        return
    over = threading.Event()
    watcher = threading.Thread(target=_look, args=(context, patience_s, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _context(session: Any) -> Any:
    try:
        return session.sparkContext
    except Exception:  # a Spark Connect session has none, and says so in many ways
        return None


def _look(context: Any, patience_s: float, over: threading.Event) -> None:
    with java_may_be_gone():
        _watch(context, patience_s, over)


def _watch(context: Any, patience_s: float, over: threading.Event) -> None:
    java = context._jsc.sc()
    missed_since: float | None = None
    while not over.wait(_LOOKING_S):
        if java.isStopped():
            return
        jobs = list(context.statusTracker().getActiveJobsIds())
        # The driver is one of those that Spark counts.
        if not jobs or len(java.statusTracker().getExecutorInfos()) > 1:
            missed_since = None
            continue
        now = time.monotonic()
        missed_since = now if missed_since is None else missed_since
        if now - missed_since >= patience_s:
            for job in jobs:
                java.cancelJob(job, f"{NO_WORKERS} for {patience_s:g} seconds")
