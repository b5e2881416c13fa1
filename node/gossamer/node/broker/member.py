"""A client of a broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import trio
from attrs import define, field

from gossamer.node.broker.client_composites import ClientComposites
from gossamer.protocol.brokers.core.messages import NAMELESS
from gossamer.protocol.content.filters import Filter


class Taker(Protocol):
    """Where the deliveries of a client without a name go."""

    def offer(self, delivery: bytes) -> None:
        """Take what is in a delivery, or lose it."""
        ...


@define(eq=False)
class Member:
    """A client.

    Attributes:
        name: at the broker.
        present: whether it is connected.
        ended: set when its connection ends.
        asides: connections that ask for it besides.
        absent_since: trio's time when its connection ended, or when the node started.
        subscriptions, advertisements: what it asks for and announces, by its labels, and by those
            of the parts of its composite subscriptions.
        composites: these.
        deliveries: that wait for it on the disk.
        grown: set when there are more.
        taker: takes deliveries at once, for a client without a name.
        home: where the broker is that it is a client of, while that is dead.
        dismiss: tells its connection, if there is one, why it is no client any more.
    """

    name: str
    absent_since: float
    present: bool = False
    ended: trio.Event = field(factory=trio.Event)
    asides: int = 0
    subscriptions: dict[str, Filter] = field(factory=dict)
    advertisements: dict[str, Filter] = field(factory=dict)
    composites: ClientComposites = field(factory=ClientComposites)
    deliveries: int = 0
    grown: trio.Event = field(factory=trio.Event)
    taker: Taker | None = None
    home: str = ""
    dismiss: Callable[[str], None] = lambda _: None

    def forget(self) -> None:
        """It asks for nothing and announces nothing any more."""
        self.subscriptions.clear()
        self.advertisements.clear()
        self.composites = ClientComposites()

    @property
    def nameless(self) -> bool:
        """Whether nothing is kept for it."""
        return self.name.startswith(NAMELESS)
