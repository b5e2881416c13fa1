"""The columns that `replay_loop` runs on, and how they grow."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Final

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.brokers.core.broker import NewIndex, SharedIndex
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.scot.messages import InputQueue
from gossamer.protocol.brokers.scot.table import Catalogue, Numbers
from gossamer.protocol.brokers.scot.topology import ClusterBitVector
from gossamer.protocol.content.filters import Filter
from gossamer.sim.studies.scot import replay_loop as loop
from gossamer.sim.studies.scot.replay_loop import Decisions, Flow, Int64s

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
        return self.tables.rows[: self._decided, loop.USES]

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
        first, number = tables.rows[decision, [loop.FIRST, loop.COPIES]].tolist()
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
        registers=np.zeros(loop.REGISTERS, np.int64),
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
    flow.registers[loop.NOW] = now
    flow.registers[[loop.FREE, loop.PENDING]] = -1
    flow.links[:, [loop.HEAD, loop.TAIL]] = -1
    return flow


def roomier(flow: Flow) -> Flow:
    """The same with twice the room for whatever may be full."""
    registers = flow.registers
    if 2 * registers[loop.WAITING] >= len(flow.heap):
        flow = flow._replace(heap=_doubled(flow.heap))
    if 2 * registers[loop.USED] >= len(flow.messages):
        flow = flow._replace(messages=_doubled(flow.messages), work=_doubled(flow.work))
    if registers[loop.DELIVERIES] >= len(flow.deliveries):
        flow = flow._replace(deliveries=_doubled(flow.deliveries))
    if registers[loop.WINDOWS] >= len(flow.windows):
        flow = flow._replace(windows=_doubled(flow.windows))
    return flow


def _doubled(column: Int64s) -> Int64s:
    larger = np.zeros((2 * len(column), *column.shape[1:]), np.int64)
    larger[: len(column)] = column
    return larger


# How the times that brokers work on messages are spread about their means.


CONSTANT, EXPONENTIAL = "constant", "exponential"
SPREADS: Final = (CONSTANT, EXPONENTIAL)
"""How the times that a broker works on messages of one kind are distributed."""

_DRAWS: Final = 4_096
_SPREAD_SEED: Final = 229


@functools.cache
def spread_of(spread: str) -> npt.NDArray[np.int64]:
    """int64[draws]: by how many thousandths the times of messages are multiplied, one by one.

    The k-th message that the broker of place b takes in has draw ``7919 b + k``, modulo their
    number, whatever it is. Exponential draws are the quantiles of the distribution in a random
    order that never changes, and have its mean.
    """
    if spread == CONSTANT:
        return np.full(1, 1_000, np.int64)
    ranks = (np.arange(_DRAWS) + 0.5) / _DRAWS
    quantiles = -np.log1p(-ranks)
    draws = np.rint(1_000 * quantiles / quantiles.mean()).astype(np.int64)
    return np.random.Generator(np.random.Philox(_SPREAD_SEED)).permutation(draws)


# A catalogue that remembers what matched, for publications that say the same again.


_Key = tuple[tuple[str, object], ...]


class RememberingCatalogue(Catalogue):
    """A `Catalogue` with the same answers, shared by all brokers of a simulation.

    Where few different publications are routed it saves most of the matching: each is matched once
    for all brokers, while subscriptions do not change.
    """

    def __init__(self, new_index: NewIndex = SharedIndex) -> None:
        """An empty catalogue."""
        super().__init__(new_index)
        self._matched: dict[_Key, Numbers] = {}

    def hold(self, id_: Id, wanted: Filter, host: ClusterBitVector) -> int:
        """Hold a subscription once more; returns its number."""
        before = self.held
        number = super().hold(id_, wanted, host)
        if self.held != before:
            self._matched.clear()
        return number

    def release(self, number: int) -> None:
        """Hold a subscription once less; forget it with the last."""
        before = self.held
        super().release(number)
        if self.held != before:
            self._matched.clear()

    def match(self, values: Mapping[str, object]) -> Numbers:
        """Those that match a publication, in no order."""
        key = tuple(sorted(values.items()))
        found = self._matched.get(key)
        if found is None:
            found = self._matched[key] = super().match(values)
        return found


# How long input queues are at the end of a window, for brokers that tell their neighbours.
#
# A queue is as long as notifications that its broker could match in the time that it needs to work
# off what waits. What brokers tell each other of that takes no time here: it is a few bytes a
# window.


@attrs.define(eq=False)
class InputQueues:
    """What was told of every input queue last.

    Attributes:
        works: microseconds that each broker works on a notification.
        lengths, taken: of each broker at the end of the window before.
    """

    works: Sequence[int]
    lengths: list[int] = attrs.field(init=False)
    taken: list[int] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.lengths = [0] * len(self.works)
        self.taken = [0] * len(self.works)

    def at(self, now: int, free_at: Sequence[int], taken: Sequence[int]) -> dict[int, InputQueue]:
        """What there is to tell at the end of a window, by broker: queues that are not empty, or
        were not.

        Args:
            now: microseconds.
            free_at: when each broker will have worked off what waits.
            taken: messages that each has taken in so far.
        """
        told: dict[int, InputQueue] = {}
        for place, work in enumerate(self.works):
            length = -(-max(free_at[place] - now, 0) // max(work, 1))
            entered = taken[place] - self.taken[place]
            before, self.lengths[place], self.taken[place] = (
                self.lengths[place],
                length,
                taken[place],
            )
            if length or before:
                told[place] = InputQueue(length, entered, max(before + entered - length, 0))
        return told
