"""What clients ask of their host broker, whatever its family.

Whatever cannot be is raised as a `ClientError` or `ContentError` before anything has changed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from gossamer.protocol.brokers.core import messages as m
from gossamer.protocol.brokers.core.effects import Moved, Outbox
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.core.plain_data import read_id, read_name
from gossamer.protocol.brokers.core.state import BrokerState, Session
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter

StateT = TypeVar("StateT", bound=BrokerState)
OutboxT = TypeVar("OutboxT", bound=Outbox[Any])

Labelled = tuple[tuple[str, Filter], ...]
"""Filters by the labels of a client."""

_SUBSCRIPTION, _ADVERTISEMENT = "subscription", "advertisement"


def read_ids(data: Mapping[str, Any]) -> dict[str, Id]:
    """Identifiers by label."""
    return {read_name(label, "label"): read_id(one, "id") for label, one in data.items()}


def read_filters(data: Mapping[str, Any]) -> dict[str, Filter]:
    """Filters by label."""
    return {read_name(label, "label"): filters.parse_written(one) for label, one in data.items()}


class ClientRules(ABC, Generic[StateT, OutboxT]):
    """Sessions of clients: who is attached, and which labels are free.

    What a subscription or publication then does is up to the family (`routing.Routing`). Methods
    are called with labels that were checked.

    Attributes:
        reads: read subscriptions and advertisements of a session, labels of identifiers or filters.
    """

    reads: ClassVar[tuple[Callable[[Any], dict[str, Any]], ...]] = (read_filters, read_filters)

    def from_client(self, state: StateT, out: OutboxT, name: str, message: m.FromClient) -> None:
        """Carry out what a client asks; raises without a change what cannot be."""
        if isinstance(message, m.Attach):
            self._let_in(state, out, name, message)
            return
        session = state.clients.get(name)
        if session is None:
            raise m.ClientError(name, "is not attached, expected an attach message first")
        match message:
            case m.Publish(values):
                self.publish(state, out, session, values)
            case m.Subscribe(label, wanted):
                _check_free(name, _SUBSCRIPTION, label, session.subscriptions)
                self.subscribe(state, out, session, label, wanted)
            case m.Unsubscribe(label):
                _check_known(name, _SUBSCRIPTION, label, session.subscriptions)
                self.unsubscribe(state, out, session, label)
            case m.Advertise(label, announced):
                _check_free(name, _ADVERTISEMENT, label, session.advertisements)
                self.advertise(state, out, session, label, announced)
            case m.Unadvertise(label):
                _check_known(name, _ADVERTISEMENT, label, session.advertisements)
                self.unadvertise(state, out, session, label)
            case m.ClientAcknowledge(ids):
                self.acknowledge(state, out, session, ids)
            case m.Move():
                out.add(Moved(name, *self.filters_of(state, session)))
                self._let_go(state, out, session)
            case m.Detach():
                self._let_go(state, out, session)

    def _let_in(self, state: StateT, out: OutboxT, name: str, message: m.Attach) -> None:
        if name in state.clients:
            reason = "is attached already, and names are unique at a broker"
            raise m.ClientError(name, reason)
        _check_distinct(name, _SUBSCRIPTION, message.subscriptions)
        _check_distinct(name, _ADVERTISEMENT, message.advertisements)
        session = state.clients[name] = self.new_session(state, out, name, message)
        self.attach(state, out, session, message)
        out.effects.id = None

    def _let_go(self, state: StateT, out: OutboxT, session: Session) -> None:
        self.detach(state, out, session)
        del state.clients[session.name]
        self.detached(state, out, session)

    # What the family has to say

    @abstractmethod
    def subscribe(
        self, state: StateT, out: OutboxT, session: Any, label: str, wanted: Filter
    ) -> None:
        """Put a subscription in force; its label is free."""

    @abstractmethod
    def unsubscribe(self, state: StateT, out: OutboxT, session: Any, label: str) -> None:
        """Take back a subscription that there is."""

    @abstractmethod
    def publish(
        self, state: StateT, out: OutboxT, session: Any, values: Mapping[str, object]
    ) -> None:
        """Send on what a client published; raises `ContentError` for values that are none."""

    # What it may say

    def new_session(self, state: StateT, out: OutboxT, name: str, message: m.Attach) -> Session:
        """The session of a client that comes; raises what speaks against letting it in."""
        return Session(name)

    def attach(self, state: StateT, out: OutboxT, session: Any, message: m.Attach) -> None:
        """Take up what a client comes with, which is attached by now."""
        for label, announced in message.advertisements:
            self.advertise(state, out, session, label, announced)
        for label, wanted in message.subscriptions:
            self.subscribe(state, out, session, label, wanted)

    def detach(self, state: StateT, out: OutboxT, session: Any) -> None:
        """Take back all that a client that leaves has asked for and announced."""
        for label in list(session.subscriptions):
            self.unsubscribe(state, out, session, label)
        for label in list(session.advertisements):
            self.unadvertise(state, out, session, label)

    def detached(self, state: StateT, out: OutboxT, session: Any) -> None:
        """A client has left."""

    def advertise(
        self, state: StateT, out: OutboxT, session: Any, label: str, announced: Filter
    ) -> None:
        """Take note of an advertisement; where routing does not need it, it is kept for `Moved`."""
        session.advertisements[label] = announced

    def unadvertise(self, state: StateT, out: OutboxT, session: Any, label: str) -> None:
        """Take back an advertisement that there is."""
        del session.advertisements[label]

    def acknowledge(self, state: StateT, out: OutboxT, session: Any, ids: tuple[Id, ...]) -> None:
        """Forget publications that a client has, where they are kept until then."""

    def filters_of(self, state: StateT, session: Any) -> tuple[Labelled, Labelled]:
        """What a client has asked for, and what it has announced."""
        return tuple(session.subscriptions.items()), tuple(session.advertisements.items())

    def session_data(self, session: Any) -> list[object]:
        """A session as plain data; begins with the client's name."""
        held = (session.subscriptions, session.advertisements)
        return [session.name, *map(labels_data, held)]

    def read_session(self, data: list[Any]) -> Session:
        """What `session_data` made plain data of."""
        name, *held = data
        found = [read(one) for read, one in zip(self.reads, held, strict=True)]
        return Session(read_name(name, "client"), *found)


def labels_data(held: Mapping[str, Id | Filter]) -> dict[str, object]:
    """Identifiers or filters by label as plain data."""
    return {
        label: list(one) if isinstance(one, Id) else filters.to_text(one)
        for label, one in held.items()
    }


def _check_free(name: str, sort: str, label: str, taken: Iterable[str]) -> None:
    if label in taken:
        article = "an" if sort[0] in "aeiou" else "a"
        raise m.ClientError(name, f"has {article} {sort} labelled {label!r} already")


def _check_known(name: str, sort: str, label: str, known: Iterable[str]) -> None:
    if label not in known:
        raise m.ClientError(name, f"has no {sort} labelled {label!r}")


def _check_distinct(name: str, sort: str, asked: Iterable[tuple[str, Filter]]) -> None:
    seen: set[str] = set()
    for label, _ in asked:
        _check_free(name, sort, label, seen)
        seen.add(label)
