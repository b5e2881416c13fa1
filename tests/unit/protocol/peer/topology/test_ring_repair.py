"""The ring is mended in the round in which neighbours fail, and events follow it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.protocol.peer.record_table.records import INSTALL_TIMER, OVERLAY_TIMER, TMAN_REQUEST
from gossamer.protocol.peer.rendezvous.replay import TAKEN_AS_OURS
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING
from gossamer.protocol.peer.state.links import drop_link
from gossamer.protocol.peer.state.state import REPAIRS
from support.overlays import HANDLE, Hosts, install_record, record

NODES = 24
STEP = RING // NODES


def overlay(**changes: Any) -> Hosts:
    """An even ring of two links a side, whose peers have eight others as well."""
    settings = Settings(
        ring_links=2,
        friend_links=8,
        view_size=4,
        shuffle_length=2,
        nearest_routing=True,
        load_shifting=False,
        stabilise=True,
        reroute=True,
        replay_rounds=3,
        failures_remembered=32,
    )
    hosts = Hosts.ring(settings, [p * STEP for p in range(NODES)], 2, **changes)
    hosts.timers = (OVERLAY_TIMER, INSTALL_TIMER)
    return hosts


def wrong_neighbours(hosts: Hosts) -> int:
    """How many successors and predecessors are not those on the ring of the living."""
    living = [p for p in range(NODES) if hosts.alive[p]]
    wrong = 0
    for i, p in enumerate(living):
        for column, neighbour in (
            (hosts.state.successor, living[(i + 1) % len(living)]),
            (hosts.state.predecessor, living[i - 1]),
        ):
            k = int(column[p])
            wrong += k < 0 or int(hosts.state.links[p, k]) & HANDLE != neighbour
    return wrong


def test_a_ring_that_half_of_its_peers_leave_at_once_is_mended_sooner() -> None:
    wrong = {0: 0, 8: 0}
    for seed in range(8):
        for repairs in wrong:
            hosts = overlay(ring_repairs=repairs, friend_links=2)
            hosts.cycle()
            draws = np.random.default_rng(seed)
            hosts.alive[draws.permutation(NODES)[: NODES // 2]] = False
            hosts.cycle()
            wrong[repairs] += wrong_neighbours(hosts)
            hosts.cycle()
            assert repairs == 0 or wrong_neighbours(hosts) == 0, f"seed {seed}"
    assert 3 * wrong[8] < wrong[0], f"seeds 0 to 7: {wrong}"


def test_repairs_of_a_round_are_bounded() -> None:
    hosts = overlay(ring_repairs=3)
    hosts.alive[:] = False
    hosts.alive[0] = True
    hosts.handle(record(OVERLAY_TIMER, 0, 0), record(INSTALL_TIMER, 0, 0))
    assert hosts.state.alarm[0, REPAIRS] == 3


def test_nobody_trades_links_at_once_where_nothing_fails() -> None:
    hosts = overlay(ring_repairs=8)
    hosts.cycle()
    hosts.passed.clear()
    hosts.cycle(timers=(INSTALL_TIMER,))
    assert not [words for words in hosts.passed if words[1] == TMAN_REQUEST]


@pytest.mark.parametrize("is_handed_on", [True, False])
def test_an_event_follows_to_the_peer_that_turns_out_to_answer_for_it(is_handed_on: bool) -> None:
    hosts = overlay(hand_on=is_handed_on, friend_links=0)
    state = hosts.state
    hosts.subscribe(9, (9 * STEP - 99, 9 * STEP))
    # Peer 10 takes all before it for dead, and so the values of peer 9 for its own.
    for gone in (8, 9):
        drop_link.interpreted(state, 10, gone)
    state.round[:] = 1
    state.failed[10, :] = -1
    assert hosts.publish(10, 5, 9 * STEP) == []
    assert bool(state.event_hops[10, 0] & TAKEN_AS_OURS) is is_handed_on
    hosts.handle(install_record(state, 21, 10, 9, [], answer=False))
    assert [peer for peer, *_ in hosts.served] == ([9] if is_handed_on else [])
    assert not state.event_hops[10, 0] & TAKEN_AS_OURS
    # Once, and not again whenever the ring changes.
    drop_link.interpreted(state, 10, 9)
    state.failed[10, :] = -1
    hosts.handle(install_record(state, 21, 10, 9, [], answer=False))
    assert len(hosts.served) == int(is_handed_on)
