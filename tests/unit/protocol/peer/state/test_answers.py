"""Who answers heartbeats, who is suspected, and what a restart leaves (Vinifera, Sec. IV-C)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.protocol.kernel.records import BODY, FROM, KIND, TO, UNREACHABLE, Words
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.record_table.records import INSTALL_TIMER, OVERLAY_TIMER
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.presets import resilient
from gossamer.protocol.peer.settings.profile import IDENTIFIER, LOAD
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.links import put_link, settle_ring
from gossamer.protocol.peer.state.state import make_state
from gossamer.protocol.peer.step import restart, subscribe
from support import overlays
from support.overlays import HANDLE, Hosts

NODES, RING = 14, 2
HALF_RING: overlays.Box = ((0, RING_MASK >> 1),)


def overlay(heartbeat_rounds: int = 2, **changes: Any) -> Hosts:
    links = {"ring_links": RING, "small_world_links": 2, "friend_links": 3, "failure_age": 6}
    rounds = {"view_size": 6, "shuffle_length": 3, "heartbeat_rounds": heartbeat_rounds}
    return Hosts.ring(overlays.SMALL, NODES, 4, **links, **rounds, **changes)


@pytest.fixture
def hosts() -> Hosts:
    return overlay()


def wants_answer(hosts: Hosts, words: Words) -> int:
    return int(words[BODY + 1 + hosts.state.link_profile.shape[2]])


def asked(hosts: Hosts, p: int) -> dict[int, int]:
    """Whether each neighbour is asked for an answer at the next installation, by slot."""
    slot_of = {int(w) & HANDLE: k for k, w in enumerate(hosts.state.links[p]) if w >= 0}
    sent = hosts.step(p, overlays.record(records.INSTALL_TIMER, p, p))
    return {slot_of[int(words[TO])]: wants_answer(hosts, words) for words in sent}


@pytest.mark.parametrize("kind", [records.INSTALL, records.INSTALL_NEWS])
@pytest.mark.parametrize("boxes", [[], [(0, HALF_RING)]])
@pytest.mark.parametrize("answer", [False, True])
def test_an_installation_is_answered_if_that_is_wanted(
    hosts: Hosts, kind: int, boxes: list[tuple[int, overlays.Box]], answer: bool
) -> None:
    """The first time, and again when nothing has changed."""
    source = hosts.neighbours(0)[-1]
    words = overlays.install_record(hosts.state, kind, 0, source, boxes, answer=answer)
    for _ in range(2):
        sent = hosts.step(0, words)
        answers = [(int(w[TO]), int(w[FROM])) for w in sent if w[KIND] == records.ACKNOWLEDGE]
        assert answers == [(source, 0)] * answer


@pytest.mark.parametrize("heartbeat_rounds", [1, 2, 5])
def test_ring_neighbours_always_answer_and_others_when_silent(heartbeat_rounds: int) -> None:
    """Who holds nothing for us hears nothing else."""
    hosts = overlay(heartbeat_rounds)
    slots = hosts.state.links.shape[1]
    for age in range(7):
        hosts.state.links[0] = (hosts.state.links[0] & HANDLE) | age << 32
        expected = {k: 1 for k in range(slots) if k < 2 * RING or age >= heartbeat_rounds}
        assert asked(hosts, 0) == expected


def test_a_neighbour_that_answers_is_not_asked_again_at_once(hosts: Hosts) -> None:
    """An answer makes the link young; then it is asked for only in as many rounds as before."""
    last = hosts.state.links.shape[1] - 1
    hosts.state.links[0, last] += 2 << 32
    assert {k for k, answer in asked(hosts, 0).items() if answer} == {*range(2 * RING), last}
    hosts.install(0)
    assert hosts.state.links[0, last] >> 32 == 0
    assert last not in asked(hosts, 0)


def test_who_holds_something_or_is_to_hold_nothing_more_is_written_to(hosts: Hosts) -> None:
    hosts.subscribe(0, (0, RING_MASK))
    slots = hosts.state.links.shape[1]
    assert asked(hosts, 0) == {k: int(k < 2 * RING) for k in range(slots)}
    hosts.install(0, (0, RING_MASK))
    hosts.state.constrained[0] = -1
    others = set(range(2 * RING, hosts.state.links.shape[1]))
    assert others <= set(asked(hosts, 0))
    assert not others & set(asked(hosts, 0))


def test_a_peer_that_is_only_asked_now_and_then_is_not_given_up(hosts: Hosts) -> None:
    """Nobody gossips: answers alone keep all links, each within the failure age."""
    before = [sorted(hosts.neighbours(p)) for p in range(NODES)]
    for _ in range(12):
        words = hosts.state.links
        words[words >= 0] += 1 << 32
        hosts.cycle(timers=(records.INSTALL_TIMER,))
        assert (words[words >= 0] >> 32 <= 2).all()
    assert [sorted(hosts.neighbours(p)) for p in range(NODES)] == before


def test_news_passed_on_or_sent_around_a_failed_peer_ask_for_no_answer(hosts: Hosts) -> None:
    hosts.install(0, *HALF_RING)
    passed_on = hosts.of_kind(records.INSTALL_NEWS)
    hosts = overlay(reroute=True)
    gone = hosts.neighbours(0)[0]
    words = overlays.install_record(hosts.state, records.INSTALL, gone, 0, [(0, ((0, RING_MASK),))])
    words[KIND] += UNREACHABLE
    for news in (passed_on, [w for w in hosts.step(0, words) if w[KIND] == records.INSTALL_NEWS]):
        assert news
        assert not any(wants_answer(hosts, words) for words in news)


def test_new_successors_are_asked_for_an_answer_and_former_neighbours_not(hosts: Hosts) -> None:
    state = hosts.state
    hosts.install(0, (0, RING_MASK))
    last = state.links.shape[1] - 1
    former = int(state.links[0, last]) & HANDLE
    other = next(q for q in range(1, NODES) if q not in hosts.neighbours(0))
    put_link(state, 0, last, hosts.descriptor(other), 0)
    settle_ring(state, 0)
    sent = {int(w[TO]): w for w in hosts.step(0, overlays.record(records.INSTALL_TIMER, 0, 0))}
    assert wants_answer(hosts, sent[former]) == 0
    # So that it tells of anybody in between.
    hosts = overlay(stabilise=True)
    state = hosts.state
    second = int(state.links[0, 1]) & HANDLE
    gone = int(state.links[0, state.successor[0]]) & HANDLE
    after = hosts.step(0, overlays.record(records.TMAN_REQUEST + UNREACHABLE, gone, 0, [0]))
    greetings = [words for words in after if words[KIND] == records.INSTALL_NEWS]
    assert [(int(w[TO]), wants_answer(hosts, w)) for w in greetings] == [(second, 1)]
    (answer, *_) = hosts.step(second, greetings[0])
    assert (answer[KIND], answer[TO]) == (records.ACKNOWLEDGE, 0)


def test_what_an_answer_says_is_taken_in(hosts: Hosts) -> None:
    """The neighbour has moved since."""
    state = hosts.state
    other = int(state.links[0, 0]) & HANDLE
    state.sampler.profile[other, IDENTIFIER] -= 1
    hosts.handle(overlays.install_record(state, records.INSTALL, other, 0, []))
    np.testing.assert_array_equal(state.link_profile[0, 0], state.sampler.profile[other])


SILENT_NODES = 12


def silent_overlay(**changes: Any) -> Hosts:
    """A true ring of two links a side, whose neighbours ask each other in every round.

    Nobody learns that a peer is gone: records for it are lost, as in `reports_unreachable`.
    """
    settings = Settings(ring_links=2, friend_links=0, view_size=4, shuffle_length=2)
    hosts = Hosts.ring(settings, SILENT_NODES, 5, **changes)
    hosts.timers = (OVERLAY_TIMER, INSTALL_TIMER)  # no sampler brings new candidates
    hosts.loses = lambda words: not hosts.alive[words[TO]]
    return hosts


def linked_to(hosts: Hosts, gone: int) -> list[int]:
    return [p for p in range(SILENT_NODES) if hosts.alive[p] and gone in hosts.neighbours(p)]


def test_a_silent_neighbour_is_dropped_after_the_rounds_set_or_when_too_old() -> None:
    for rounds in (1, 3):
        hosts = silent_overlay(suspect_rounds=rounds)
        hosts.rounds(3)
        hosts.alive[4] = False
        # Asked in the first round, it has not answered when as many more have begun.
        hosts.rounds(rounds)
        assert linked_to(hosts, 4)
        hosts.rounds(1)
        assert linked_to(hosts, 4) == []
    hosts = silent_overlay(suspect_rounds=0, failure_age=6)
    assert hosts.state.asked.shape == (SILENT_NODES, 0)
    hosts.rounds(3)
    hosts.alive[4] = False
    hosts.rounds(5)
    assert linked_to(hosts, 4)
    hosts.rounds(12)
    assert linked_to(hosts, 4) == []


def test_nobody_is_suspected_who_answers_or_by_whom_hears_nobody() -> None:
    hosts = silent_overlay(suspect_rounds=1)
    before = [sorted(hosts.neighbours(p)) for p in range(SILENT_NODES)]
    hosts.rounds(12)
    assert [sorted(hosts.neighbours(p)) for p in range(SILENT_NODES)] == before
    assert (hosts.state.asked == -1).all()
    assert (hosts.state.failed == -1).all()
    # It is cut off itself, and would have no link left when it is back.
    hosts = silent_overlay(suspect_rounds=1, failure_age=20)
    hosts.rounds(3)
    held = hosts.neighbours(0)
    hosts.alive[:] = False
    hosts.alive[0] = True
    hosts.rounds(8)
    assert hosts.neighbours(0) == held


def test_a_question_to_one_is_not_held_against_another_in_its_slot() -> None:
    hosts = silent_overlay(suspect_rounds=2)
    hosts.rounds(3)
    state = hosts.state
    state.asked[0, :] = (int(state.round[0]) - 9) << 32 | 999
    held = hosts.neighbours(0)
    hosts.rounds(1)
    assert hosts.neighbours(0) == held
    assert 999 not in {int(word) & HANDLE for word in state.failed[0][state.failed[0] >= 0]}


def test_a_peer_that_starts_again_forgets_others_and_remembers_itself() -> None:
    """What was delivered stays known: replayed events meet it when the peer is back."""
    state = make_state(resilient(3), 3)
    subscribe(state, 1, np.array([[10, 20]]), np.array([1]))
    gone = ("links", "table_count", "event_copies", "successor", "load")
    views, kept = state.sampler.views, (state.delivered, state.sampler.draws)
    for array in (*(getattr(state, name) for name in gone), views, *kept):
        array[:] = 5
    before = overlays.copies_of(state)
    restart(state, 1)
    assert [set(getattr(state, name)[1].ravel()) for name in gone] == [{-1}, {0}, {-1}, {-1}, {0}]
    assert (views[1] == -1).all()
    now = overlays.copies_of(state)
    for name in ("delivered", "subscriptions", "constrained", "sampler.key", "sampler.draws"):
        np.testing.assert_array_equal(now[f"state.{name}"][1], before[f"state.{name}"][1], name)
    assert state.sampler.profile[1, [IDENTIFIER, LOAD]].tolist() == [state.sampler.key[1], 0]
    for name, array in now.items():
        np.testing.assert_array_equal(array[[0, 2]], before[name][[0, 2]], name)
