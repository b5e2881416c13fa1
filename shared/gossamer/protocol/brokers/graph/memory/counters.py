"""What a broker of a general graph counts."""

from __future__ import annotations

from attrs import define, field, frozen


@define
class Counters:
    """Since the broker began.

    Attributes:
        sent, received: messages between brokers by kind.
        published: documents of its clients.
        delivered: documents handed to clients.
        duplicates: deliveries that were not made because the client had the document already.
        reissued: documents that set out anew because a link or a tree had gone.
        lost: documents that were given up: for brokers that stay away, or for want of room.
        stale: messages about what is known better.
        unrouted: messages to the coordinator that had no way there.
        refused: messages that were refused.
        takeovers: times that this broker became coordinator.
        plans: trees made here; installed: of these, how many were worth it.
    """

    sent: dict[str, int] = field(factory=dict)
    received: dict[str, int] = field(factory=dict)
    published: int = 0
    delivered: int = 0
    duplicates: int = 0
    reissued: int = 0
    lost: int = 0
    stale: int = 0
    unrouted: int = 0
    refused: int = 0
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
        custody: documents that are not confirmed; stranded: that wait.
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
