"""The log of a run: what its nodes have written down, which measures and results read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.sim.custom.language.context import TICKS_A_SECOND
from gossamer.sim.custom.language.messages import MessageClass, refuse_logging, words_of
from gossamer.sim.custom.language.places import declaration_error
from gossamer.sim.engine.latency import Int64s

_TICK, _NODE, _FIELDS = 0, 1, 2
# Entries of plain nodes that are put in one array.
_AT_ONCE: Final = 1 << 16


class EventLog:
    """What nodes have logged, by message; it grows with the run, and nothing is taken from it.

    Its order is that of time, at one tick that of rows, and of one node that in which it logged.
    So it depends neither on an engine's order within a tick nor on threads.

    Args:
        kept: of another log, to go on from.
    """

    def __init__(self, kept: Mapping[MessageClass, Int64s] | None = None) -> None:
        self._ordered = dict(kept or {})
        self._added: dict[MessageClass, list[Int64s]] = {}
        self._written: dict[MessageClass, list[tuple[int, ...]]] = {}

    def add(self, message: MessageClass, rows: Int64s) -> None:
        """Add entries.

        Args:
            message: what they are, all of one class.
            rows: int64[m, 2 + fields], the tick, the node and the words of the fields, each node's
                in their order.
        """
        self._added.setdefault(message, []).append(rows)

    def write(self, tick: int, node: int, entry: Any) -> None:
        """Add one entry, an object of a message; raises as `Simulation.log`."""
        message: Any = entry.__class__
        if message not in self._written:
            refuse_logging(message)
            for other in self.kept():
                if other.name == message.name and other is not message:
                    raise declaration_error(
                        message.place, message.__name__, None, "another name", "logged twice"
                    )
            self._written[message] = []
        written = self._written[message]
        written.append((tick, node, *words_of(entry)))
        if len(written) >= _AT_ONCE:
            self._take_written()

    def _take_written(self) -> None:
        for message, written in self._written.items():
            if written:
                self.add(message, np.array(written, np.int64))
                written.clear()

    def kept(self) -> dict[MessageClass, Int64s]:
        """By message that was logged, all entries in order; what a checkpoint keeps."""
        self._take_written()
        for message, added in self._added.items():
            new = np.concatenate(added)
            before = self._ordered.get(message, new[:0])
            # Only those of the last ticks can be out of order.
            first = int(np.searchsorted(before[:, _TICK], new[:, _TICK].min(), "left"))
            new = np.concatenate([before[first:], new])
            order = np.lexsort([new[:, _NODE], new[:, _TICK]])
            self._ordered[message] = np.concatenate([before[:first], new[order]])
        self._added.clear()
        return dict(self._ordered)

    def table(self, message: Any, round_ticks: int) -> dict[str, npt.NDArray[Any]]:
        """The entries of a message, a row each; see `Simulation.log`."""
        refuse_logging(message)
        none = np.empty((0, _FIELDS + len(message.fields)), np.int64)
        rows = self.kept().get(message, none)
        tick = rows[:, _TICK]
        columns: dict[str, npt.NDArray[Any]] = {
            "round": tick // round_ticks,
            "time_s": tick / TICKS_A_SECOND,
            "node": rows[:, _NODE].copy(),
        }
        for place, field in enumerate(message.fields, _FIELDS):
            words = rows[:, place].copy()
            is_float = field.kind is float
            columns[field.name] = words.view(np.float64) if is_float else words.astype(field.kind)
        return columns
