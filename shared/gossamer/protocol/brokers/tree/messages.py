"""What tree brokers send each other: frozen records, each in a numbered frame.

What clients and the host tell a broker is the same in all families: `core.messages`.
"""

from __future__ import annotations

from typing import NamedTuple

from attrs import frozen

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.filters import Publication as Values


@frozen
class Advertisement:
    """Floods the overlay and makes a tree, rooted at the publisher host broker."""

    id: Id
    filter: Filter


@frozen
class Unadvertisement:
    """Takes an advertisement back along its tree."""

    id: Id


@frozen
class Settled:
    """The sender has told what the advertisement is to bring it, and so have all behind it.

    Beyond the papers, which publish once subscriptions stand: until then publications under the
    advertisement are sent to whoever has not said so.
    """

    id: Id


@frozen
class Subscription:
    """Travels the reverse paths of the advertisements that it meets.

    `triggered`: sent because an unsubscription left it uncovered, here or at a broker before.
    """

    id: Id
    filter: Filter
    triggered: bool = False


class CriticalDistance(NamedTuple):
    """An advertisement, and the hops left from here to its critical broker.

    One distance for selective pruning (*pruneDis*), two for incremental (*pruneDis1*,
    *pruneDis2*); they fall below zero past the critical broker.
    """

    advertisement: Id
    distances: tuple[int, ...]


@frozen
class Unsubscription:
    """Takes a subscription back: everywhere, or with critical distances only as far as they say.

    `triggered`: sent because another subscription covers this one, not because anybody asked.
    """

    id: Id
    critical: tuple[CriticalDistance, ...] | None = None
    triggered: bool = False


@frozen
class Publication:
    """A publication and its header.

    `distance`: hops since the last broker where more than one subscription matched; `count`: the
    number of such brokers so far (selective paper, Sec. IV-A).
    """

    id: Id
    advertisement: Id
    values: Values
    distance: int = 0
    count: int = 0


@frozen
class Packed:
    """Subscriptions and unsubscriptions in one message (subscription packing, Sec. V-A)."""

    messages: tuple[Subscription | Unsubscription, ...]


@frozen
class Synchronise:
    """Everything that the sender has told on this link and still stands; begins a session."""

    advertisements: tuple[Advertisement, ...]
    subscriptions: tuple[Subscription, ...]


@frozen
class SynchroniseRequest:
    """Asks for `Synchronise`, because something was lost."""


@frozen
class Acknowledge:
    """The sender has taken over all publications up to this number of a session."""

    session: int
    number: int


Routed = Advertisement | Unadvertisement | Settled | Subscription | Unsubscription | Publication
BetweenBrokers = Routed | Packed | Synchronise | SynchroniseRequest | Acknowledge


@frozen
class Frame:
    """A message on a link, numbered within a session so that duplicates and losses show."""

    session: int
    number: int
    message: BetweenBrokers


Message = messages.Message | Frame
"""Whatever a tree broker takes."""
