"""Why a broker refuses a message; its state is untouched by every one of these errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gossamer.protocol.brokers.core.messages import Hop, Id
from gossamer.protocol.content.values import in_short
from gossamer.protocol.kernel.errors import LocalProtocolError, RemoteProtocolError

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


class NameTakenError(ClientError):
    """A second client came with the name of one that is attached; state is untouched."""

    def __init__(self, client: str) -> None:
        super().__init__(client, "is attached already, and names are unique at a broker")


class NotAttachedError(ClientError):
    """A message came from a client that is not attached; state is untouched."""

    def __init__(self, client: str) -> None:
        super().__init__(client, "is not attached, expected an attach message first")


class LabelTakenError(ClientError):
    """A label already names something of that client; state is untouched.

    Attributes:
        label: the label.
        sort: "subscription" or "advertisement".
    """

    def __init__(self, client: str, sort: str, label: str) -> None:
        self.label = label
        self.sort = sort
        super().__init__(client, f"has {_with_article(sort)} labelled {label!r} already")


class UnknownLabelError(ClientError):
    """A label names nothing of that client; state is untouched.

    Attributes:
        label: the label.
        sort: "subscription" or "advertisement".
    """

    def __init__(self, client: str, sort: str, label: str) -> None:
        self.label = label
        self.sort = sort
        super().__init__(client, f"has no {sort} labelled {label!r}")


class TooManyFiltersError(ClientError):
    """A client subscribes with more different filters than brokers can say of one; untouched.

    Attributes:
        most: how many these are.
    """

    def __init__(self, client: str, most: int) -> None:
        self.most = most
        super().__init__(client, f"asks for more than {most} different filters")


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


class UnknownNeighbourError(RemoteProtocolError):
    """A frame came from a broker that is no neighbour; state is untouched.

    Attributes:
        neighbour: its name.
    """

    def __init__(self, neighbour: str) -> None:
        self.neighbour = neighbour
        super().__init__(f"broker {neighbour!r} is no neighbour, expected the link to be up first")


class MisplacedMessageError(LocalProtocolError):
    """A message came from where its kind never comes from; state is untouched.

    Attributes:
        kind: name of the message's class.
        expected: from where it may come, in words.
    """

    def __init__(self, kind: str, source: Hop | None, expected: str) -> None:
        self.kind = kind
        self.expected = expected
        shown = "the host" if source is None else f"{source.kind} {source.name!r}"
        super().__init__(f"{kind} came from {shown}, expected {expected}")


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


def _with_article(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
