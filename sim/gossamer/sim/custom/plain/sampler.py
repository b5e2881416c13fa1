"""A sampler of gossamer under plain nodes: its rules take and write records, one at a time."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from gossamer.protocol.kernel.errors import CapacityError
from gossamer.protocol.kernel.records import (
    BODY,
    HEAD,
    KIND,
    LENGTH,
    REFUSED,
    TAIL,
    TO,
    UNREACHABLE,
    Words,
    make_outbox,
)
from gossamer.protocol.peer.record_table.records import SAMPLE_TIMER
from gossamer.protocol.peer.sampling.sampler import sample_step
from gossamer.sim.custom.language.messages import WORD_BYTES
from gossamer.sim.custom.protocol import Part, arrays_of, sampler_state
from gossamer.sim.custom.tally import sampler_names
from gossamer.sim.engine.cycle_engine import fill_random_views, join_via

_ROOM: Final = 1 << 16


class SamplerMessage:
    """A message of a sampler: its whole record, and what traces call it."""

    __slots__ = ("name", "record")

    def __init__(self, record: Words, name: str) -> None:
        self.record = record
        self.name = name

    @property
    def size(self) -> int:
        """Its bytes."""
        return WORD_BYTES * (len(self.record) - BODY)


class PlainSampler:
    """One sampler of all nodes.

    Attributes:
        state: its views.
    """

    def __init__(self, part: Part, nodes: int, settings: Mapping[str, Any], seed: int) -> None:
        assert part.sampler is not None
        self._names = sampler_names(part)
        self._make = functools.partial(sampler_state, part.sampler, settings=settings, seed=seed)
        self.state = self._make(nodes=nodes)
        self._out = make_outbox(_ROOM)

    def begin(self, alive: Any) -> None:
        """Give everybody who is up a random view."""
        fill_random_views(self.state, alive, self.state.seed, self.state.view_size)

    def join(self, me: int, now: int, contact: int) -> None:
        """Let a node begin anew with one that it knows."""
        join_via.run(self.state, me, now, contact)

    def fire(self, me: int, now: int) -> Iterator[tuple[int, SamplerMessage]]:
        """What a node sends, and to whom, when its timer fires."""
        return self._step(me, now, np.array([BODY, SAMPLE_TIMER, me, me], np.int64))

    def take(self, me: int, now: int, message: SamplerMessage) -> Iterator[tuple[int, Any]]:
        """What a node sends when it takes a message."""
        return self._step(me, now, message.record)

    def come_back(self, me: int, now: int, to: int) -> Iterator[tuple[int, Any]]:
        """What a node sends when a message to a peer came back."""
        record = np.array([BODY, UNREACHABLE + 1, to, me], np.int64)
        return self._step(me, now, record)

    def arrays(self) -> dict[str, Any]:
        """Copies of its arrays."""
        return {name: array.copy() for name, array in arrays_of(self.state)}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        """Have the arrays that were copied."""
        for name, array in arrays_of(self.state):
            array[...] = arrays[name]

    def grow(self, nodes: int) -> None:
        """Have so many nodes, of which the first are as they were."""
        before, kept = len(self.state.views), self.arrays()
        self.state = self._make(nodes=nodes)
        for name, array in arrays_of(self.state):
            array[: len(kept[name]) if len(kept[name]) == before else None] = kept[name]

    def _step(self, me: int, now: int, record: Words) -> Iterator[tuple[int, SamplerMessage]]:
        out = self._out
        out.cursor[:] = 0
        # Rules may write into the record that they take.
        sample_step.run(self.state, me, now, record.copy(), 0, out)
        if out.cursor[REFUSED]:
            raise CapacityError("the outbox of a sampler", len(out.words))
        at, end = int(out.cursor[HEAD]), int(out.cursor[TAIL])
        written = []
        while at < end:
            length = int(out.words[at + LENGTH])
            written.append((int(out.words[at + TO]), out.words[at : at + length].copy()))
            at += length
        return ((to, SamplerMessage(x, self._names[int(x[KIND])])) for to, x in written)
