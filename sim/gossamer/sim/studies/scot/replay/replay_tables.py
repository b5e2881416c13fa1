"""The columns that `replay_loop` runs on, and how they grow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gossamer.sim.studies.scot.replay import replay_loop as loop
from gossamer.sim.studies.scot.replay import replay_state as state
from gossamer.sim.studies.scot.replay.replay_state import Decisions, Flow, Int64s

_FIRST_ROOM = 1 << 10


class DecisionTables:
    """Decisions of brokers, and a hash table to find them.

    Attributes:
        tables: for the loop.
    """

    def __init__(self) -> None:
        self.tables = Decisions(
            keys=np.full((_FIRST_ROOM, 3), -1, np.int64),
            rows=np.zeros((_FIRST_ROOM, 5), np.int64),
            copies=np.zeros((_FIRST_ROOM, 4), np.int64),
        )
        self._decided = 0
        self._copied = 0
        self._keys = 0

    def uses(self) -> Int64s:
        """How often each decision was replayed."""
        return self.tables.rows[: self._decided, state.USES]

    def enter(
        self,
        key: tuple[int, int],
        revision: int,
        copies: Sequence[tuple[int, int, int, int]],
        clients: int,
    ) -> None:
        """Enter a decision, in place of an older one with this key (origin and shape)."""
        self._make_room(len(copies))
        decision, first = self._decided, self._copied
        self._decided += 1
        self._copied += len(copies)
        self.tables.rows[decision] = revision, first, len(copies), clients, 0
        if copies:
            self.tables.copies[first : self._copied] = copies
        place = loop.place_of.compiled(self.tables, *key)
        self._keys += self.tables.keys[place, 0] < 0
        self.tables.keys[place] = *key, decision

    def copies(self, origin: int, shape: int) -> list[tuple[int, int]]:
        """Link and shape of the copies that were decided on."""
        tables = self.tables
        decision = tables.keys[loop.place_of.compiled(tables, origin, shape), 2]
        first, number = tables.rows[decision, [state.FIRST, state.COPIES]].tolist()
        return [(link, copy) for link, copy, *_ in tables.copies[first : first + number].tolist()]

    def _make_room(self, copies: int) -> None:
        tables = self.tables
        if self._decided == len(tables.rows):
            tables = tables._replace(rows=_doubled(tables.rows))
        if self._copied + copies > len(tables.copies):
            tables = tables._replace(copies=_doubled(tables.copies))
        if 2 * self._keys >= len(tables.keys):
            larger = tables._replace(keys=np.full((2 * len(tables.keys), 3), -1, np.int64))
            loop.enter_keys.compiled(tables.keys, larger)
            tables = larger
        self.tables = tables


def new_flow(brokers: int, links: int, publications: int, now: int) -> Flow:
    """Nothing under way yet, at a time in microseconds."""
    flow = Flow(
        registers=np.zeros(state.REGISTERS, np.int64),
        heap=np.zeros((_FIRST_ROOM, 3), np.int64),
        messages=np.zeros((_FIRST_ROOM, 5), np.int64),
        work=np.zeros(_FIRST_ROOM, np.int64),
        brokers=np.zeros((brokers, 4), np.int64),
        links=np.zeros((links, 9), np.int64),
        in_use=np.zeros(max(links, 1), np.int64),
        deliveries=np.zeros((_FIRST_ROOM, 3), np.int64),
        windows=np.zeros((_FIRST_ROOM, 4), np.int64),
        reports=np.zeros((max(links, 1), 4), np.int64),
        last=np.zeros(publications, np.int64),
    )
    flow.registers[state.NOW] = now
    flow.registers[[state.FREE, state.PENDING]] = -1
    flow.links[:, [state.HEAD, state.TAIL]] = -1
    return flow


def roomier(flow: Flow) -> Flow:
    """The same with twice the room for whatever may be full."""
    registers = flow.registers
    if 2 * registers[state.WAITING] >= len(flow.heap):
        flow = flow._replace(heap=_doubled(flow.heap))
    if 2 * registers[state.USED] >= len(flow.messages):
        flow = flow._replace(messages=_doubled(flow.messages), work=_doubled(flow.work))
    if registers[state.DELIVERIES] >= len(flow.deliveries):
        flow = flow._replace(deliveries=_doubled(flow.deliveries))
    if registers[state.WINDOWS] >= len(flow.windows):
        flow = flow._replace(windows=_doubled(flow.windows))
    return flow


def _doubled(column: Int64s) -> Int64s:
    larger = np.zeros((2 * len(column), *column.shape[1:]), np.int64)
    larger[: len(column)] = column
    return larger
