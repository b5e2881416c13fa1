"""What reaches a broker: frozen records from clients, from neighbours and from its host.

Clients send verbs (`Subscribe`), brokers exchange nouns (`Subscription`), the host reports what
happens to it (`NeighbourUp`). A client names what it asks for by a label of its own; its host
broker gives it an `Id` that is unique in the overlay. Times are integer microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from attrs import frozen

from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.filters import Publication as Values

# From clients.


@frozen
class Attach:
    """Become a client, with filters by label that the client had at another broker."""

    subscriptions: tuple[tuple[str, Filter], ...] = ()
    advertisements: tuple[tuple[str, Filter], ...] = ()


@frozen
class Detach:
    """Leave, and take back everything subscribed and advertised."""


@frozen
class Move:
    """Leave as by `Detach`, and be told by `Moved` what to attach with at another broker."""


@frozen
class Advertise:
    """Announce what will be published."""

    label: str
    filter: Filter


@frozen
class Unadvertise:
    """Take an advertisement back."""

    label: str


@frozen
class Subscribe:
    """Ask for what matches."""

    label: str
    filter: Filter


@frozen
class Unsubscribe:
    """Take a subscription back."""

    label: str


@frozen
class Publish:
    """Publish values by attribute, which one of the client's advertisements has to allow."""

    values: Mapping[str, object]


# Between brokers.


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


Routed = Advertisement | Unadvertisement | Subscription | Unsubscription | Publication
BetweenBrokers = Routed | Packed | Synchronise | SynchroniseRequest | Acknowledge


@frozen
class Frame:
    """A message on a link, numbered within a session so that duplicates and losses show."""

    session: int
    number: int
    message: BetweenBrokers


# From the host; their source is None.


@frozen
class NeighbourUp:
    """The link to a neighbour works, for the first time or again."""

    name: str


@frozen
class NeighbourDown:
    """The link to a neighbour is interrupted; routes stay, publications wait."""

    name: str


@frozen
class NeighbourGone:
    """The neighbour will not come back; whatever came from it is withdrawn."""

    name: str


@frozen
class Congestion:
    """How long the broker's input queue is, in messages."""

    queue: int


@frozen
class TimerFired:
    """A timer that was asked for is due; an old token is ignored."""

    timer: str
    token: int


@frozen
class Restarted:
    """The broker was loaded from a dump, and its timers have to be set again."""


FromClient = Attach | Detach | Move | Advertise | Unadvertise | Subscribe | Unsubscribe | Publish
FromHost = NeighbourUp | NeighbourDown | NeighbourGone | Congestion | TimerFired | Restarted
Message = FromClient | Frame | FromHost
