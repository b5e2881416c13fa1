"""Identifiers move towards load (Vinifera, Sec. IV-B5), and the ring is mended when peers fail."""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import BODY, KIND, TO, make_outbox
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.rendezvous.replay import TAKEN_AS_OURS
from gossamer.protocol.peer.settings.config import LOAD_UNIT, LOAD_WINDOW, Settings
from gossamer.protocol.peer.settings.profile import IDENTIFIER, LOAD, MAX_LOAD
from gossamer.protocol.peer.space.ring import RING, RING_MASK, clockwise
from gossamer.protocol.peer.state.links import drop_link
from gossamer.protocol.peer.state.state import REPAIRS, SHIFTED, State
from gossamer.protocol.peer.topology.load_shifting import shift_load, shifted_distance
from support import overlays
from support.draws import larger
from support.overlays import HANDLE, Hosts, install_record, record


@given(
    gap=st.integers(0, RING_MASK),
    loads=st.tuples(st.integers(0, MAX_LOAD), st.integers(1, MAX_LOAD)).filter(
        lambda pair: pair[0] < pair[1]
    ),
)
def test_the_distance_is_exact(gap: int, loads: tuple[int, int]) -> None:
    """gap * (successor - own) / (2 * successor), rounded down; compiled it must not overflow."""
    own, successor = loads
    expected = floor(Fraction(gap) * Fraction(successor - own, 2 * successor))
    assert shifted_distance(gap, own, successor) == expected
    assert shifted_distance(np.int64(gap), np.int64(own), np.int64(successor)) == expected


def pair_of_peers(own_load: int, successor_load: int, **changes: Any) -> State:
    """Peer 0 and its successor, with loads; nobody moves for want of a difference in others."""
    settings = Settings(view_size=2, shuffle_length=1, shift_threshold=0.0, **changes)
    state = overlays.converged(settings, overlays.random_identifiers(6, 2), 2)
    state.load[0] = own_load
    state.link_profile[0, state.successor[0], LOAD] = successor_load
    return state


def test_a_peer_moves_towards_a_loaded_successor_and_tells_it() -> None:
    state = pair_of_peers(0, 1000)
    slot = state.successor[0]
    before = int(state.sampler.profile[0, IDENTIFIER])
    gap = clockwise(before, int(state.link_profile[0, slot, IDENTIFIER]))
    out = make_outbox(100)
    shift_load(state, 0, out)
    (told,) = overlays.written(out)
    successor = int(state.links[0, slot]) & overlays.HANDLE
    assert clockwise(before, int(state.sampler.profile[0, IDENTIFIER])) == gap // 2
    assert (told[KIND], told[TO]) == (records.LOAD_SHIFTED, successor)
    assert told[BODY:].tolist() == overlays.descriptor(state, 0).tolist()
    assert state.load[0] == state.sampler.profile[0, LOAD] == 500
    assert state.link_profile[0, slot, LOAD] == 500
    assert state.counters[0, SHIFTED] == 1
    state.load[successor] = 1000
    overlays.Hosts(state, Settings(view_size=2, shuffle_length=1)).step(successor, told)
    assert state.load[successor] == state.sampler.profile[successor, LOAD] == 500


@pytest.mark.parametrize(
    ("own", "successor", "changes"),
    [
        (1000, 1000 - 1000 // LOAD_WINDOW, {}),
        (1000, 10, {}),
        (0, 1000, {"load_shifting": False}),
        (0, MAX_LOAD + 1, {}),
        (0, (1 << 62) + 5, {}),
        (0, -(1 << 62), {}),
    ],
    ids=["equal", "lower", "switched off", "beyond belief", "overflowing", "negative"],
)
def test_a_peer_stays(own: int, successor: int, changes: dict[str, object]) -> None:
    state = pair_of_peers(own, successor, **changes)
    before = int(state.sampler.profile[0, IDENTIFIER])
    out = make_outbox(100)
    shift_load(state, 0, out)
    assert overlays.written(out) == []
    assert state.sampler.profile[0, IDENTIFIER] == before


def test_peers_move_by_events_a_round_towards_successors_heard_of() -> None:
    """A successor that sees r events a round more settles at r * unit * window."""
    settings = Settings(view_size=2, shuffle_length=1, shift_threshold=0.5)
    for load, moves in ((LOAD_UNIT * LOAD_WINDOW // 2, 0), (LOAD_UNIT * LOAD_WINDOW // 2 + 1, 1)):
        state = overlays.converged(settings, overlays.random_identifiers(6, 2), 2)
        state.link_profile[0, state.successor[0], LOAD] = load
        shift_load(state, 0, make_outbox(100))
        assert state.counters[0, SHIFTED] == moves
    state = pair_of_peers(0, 1000)
    state.links[0, state.successor[0]] += 2 << 32
    shift_load(state, 0, make_outbox(100))
    assert state.counters[0, SHIFTED] == 0


def test_load_fades_to_the_rate_of_events() -> None:
    state = pair_of_peers(0, 0)
    for _ in range(40 * LOAD_WINDOW):
        state.load[0] += 3 * LOAD_UNIT
        shift_load(state, 0, make_outbox(100))
    settled = 3 * LOAD_UNIT * LOAD_WINDOW
    assert settled - 3 * LOAD_UNIT <= state.load[0] + 3 * LOAD_UNIT <= settled + LOAD_WINDOW


def skewed_values(count: int, seed: int) -> list[int]:
    """Events of which nine in ten fall into a sixteenth of the ring."""
    draws = np.random.default_rng(seed)
    crowded = draws.random(count) < 0.9
    values = draws.integers(0, RING_MASK, count)
    drawn: list[int] = np.where(crowded, (5 << 58) + (values >> 4), values).tolist()
    return drawn


def loads_of(hosts: overlays.Hosts, values: list[int]) -> np.ndarray:
    places = hosts.identifiers().tolist()
    owners = [overlays.true_rendezvous(places, value) for value in values]
    return np.bincount(owners, minlength=len(places))


def test_a_skewed_load_is_evened_out_and_the_ring_keeps_its_order() -> None:
    """The largest load falls below a third of what it was, the deviation below half."""
    seed, nodes, rounds = 8, larger(24, 32), larger(40, 60)
    settings = Settings(view_size=6, shuffle_length=3, friend_links=2, shift_threshold=0.1)
    hosts = overlays.Hosts.ring(settings, nodes, seed)
    probe = skewed_values(4000, seed + 1)
    before = loads_of(hosts, probe)
    values = iter(skewed_values(40 * rounds, seed))
    order = ring_order(hosts)
    event = 0
    for _ in range(rounds):
        hosts.cycle()
        assert ring_order(hosts) == order, f"seed {seed}"
        for _ in range(40):
            event += 1
            hosts.publish(event % nodes, event, next(values))
    after = loads_of(hosts, probe)
    assert after.max() < before.max() / 3, f"seed {seed}: {before.max()} to {after.max()}"
    assert after.std() < 0.5 * before.std(), f"seed {seed}: {before.std()} to {after.std()}"


def ring_order(hosts: overlays.Hosts) -> list[int]:
    order: list[int] = np.argsort(hosts.identifiers(), kind="stable").tolist()
    first = order.index(0)
    return order[first:] + order[:first]


NODES = 24
STEP = RING // NODES


def overlay(**changes: Any) -> Hosts:
    """An even ring of two links a side, whose peers have eight others as well."""
    links = {"ring_links": 2, "friend_links": 8, "failures_remembered": 32, "replay_rounds": 3}
    rules = {"nearest_routing": True, "stabilise": True, "reroute": True}
    places = [p * STEP for p in range(NODES)]
    hosts = Hosts.ring(overlays.SMALL, places, 2, **{**links, **rules, **changes})
    hosts.timers = (records.OVERLAY_TIMER, records.INSTALL_TIMER)
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
            hosts.alive[np.random.default_rng(seed).permutation(NODES)[: NODES // 2]] = False
            hosts.cycle()
            wrong[repairs] += wrong_neighbours(hosts)
            hosts.cycle()
            assert repairs == 0 or wrong_neighbours(hosts) == 0, f"seed {seed}"
    assert 3 * wrong[8] < wrong[0], f"seeds 0 to 7: {wrong}"


def test_repairs_are_bounded_and_none_is_made_where_nothing_fails() -> None:
    hosts = overlay(ring_repairs=3)
    hosts.alive[:] = False
    hosts.alive[0] = True
    hosts.handle(record(records.OVERLAY_TIMER, 0, 0), record(records.INSTALL_TIMER, 0, 0))
    assert hosts.state.alarm[0, REPAIRS] == 3
    hosts = overlay(ring_repairs=8)
    hosts.cycle()
    hosts.passed.clear()
    hosts.cycle(timers=(records.INSTALL_TIMER,))
    assert not [words for words in hosts.passed if words[1] == records.TMAN_REQUEST]


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
