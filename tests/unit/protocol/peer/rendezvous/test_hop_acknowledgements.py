"""Copies find another way around silent hops, and ring neighbours offer each other theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import BODY, FROM, KIND, TO
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.rendezvous.publication import PENDING_EVENT
from gossamer.protocol.peer.rendezvous.replay import TAKEN_AS_OURS
from gossamer.protocol.peer.space.ring import RING
from gossamer.protocol.peer.state.state import COPY, TO_HAND_ON
from gossamer.protocol.peer.step import subscribe
from support.draws import few_examples
from support.overlays import SMALL, Hosts, random_identifiers, record

NODES = 12
STEP = RING // NODES
EVEN = np.arange(NODES, dtype=np.int64) * STEP


class SilentHosts(Hosts):
    victim = -1
    steps_left = 0  # records that the victim takes before it goes

    def step(self, p: int, words: Any) -> list[Any]:
        if p == self.victim:
            self.steps_left -= 1
            if self.steps_left < 0:
                self.alive[p] = False
                return []
        return super().step(p, words)


def overlay(places: Any = EVEN, seed: int = 1, **changes: Any) -> SilentHosts:
    """A true ring of two links a side and four others, on which everybody wants everything.

    Records for peers that are gone are lost.
    """
    routing = {"nearest_routing": True, "enter_on_the_way": True, "reroute": True}
    ring = {"ring_links": 2, "stabilise": True, "suspect_rounds": 1, "ring_repairs": 8}
    ways = {"ring_offers": True, "hand_on": True, "acknowledged_hops": 8, "friend_links": 4}
    hosts = SilentHosts.ring(SMALL, places, seed, **{**routing, **ring, **ways, **changes})
    hosts.loses = lambda words: not hosts.alive[words[TO]]
    hosts.timers = (records.OVERLAY_TIMER, records.INSTALL_TIMER)
    for p in range(len(places)):
        hosts.subscribe(p, (0, RING - 1))
    # No sampler runs that would replace the profiles of before; all have the same interests.
    sampler, first = hosts.state.sampler, hosts.settings.first_range
    for profiles in (hosts.state.link_profile, sampler.view_profile):
        profiles[..., first:] = sampler.profile[0, first:]
    return hosts


def alone(**changes: Any) -> SilentHosts:
    hosts = overlay(**changes)
    hosts.rounds(2)
    hosts.alive[1:] = False
    return hosts


def without_home(**changes: Any) -> tuple[SilentHosts, int]:
    """An overlay without the rendezvous node of what is published, and which that is."""
    hosts = overlay(**changes)
    hosts.rounds(2)
    home = hosts.lookup(0, 6 * STEP)[-1]
    hosts.alive[home] = False
    return hosts, home


def test_each_hop_acknowledges_and_nothing_stays_under_way() -> None:
    hosts = overlay()
    hosts.rounds(2)
    hosts.passed.clear()
    hosts.publish(0, 7, 6 * STEP)
    hops = len(hosts.lookup(0, 6 * STEP)) - 1
    assert hops >= 1
    assert sum(words[KIND] == records.EVENT_TAKEN for words in hosts.passed) == hops
    assert (hosts.state.under_way[:, :, COPY] == -1).all()


def test_copies_under_way_are_few_and_sent_once_more_unless_acknowledged() -> None:
    hosts = alone(hand_on=False)
    hosts.publish(0, 7, 6 * STEP)
    assert (hosts.state.under_way[0, :, COPY] >= 0).sum() == 1
    hosts.rounds(1)
    assert (hosts.state.under_way[0, :, COPY] >= 0).sum() == 0
    hosts = alone(acknowledged_hops=2)
    for event in range(5):
        hosts.publish(0, event, 6 * STEP)
    assert hosts.state.under_way[0, :, COPY].tolist() == [0, 1]
    hosts = alone()
    hosts.publish(0, 7, 6 * STEP)
    under_way = hosts.state.under_way[0, 0]
    for source, left in ((99, 7), (int(under_way[1]), -1)):
        hosts.step(0, record(records.EVENT_TAKEN, 0, source, [7]))
        assert under_way[COPY] == left


def test_a_copy_to_a_silent_next_hop_goes_another_way_in_the_next_turn() -> None:
    for is_mended in (True, False):
        hosts = overlay(**{} if is_mended else {"acknowledged_hops": 0, "ring_offers": False})
        hosts.rounds(2)
        hosts.alive[hosts.lookup(0, 6 * STEP)[1]] = False
        served = set(hosts.publish(0, 7, 6 * STEP))
        assert len(served) < NODES - 1
        hosts.served.clear()
        hosts.rounds(2)
        served |= {peer for peer, *_ in hosts.served}
        assert (len(served) == NODES - 1) is is_mended


@pytest.mark.parametrize("pending", [0, 4])
@pytest.mark.parametrize("rounds_silent", [1, 2])
def test_a_copy_reaches_its_rendezvous_node_that_is_back(rounds_silent: int, pending: int) -> None:
    """What was on the way to it is lost, as where a connection breaks and is made anew."""
    changes = {"replay_rounds": 9, "ring_offers": False, "suspect_rounds": 9}
    hosts, home = without_home(pending_publications=pending, **changes)
    hosts.publish(0, 7, 6 * STEP)
    hosts.rounds(rounds_silent)
    assert home not in {peer for peer, *_ in hosts.served}
    hosts.alive[home] = True
    hosts.rounds(6)
    assert home in {peer for peer, *_ in hosts.served}
    assert (hosts.state.alarm[:, TO_HAND_ON] == -1).all()


def test_nobody_but_the_rendezvous_node_answers_the_publisher() -> None:
    """Who takes a copy in place of a silent one does not know whether that one is gone."""
    hosts, home = without_home(pending_publications=4, replay_rounds=9, suspect_rounds=9)
    hosts.publish(0, 7, 6 * STEP)
    hosts.rounds(2)
    assert (hosts.state.pending[0, :, PENDING_EVENT] == 7).any()
    hosts.alive[home] = True
    hosts.rounds(4)
    assert not (hosts.state.pending[0, :, PENDING_EVENT] == 7).any()


def test_what_was_handed_on_is_so_again_when_a_connection_breaks() -> None:
    """Without acknowledgements nobody knows whether it arrived."""
    hosts = overlay(acknowledged_hops=0, replay_rounds=9)
    hosts.rounds(2)
    home = hosts.lookup(0, 6 * STEP)[-1]
    hosts.state.event_copies[0, 0], hosts.state.event_rounds[0, 0] = 7, hosts.state.round[0]
    hosts.state.event_values[0, 0], hosts.state.event_hops[0, 0] = 6 * STEP, TAKEN_AS_OURS
    hosts.state.event_next[0], hosts.state.alarm[0, TO_HAND_ON] = 1, 1

    def handed_on() -> int:
        hosts.passed.clear()
        hosts.install(0)
        return sum(words[KIND] == records.EVENT and words[FROM] == 0 for words in hosts.passed)

    assert (handed_on(), handed_on()) == (1, 0)
    assert home in {peer for peer, *_ in hosts.served}
    hosts.handle(record(records.LINK_BROKE, 0, 0, [home]))
    assert (handed_on(), handed_on()) == (1, 0)


def test_what_finds_no_room_is_handed_on_in_a_later_turn() -> None:
    changes = {"acknowledged_hops": 1, "ring_offers": False}
    hosts, home = without_home(replay_rounds=20, suspect_rounds=20, **changes)
    for event in range(3):
        hosts.publish(0, event, 6 * STEP)
        hosts.rounds(1)
    hosts.alive[home] = True
    hosts.rounds(6)
    assert {event for peer, event, *_ in hosts.served if peer == home} == {0, 1, 2}


@few_examples(12)
@given(
    seed=st.integers(0, 999),
    victim=st.integers(1, NODES - 1),
    steps=st.integers(0, 12),
    value=st.integers(0, RING - 1),
)
def test_silence_at_any_step_loses_nothing(seed: int, victim: int, steps: int, value: int) -> None:
    hosts = overlay(random_identifiers(NODES, seed), seed)
    hosts.rounds(2)
    hosts.served.clear()
    hosts.victim, hosts.steps_left = victim, steps
    hosts.publish(0, 7, value)
    hosts.rounds(4)
    served = [peer for peer, *_ in hosts.served if hosts.alive[peer]]
    wanted = [p for p in range(NODES) if hosts.alive[p]]
    assert sorted(served) == wanted, f"seed {seed}"
    assert len([words for words in hosts.of_kind(records.EVENT) if words[TO] == 0]) < NODES


OFFERING = 8
LOW, HIGH = (0, RING // 8), (RING // 2, RING // 2 + RING // 8)
WANTED, BETWEEN = HIGH[0] + 1, RING // 4


def offering() -> Hosts:
    places = np.arange(OFFERING, dtype=np.int64) * (RING // OFFERING)
    rules = {"ring_offers": True, "suspect_rounds": 1, "replay_backoff": True}
    memory = {"subscriptions": 2, "event_memory": 2 * records.OFFERED_ON_RING}
    hosts = Hosts.ring(SMALL, places, 1, ring_links=2, load_shifting=True, **rules, **memory)
    bounds = np.array([LOW, HIGH], np.int64)
    for p in range(OFFERING):
        subscribe(hosts.state, p, bounds, np.array([1, 1]))
    return hosts


def take(hosts: Hosts, *copies: int) -> None:
    for copy in copies:
        hosts.step(0, record(records.EVENT, 0, 1, [copy, 0, records.TREE, 1, 1, -1, WANTED]))


def asked(hosts: Hosts, *offered: tuple[int, int]) -> list[int]:
    body = [len(offered), *(word for event in offered for word in event)]
    sent = hosts.step(0, record(records.RING_OFFER, 0, 1, body))
    found = [list(words[BODY + 1 :]) for words in sent if words[KIND] == records.REPLAY_WANTED]
    assert all(words[TO] == 1 for words in sent)
    return [int(copy) for copies in found for copy in copies]


def test_all_that_is_wanted_and_was_not_here_is_asked_for() -> None:
    assert asked(offering(), (11, WANTED), (12, BETWEEN), (13, LOW[1])) == [11, 13]
    assert asked(offering(), (12, BETWEEN)) == []
    events = range(100, 100 + records.OFFERED_ON_RING)
    assert asked(offering(), *((event, WANTED) for event in events)) == list(events)
    hosts = offering()
    take(hosts, 11)
    assert asked(hosts, (11, WANTED), (13, WANTED)) == [13]


def test_who_gets_what_it_asks_for_may_miss_much_and_who_does_not_little() -> None:
    hosts = offering()
    for first in range(100, 100 + 20 * 8, 8):
        copies = range(first, first + 8)
        assert asked(hosts, *((copy, WANTED) for copy in copies)) == list(copies)
        take(hosts, *copies)
        hosts.state.round[0] += 1
    hosts = offering()
    counts = []
    for first in range(100, 100 + 10 * 40, 40):
        copies = range(first, first + 40)
        got = asked(hosts, *((copy, WANTED) for copy in copies))
        counts.append(len(got))
        if first > 100:
            take(hosts, *got)
        hosts.state.round[0] += 1
    assert counts == [40, 0, 0, 0, 1, 4, 16, 40, 40, 40]
