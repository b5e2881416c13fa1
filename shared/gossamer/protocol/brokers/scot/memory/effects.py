"""What a broker of a SCOT wants to happen, for its host to carry out in order."""

from __future__ import annotations

from attrs import frozen

from gossamer.protocol.brokers.core.effects import Moved
from gossamer.protocol.brokers.core.identifiers import Hop, Id
from gossamer.protocol.brokers.scot.memory.messages import (
    BetweenBrokers,
    BidNotification,
    Message,
    Notification,
)
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.kernel.errors import ProtocolError


@frozen
class Send:
    """Append a message to the output queue of the link to a neighbour."""

    neighbour: str
    message: BetweenBrokers


@frozen
class Deliver:
    """Hand a notification to a client, once for all its subscriptions that match."""

    client: str
    notification: Notification | BidNotification
    labels: tuple[str, ...]


@frozen
class Refuse:
    """Tell whoever caused it why a message was not carried out; None is the host."""

    hop: Hop | None
    error: ProtocolError
    message: Message


@frozen
class Awaits:
    """What follows from this client's message is to be known safe: `Settled` will say so.

    Attributes:
        ticket: never used before.
    """

    ticket: int


@frozen
class Settled:
    """What followed from a client's message has come to an end.

    Attributes:
        ticket: of its `Awaits`.
        safe: whether it reached every broker that it was for, and is with a backup.
    """

    ticket: int
    safe: bool


@frozen
class Adopted:
    """A client of a dead broker came here, and is kept until that is back.

    Attributes:
        home: where its own broker is.
        subscriptions: what it has asked for there, by label.
    """

    client: str
    home: str
    subscriptions: tuple[tuple[str, Filter], ...]


@frozen
class Dismissed:
    """A client that was adopted has its own broker again, and is none here any more."""

    client: str
    home: str


@frozen
class Withdrawn:
    """A client has taken notifications from another broker."""

    client: str
    ids: tuple[Id, ...]


Effect = Send | Deliver | Moved | Refuse | Awaits | Settled | Adopted | Dismissed | Withdrawn
