"""What the messages of peers come to in bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gossamer.protocol.kernel.records import BODY
from gossamer.protocol.peer.record_table.records import TABLE
from gossamer.protocol.peer.sampling.sampler import FAMILY
from gossamer.sim.engine.latency import WORD_BYTES, Sizes, make_sizes
from gossamer.sim.studies.peers.measuring.records import TRAFFIC_COLUMNS, TrafficTables
from gossamer.sim.studies.peers.running.collector import (
    COUNT,
    KINDS,
    NO_MESSAGES,
    SIZE,
    Collector,
)
from gossamer.sim.study.records import table_of_rows


def record_sizes() -> Sizes:
    """A message is its record, header and body, a word of 8 bytes each."""
    base = np.full(KINDS, BODY * WORD_BYTES)
    base[list(NO_MESSAGES)] = -1
    return make_sizes(base, np.zeros(KINDS))


def message_names() -> dict[int, str]:
    """The names of all messages of peers by kind."""
    sampled = (kind for one in FAMILY for kind in one.records)
    return {kind.number: kind.name.lower() for kind in (*TABLE, *sampled) if kind.number < KINDS}


class TrafficLog:
    """Keeps the traffic of every round."""

    def __init__(self, round_s: float) -> None:
        self._round_s = round_s
        self._before = np.zeros(2, np.int64)
        self._rows: list[tuple[float, ...]] = []

    def note(self, collector: Collector, population: int) -> None:
        """Note what was taken in the round that is over, with so many nodes up."""
        total = collector.messages.sum(axis=0)
        cycle = len(self._rows)
        count, size = (total - self._before).tolist()
        node_s = population * self._round_s
        self._rows.append((cycle, (cycle + 1) * self._round_s, node_s, count, size))
        self._before = total

    def tables(self, collector: Collector, fates: Mapping[str, int]) -> TrafficTables:
        """What there is so far; ``fates`` are of messages that were not taken as sent."""
        names = message_names()
        kinds = sorted(np.flatnonzero(collector.messages[:, COUNT]).tolist())
        shown = [names.get(kind, f"kind {kind}") for kind in kinds]
        messages: dict[str, Any] = {
            "message": np.array(shown, dtype=f"<U{max([1, *map(len, shown)])}"),
            "count": collector.messages[kinds, COUNT],
            "size_bytes": collector.messages[kinds, SIZE],
        }
        return TrafficTables(
            messages=messages,
            rounds=table_of_rows(self._rows, TRAFFIC_COLUMNS),
            nodes={
                "node": np.arange(len(collector.received_bytes), dtype=np.int32),
                "sent_bytes": collector.sent_bytes.copy(),
                "received_bytes": collector.received_bytes.copy(),
            },
            fates=fates,
        )
