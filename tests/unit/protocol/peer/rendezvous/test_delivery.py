"""Installation and event delivery on small converged overlays (Vinifera, Sec. IV-B3 and IV-B4)."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.protocol.kernel.records import BODY, KIND, TO, UNREACHABLE
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.rendezvous.delivery import is_false_positive
from gossamer.protocol.peer.settings import presets
from gossamer.protocol.peer.settings.config import LOAD_UNIT
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state import state as state_state
from gossamer.protocol.peer.state.links import put_link
from gossamer.protocol.peer.state.lookup import anchor
from support import overlays
from support.overlays import Hosts

NODES = 10


@pytest.fixture
def hosts() -> Hosts:
    return overlays.ten_in_a_row()


def ask_for(hosts: Hosts, p: int, source: int, low: int, high: int) -> None:
    boxes = [(0, ((low, high),))]
    hosts.step(p, overlays.install_record(hosts.state, records.INSTALL, p, source, boxes))


def hand_down(hosts: Hosts, p: int, source: int, event: int, value: int) -> list[tuple[int, int]]:
    """Let ``p`` take a copy that comes down a tree; returns what it sends to whom."""
    words = overlays.event_record(p, source, event, [value], mode=records.TREE)
    return [(int(sent[KIND]), int(sent[TO])) for sent in hosts.step(p, words)]


def test_the_example_of_figure_2(hosts: Hosts) -> None:
    """Q asks for [75, 85] by way of R; R, S, T hold it up to the rendezvous nodes S and T.

    The entry for Q grows to [75, 100] when P asks through Q, until P wants nothing more.
    """

    def held() -> list[tuple[int, ...]]:
        return [(p, of, *box[0]) for p in range(NODES) for of, _, box in hosts.entries(p)]

    hosts.install(2, (475, 585))
    assert held() == [(3, 2, 475, 585), (4, 3, 475, 585), (5, 4, 501, 585)]
    hosts.install(1, (580, 700))
    grown = [(3, 2, 475, 700), (4, 3, 475, 700), (5, 4, 501, 700)]
    assert held() == [(2, 1, 580, 700), *grown, (6, 5, 601, 700)]
    hosts.state.constrained[1] = -1
    for p in range(NODES):
        hosts.install(p)
    assert held() == [(3, 2, 475, 585), (4, 3, 475, 585), (5, 4, 501, 585)]


def test_requests_are_not_news_if_covered_and_dropped_by_former_neighbours(hosts: Hosts) -> None:
    hosts.install(2, (475, 585))
    hosts.subscribe(1, (480, 490))
    sent = len(hosts.passed)
    hosts.install(1)
    assert not any(words[KIND] == records.INSTALL_NEWS for words in hosts.passed[sent:])
    put_link(hosts.state, 2, int(hosts.state.successor[2]), hosts.descriptor(7), 0)
    hosts.install(2)
    assert (2, 0, ((475, 585),)) not in hosts.entries(3)


def test_one_message_a_neighbour_and_round_whatever_the_number_of_boxes() -> None:
    hosts = overlays.ten_in_a_row(subscriptions=50, boxes_per_neighbour=4)
    bounds = np.array([[10 * i + 300, 10 * i + 303] for i in range(50)])
    peer.subscribe(hosts.state, 0, bounds, np.ones(50, np.int64))
    sent = hosts.step(0, overlays.record(records.INSTALL_TIMER, 0, 0))
    assert sorted(int(words[TO]) for words in sent) == sorted(hosts.neighbours(0))
    assert all(words[KIND] == records.INSTALL for words in sent)


def test_a_heartbeat_is_acknowledged_with_the_predecessor_in_between(hosts: Hosts) -> None:
    (reply,) = hosts.step(5, overlays.install_record(hosts.state, records.INSTALL, 5, 2, []))
    assert (reply[KIND], reply[TO]) == (records.ACKNOWLEDGE, 2)
    size = 1 + hosts.state.link_profile.shape[2]
    assert [int(w) for w in reply[BODY::size]] == [5, 4]
    (reply,) = hosts.step(5, overlays.install_record(hosts.state, records.INSTALL, 5, 4, []))
    assert [int(w) for w in reply[BODY::size]] == [5]


def test_hops_are_counted_to_the_rendezvous_node_and_down_the_tree(hosts: Hosts) -> None:
    hosts.install(2, (550, 550))
    hosts.publish(4, 1, 550)
    assert hosts.served == [(2, 1, 4, 3)]


def test_matching_is_on_the_whole_subscription() -> None:
    """Branches prune by attributes they are not routed by."""
    hosts = overlays.ten_in_a_row(attributes=2)
    hosts.install(2, (475, 585), (10, 20))
    assert hosts.publish(7, 1, 500, 15) == [2]
    taken = len(hosts.passed)
    assert hosts.publish(7, 2, 500, 21) == []
    assert not any(words[BODY + 2] == records.TREE for words in hosts.passed[taken + 1 :])


@pytest.mark.parametrize("primary", [None, 1])
def test_a_subscription_goes_by_its_primary_or_first_attribute(primary: int | None) -> None:
    """Nobody is served twice though two trees reach it."""
    hosts = overlays.ten_in_a_row(attributes=2, subscriptions=2)
    state = hosts.state
    bounds = np.array([[475, 485, 0, RING_MASK], [0, RING_MASK, 675, 685]])
    peer.subscribe(state, 2, bounds, np.array([1, 2]))
    if primary is not None:
        state.primary[2] = primary
    hosts.install(2)
    assert {a for a, _ in {(a, box) for _, a, box in hosts.entries(3)}} == {0, 1}
    assert (hosts.publish(9, 1, 480, 5), hosts.publish(9, 2, 5, 680)) == ([2], [2])
    assert (hosts.publish(9, 3, 480, 680), hosts.publish(0, 7, 480, 680)) == ([2], [2])
    assert {7 * 2, 7 * 2 + 1} <= set(state.event_copies[2].tolist())


def test_copies_that_come_again_or_are_not_wanted_are_dropped_and_counted(hosts: Hosts) -> None:
    counters = hosts.state.counters[2]
    assert hand_down(hosts, 2, 3, 4, 475) == []
    assert (counters[state_state.FALSE_POSITIVES], counters[state_state.REPEATED]) == (1, 0)
    hosts.subscribe(2, (0, 900))
    assert [kind for kind, _ in hand_down(hosts, 2, 3, 5, 475)] == [records.DELIVER]
    assert hand_down(hosts, 2, 3, 5, 475) == []
    assert (counters[state_state.FALSE_POSITIVES], counters[state_state.REPEATED]) == (1, 1)


def test_a_host_is_told_of_a_false_positive_before_it_is_counted() -> None:
    hosts = overlays.ten_in_a_row(hop_limit=9)
    hosts.subscribe(3, (400, 500))
    ask_for(hosts, 5, 4, 475, 585)

    def told(p: int, source: int, event: int, value: int, **changes: int) -> bool:
        words = overlays.event_record(
            p, source, event, [value], **{"mode": records.TREE, **changes}
        )
        told = bool(is_false_positive.interpreted(hosts.state, p, words, 0))
        before = int(hosts.state.counters[p, state_state.FALSE_POSITIVES])
        hosts.step(p, words)
        assert hosts.state.counters[p, state_state.FALSE_POSITIVES] - before == told
        return told

    assert told(2, 3, 1, 475)
    assert not told(2, 3, 1, 475), "a copy that comes again is repeated"
    assert not told(2, 3, 2, 475, mode=records.GREEDY), "it comes down no tree"
    assert not told(2, 3, 3, 475, hops=9), "it is dropped"
    assert not told(3, 4, 4, 475), "it is wanted"
    assert not told(5, 6, 5, 550), "it goes on"
    assert told(5, 4, 6, 550), "it goes on to nobody but whom it came from"


@pytest.mark.parametrize(("replay_rounds", "soon"), [(0, 1), (3, 3)])
def test_copies_forgotten_too_soon_are_counted(replay_rounds: int, soon: int) -> None:
    hosts = overlays.ten_in_a_row(event_memory=2, replay_rounds=replay_rounds)
    state = hosts.state
    for event in (1, 2):
        hand_down(hosts, 2, 3, event, 475)
    assert state.counters[2, state_state.FORGOTTEN] == 0
    state.round[2] += soon
    hand_down(hosts, 2, 3, 3, 475)
    assert state.counters[2, state_state.FORGOTTEN] == 1
    state.round[2] += 1
    hand_down(hosts, 2, 3, 4, 475)
    assert state.counters[2, state_state.FORGOTTEN] == 1


def test_an_event_goes_neither_back_nor_to_whom_cannot_be_reached(hosts: Hosts) -> None:
    ask_for(hosts, 5, 4, 475, 585)
    assert hand_down(hosts, 5, 4, 1, 550) == []
    assert hand_down(hosts, 5, 6, 2, 550) == [(records.EVENT, 4)]
    undelivered = [1, 0, records.TREE, 1, 1, 480]
    hosts.step(5, overlays.record(records.EVENT + UNREACHABLE, 4, 5, undelivered))
    assert hosts.entries(5) == []


def test_load_is_what_a_rendezvous_node_takes_without_wanting_it(hosts: Hosts) -> None:
    hosts.subscribe(4, (460, 470))
    hosts.publish(0, 1, 450)
    hosts.publish(0, 2, 465)
    assert hosts.state.load.tolist() == [0, 0, 0, 0, LOAD_UNIT, 0, 0, 0, 0, 0]


def test_copies_go_back_along_predecessors_until_the_hop_limit(hosts: Hosts) -> None:
    hosts.handle(overlays.event_record(7, 3, 1, [450], mode=records.FINAL))
    assert hosts.state.event_copies[:, 0].tolist() == [-1] * 4 + [1] + [-1] * 5
    hosts = overlays.ten_in_a_row(hop_limit=3)
    assert hosts.publish(0, 1, 850) == []
    assert hosts.state.counters[:, state_state.HOPS_EXCEEDED].sum() == 1


def test_the_baseline_has_one_rendezvous_node_an_attribute() -> None:
    """Wherever the value lies; and one tree serves all subscribers."""
    settings = presets.baseline(
        NODES, attributes=2, view_size=2, shuffle_length=1, small_world_links=2
    )
    places = np.sort(np.random.default_rng(2).integers(0, RING_MASK, NODES))
    hosts = Hosts.ring(settings, places, 1)
    ends = [overlays.true_rendezvous(places, int(anchor(a))) for a in range(2)]
    assert ends[0] != ends[1]
    wanted = {1: ((5, 1 << 60), (0, RING_MASK)), 2: ((1 << 50, 1 << 61), (9, 1 << 61))}
    for p, box in wanted.items():
        hosts.subscribe(p, *box)
    for p in wanted:
        hosts.install(p)
    draws = np.random.default_rng(3)
    for event in range(20):
        values = draws.integers(0, RING_MASK, 2).tolist()
        wants = [p for p, box in wanted.items() if overlays.contains(box, values)]
        loads = hosts.state.load.copy()
        assert sorted(hosts.publish(5, event, *values)) == wants
        assert set(np.flatnonzero(hosts.state.load > loads).tolist()) <= set(ends)


def test_replicas_disseminate_at_the_successors() -> None:
    hosts = overlays.ten_in_a_row(replicas=2)
    hosts.publish(0, 1, 450)
    assert np.flatnonzero((hosts.state.event_copies == 1).any(axis=1)).tolist() == [4, 5, 6]
    modes = [int(words[BODY + 2]) for words in hosts.of_kind(records.EVENT)]
    assert modes == [records.GREEDY] * 3 + [records.FINAL, records.REPLICA + 1, records.REPLICA]


@pytest.mark.parametrize("forgotten", [False, True])
def test_remembered_events_are_handed_to_a_late_subscription_once(forgotten: bool) -> None:
    """They are forgotten after the replay rounds."""
    hosts = overlays.ten_in_a_row(replay_rounds=2)
    hosts.publish(0, 1, 450)
    hosts.publish(0, 2, 480)
    hosts.state.round[:] += 3 * forgotten
    for _ in range(2):
        hosts.install(2, (475, 585))
        assert [(p, event) for p, event, _, _ in hosts.served] == [(2, 2)] * (not forgotten)
    assert (hosts.state.counters[:, state_state.REPLAYED].sum() > 0) == (not forgotten)


def test_what_was_seen_is_offered_and_much_of_it_in_several_messages() -> None:
    hosts = overlays.ten_in_a_row(replay_rounds=2)
    hosts.install(2, (475, 585))
    hosts.publish(0, 2, 480)
    hosts.passed.clear()
    hosts.install(2, (470, 585))
    kinds = {int(words[KIND]) for words in hosts.passed}
    assert records.REPLAY_OFFER in kinds
    assert not kinds & {records.REPLAY_WANTED, records.EVENT}
    assert hosts.state.counters[:, state_state.REPLAYED].sum() == 0
    events = records.OFFERED_AT_ONCE + 10
    hosts = overlays.ten_in_a_row(replay_rounds=2, event_memory=events + 50)
    for event in range(events):
        hosts.publish(0, event, 480)
    hosts.passed.clear()
    hosts.install(2, (475, 585))
    assert [event for p, event, _, _ in hosts.served if p == 2] == list(range(events))
    offers = hosts.of_kind(records.REPLAY_OFFER)
    assert [int(words[BODY]) for words in offers[:2]] == [records.OFFERED_AT_ONCE, 10]


@pytest.mark.parametrize(("reroute", "expected"), [(True, [2]), (False, [])])
def test_a_copy_goes_around_a_peer_that_failed(reroute: bool, expected: list[int]) -> None:
    hosts = overlays.ten_in_a_row(reroute=reroute, ring_links=2)
    hosts.subscribe(2, (700, 700))
    ask_for(hosts, 6, 2, 700, 700)
    hosts.alive[[4, 5]] = False
    assert hosts.publish(3, 1, 700) == expected


def test_requests_go_around_a_peer_that_failed() -> None:
    hosts = overlays.ten_in_a_row(reroute=True, ring_links=2)
    hosts.subscribe(2, (650, 690))
    hosts.alive[4] = False
    hosts.install(2)
    assert hosts.publish(9, 1, 680) == [2]
