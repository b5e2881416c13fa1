"""What is seen of one peer while it runs, and how it is told."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import trio

from gossamer.node.peer.application import Inside, Peer
from gossamer.node.peer.frames.core import SELF, Record
from gossamer.node.peer.frames.events import Event
from gossamer.protocol.kernel.records import BODY, KIND
from gossamer.protocol.peer.record_table.records import (
    DELIVER,
    EVENT_ID,
    EVENT_MESSAGES,
    EVENT_VALUES,
    PUBLISH,
)
from gossamer.protocol.peer.rendezvous.delivery import is_false_positive
from gossamer.protocol.peer.routing.table import is_interested
from gossamer.protocol.peer.space.scales import low_bits
from gossamer.protocol.peer.state.links import HANDLE_MASK
from gossamer.protocol.peer.state.state import COUNTER_NAMES
from gossamer.replay.lines import encode
from gossamer.sim.studies.peers.running.collector import KINDS, NOT_CONTROL

# Reports are written together this often, so that they cost little.
FLUSH_S: Final = 0.05
# Of an event that came by no path, but out of a store.
UNKNOWN_HOPS: Final = 0, 0


class Reporter:
    """Collects reports; `run` writes them."""

    def __init__(self, stream: trio.abc.SendStream) -> None:
        self._stream = stream
        self._waiting = bytearray()

    def tell(self, report: str, node: int, **fields: Any) -> None:
        """Report something soon."""
        self._waiting += encode({"report": report, "node": node, **fields})

    async def run(self) -> None:
        """Write what there is, again and again, until cancelled."""
        while True:
            await trio.sleep(FLUSH_S)
            await self.flush()

    async def flush(self) -> None:
        """Write what there is, cancelled or not: half a line would make nonsense of the next."""
        waiting, self._waiting = self._waiting, bytearray()
        if waiting:
            with trio.CancelScope(shield=True):
                await self._stream.send_all(waiting)


class Observer:
    """Watches the records that one peer takes."""

    def __init__(self, node: int, peer: Peer, reporter: Reporter) -> None:
        self.inside: Inside = peer.observe(self.see)
        self._node = node
        self._attributes = len(peer.schema)
        self._peer = peer
        self._reporter = reporter
        self._hops: dict[int, tuple[int, int]] = {}
        self._expected: dict[tuple[int, ...], list[tuple[int, Callable[[], None]]]] = {}
        self._control = 0
        self._told: Counter[str] = Counter()

    def see(self, record: Record) -> None:
        """Count a record that the peer is about to take."""
        kind = record[KIND]
        if kind in EVENT_MESSAGES:
            self._see_event(record)
        elif kind == PUBLISH:
            self._see_publication(record)
        elif kind == DELIVER:
            self._hops[record[BODY]] = record[BODY + 1], record[BODY + 2]
        elif kind < KINDS and kind not in NOT_CONTROL:
            self._control += 1

    def _see_event(self, record: Record) -> None:
        state, values = self.inside.state, BODY + EVENT_VALUES
        interested = is_interested.interpreted(state, SELF, record, values)
        self._tell(
            "taken",
            id=record[BODY + EVENT_ID],
            interested=bool(interested),
            false_positive=bool(is_false_positive.interpreted(state, SELF, record, 0)),
        )

    def expect(self, number: int, values: Iterable[int], begun: Callable[[], None]) -> None:
        """The application is about to publish an event of these hashed values.

        Args:
            number: of the event.
            values: in the order of the schema.
            begun: called once the peer publishes it.
        """
        self._expected.setdefault(self._known_by(tuple(values)), []).append((number, begun))

    def expects(self, number: int) -> bool:
        """Whether that event is still not being published."""
        return any(number == one for waiting in self._expected.values() for one, _ in waiting)

    def _see_publication(self, record: Record) -> None:
        # When an event is on its way is not when its publisher is told that others hold it.
        values = record[BODY + EVENT_VALUES :][: self._attributes]
        waiting = self._expected.get(self._known_by(tuple(values)))
        if waiting:
            number, begun = waiting.pop(0)
            self._tell("published", event=number, id=record[BODY + EVENT_ID])
            begun()

    def _known_by(self, values: tuple[int, ...]) -> tuple[int, ...]:
        """What of an event's values stays as it is where it is routed by its key."""
        if self.inside.state.params.key == 0:
            return (values[0] >> low_bits(1),)
        return values

    def deliver(self, event: Event) -> None:
        """The application has got an event."""
        hops, tree_hops = self._hops.get(event.id, UNKNOWN_HOPS)
        self._tell(
            "delivered",
            id=event.id,
            hops=hops,
            tree_hops=tree_hops,
            latency_s=time.time() - event.published_at,
        )

    def tally(self) -> None:
        """Report what was counted since the last time."""
        counters = self._peer.counters
        counts = Counter(
            control=self._control,
            forwarded=counters.events_forwarded,
            rounds=counters.rounds,
            rounds_late=counters.rounds_late,
            **dict(zip(COUNTER_NAMES, self.inside.state.counters[SELF].tolist(), strict=True)),
        )
        if counts != self._told:
            self._tell("tally", counts=counts - self._told)
            self._told = counts

    def look(self, number: int) -> None:
        """Report links, place and table of the peer."""
        state, key_of = self.inside.state, self.inside.key_of
        links = state.links[SELF].tolist()
        self._tell(
            "seen",
            number=number,
            profile=state.sampler.profile[SELF].tolist(),
            links=[key_of(word & HANDLE_MASK) if word >= 0 else None for word in links],
            link_profiles=state.link_profile[SELF].tolist(),
            successor=int(state.successor[SELF]),
            table=int(state.table_count[SELF]),
        )

    def _tell(self, report: str, **fields: Any) -> None:
        self._reporter.tell(report, self._node, at=time.monotonic(), **fields)
