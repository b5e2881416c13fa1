"""What an exploration has found, level by level: in memory, or in a folder to go on from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gossamer.sim.engine.latency import Int64s
from gossamer.sim.errors import ResultsError
from gossamer.sim.exploration.packed import Prints


class Levels:
    """States by level: the last ones whole, of those before how they were reached.

    A level is kept at once when it is finished: its files appear whole, that of how its states were
    reached last, so that whatever ends the process, finished levels are there to go on from.

    Args:
        folder: keeps every level there; nowhere if None.
        memory: bytes of the states of a level that are held in memory at most, the others only in
            the folder; None without a bound.

    Attributes:
        counts: how many states each finished level has.
    """

    def __init__(self, folder: Path | None, memory: int | None) -> None:
        self._folder, self._memory = folder, memory
        self.counts: list[int] = []
        self._traces: list[Int64s] = []
        self._frontier: list[Any] = []
        self._next: list[Any] = []
        self._held = 0
        self._reached: list[tuple[Int64s, Prints]] = []

    def add(self, words: Int64s, trace: Int64s, prints: Prints) -> None:
        """Add states to the level that is being made."""
        self._reached.append((trace, prints))
        narrow = _narrowed(words)
        held: Any = narrow
        if self._folder is not None:
            file = self._chunk(len(self.counts), len(self._next))
            _write(file, lambda one: np.save(one, narrow))
            if self._memory is not None and self._held + narrow.nbytes > self._memory:
                held = file
        self._held += narrow.nbytes if held is narrow else 0
        self._next.append(held)

    def finish(self, about: dict[str, Any]) -> None:
        """Let the level be finished; ``about`` is kept with it."""
        empty = [(np.empty(0, np.int64), np.empty((0, 2), np.uint64))]
        traces, prints = zip(*(self._reached or empty), strict=True)
        trace, level = np.concatenate(traces), len(self.counts)
        if self._folder is not None:
            about = {**about, "chunks": len(self._next)}
            kept = {"trace": trace, "prints": np.concatenate(prints), "about": _encoded(about)}
            _write(self._level(level), lambda one: np.savez(one, **kept))
            for file in self._folder.glob(f"frontier-{level - 1:05d}-*.npy"):
                file.unlink()
        self.counts.append(len(trace))
        self._traces.append(trace)
        self._frontier, self._next, self._held, self._reached = self._next, [], 0, []

    def frontier(self) -> Iterator[Int64s]:
        """The states of the last level that is finished, in pieces."""
        for held in self._frontier:
            piece = np.load(held) if isinstance(held, Path) else held
            yield piece.astype(np.int64)

    def way_to(self, state: int) -> list[int]:
        """The actions by which a state was reached, by its number, from the beginning on."""
        from gossamer.sim.exploration.loops import ACTION_BITS

        ends = np.cumsum([*self.counts, sum(len(trace) for trace, _ in self._reached)])
        begins = [0, *ends[:-1].tolist()]
        actions = []
        while state > 0:
            level = int(np.searchsorted(ends, state, "right"))
            entry = int(self._trace_of(level)[state - begins[level]])
            actions.append(entry & ((1 << ACTION_BITS) - 1))
            state = entry >> ACTION_BITS
        return actions[::-1]

    def _trace_of(self, level: int) -> Int64s:
        if level < len(self._traces):
            return self._traces[level]
        return np.concatenate([trace for trace, _ in self._reached])

    def resume(self) -> tuple[dict[str, Any], Iterator[Prints]]:
        """Go on from a folder: what was kept with its last level, and all fingerprints.

        Raises:
            ResultsError: it holds no level.
        """
        assert self._folder is not None
        levels = sorted(self._folder.glob("level-*.npz"))
        if not levels:
            raise self.refused("holds no exploration to go on with")
        for file in levels:
            with np.load(file) as kept:
                self._traces.append(kept["trace"])
                self.counts.append(len(kept["trace"]))
                about = json.loads(bytes(kept["about"]))
        last = len(levels) - 1
        for place in range(about["chunks"]):
            chunk = self._chunk(last, place)
            self._frontier.append(chunk if self._memory is not None else np.load(chunk))
        return about, self._prints(levels)

    def refused(self, reason: str) -> ResultsError:
        """The error about the folder."""
        return ResultsError(self._folder or "", reason)

    @staticmethod
    def _prints(levels: list[Path]) -> Iterator[Prints]:
        for file in levels:
            with np.load(file) as kept:
                yield kept["prints"]

    def _level(self, level: int) -> Path:
        assert self._folder is not None
        return self._folder / f"level-{level:05d}.npz"

    def _chunk(self, level: int, place: int) -> Path:
        assert self._folder is not None
        return self._folder / f"frontier-{level:05d}-{place:05d}.npy"


def _narrowed(words: Int64s) -> Any:
    """The same numbers in as few bytes as all of them fit into."""
    if len(words) == 0:
        return words.copy()
    low, high = int(words.min()), int(words.max())
    for kind in (np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return words.astype(kind)
    return words.copy()


def _encoded(about: dict[str, Any]) -> Any:
    return np.frombuffer(json.dumps(about).encode(), np.uint8)


def _write(file: Path, write: Any) -> None:
    """Write a file that appears whole."""
    beside = file.with_name(f"{file.name}.part")
    with beside.open("wb") as opened:
        write(opened)
    os.replace(beside, file)
