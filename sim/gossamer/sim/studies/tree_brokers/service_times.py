"""How long a broker works on a message: fixed, by its congestion or table, or as measured.

All times are integer microseconds of the simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import attrs

from gossamer.protocol.brokers.core.messages import (
    Advertise,
    Attach,
    Publish,
    Subscribe,
    Unsubscribe,
)
from gossamer.protocol.brokers.tree.messages import (
    Advertisement,
    Frame,
    Message,
    Packed,
    Publication,
    Subscription,
    Unsubscription,
)
from gossamer.protocol.brokers.tree.state import TableSizes


@attrs.frozen
class Work:
    """What a broker has just taken, and what else bears on how long that takes.

    Attributes:
        message: what the broker took.
        sizes: how large its tables are.
        wall_s: seconds that the real code took.
        examined: subscriptions that it had to examine again, see `Counters.examined`.
        waiting: microseconds of work in its input queue, as `ServiceTimes.expected` has them.
    """

    message: Message
    sizes: Callable[[], TableSizes]
    wall_s: float = 0.0
    examined: int = 0
    waiting: int = 0


@attrs.frozen
class FixedTimes:
    """A time for every kind of message, in microseconds.

    Attributes:
        subscription, unsubscription, publication, other: of each kind.
        examined: added for each subscription that the message has the broker examine again.
            "Removing and reinserting those root subscriptions is very expensive" (incremental
            paper, Sec. V-B), and covering is what is expensive about subscriptions in its Table II.
        packed: share of its time that a subscription or unsubscription takes in a pack. 1: it
            "still needs to be processed individually" (selective paper, Sec. V-A); less: packing
            "utilizes the knowledge that these messages have a covering relationship to more
            efficiently index them" (incremental paper, Sec. V).
    """

    subscription: int
    unsubscription: int
    publication: int
    other: int = 0
    examined: int = 0
    packed: float = 1.0

    def of(self, work: Work) -> int:
        """The time of the message's kind, and of what it has the broker examine."""
        return self.expected(work.message) + self.examined * work.examined

    def expected(self, message: Message) -> int:
        """The time of the message's kind; a pack takes a share of what it holds."""
        content = message.message if isinstance(message, Frame) else message
        if isinstance(content, Packed):
            whole = sum(self._of_one(item) for item in content.messages)
            return whole if self.packed == 1.0 else round(self.packed * whole)
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


@attrs.frozen
class CongestedTimes:
    """Times of a broker that slows down when more work waits than it can keep pace with.

    "During periods of congestion the brokers processed publications and subscriptions at a rate of
    only 3.3 per second" (selective paper, Sec. V-B). The bound is on work and not on messages, of
    which packing leaves few. It is our choice: the paper does not say when congestion begins.

    Attributes:
        idle: times while no more than the bound waits.
        congested: microseconds that every message takes beyond, one in a pack like any other.
        bound: microseconds of work that may wait.
    """

    idle: FixedTimes
    congested: int = 300_000
    bound: int = 500_000

    def of(self, work: Work) -> int:
        """The time of the message's kind, or the one of all that take any."""
        if work.waiting <= self.bound:
            return self.idle.of(work)
        message = work.message
        content = message.message if isinstance(message, Frame) else message
        if isinstance(content, Packed):
            return len(content.messages) * self.congested
        return self.congested if self.expected(message) else 0

    def expected(self, message: Message) -> int:
        """The time while nothing waits."""
        return self.idle.expected(message)


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

    def of(self, work: Work) -> int:
        """The base, and what the entries add."""
        added = self.per_entry_ns.expected(work.message) * work.sizes().subscriptions // 1_000
        return self.base.of(work) + added

    def expected(self, message: Message) -> int:
        """The base."""
        return self.base.expected(message)


@attrs.frozen
class MeasuredTimes:
    """What the real code took here and now, times a factor. Such runs are not reproducible."""

    factor: float = 1.0

    def of(self, work: Work) -> int:
        """Seconds of the wall clock as microseconds."""
        return round(work.wall_s * self.factor * 1_000_000)

    def expected(self, message: Message) -> int:  # noqa: ARG002
        """Nothing: it is not known before."""
        return 0


ServiceTimes = FixedTimes | CongestedTimes | ProportionalTimes | MeasuredTimes
"""What a message costs the broker that takes it, and what one in an input queue stands for."""
