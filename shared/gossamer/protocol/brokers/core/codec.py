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
    gossamer.protocol.brokers.core.messages.MalformedMessageError: unsubscribe: label is 5, \
expected 1 to 64 printable characters
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import field, fields, frozen

from gossamer.protocol.brokers.core import messages as m
from gossamer.protocol.brokers.core import plain_data
from gossamer.protocol.brokers.core.messages import MalformedMessageError
from gossamer.protocol.brokers.core.plain_data import Read, malformed, read_name

# Shapes of messages as plain data: a kind, then fields in the order in which a class names them.
#
# Made of the fields that `plain_data` reads and writes; `codec` makes the messages of a family.

MAX_ASKED: Final = 10_000
"""Most filters with which a client attaches."""

Check = Callable[[Any, str], object]
"""Raises a `MalformedMessageError` or `ContentError` about a part that nobody could read again."""


@frozen
class Part:
    """A field of a message: how it becomes plain data, and how it is read.

    Attributes:
        check: looks at what may be too long or odd to be read again; None: there is no such thing.
    """

    plain: Callable[[Any], object]
    read: Read
    check: Check | None = None


@frozen
class Shape:
    """A kind of message and its parts, in the order of its class."""

    kind: type
    parts: Mapping[str, Part]
    checks: Mapping[str, Check] = field(init=False)

    @checks.default
    def _checks(self) -> Mapping[str, Check]:
        return {name: one.check for name, one in self.parts.items() if one.check is not None}

    def check(self, name: str, message: object) -> None:
        """Let a message pass whose content others can read; raises as a `Check` does."""
        for part, check in self.checks.items():
            try:
                check(getattr(message, part), part)
            except MalformedMessageError as error:
                raise _named(error, name) from None

    def plain(self, message: object) -> list[object]:
        """The fields of a message."""
        return [part.plain(getattr(message, name)) for name, part in self.parts.items()]

    def read(self, name: str, data: list[object]) -> Any:
        """The message with these fields; raises `MalformedMessageError`."""
        if len(data) != len(self.parts):
            expected = f"{len(self.parts)} fields"
            raise MalformedMessageError(name, "length", f"{len(data)} fields", expected)
        found = zip(self.parts.items(), data, strict=True)
        try:
            return self.kind(*[part.read(one, field) for (field, part), one in found])
        except MalformedMessageError as error:
            raise _named(error, name) from None


def _named(error: MalformedMessageError, name: str) -> MalformedMessageError:
    if error.message != plain_data.UNNAMED:
        return error
    return MalformedMessageError(name, error.field, error.value, error.expected)


def shape(kind: type, *parts: Part) -> Shape:
    """The shape of a class whose fields are these parts."""
    names = [field.name for field in fields(kind)]
    return Shape(kind, dict(zip(names, parts, strict=True)))


class Kinds:
    """Messages of several shapes, each a list that begins with the name of its kind."""

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self._shapes = shapes
        self._names = {one.kind: name for name, one in shapes.items()}

    def plain(self, message: object) -> list[object]:
        """A message as plain data."""
        name = self._names[type(message)]
        return [name, *self._shapes[name].plain(message)]

    def read(self, data: object, field: str) -> Any:
        """The message that came as plain data; raises `MalformedMessageError`."""
        if type(data) is not list or not data or type(data[0]) is not str:
            raise malformed(field, data, "a list that begins with the kind of a message")
        found = self._shapes.get(data[0])
        if found is None:
            raise malformed(field, data[0], "one of " + ", ".join(self._shapes))
        return found.read(data[0], data[1:])

    def check(self, message: object, field: str = "message") -> None:
        """Let a message pass whose content others can read; raises as a `Check` does."""
        name = self._names.get(type(message))
        if name is None:
            raise malformed(field, message, "one of " + ", ".join(self._shapes))
        self._shapes[name].check(name, message)

    @property
    def part(self) -> Part:
        """A field that holds one of them."""
        checked = any(one.checks for one in self._shapes.values())
        return Part(self.plain, self.read, self.check if checked else None)


def same(value: object) -> object:
    """What is plain data already."""
    return value


def maybe(part: Part) -> Part:
    """A field that may hold nothing."""
    check = part.check
    return Part(
        lambda value: None if value is None else part.plain(value),
        lambda data, field: None if data is None else part.read(data, field),
        check and (lambda value, field: None if value is None else check(value, field)),
    )


def many(part: Part, most: int) -> Part:
    """A field that holds so many at most."""
    read = plain_data.read_list(part.read, most)
    check = part.check and _each(part.check, most)
    return Part(lambda value: [part.plain(one) for one in value], read, check)


def _each(check: Check, most: int) -> Check:
    def check_all(value: object, field: str) -> None:
        if not isinstance(value, tuple | list) or len(value) > most:
            raise malformed(field, value, f"a list of at most {most} entries")
        for one in value:
            check(one, field)

    return check_all


def _tuple_of(*parts: object) -> tuple[object, ...]:
    return parts


def row(expected: str, *parts: Part, kind: Callable[..., Any] = _tuple_of) -> Part:
    """A field that holds so many parts, of which `kind` makes one; ``expected`` says of what."""
    checked = any(part.check is not None for part in parts)

    def plain(value: Any) -> list[object]:
        return [part.plain(one) for part, one in zip(parts, value, strict=True)]

    def read(data: object, field: str) -> Any:
        if type(data) is not list or len(data) != len(parts):
            raise malformed(field, data, expected)
        return kind(*[part.read(one, field) for part, one in zip(parts, data, strict=True)])

    def check(value: object, field: str) -> None:
        if not isinstance(value, tuple | list) or len(value) != len(parts):
            raise malformed(field, value, expected)
        for part, given in zip(parts, value, strict=True):
            if part.check is not None:
                part.check(given, field)

    return Part(plain, read, check if checked else None)


def _check_id(value: object, field: str) -> None:
    if not isinstance(value, tuple):
        raise malformed(field, value, "a broker's name and a number")
    plain_data.read_id(list(value), field)


ID: Final = Part(list, plain_data.read_id)
GIVEN_ID: Final = Part(list, plain_data.read_id, _check_id)
"""An identifier that a client names."""
NAME: Final = Part(same, read_name)
LABEL: Final = Part(same, read_name, read_name)
"""A name that a client gives."""
FLAG: Final = Part(same, plain_data.read_flag)
COUNT: Final = Part(same, plain_data.read_whole())
FILTER: Final = Part(plain_data.plain_filter, plain_data.read_filter, plain_data.check_filter)
VALUES: Final = Part(plain_data.plain_values, plain_data.read_values, plain_data.check_values)
ASKED: Final = many(row("a label and a filter", LABEL, FILTER), MAX_ASKED)

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
