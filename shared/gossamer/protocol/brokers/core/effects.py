"""What a broker wants to happen: frozen records for its host to carry out, in order."""

from __future__ import annotations

from attrs import frozen

from gossamer.protocol.brokers.core.identifiers import Hop
from gossamer.protocol.brokers.core.messages import Frame, Message, Publication
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.kernel.errors import ProtocolError


@frozen
class Send:
    """Send a frame to a neighbour; links are first in, first out."""

    neighbour: str
    frame: Frame


@frozen
class Deliver:
    """Hand a publication to a client, once for all its subscriptions that match."""

    client: str
    publication: Publication
    labels: tuple[str, ...]


@frozen
class Moved:
    """Tell a client that moves what it leaves behind, by label, to attach with elsewhere."""

    client: str
    subscriptions: tuple[tuple[str, Filter], ...]
    advertisements: tuple[tuple[str, Filter], ...]


@frozen
class Refuse:
    """Tell whoever caused it why a message was not carried out; the message goes back with it."""

    hop: Hop
    error: ProtocolError
    message: Message


@frozen
class SetTimer:
    """Hand `TimerFired` with this token back at a time (microseconds), or soon after."""

    timer: str
    token: int
    at: int


Effect = Send | Deliver | Moved | Refuse | SetTimer
