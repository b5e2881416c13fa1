"""What clients ask of their host broker.

Whatever cannot be is raised as a `ClientError` or `ContentError` before anything has changed.
"""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.protocol.brokers.core.effects import Moved
from gossamer.protocol.brokers.core.errors import (
    LabelTakenError,
    NameTakenError,
    NotAdvertisedError,
    NotAttachedError,
    UnknownLabelError,
)
from gossamer.protocol.brokers.core.identifiers import client
from gossamer.protocol.brokers.core.messages import (
    Advertise,
    Advertisement,
    Attach,
    Detach,
    FromClient,
    Move,
    Publication,
    Publish,
    Subscribe,
    Subscription,
    Unadvertise,
    Unsubscribe,
)
from gossamer.protocol.brokers.tree.memory.outbox import Outbox
from gossamer.protocol.brokers.tree.memory.state import Session, State
from gossamer.protocol.brokers.tree.routing.publishing import forward
from gossamer.protocol.brokers.tree.routing.removal import critical_of
from gossamer.protocol.brokers.tree.routing.routing import (
    advertise,
    on_unadvertisement,
    remove_or_hold,
    subscribe,
)
from gossamer.protocol.content.filters import Filter, conforms, exact_publication

_SUBSCRIPTION, _ADVERTISEMENT = "subscription", "advertisement"


def on_client_message(state: State, out: Outbox, name: str, message: FromClient) -> None:
    """Carry out what a client asks; raises without a change what cannot be."""
    if isinstance(message, Attach):
        _attach(state, out, name, message)
        return
    session = state.clients.get(name)
    if session is None:
        raise NotAttachedError(name)
    match message:
        case Subscribe(label, wanted):
            _check_free(session, _SUBSCRIPTION, label, session.subscriptions)
            _subscribe(state, out, session, label, wanted)
        case Advertise(label, announced):
            _check_free(session, _ADVERTISEMENT, label, session.advertisements)
            _advertise(state, out, session, label, announced)
        case Unsubscribe(label):
            _check_known(session, _SUBSCRIPTION, label, session.subscriptions)
            _unsubscribe(state, out, session, label)
        case Unadvertise(label):
            _check_known(session, _ADVERTISEMENT, label, session.advertisements)
            _unadvertise(state, out, session, label)
        case Publish():
            _publish(state, out, session, message)
        case Move():
            out.add(_moved(state, session))
            _detach(state, out, session)
        case Detach():
            _detach(state, out, session)


def _attach(state: State, out: Outbox, name: str, message: Attach) -> None:
    if name in state.clients:
        raise NameTakenError(name)
    session = Session(name)
    _check_distinct(session, _SUBSCRIPTION, message.subscriptions)
    _check_distinct(session, _ADVERTISEMENT, message.advertisements)
    state.clients[name] = session
    for label, announced in message.advertisements:
        _advertise(state, out, session, label, announced)
    for label, wanted in message.subscriptions:
        _subscribe(state, out, session, label, wanted)


def _detach(state: State, out: Outbox, session: Session) -> None:
    for label in list(session.subscriptions):
        _unsubscribe(state, out, session, label)
    for label in list(session.advertisements):
        _unadvertise(state, out, session, label)
    del state.clients[session.name]


def _moved(state: State, session: Session) -> Moved:
    subscriptions, advertisements = state.subscriptions, state.advertisements
    return Moved(
        session.name,
        tuple((label, subscriptions[id_].filter) for label, id_ in session.subscriptions.items()),
        tuple((label, advertisements[id_].filter) for label, id_ in session.advertisements.items()),
    )


def _subscribe(state: State, out: Outbox, session: Session, label: str, wanted: Filter) -> None:
    id_ = state.new_id()
    session.subscriptions[label] = id_
    subscribe(state, out, client(session.name), Subscription(id_, wanted), label)


def _unsubscribe(state: State, out: Outbox, session: Session, label: str) -> None:
    entry = state.subscriptions[session.subscriptions.pop(label)]
    remove_or_hold(state, out, entry, critical_of(state, entry))


def _advertise(state: State, out: Outbox, session: Session, label: str, announced: Filter) -> None:
    id_ = state.new_id()
    session.advertisements[label] = id_
    advertise(state, out, client(session.name), Advertisement(id_, announced), label)


def _unadvertise(state: State, out: Outbox, session: Session, label: str) -> None:
    on_unadvertisement(state, out, client(session.name), session.advertisements.pop(label))


def _publish(state: State, out: Outbox, session: Session, message: Publish) -> None:
    values = exact_publication(message.values)
    for id_ in session.advertisements.values():
        offer = state.advertisements[id_]
        if conforms(values, offer.filter):
            forward(state, out, offer, Publication(state.new_id(), id_, values))
            return
    raise NotAdvertisedError(session.name, message.values)


def _check_free(session: Session, sort: str, label: str, taken: Iterable[str]) -> None:
    if label in taken:
        raise LabelTakenError(session.name, sort, label)


def _check_known(session: Session, sort: str, label: str, known: Iterable[str]) -> None:
    if label not in known:
        raise UnknownLabelError(session.name, sort, label)


def _check_distinct(session: Session, sort: str, asked: Iterable[tuple[str, Filter]]) -> None:
    seen: set[str] = set()
    for label, _ in asked:
        _check_free(session, sort, label, seen)
        seen.add(label)
