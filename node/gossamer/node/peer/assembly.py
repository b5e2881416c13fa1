"""Puts a peer together from its dependencies and keeps it running."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import attrs
import trio

from gossamer.client.errors import unwrapped
from gossamer.node.discovery.sources import REMEMBERED, DiscoveredPeer
from gossamer.node.errors import InterfaceError
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.looks import next_look
from gossamer.node.peer.application import Peer
from gossamer.node.peer.dependencies import Dependencies
from gossamer.node.peer.load.inbox import Rest, SteadyTimer
from gossamer.node.peer.peer_parts import PeerParts
from gossamer.node.transport.base import Address

__all__ = ["Dependencies", "run_peer"]

# Within this a peer says its goodbyes, so that it stops in two seconds.
GOODBYE_S: Final = 1.5
# Seconds between two looks whether the machine's addresses have changed.
ADDRESSES_S: Final = 5.0


@asynccontextmanager
async def run_peer(dependencies: Dependencies) -> AsyncIterator[Peer]:
    """A running peer; leaving, cancelled or not, stops it within two seconds.

    Raises:
        ListenFailed: it cannot listen where it should.
        StoreError: its state file is another peer's, or cannot be written.
    """
    parts = PeerParts(dependencies)
    with unwrapped():
        async with trio.open_nursery() as nursery:
            await _start(parts, nursery)
            try:
                yield parts.peer
            finally:
                parts.peer.stop()
                with trio.CancelScope(shield=True, deadline=trio.current_time() + GOODBYE_S):
                    # Nobody takes events any more: what comes while goodbyes are said is missed.
                    await parts.keeper.note_alive()
                    await parts.pool.close()
                    await parts.keeper.write()
                nursery.cancel_scope.cancel()


async def _start(parts: PeerParts, nursery: trio.Nursery) -> None:
    """Listen, and start everything in ``nursery``."""
    parts.connection_events.start(nursery)
    dependencies = parts.dependencies
    await parts.keeper.open(dependencies.key)
    await nursery.start(parts.frame_sender.run, parts.runtime.hand_back)
    listening = await nursery.start(parts.pool.run, dependencies.listen, parts.pool_events)
    _advertise(parts, listening)
    phase_s = dependencies.draws.uniform(0, dependencies.round_s)
    timer = SteadyTimer(
        dependencies.round_s,
        phase_s,
        parts.counters,
        parts.runtime.was_paused,
        parts.inbound.quiet_rounds,
    )
    parts.runtime.rest = Rest(timer, parts.inbound.fire)
    parts.standing.ask("overload", timer.complaint)
    await _recall_peers(parts)
    parts.peer.subscribers.recall(await parts.keeper.subscriptions(), dependencies.now())
    await _say_what_is_missed(parts)
    parts.services.start(nursery)
    for part in (
        *(parts.keeper, parts.views, parts.members, parts.reports, parts.clock),
        *(parts.reachability, parts.peer.last, parts.tiers, parts.bootstrap),
    ):
        nursery.start_soon(part.run)
    nursery.start_soon(parts.inbound.run, timer.next_timer)
    nursery.start_soon(parts.standing.tell)
    nursery.start_soon(parts.bootstrap.search, dependencies.sources(listening), dependencies.key)
    nursery.start_soon(_follow_addresses, parts, listening)


async def _follow_addresses(parts: PeerParts, listening: Sequence[Address]) -> None:
    """Tell others where this peer is, as the machine's addresses change."""
    while True:
        await trio.sleep_until(next_look(ADDRESSES_S))
        before = parts.peer.addresses
        try:
            _advertise(parts, listening)
            parts.address_complaint = ""
        except InterfaceError as error:  # others find this peer as before
            parts.address_complaint = str(error)
        if parts.peer.addresses != before:
            log.info("this machine has other addresses", addresses=parts.members.own.addresses)


def _advertise(parts: PeerParts, listening: Sequence[Address]) -> None:
    addresses = tuple(Address(*address) for address in parts.dependencies.advertise(listening))
    parts.authentication.addresses = parts.peer.addresses = addresses
    parts.messages.addresses = addresses
    parts.members.own.addresses = tuple(map(str, addresses))
    parts.transport.me = attrs.evolve(parts.transport.me, addresses=addresses)


async def _recall_peers(parts: PeerParts) -> None:
    revoked = () if parts.descriptors is None else parts.descriptors.revoked_keys()
    for known in await parts.keeper.known_peers() if parts.dependencies.remember else ():
        if known.key != parts.dependencies.key and known.key not in revoked:
            parts.bootstrap.add(DiscoveredPeer(known.key, known.addresses, REMEMBERED))


async def _say_what_is_missed(parts: PeerParts) -> None:
    """Warn if this peer was away for longer than others keep events."""
    away_s = await parts.keeper.away_s()
    dependencies = parts.dependencies
    kept_s = dependencies.settings.retention_rounds * dependencies.round_s
    if away_s is not None and math.isinf(away_s):
        log.warning("the clock was set back: events are asked for as far back as they are kept")
    elif away_s is not None and away_s > kept_s:
        log.warning(
            "away for longer than events are kept: older ones are missed",
            away_s=f"{away_s:.0f}",
            kept_s=f"{kept_s:.0f}",
        )
