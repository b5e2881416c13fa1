"""What clients ask of their host broker.

Whatever cannot be is raised as a `ClientError` or `ContentError` before anything has changed.
Trees carry what is published whether it was advertised or not: what clients advertise is kept for
`Moved`, and says nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from gossamer.protocol.brokers.core.effects import Moved
from gossamer.protocol.brokers.core.errors import (
    LabelTakenError,
    NameTakenError,
    NotAttachedError,
    TooManyFiltersError,
    UnknownLabelError,
)
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
from gossamer.protocol.brokers.graph.codec import MAX_FILTERS
from gossamer.protocol.brokers.graph.coordinator.coordinator import assign, sample
from gossamer.protocol.brokers.graph.memory.messages import FromClient, Sampled
from gossamer.protocol.brokers.graph.memory.outbox import Outbox
from gossamer.protocol.brokers.graph.memory.state import Session, State
from gossamer.protocol.brokers.graph.routing.forwarding import publish
from gossamer.protocol.brokers.graph.routing.link_state import tell_interest
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
            _check_free(name, _SUBSCRIPTION, label, session.subscriptions)
            after = session.subscriptions | {label: wanted}
            _check_number(name, after.values())
            _change(state, out, session, after)
        case Unsubscribe(label):
            _check_known(name, _SUBSCRIPTION, label, session.subscriptions)
            kept = {one: held for one, held in session.subscriptions.items() if one != label}
            _change(state, out, session, kept)
        case Advertise(label, announced):
            _check_free(name, _ADVERTISEMENT, label, session.advertisements)
            session.advertisements[label] = announced
        case Unadvertise(label):
            _check_known(name, _ADVERTISEMENT, label, session.advertisements)
            del session.advertisements[label]
        case Publish(values):
            exact = exact_publication(values)
            id_ = state.new_id()
            sample(state, Sampled(out.now, id_, exact))
            publish(state, out, id_, exact)
        case Move():
            wanted_there = tuple(session.subscriptions.items())
            offered_there = tuple(session.advertisements.items())
            out.effects.append(Moved(session.name, wanted_there, offered_there))
            _detach(state, out, session)
        case Detach():
            _detach(state, out, session)


def _attach(state: State, out: Outbox, name: str, message: Attach) -> None:
    if name in state.clients:
        raise NameTakenError(name)
    _check_distinct(name, _SUBSCRIPTION, message.subscriptions)
    _check_distinct(name, _ADVERTISEMENT, message.advertisements)
    _check_number(name, [wanted for _, wanted in message.subscriptions])
    session = Session(name, state.new_id(), advertisements=dict(message.advertisements))
    state.clients[name] = state.hosted[session.interest] = session
    _change(state, out, session, dict(message.subscriptions))


def _detach(state: State, out: Outbox, session: Session) -> None:
    _change(state, out, session, {})
    del state.clients[session.name], state.hosted[session.interest]


def _change(state: State, out: Outbox, session: Session, wanted: dict[str, Filter]) -> None:
    """Let a client ask for these filters and no others, and tell all brokers of the difference."""
    before, after = dict.fromkeys(session.subscriptions.values()), dict.fromkeys(wanted.values())
    session.subscriptions = wanted
    added = [one for one in after if one not in before]
    removed = [one for one in before if one not in after]
    tell_interest(state, out, session.interest, added, removed)
    if added:
        assign(state, out, [session.interest])


def _check_number(name: str, wanted: Collection[Filter]) -> None:
    if len(wanted) > MAX_FILTERS and len(set(wanted)) > MAX_FILTERS:
        raise TooManyFiltersError(name, MAX_FILTERS)


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
