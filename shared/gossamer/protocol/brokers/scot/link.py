"""Links come and go, and the overlay grows, as the host says."""

from __future__ import annotations

from attrs import evolve

from gossamer.protocol.brokers.core.errors import UnknownNeighbourError
from gossamer.protocol.brokers.core.identifiers import neighbour
from gossamer.protocol.brokers.core.messages import NeighbourDown, NeighbourGone
from gossamer.protocol.brokers.scot.memory.messages import (
    NeighbourAnnounced,
    NeighbourUp,
    OverlayGrown,
)
from gossamer.protocol.brokers.scot.memory.outbox import ScotOutbox
from gossamer.protocol.brokers.scot.memory.settings import BID
from gossamer.protocol.brokers.scot.memory.state import State
from gossamer.protocol.brokers.scot.overlay.errors import ShrunkOverlayError
from gossamer.protocol.brokers.scot.overlay.labels import MAX_CLUSTERS
from gossamer.protocol.brokers.scot.routing import broadcast
from gossamer.protocol.brokers.scot.routing.algorithms import ALGORITHMS


def on_link(
    state: State, out: ScotOutbox, message: NeighbourUp | NeighbourDown | NeighbourGone
) -> None:
    """A link works, or does not; what that means for taking over.

    Clients are handed back before it is told what stands: who has heard that has all its clients.

    Raises `WrongNeighbourError` and `UnknownNeighbourError`, and leaves everything as it was.
    """
    before = state.take_over.backups(state)
    match message:
        case NeighbourUp():
            _on_up(state, out, message)
        case NeighbourDown(name) | NeighbourGone(name):
            _check(state, name)
            state.down.add(name)
            state.unknown.discard(name)
    works = isinstance(message, NeighbourUp)
    state.take_over.link_changed(state, out, message.name, before, works=works)
    if isinstance(message, NeighbourGone):
        _forget(state, out, message.name)


def grow(state: State, message: OverlayGrown) -> None:
    """Make room for more neighbours, which introduce themselves when their links work.

    The tables stay: what a new neighbour should know it is told then, and what it makes known comes
    as from any other. Notifications go on meanwhile, as nobody has subscribed behind it yet.

    Raises `ShrunkOverlayError`, and leaves everything as it was, if something would be gone.
    """
    position = state.position
    if not position.clusters <= message.clusters <= MAX_CLUSTERS:
        expected = f"a number from {position.clusters} to {MAX_CLUSTERS}"
        raise ShrunkOverlayError("clusters", message.clusters, expected)
    gone = position.primary - set(message.primary)
    if gone or position.label.region in message.primary:
        expected = f"{', '.join(sorted(position.primary)) or 'any'} and perhaps other regions"
        raise ShrunkOverlayError("primary", list(message.primary), expected)
    if state.knows_all:
        state.returned = state.joined = False  # It has missed nothing of what the overlay was.
    state.position = evolve(position, clusters=message.clusters, primary=frozenset(message.primary))


def _on_up(state: State, out: ScotOutbox, message: NeighbourUp) -> None:
    first = message.name not in state.labels
    state.add_neighbour(message.name, message.label)
    _note_settings(state, message)
    state.links.forget_input(message.name)
    state.take_over.link_came(state, out, message.name)
    if first:
        state.unknown.add(message.name)
    if message.synchronise and state.settings.routing != BID:
        broadcast.synchronise(state, out, message.name)
    else:
        ALGORITHMS[state.settings.routing].introduce(state, out, message.name)


def _note_settings(state: State, message: NeighbourUp) -> None:
    takes_over = state.settings.take_over
    if isinstance(message, NeighbourAnnounced):
        takes_over = message.takes_over
    if takes_over:
        state.not_taking_over.discard(message.name)
    else:
        state.not_taking_over.add(message.name)


def _check(state: State, name: str) -> None:
    if name not in state.labels:
        raise UnknownNeighbourError(name)


def _forget(state: State, out: ScotOutbox, name: str) -> None:
    """Withdraw whatever came from a neighbour, and let another take its place."""
    state.forget_neighbour(name)
    state.bid_hops = {bid: hop for bid, hop in state.bid_hops.items() if hop != name}
    routing = ALGORITHMS[state.settings.routing]
    for entry in [one for one in state.table if one.hop == neighbour(name)]:
        routing.unsubscribe(state, out, entry)
