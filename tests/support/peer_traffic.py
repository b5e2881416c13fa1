"""What events cost on their way through real peers: copies, and the peers they come through."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs

from gossamer.node.peer.application import Inside, Peer
from gossamer.node.peer.frames.core import SELF, Record
from gossamer.protocol.kernel.records import BODY, KIND
from gossamer.protocol.peer.record_table.records import DELIVER, EVENT_MESSAGES, EVENT_VALUES
from gossamer.protocol.peer.rendezvous.routing_table import is_interested


@attrs.define
class Traffic:
    """Watches one peer.

    Attributes:
        received: copies of events that the peer took.
        uninterested: of these, copies of events that nobody at the peer wants.
        hops: how many deliveries came through how many peers.
    """

    received: int = 0
    uninterested: int = 0
    hops: Counter[int] = attrs.field(factory=Counter)
    _inside: Inside | None = None

    def watch(self, peer: Peer) -> None:
        """Count from now on; that takes time, so not while time is measured."""
        self._inside = peer.observe(self._see)

    def _see(self, record: Record) -> None:
        if record[KIND] in EVENT_MESSAGES:
            assert self._inside is not None
            self.received += 1
            state, values = self._inside.state, BODY + EVENT_VALUES
            self.uninterested += not is_interested.interpreted(state, SELF, record, values)
        elif record[KIND] == DELIVER:
            self.hops[record[BODY + 1]] += 1

    def counts(self) -> dict[str, Any]:
        """What was counted: received, uninterested, and [hops, deliveries] pairs."""
        return {
            "received": self.received,
            "uninterested": self.uninterested,
            "hops": sorted(self.hops.items()),
        }
