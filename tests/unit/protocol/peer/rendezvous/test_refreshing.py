"""What has not changed is installed again in every so-manieth round only."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import BODY, KIND, LENGTH, TO, Words
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.rendezvous.received_boxes import head_words
from gossamer.protocol.peer.rendezvous.refreshing import NOTHING_INSTALLED
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_MASK
from support import overlays
from support.overlays import Hosts

NODES, RING, EVERY, HEARTBEAT = 14, 2, 4, 3
WHOLE: overlays.Box = ((0, RING_MASK),)


def settings_of(refresh_rounds: int = EVERY) -> Settings:
    """Installations are known to be due; nobody moves."""
    return Settings(
        refresh_rounds=refresh_rounds,
        entry_lifetime=3 * refresh_rounds,
        heartbeat_rounds=HEARTBEAT,
        ring_links=RING,
        friend_links=3,
        view_size=6,
        shuffle_length=3,
        load_shifting=False,
    )


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


def test_every_round_installs_everything_in_the_paper() -> None:
    hosts = overlay(1)
    assert hosts.state.installed_digest.shape == (NODES, 0)
    first = installed(round_of(hosts, 0))
    assert first == set(hosts.neighbours(0))
    assert all(installed(round_of(hosts, 0)) == first for _ in range(5))


def test_what_has_not_changed_is_installed_again_once_in_so_many_rounds(
    hosts: Hosts,
) -> None:
    everybody = installed(round_of(hosts, 0))
    sent = [round_of(hosts, 0) for _ in range(3 * EVERY)]
    assert [installed(words) for words in sent if words] == [everybody] * 3
    assert [bool(words) for words in sent[EVERY:]] == [bool(words) for words in sent[:-EVERY]]


def test_peers_take_turns(hosts: Hosts) -> None:
    for p in range(NODES):
        hosts.subscribe(p, *WHOLE)
        round_of(hosts, p)
    turns = [sum(bool(round_of(hosts, p)) for p in range(NODES)) for _ in range(EVERY)]
    assert sum(turns) == NODES
    assert max(turns) < NODES


def new_subscription(hosts: Hosts) -> None:
    hosts.subscribe(0, (0, RING_MASK >> 1))


def no_subscription(hosts: Hosts) -> None:
    hosts.state.constrained[0] = -1


def neighbour_gone(hosts: Hosts) -> None:
    hosts.state.links[0, -1] = -1


def neighbour_moved(hosts: Hosts) -> None:
    hosts.state.link_profile[0, 0, IDENTIFIER] += 1


def neighbours_arc_changed(hosts: Hosts) -> None:
    hosts.state.link_profile[0, -1, ARC_START] += 1


def own_place_changed(hosts: Hosts) -> None:
    hosts.state.sampler.profile[0, IDENTIFIER] += 1


def others_ask_for_something(hosts: Hosts) -> None:
    source = hosts.neighbours(0)[-1]
    hosts.step(0, overlays.install_record(hosts.state, records.INSTALL, 0, source, [(0, WHOLE)]))


def connection_broke(hosts: Hosts) -> None:
    hosts.step(0, overlays.record(records.LINK_BROKE, 0, 0, [hosts.neighbours(0)[0]]))


@pytest.mark.parametrize(
    "change", [new_subscription, no_subscription, own_place_changed, connection_broke]
)
def test_a_change_is_installed_in_the_next_round(hosts: Hosts, change: Any) -> None:
    until_quiet(hosts, 0)
    change(hosts)
    assert installed(round_of(hosts, 0)) >= set(hosts.neighbours(0)[: 2 * RING])
    assert not round_of(hosts, 0)


@pytest.mark.parametrize("change", [neighbour_gone, neighbour_moved, neighbours_arc_changed])
def test_a_change_of_one_neighbour_is_installed_at_those_alone_whom_it_matters_to(
    hosts: Hosts, change: Any
) -> None:
    until_quiet(hosts, 0)
    change(hosts)
    assert 0 < len(installed(round_of(hosts, 0))) < len(hosts.neighbours(0))
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
            CHANGES_BY_CHANCE[draws.integers(len(CHANGES_BY_CHANCE))](hosts, draws)
        due = due_at_neighbours(hosts)
        held |= asked_of(hosts, round_of(hosts, 0))
        asked = {to: boxes for to, boxes in held.items() if any(boxes)}
        assert asked == {to: boxes for to, boxes in due.items() if any(boxes)}, seed


def any_subscription(hosts: Hosts, draws: np.random.Generator) -> None:
    low = int(draws.integers(0, RING_MASK - (1 << 58)))
    hosts.subscribe(0, (low, low + int(draws.integers(0, 1 << 58))))


def any_neighbour_gone(hosts: Hosts, draws: np.random.Generator) -> None:
    filled = np.flatnonzero(hosts.state.links[0] >= 0)
    if len(filled) > 2:
        hosts.state.links[0, draws.choice(filled)] = -1


def any_place(hosts: Hosts, draws: np.random.Generator) -> None:
    k = draws.choice(np.flatnonzero(hosts.state.links[0] >= 0))
    hosts.state.link_profile[0, k, ARC_START] += int(draws.integers(1, 1 << 56))


def any_request(hosts: Hosts, draws: np.random.Generator) -> None:
    source = int(draws.choice(hosts.neighbours(0)))
    low = int(draws.integers(0, RING_MASK - (1 << 57)))
    box = ((low, low + (1 << 57)),)
    hosts.step(0, overlays.install_record(hosts.state, records.INSTALL, 0, source, [(0, box)]))


CHANGES_BY_CHANCE = (any_subscription, any_neighbour_gone, any_place, any_request)


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


def test_entries_live_from_one_installation_to_the_next(hosts: Hosts) -> None:
    hosts.cycle(timers=(records.INSTALL_TIMER,))
    held = {p for p in range(NODES) if hosts.entries(p)}
    assert held
    for _ in range(4 * EVERY):
        hosts.state.round[:] += 1
        hosts.cycle(timers=(records.INSTALL_TIMER,))
        assert {p for p in range(NODES) if hosts.entries(p)} == held


def test_what_a_neighbour_lost_unnoticed_is_back_after_as_many_rounds() -> None:
    losers = 0
    for loser in range(1, NODES):
        hosts = overlay()
        hosts.cycle(timers=(records.INSTALL_TIMER,))
        held = set(hosts.entries(loser))
        losers += bool(held)
        hosts.state.table_count[loser] = 0
        for _ in range(EVERY):
            hosts.state.round[:] += 1
            hosts.cycle(timers=(records.INSTALL_TIMER,))
        assert set(hosts.entries(loser)) == held
    assert losers > 2
