"""What clients ask of their host broker.

Whatever cannot be is raised as a `ClientError` or `ContentError` before anything has changed.
Routing goes by subscriptions alone: what clients advertise is kept for `Moved`, and says nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.protocol.brokers.core.effects import Moved
from gossamer.protocol.brokers.core.errors import (
    LabelTakenError,
    NameTakenError,
    NotAttachedError,
    UnknownLabelError,
)
from gossamer.protocol.brokers.core.identifiers import client
from gossamer.protocol.brokers.core.messages import (
    Advertise,
    Attach,
    Detach,
    Move,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from gossamer.protocol.brokers.scot.memory.messages import FromClient, Took
from gossamer.protocol.brokers.scot.memory.outbox import Outbox
from gossamer.protocol.brokers.scot.memory.state import Session, State
from gossamer.protocol.brokers.scot.memory.table import Entry
from gossamer.protocol.brokers.scot.routing.routings import ROUTING
from gossamer.protocol.content.filters import Filter, exact_publication

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
            out.check_own(name)
            _check_free(name, _SUBSCRIPTION, label, session.subscriptions)
            _subscribe(state, out, session, label, wanted)
        case Unsubscribe(label):
            out.check_own(name)
            _check_known(name, _SUBSCRIPTION, label, session.subscriptions)
            _unsubscribe(state, out, session, label)
        case Advertise(label, announced):
            _check_free(name, _ADVERTISEMENT, label, session.advertisements)
            session.advertisements[label] = announced
        case Unadvertise(label):
            _check_known(name, _ADVERTISEMENT, label, session.advertisements)
            del session.advertisements[label]
        case Publish(values):
            routing = ROUTING[state.settings.routing]
            exact = exact_publication(values)
            routing.publish(state, out, client(name), state.new_id(), exact)
        case Took(ids):
            out.took(name, ids)
        case Move():
            out.effects.append(_moved(state, session))
            _detach(state, out, session)
        case Detach():
            _detach(state, out, session)


def _attach(state: State, out: Outbox, name: str, message: Attach) -> None:
    if name in state.clients:
        raise NameTakenError(name)
    _check_distinct(name, _SUBSCRIPTION, message.subscriptions)
    _check_distinct(name, _ADVERTISEMENT, message.advertisements)
    out.attach(name)
    session = Session(name, advertisements=dict(message.advertisements))
    state.clients[name] = session
    for label, wanted in message.subscriptions:
        _subscribe(state, out, session, label, wanted)


def _detach(state: State, out: Outbox, session: Session) -> None:
    for label in list(session.subscriptions):
        _unsubscribe(state, out, session, label)
    del state.clients[session.name]
    out.detach(session.name)


def _moved(state: State, session: Session) -> Moved:
    wanted = ((label, state.table[id_].filter) for label, id_ in session.subscriptions.items())
    return Moved(session.name, tuple(wanted), tuple(session.advertisements.items()))


def _subscribe(state: State, out: Outbox, session: Session, label: str, wanted: Filter) -> None:
    routing = ROUTING[state.settings.routing]
    id_ = state.new_id()
    session.subscriptions[label] = id_
    entry = Entry(id_, wanted, client(session.name), routing.host(state), label)
    routing.subscribe(state, out, entry)
    out.promise(session.name, label, id_, wanted)


def _unsubscribe(state: State, out: Outbox, session: Session, label: str) -> None:
    entry = state.table[session.subscriptions.pop(label)]
    ROUTING[state.settings.routing].unsubscribe(state, out, entry)
    out.take_back(session.name, label)


def _check_free(name: str, sort: str, label: str, taken: Iterable[str]) -> None:
    if label in taken:
        raise LabelTakenError(name, sort, label)


def _check_known(name: str, sort: str, label: str, known: Iterable[str]) -> None:
    if label not in known:
        raise UnknownLabelError(name, sort, label)


def _check_distinct(name: str, sort: str, asked: Iterable[tuple[str, Filter]]) -> None:
    seen: set[str] = set()
    for label, _ in asked:
        _check_free(name, sort, label, seen)
        seen.add(label)
