"""What brokers of all families remember: clients, timers and counters; families derive theirs."""

from __future__ import annotations

from typing import Any, Self

from attrs import asdict, define, field

from gossamer.protocol.brokers.core.messages import INCARNATION_BITS, Id


@define
class Counters:
    """Since the broker began.

    Attributes:
        sent, received: messages between brokers by kind.
        delivered: publications handed to clients.
        duplicates: what came again, and was dropped.
        stale: messages about what is not known (any more), dropped.
        lost: publications, or copies of them, that were given up.
        refused: messages that were refused.
    """

    sent: dict[str, int] = field(factory=dict)
    received: dict[str, int] = field(factory=dict)
    delivered: int = 0
    duplicates: int = 0
    stale: int = 0
    lost: int = 0
    refused: int = 0

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)

    @classmethod
    def read(cls, data: dict[str, Any]) -> Self:
        """What `plain_data` made plain data of; raises `TypeError` for what is none."""
        return cls(**data)


@define(eq=False)
class Timer:
    """A timer: the token of its last setting, and when it is due, or None if it is not set."""

    token: int = 0
    at: int | None = None


@define(eq=False)
class Session:
    """An attached client: what it asks for and announces, by its own labels.

    Attributes:
        subscriptions, advertisements: by label, whatever the family's tables know them by: an
            identifier where a table holds the filter, or the filter itself.
    """

    name: str
    subscriptions: dict[str, Any] = field(factory=dict)
    advertisements: dict[str, Any] = field(factory=dict)


@define(eq=False, kw_only=True)
class BrokerState:
    """The part of a broker's memory that does not depend on how it routes.

    Attributes:
        name: of the broker, unique in the overlay.
        next_number: of the last identifier given; the next is one more.
        clients: attached, by name.
    """

    name: str
    next_number: int
    counters: Counters = field(factory=Counters)
    clients: dict[str, Any] = field(factory=dict)
    timers: dict[str, Timer] = field(factory=dict)

    def new_id(self) -> Id:
        """An identifier that was never used."""
        self.next_number += 1
        return Id(self.name, self.next_number)


def first_number(incarnation: int) -> int:
    """Where the identifiers of a life of a broker begin."""
    return incarnation << INCARNATION_BITS
