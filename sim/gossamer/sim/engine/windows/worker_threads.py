"""Threads that work side by side, each kept on a core of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psutil

# How long is watched which cores are busy.
_WATCHED_S = 0.05


def spread_over_cores(threads: int) -> list[int | None]:
    """A core for each of so many threads, those first that are least busy at the moment.

    None for all where there are fewer cores, or only one thread: a single thread is left to the
    operating system, as other processes may do the same.
    """
    if threads < 2 or not hasattr(os, "sched_getaffinity"):
        return [None] * threads
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < threads:
        return [None] * threads
    if len(allowed) > threads:
        busy = dict(enumerate(psutil.cpu_percent(_WATCHED_S, percpu=True)))
        allowed.sort(key=lambda core: busy.get(core, 0.0))
    return list(allowed[:threads])


def pin_this_thread(core: int | None) -> None:
    """Keep the calling thread on a core: left alone, two busy threads often share one."""
    if core is not None:
        os.sched_setaffinity(0, {core})


@contextmanager
def pinned(core: int | None) -> Iterator[None]:
    """Keep the calling thread on a core for the block."""
    if core is None:
        yield
        return
    before = os.sched_getaffinity(0)
    pin_this_thread(core)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


class WorkerThreads:
    """The calling thread and others.

    Args:
        cores: one for each worker, the calling thread's first; None where it runs anywhere.
    """

    def __init__(self, cores: Sequence[int | None]) -> None:
        self.cores = tuple(cores)
        self._others = [
            ThreadPoolExecutor(1, "worker", pin_this_thread, (core,)) for core in cores[1:]
        ]

    @property
    def size(self) -> int:
        """How many they are."""
        return len(self.cores)

    def run(self, work: Callable[[int], None]) -> None:
        """Let each worker do ``work(number)``; returns when all have.

        Raises:
            Exception: what a worker raised, the first of them.
        """
        waiting = [
            thread.submit(work, number) for number, thread in enumerate(self._others, start=1)
        ]
        try:
            work(0)
        finally:
            for done in waiting:
                done.exception()
        for done in waiting:
            done.result()
