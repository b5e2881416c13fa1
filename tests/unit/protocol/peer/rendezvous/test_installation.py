"""What is installed again when, and handed over with a part of the ring."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import BODY, KIND, LENGTH, TO, Words, make_outbox
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.rendezvous.delivery import hand_over
from gossamer.protocol.peer.rendezvous.installation_boxes import NOTHING_INSTALLED, head_words
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER, LOAD
from gossamer.protocol.peer.space.ring import RING_MASK, clockwise
from gossamer.protocol.peer.state.routing_table import remove_expired
from gossamer.protocol.peer.state.state import SHIFTED, State
from support import overlays
from support.overlays import Hosts

NODES, RING, EVERY, HEARTBEAT = 14, 2, 4, 3
WHOLE: overlays.Box = ((0, RING_MASK),)


def settings_of(refresh_rounds: int = EVERY) -> Settings:
    """Installations are known to be due; nobody moves."""
    links: dict[str, Any] = {"ring_links": RING, "friend_links": 3, "view_size": 6}
    rounds: dict[str, Any] = {"heartbeat_rounds": HEARTBEAT, "refresh_rounds": refresh_rounds}
    rounds |= {"shuffle_length": 3, "entry_lifetime": 3 * refresh_rounds}
    return attrs.evolve(overlays.SMALL, **rounds, **links)


def overlay(refresh_rounds: int = EVERY) -> Hosts:
    """Fourteen peers, of whom peer 0 wants everything."""
    hosts = Hosts.ring(settings_of(refresh_rounds), NODES, 4)
    hosts.subscribe(0, *WHOLE)
    return hosts


@pytest.fixture
def hosts() -> Hosts:
    return overlay()


def round_of(hosts: Hosts, p: int) -> list[Words]:
    """What a peer sends when a round begins in which its neighbours are all heard of."""
    hosts.state.round[p] += 1
    return hosts.step(p, overlays.record(records.INSTALL_TIMER, p, p))


def until_quiet(hosts: Hosts, p: int) -> None:
    """Let rounds pass until one in which nothing is installed has just been, and another will."""
    round_of(hosts, p)
    while (hosts.state.round[p] + hosts.state.sampler.key[p]) % EVERY:
        round_of(hosts, p)
    assert not round_of(hosts, p)


def installed(sent: list[Words]) -> set[int]:
    return {int(words[TO]) for words in sent if words[KIND] == records.INSTALL}


def test_what_has_not_changed_is_installed_once_in_so_many_rounds(hosts: Hosts) -> None:
    everybody = installed(round_of(hosts, 0))
    sent = [round_of(hosts, 0) for _ in range(3 * EVERY)]
    assert [installed(words) for words in sent if words] == [everybody] * 3
    assert [bool(words) for words in sent[EVERY:]] == [bool(words) for words in sent[:-EVERY]]
    hosts = overlay(1)
    assert hosts.state.installed_digest.shape == (NODES, 0)
    first = installed(round_of(hosts, 0))
    assert first == set(hosts.neighbours(0))
    assert all(installed(round_of(hosts, 0)) == first for _ in range(5))


def test_peers_take_turns(hosts: Hosts) -> None:
    for p in range(NODES):
        hosts.subscribe(p, *WHOLE)
        round_of(hosts, p)
    turns = [sum(bool(round_of(hosts, p)) for p in range(NODES)) for _ in range(EVERY)]
    assert sum(turns) == NODES
    assert max(turns) < NODES


def break_connection(hosts: Hosts) -> None:
    hosts.step(0, overlays.record(records.LINK_BROKE, 0, 0, [hosts.neighbours(0)[0]]))


def add_one(array: np.ndarray, *place: int) -> None:
    array[place] += 1


CHANGES: dict[str, Callable[[Hosts], None]] = {
    "new subscription": lambda hosts: hosts.subscribe(0, (0, RING_MASK >> 1)),
    "no subscription": lambda hosts: hosts.state.constrained[0].fill(-1),
    "own place changed": lambda hosts: add_one(hosts.state.sampler.profile, 0, IDENTIFIER),
    "connection broke": break_connection,
    "neighbour gone": lambda hosts: hosts.state.links[0, -1:].fill(-1),
    "neighbour moved": lambda hosts: add_one(hosts.state.link_profile, 0, 0, IDENTIFIER),
    "neighbour's arc changed": lambda hosts: add_one(hosts.state.link_profile, 0, -1, ARC_START),
}


def others_ask_for_something(hosts: Hosts) -> None:
    source = hosts.neighbours(0)[-1]
    hosts.step(0, overlays.install_record(hosts.state, records.INSTALL, 0, source, [(0, WHOLE)]))


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_installed_in_the_next_round_where_it_matters(hosts: Hosts, what: str) -> None:
    until_quiet(hosts, 0)
    CHANGES[what](hosts)
    told, neighbours = installed(round_of(hosts, 0)), hosts.neighbours(0)
    if what.startswith("neighbour"):
        assert 0 < len(told) < len(neighbours)
    else:
        assert told >= set(neighbours[: 2 * RING])
    assert not round_of(hosts, 0)


def test_what_is_asked_for_anyway_or_again_is_not_installed_again(hosts: Hosts) -> None:
    for _ in range(2):
        until_quiet(hosts, 0)
        others_ask_for_something(hosts)
        assert not round_of(hosts, 0)


def test_an_entry_that_expires_is_a_change(hosts: Hosts) -> None:
    hosts.subscribe(0, (0, RING_MASK >> 3))
    until_quiet(hosts, 0)
    others_ask_for_something(hosts)
    lifetime = hosts.state.params.entry_lifetime
    turns = [bool(installed(round_of(hosts, 0))) for _ in range(lifetime)]
    assert hosts.entries(0)
    assert turns == [True, *(bool((i + 2) % EVERY == 0) for i in range(1, lifetime))]
    assert installed(round_of(hosts, 0))
    assert not hosts.entries(0)
    assert not round_of(hosts, 0)


def asked_of(hosts: Hosts, sent: list[Words]) -> dict[int, tuple[int, ...]]:
    """The boxes of every installation, by whom it goes to; of a withdrawal there are none."""
    body = BODY + head_words(hosts.state)
    return {
        int(words[TO]): tuple(words[body : words[LENGTH]].tolist())
        for words in sent
        if words[KIND] == records.INSTALL
    }


def due_at_neighbours(hosts: Hosts) -> dict[int, tuple[int, ...]]:
    """What peer 0 would ask of every neighbour if it told them all of it now."""
    again = Hosts(copy.deepcopy(hosts.state), settings_of())
    again.state.installed_digest[0] = NOTHING_INSTALLED
    again.state.installed_at[0] = -1
    return asked_of(hosts, round_of(again, 0))


@given(seed=st.integers(0, 1 << 32))
def test_neighbours_are_always_asked_for_what_they_would_be_if_all_were_told(seed: int) -> None:
    draws = np.random.default_rng(seed)
    hosts = overlay()
    held: dict[int, tuple[int, ...]] = {}
    for _ in range(24):
        for _ in range(draws.integers(0, 3)):
            change_by_chance(hosts, draws)
        due = due_at_neighbours(hosts)
        held |= asked_of(hosts, round_of(hosts, 0))
        asked = {to: boxes for to, boxes in held.items() if any(boxes)}
        assert asked == {to: boxes for to, boxes in due.items() if any(boxes)}, seed


def change_by_chance(hosts: Hosts, draws: np.random.Generator) -> None:
    state, low = hosts.state, int(draws.integers(0, RING_MASK - (1 << 58)))
    filled = np.flatnonzero(state.links[0] >= 0)
    match draws.integers(4):
        case 0:
            hosts.subscribe(0, (low, low + int(draws.integers(0, 1 << 58))))
        case 1 if len(filled) > 2:
            state.links[0, draws.choice(filled)] = -1
        case 2:
            k = draws.choice(filled)
            state.link_profile[0, k, ARC_START] += int(draws.integers(1, 1 << 56))
        case 3:
            source, boxes = int(draws.choice(hosts.neighbours(0))), [(0, ((low, low + (1 << 57)),))]
            hosts.step(0, overlays.install_record(state, records.INSTALL, 0, source, boxes))


def test_the_silent_are_asked_in_other_rounds_too(hosts: Hosts) -> None:
    """Ring neighbours after as many rounds as installation takes, others after those of theirs."""
    until_quiet(hosts, 0)
    slots = hosts.state.links.shape[1]
    for age in range(EVERY + 2):
        hosts.state.links[0] = (hosts.state.links[0] & overlays.HANDLE) | age << 32
        # A round in which it is nobody's turn.
        hosts.state.round[0] += EVERY
        sent = hosts.step(0, overlays.record(records.INSTALL_TIMER, 0, 0))
        asked = {k for k in range(slots) if age >= (EVERY if k < 2 * RING else HEARTBEAT)}
        assert {int(w[TO]) for w in sent} == {
            int(hosts.state.links[0, k]) & overlays.HANDLE for k in asked
        }
        assert all(w[KIND] == records.INSTALL_NEWS for w in sent)


def test_a_question_is_answered_and_changes_nothing_else(hosts: Hosts) -> None:
    source = hosts.neighbours(0)[-1]
    others_ask_for_something(hosts)
    before = hosts.entries(0)
    assert before
    sent = hosts.step(
        0, overlays.install_record(hosts.state, records.INSTALL_NEWS, 0, source, [], answer=True)
    )
    assert [(int(w[KIND]), int(w[TO])) for w in sent] == [(records.ACKNOWLEDGE, source)]
    assert len(sent[0]) > BODY
    assert hosts.entries(0) == before


def test_entries_live_to_the_next_installation_and_come_back_if_lost(hosts: Hosts) -> None:
    hosts.cycle(timers=(records.INSTALL_TIMER,))
    held = {p for p in range(NODES) if hosts.entries(p)}
    assert held
    for _ in range(4 * EVERY):
        hosts.state.round[:] += 1
        hosts.cycle(timers=(records.INSTALL_TIMER,))
        assert {p for p in range(NODES) if hosts.entries(p)} == held
    losers = 0
    for loser in range(1, NODES):
        hosts = overlay()
        hosts.cycle(timers=(records.INSTALL_TIMER,))
        lost = set(hosts.entries(loser))
        losers += bool(lost)
        hosts.state.table_count[loser] = 0
        for _ in range(EVERY):
            hosts.state.round[:] += 1
            hosts.cycle(timers=(records.INSTALL_TIMER,))
        assert set(hosts.entries(loser)) == lost
    assert losers > 2


def handed_over(state: State, identifier: int) -> list[tuple[int, overlays.Box]]:
    out = make_outbox(64 * state.table.shape[2])
    hand_over(state, 5, 99, identifier, out)
    (words,) = overlays.written(out)
    assert words[KIND] == records.HANDOVER
    rows = words[BODY + 1 :].reshape(int(words[BODY]), 5).tolist()
    return [(row[0], ((row[3], row[4]),)) for row in rows]


def test_entries_handed_over_are_of_the_arc_and_live_as_long_as_others() -> None:
    """Peer 5 answers for 501 to 600; a newcomer at 550 takes over up to there."""
    hosts = overlays.ten_in_a_row()
    state = hosts.state
    boxes = [(0, ((501, 505),)), (0, ((540, 560),)), (0, ((570, 580),)), (0, ((700, 800),))]
    hosts.step(5, overlays.install_record(state, records.INSTALL, 5, 4, boxes))
    assert handed_over(state, 550) == [(4, ((501, 505),)), (4, ((540, 560),))]
    # Until whoever asked for them should have installed them anew, and no longer.
    hosts = overlays.ten_in_a_row()
    state = hosts.state
    state.round[5] = 7
    hosts.step(5, overlays.record(records.HANDOVER, 5, 6, [1, 3, 400, 0, 510, 520]))
    state.round[5] += state.params.entry_lifetime
    remove_expired(state, 5)
    assert len(hosts.entries(5)) == 1
    state.round[5] += 1
    remove_expired(state, 5)
    assert hosts.entries(5) == []


def test_a_handover_is_taken_by_a_peer_without_entries_or_from_its_successor() -> None:
    """The successor of peer 5 is peer 6."""
    hosts = overlays.ten_in_a_row()
    first, second, third = ((3, 0, ((510, 520),)), (2, 0, ((530, 540),)), (2, 0, ((550, 560),)))
    for source, body, expected in (
        (8, [1, 3, 400, 0, 510, 520], [first]),
        (8, [1, 2, 300, 0, 530, 540], [first]),
        (6, [1, 2, 300, 0, 530, 540], [first, second]),
        (6, [2, 2, 300, 0, 531, 539, 2, 300, 0, 550, 560], [first, second, third]),
    ):
        hosts.step(5, overlays.record(records.HANDOVER, 5, source, body))
        assert hosts.entries(5) == expected


def test_a_newcomer_serves_at_once_from_what_it_was_handed() -> None:
    """Nobody has installed anything anew when the event comes."""
    hosts = overlays.ten_in_a_row(join_lookup=True, ring_links=2)
    state = hosts.state
    peer.restart(state, 5)
    hosts.alive[5] = False
    hosts.subscribe(2, (550, 560))
    hosts.rounds(6)
    hosts.alive[5] = True
    hosts.handle(peer.join_record(5, 0, state.sampler.profile[0]))
    assert hosts.publish(5, 1, 555) == [2]


@pytest.mark.parametrize(("lost_entries", "handed"), [(False, 0), (True, 1)])
def test_who_calls_another_is_handed_what_it_has_lost(lost_entries: bool, handed: int) -> None:
    """Peers call those they have heard of now and then; the ring knows this one's place."""
    hosts = overlays.ten_in_a_row(join_lookup=True, ring_links=2)
    state = hosts.state
    hosts.subscribe(2, (550, 560))
    hosts.rounds(6)
    before = hosts.entries(5)
    assert before
    if lost_entries:
        state.table_count[5] = 0
    hosts.passed.clear()
    hosts.handle(peer.join_record(5, 0, state.sampler.profile[0]))
    kinds = [int(words[KIND]) for words in hosts.passed]
    assert (kinds.count(records.PLACE_FOUND), kinds.count(records.HANDOVER)) == (1, handed)
    if not lost_entries:
        assert hosts.entries(5) == before


NODES = 16


def relieve_successor(hosts: overlays.Hosts, p: int) -> tuple[int, int]:
    state = hosts.state
    slot = state.successor[p]
    successor = int(state.links[p, slot]) & overlays.HANDLE
    state.load[successor] = 5000
    state.link_profile[p, slot, LOAD] = 5000
    before = int(hosts.identifiers()[p])
    hosts.tick(p, records.OVERLAY_TIMER)
    assert state.counters[p, SHIFTED] == 1
    assert {records.LOAD_SHIFTED, records.HANDOVER} <= {int(words[KIND]) for words in hosts.passed}
    return successor, clockwise(before, int(hosts.identifiers()[p]))


def events_after_a_shift(
    seed: int, share: float, attributes: int
) -> tuple[int, list[tuple[list[int], list[int]]]]:
    """Events for the part of an arc given away, before anybody installs anything anew.

    Peers have installed what they want, a random box each. Returns who gave the part away, and
    per event who was served and who should have been.
    """
    sizes = {"view_size": 6, "shuffle_length": 3, "boxes_per_neighbour": 32}
    links = {"ring_links": 2, "friend_links": 4, "shift_threshold": 0.0, **sizes}
    hosts = overlays.Hosts.ring(Settings(attributes=attributes, seed=seed), NODES, seed, **links)
    draws = np.random.default_rng(seed)
    boxes: list[overlays.Box] = []
    for p in range(NODES):
        width = int(share * RING_MASK)
        lows = draws.integers(0, RING_MASK - width, attributes).tolist()
        boxes.append(tuple((low, low + width) for low in lows))
        hosts.subscribe(p, *boxes[p])
    hosts.rounds(3, records.INSTALL_TIMER)
    moved = seed % NODES
    before = int(hosts.identifiers()[moved])
    successor, distance = relieve_successor(hosts, moved)
    assert distance > 0
    draws = np.random.default_rng(seed + 1)
    outcomes = []
    for event in range(60):
        point = draws.integers(0, RING_MASK, attributes).tolist()
        point[event % attributes] = (before + 1 + int(draws.integers(0, distance))) & RING_MASK
        wanting = [p for p, box in enumerate(boxes) if overlays.contains(box, point)]
        outcomes.append((sorted(hosts.publish(int(draws.integers(NODES)), event, *point)), wanting))
    return successor, outcomes


@pytest.mark.parametrize("attributes", [1, 2])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.6])
@pytest.mark.parametrize("seed", range(6))
def test_a_handover_after_a_shift_loses_no_event(seed: int, share: float, attributes: int) -> None:
    """Everybody whose requests stood at the peer relieved is served, once, and nobody else.

    The peer relieved itself is served if its range is wide, of one attribute.
    """
    relieved, outcomes = events_after_a_shift(seed, share, attributes)
    assert any(wanting for _, wanting in outcomes), f"seed {seed}"
    for served, wanting in outcomes:
        assert [p for p in served if p != relieved] == [p for p in wanting if p != relieved]
        assert served.count(relieved) <= wanting.count(relieved)
        if (share, attributes) == (0.6, 1):
            assert served == wanting, f"seed {seed}"
