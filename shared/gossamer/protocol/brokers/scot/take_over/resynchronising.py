"""What a broker of a SCOT does until it knows all that stands; beyond the paper, `take_over`.

A broker that was started again, with or without its memory, has missed what happened meanwhile, and
its links come up one by one. What is to go through it until then may be for somebody of whom it has
yet to hear. So it does twice what it is asked: at once, as well as it can, and again once all
neighbours have told it what stands, and its clients were handed back. Only then it acknowledges.
Hosts deliver what comes twice once.

If some neighbour does not come, the host gives up waiting (`WaitedEnough`). A broker that knows its
tables goes around that one from then on; one without memory says that what it does is not safe.

A broker that begins without memory learns from its neighbours whether it was there before: who
remembers the link to it does not tell *anew*. If it was not, but others have subscribed before it
came, it has missed as much: so it is when an overlay grows.
"""

from __future__ import annotations

from collections.abc import Iterator

from gossamer.protocol.brokers.core.identifiers import Hop, Id, neighbour
from gossamer.protocol.brokers.core.messages import Publish
from gossamer.protocol.brokers.scot.memory.messages import (
    Message,
    Notification,
    ProxyNotification,
    Relay,
    Subscription,
)
from gossamer.protocol.brokers.scot.memory.outbox import ScotOutbox
from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.memory.take_over_memory import REMEMBERED, Held, Replayable
from gossamer.protocol.brokers.scot.routing import broadcast
from gossamer.protocol.brokers.scot.routing.algorithms import ALGORITHMS
from gossamer.protocol.brokers.scot.take_over.handing_over import on_taking_over
from gossamer.protocol.brokers.scot.take_over.promises import Promises
from gossamer.protocol.content.filters import exact_publication


def hold(
    own: Promises, state: State, out: ScotOutbox, hop: Hop, message: Message, before: int
) -> bool:
    """Let what is done now be done again later; returns whether that is so.

    Args:
        own: of the broker.
        state: of a broker that may know all.
        out: with the task of the message.
        hop: the client or neighbour that sent it.
        message: what was carried out just now.
        before: the last number of an identifier that the broker had given until then.
    """
    assert out.task is not None
    if state.knows_all:
        return False
    found = [Held(out.task, *one) for one in _replayable(state, hop, message, before)]
    if state.waited:
        out.task.safe = out.task.safe and not (found and state.has_missed)
        return False
    for one in found:
        one.task.open += 1
    own.memory.held += found
    while len(own.memory.held) > REMEMBERED:
        oldest = own.memory.held.pop(0)
        oldest.task.safe = False
        own.finish(state, out, oldest.task)
    return bool(found)


def replay(own: Promises, state: State, out: ScotOutbox) -> None:
    """Do again what was done before the broker knew all, if it does now."""
    if not (state.knows_all or state.waited):
        return
    held, own.memory.held = own.memory.held, []
    for one in held:
        one.task.safe = one.task.safe and (state.knows_all or not state.has_missed)
        own.begin(state, out, one.task)
        if one.hop.is_client or one.hop.name in state.labels:
            _again(own, state, out, one.hop, one.message)
        own.end(state, out)


def _replayable(
    state: State, hop: Hop, message: Message, before: int
) -> Iterator[tuple[Hop, Replayable]]:
    """What of a message has to be done again, and as whose."""
    match message:
        case Relay(Subscription() as told, origin, ()):
            name = state.named(origin)
            yield neighbour(name or hop.name), told
        case Publish(values):
            id_ = Id(state.name, state.next_number)
            yield hop, Notification(id_, exact_publication(values))
        case _ if hop.is_client:
            for number in range(before + 1, state.next_number + 1):
                entry = state.table.get(Id(state.name, number))
                if entry is not None:
                    yield hop, Subscription(entry.id, entry.filter, entry.host)
        case _ if isinstance(message, Replayable):
            yield hop, message


def _again(own: Promises, state: State, out: ScotOutbox, hop: Hop, message: Replayable) -> None:
    match message:
        case Subscription(id_):
            _subscribe_again(own, state, out, id_)
        case ProxyNotification():
            on_taking_over(own, state, out, hop, message)
        case _:
            ALGORITHMS[state.settings.routing].on_message(state, out, hop, message)


def _subscribe_again(own: Promises, state: State, out: ScotOutbox, id_: Id) -> None:
    entry = state.table.get(id_)
    if entry is None:
        return
    broadcast.pass_on_again(state, out, entry)
    if entry.hop.is_client:
        own.promise(state, out, entry.hop.name, entry.label, id_, entry.filter)
