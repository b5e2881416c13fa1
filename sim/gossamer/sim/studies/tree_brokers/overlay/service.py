"""How long a broker works on a message: fixed, by the size of its table, or as measured.

All times are integer microseconds of the simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

import attrs

from gossamer.protocol.brokers.core.messages import (
    Advertise,
    Attach,
    Publish,
    Subscribe,
    Unsubscribe,
)
from gossamer.protocol.brokers.tree.memory.counters import TableSizes
from gossamer.protocol.brokers.tree.memory.messages import (
    Advertisement,
    Frame,
    Message,
    Packed,
    Publication,
    Subscription,
    Unsubscription,
)


class ServiceTimes(Protocol):
    """What a message costs the broker that takes it."""

    def of(self, message: Message, sizes: Callable[[], TableSizes], wall_s: float) -> int:
        """Microseconds of work.

        Args:
            message: what the broker took.
            sizes: how large its tables are.
            wall_s: seconds that the real code took.
        """


@attrs.frozen
class FixedTimes:
    """A time for every kind of message, in microseconds."""

    subscription: int
    unsubscription: int
    publication: int
    other: int = 0

    def of(self, message: Message, sizes: Callable[[], TableSizes], wall_s: float) -> int:  # noqa: ARG002
        """The time of the message's kind; a pack takes as long as what it holds (Sec. V-A)."""
        content = message.message if isinstance(message, Frame) else message
        if isinstance(content, Packed):
            return sum(self._of_one(item) for item in content.messages)
        if isinstance(content, Attach):
            return len(content.subscriptions) * self.subscription
        return self._of_one(content)

    def _of_one(self, content: object) -> int:
        if isinstance(content, Subscribe | Subscription):
            return self.subscription
        if isinstance(content, Unsubscribe | Unsubscription):
            return self.unsubscription
        if isinstance(content, Publish | Publication):
            return self.publication
        if isinstance(content, Advertise | Advertisement):
            return self.other
        return 0


# Incremental paper, Table II: matching and covering of a subscription, an unsubscription, and a
# publication, under active covering, lazy covering, and none. Only active covering was seen to
# handle unsubscriptions there; its time stands for all.
TABLE_II: Final = {
    "active": FixedTimes(subscription=12_810, unsubscription=1_400, publication=3_000),
    "lazy": FixedTimes(subscription=28_600, unsubscription=1_400, publication=6_200),
    "off": FixedTimes(subscription=1_600, unsubscription=1_400, publication=7_900),
}


@attrs.frozen
class ProportionalTimes:
    """Times that grow with the routing table: a base, and nanoseconds for each entry."""

    base: FixedTimes
    per_entry_ns: FixedTimes

    def of(self, message: Message, sizes: Callable[[], TableSizes], wall_s: float) -> int:
        """The base, and what the entries add."""
        added = self.per_entry_ns.of(message, sizes, wall_s) * sizes().subscriptions // 1_000
        return self.base.of(message, sizes, wall_s) + added


@attrs.frozen
class MeasuredTimes:
    """What the real code took here and now, times a factor. Such runs are not reproducible."""

    factor: float = 1.0

    def of(self, message: Message, sizes: Callable[[], TableSizes], wall_s: float) -> int:  # noqa: ARG002
        """Seconds of the wall clock as microseconds."""
        return round(wall_s * self.factor * 1_000_000)
