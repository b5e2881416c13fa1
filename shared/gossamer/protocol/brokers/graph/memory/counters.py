"""What a broker of a general graph counts."""

from __future__ import annotations

from attrs import define, frozen

from gossamer.protocol.brokers.core import state as core


@define
class Counters(core.Counters):
    """Since the broker began.

    Duplicates are deliveries that were not made because the client had the document already; lost
    are documents that were given up: for brokers that stay away, or for want of room.

    Attributes:
        published: documents of its clients.
        reissued: documents that set out anew because a link or a tree had gone.
        unrouted: messages to the coordinator that had no way there.
        takeovers: times that this broker became coordinator.
        plans: trees made here; installed: of these, how many were worth it.
    """

    published: int = 0
    reissued: int = 0
    unrouted: int = 0
    takeovers: int = 0
    plans: int = 0
    installed: int = 0


@frozen
class TableSizes:
    """How large the tables of a broker are.

    Attributes:
        subscriptions: of all brokers.
        advertisements: of its clients.
        brokers: that are known.
        versions: of trees that are held; trees: in the version in use.
        in_flight: documents that are not confirmed; parked: that wait.
        clients: attached.
    """

    subscriptions: int
    advertisements: int
    brokers: int
    versions: int
    trees: int
    in_flight: int
    parked: int
    clients: int
