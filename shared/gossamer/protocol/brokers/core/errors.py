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
