"""Messages of brokers as plain data and back: what is the same in every family.

A message is a list: its kind, then its fields in the order in which its class names them (`shapes`
and `plain` say what fields are made of). Who reads a message that came from another broker gets a
message or a `MalformedMessageError`, whatever was sent: no shape holds another without a bound, and
nothing is made that the data does not pay for.

A family has one `Codec`, made of the shapes of what its brokers send each other:

    >>> from gossamer.protocol.brokers.core.codec import Codec
    >>> from gossamer.protocol.brokers.core.messages import Subscribe
    >>> from gossamer.protocol.content.filters import parse
    >>> codec = Codec({})
    >>> codec.plain_message(Subscribe("cheap", parse("price < 120.5")))
    ['subscribe', 'cheap', 'price < 120.5']
    >>> codec.read_message(["unsubscribe", 5])
    Traceback (most recent call last):
    ...
    gossamer.protocol.brokers.core.errors.MalformedMessageError: unsubscribe: label is 5, \
expected 1 to 64 printable characters
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from gossamer.protocol.brokers.core import messages as m
from gossamer.protocol.brokers.core.message_shapes import (
    ASKED,
    COUNT,
    FILTER,
    LABEL,
    NAME,
    VALUES,
    Kinds,
    Shape,
    shape,
)
from gossamer.protocol.brokers.core.plain_data import read_name

MAX_STANDING: Final = 1_000_000
"""Most advertisements or subscriptions that one message between brokers holds."""

FROM_CLIENT: Final[Mapping[str, Shape]] = {
    "attach": shape(m.Attach, ASKED, ASKED),
    "detach": shape(m.Detach),
    "move": shape(m.Move),
    "advertise": shape(m.Advertise, LABEL, FILTER),
    "unadvertise": shape(m.Unadvertise, LABEL),
    "subscribe": shape(m.Subscribe, LABEL, FILTER),
    "unsubscribe": shape(m.Unsubscribe, LABEL),
    "publish": shape(m.Publish, VALUES),
}
"""Shapes of what clients send to any broker."""

FROM_HOST: Final[Mapping[str, Shape]] = {
    "neighbour up": shape(m.NeighbourUp, NAME),
    "neighbour down": shape(m.NeighbourDown, NAME),
    "neighbour gone": shape(m.NeighbourGone, NAME),
    "congestion": shape(m.Congestion, COUNT),
    "timer fired": shape(m.TimerFired, NAME, COUNT),
    "restarted": shape(m.Restarted),
}
"""Shapes of what hosts tell any broker."""

HOST, CLIENT, NEIGHBOUR = "the host", "a client", "a neighbour"
"""Who sends a message."""


class Codec:
    """The messages of one family.

    Attributes:
        shapes: of everything that its brokers take, by kind.
        senders: who sends each class of message: `HOST`, `CLIENT` or `NEIGHBOUR`.
    """

    def __init__(
        self,
        between: Mapping[str, Shape],
        *,
        from_client: Mapping[str, Shape] = FROM_CLIENT,
        from_host: Mapping[str, Shape] = FROM_HOST,
        inside: Mapping[str, Shape] | None = None,
    ) -> None:
        """A family whose brokers send each other messages of these shapes.

        Args:
            between: of what comes over links.
            from_client: of what clients send.
            from_host: of what hosts tell.
            inside: of what is told and stored as a message, but only travels inside another.
        """
        self.shapes = {**between, **(inside or {}), **from_client, **from_host}
        self.senders: dict[type, str] = {one.kind: NEIGHBOUR for one in between.values()}
        self.senders |= {one.kind: CLIENT for one in from_client.values()}
        self.senders |= {one.kind: HOST for one in from_host.values()}
        self._all = Kinds(self.shapes)
        self._between = Kinds(between)
        self._from_client = Kinds(from_client)

    def plain_between(self, message: Any) -> Any:
        """A message to another broker as plain data.

        Raises `ContentError` for content that nobody would read.
        """
        return self._between.plain(message)

    def read_between(self, data: object) -> Any:
        """What another broker sent as plain data; raises `MalformedMessageError`."""
        return self._between.read(data, "message")

    def check_between(self, message: object) -> None:
        """Let a message of a broker pass whose filters and values can be written and read again.

        Brokers remember them, and tell others. Raises `MalformedMessageError` or `ContentError`.
        """
        self._between.check(message)

    def check_from_client(self, client: str, message: object) -> None:
        """Let a message of a client pass whose names, filters and values can be read again.

        Raises `MalformedMessageError` or `ContentError`.
        """
        read_name(client, "client")
        self._from_client.check(message)

    def plain_message(self, message: Any) -> list[object]:
        """Whatever a broker takes, as plain data; raises as `plain_between` does."""
        return self._all.plain(message)

    def read_message(self, data: object) -> Any:
        """What `plain_message` made plain data of; raises `MalformedMessageError`."""
        return self._all.read(data, "message")
