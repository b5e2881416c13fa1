"""What a broker of a SCOT wants to happen, for its host to carry out in order."""

from __future__ import annotations

from attrs import frozen

from gossamer.protocol.broker.effects import Moved
from gossamer.protocol.broker.identifiers import Hop
from gossamer.protocol.errors import ProtocolError
from gossamer.protocol.scot.messages import (
    BetweenBrokers,
    BidNotification,
    Message,
    Notification,
)


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


Effect = Send | Deliver | Moved | Refuse
