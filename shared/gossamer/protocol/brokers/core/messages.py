"""What reaches any broker, from its clients and from its host; and who is at a link's end.

Clients send verbs (`Subscribe`), the host reports what happens to it (`NeighbourUp`). A client
names what it asks for by a label of its own; its host broker gives it an `Id` that is unique in the
overlay. What brokers send each other, nouns (`Subscription`), is in the `messages` of their family.
Times are integer microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from attrs import frozen

from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.values import in_short
from gossamer.protocol.kernel.errors import LocalProtocolError, RemoteProtocolError

# Names of whatever crosses a link, and of whoever is at its other end.

_NEIGHBOUR: Final = "neighbour"
_CLIENT: Final = "client"

NAMELESS: Final = "~"
"""Begins the names of clients for which nothing is kept: they get what comes while connected."""
INCARNATION_BITS: Final = 32
"""Numbers of identifiers and sessions that one incarnation of a broker has."""


class Id(NamedTuple):
    """Names a subscription, an advertisement or a publication: its host broker and a counter."""

    broker: str
    number: int


class Hop(NamedTuple):
    """Whoever a message comes from or goes to: a neighbour or a client, by name."""

    kind: str
    name: str

    @property
    def is_client(self) -> bool:
        """Whether this is a client of the broker, not a neighbour."""
        return self.kind == _CLIENT


def neighbour(name: str) -> Hop:
    """The neighbouring broker of that name."""
    return Hop(_NEIGHBOUR, name)


def client(name: str) -> Hop:
    """The client of that name."""
    return Hop(_CLIENT, name)


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


@frozen
class ClientAcknowledge:
    """The client has these publications, which some families keep until then."""

    ids: tuple[Id, ...]


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


FromAnyClient = Attach | Detach | Move | Advertise | Unadvertise | Subscribe | Unsubscribe | Publish
FromClient = FromAnyClient | ClientAcknowledge
FromHost = NeighbourUp | NeighbourDown | NeighbourGone | Congestion | TimerFired | Restarted
Message = FromClient | FromHost
"""What every broker takes, if it has a meaning in its family."""


# Why a broker refuses a message; its state is untouched by every one of these errors.

_SHOWN: Final = 8
"""Most attributes of a publication that a message names."""


class ClientError(LocalProtocolError):
    """A client asked for what cannot be; state is untouched.

    Attributes:
        client: name of the client.
    """

    def __init__(self, client: str, reason: str) -> None:
        self.client = client
        super().__init__(f"client {client!r} {reason}")


class NotAdvertisedError(ClientError):
    """No advertisement of the client allows a publication; state is untouched.

    Attributes:
        values: what was to be published.
    """

    def __init__(self, client: str, values: Mapping[str, object]) -> None:
        self.values = dict(values)
        several = sorted(values.items())
        shown = ", ".join(f"{name[:60]} = {in_short(value)}" for name, value in several[:_SHOWN])
        shown += f" and {len(several) - _SHOWN} more" if len(several) > _SHOWN else ""
        super().__init__(client, f"has no advertisement that allows {shown or 'no attributes'}")


class UnsafeError(LocalProtocolError):
    """Something failed while a publication was under way, and somebody may have missed it.

    The publication was made all the same; who publishes it again gives it another identifier.

    Attributes:
        id: what it is called.
    """

    def __init__(self, id_: Id) -> None:
        self.id = id_
        super().__init__(
            f"publication {id_.broker}:{id_.number} may not have reached everybody, "
            "as more than one broker or link failed meanwhile"
        )


class CycleError(RemoteProtocolError):
    """An advertisement came back on another link: brokers form a cycle; state is untouched.

    Attributes:
        advertisement: the advertisement.
        known: from where it came first.
        again: from where it came again.
    """

    def __init__(self, advertisement: Id, known: Hop, again: Hop) -> None:
        self.advertisement = advertisement
        self.known = known
        self.again = again
        super().__init__(
            f"advertisement {advertisement.number} of broker {advertisement.broker!r} came from "
            f"{known.kind} {known.name!r} and again from {again.kind} {again.name!r}: "
            "brokers form a cycle, expected a tree"
        )


class MalformedMessageError(RemoteProtocolError):
    """Data from another broker is no message; state is untouched.

    Attributes:
        message: kind of the message.
        field: what is wrong in it: a field's name, "length" or "content".
        value: what was found there, shortened.
        expected: what would have been accepted, in words.
    """

    def __init__(self, message: str, field: str, value: str, expected: str) -> None:
        self.message = message
        self.field = field
        self.value = value
        self.expected = expected
        super().__init__(f"{message}: {field} is {value}, expected {expected}")


class DumpError(LocalProtocolError):
    """Data to load a broker from is no dump; nothing was loaded.

    Attributes:
        reason: what is wrong with it.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"this is no dump of a broker: {reason}")


def unknown_neighbour(name: str) -> RemoteProtocolError:
    """The error of a frame, or of the host's word, from or of a broker that is no neighbour."""
    return RemoteProtocolError(f"broker {name!r} is no neighbour, expected the link to be up first")
