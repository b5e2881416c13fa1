"""Heartbeats are answered where their sender asks for it (Vinifera, Sec. IV-C)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.protocol.kernel.records import BODY, FROM, KIND, TO, UNREACHABLE, Words
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.links import put_link, settle_ring
from support import overlays

NODES, RING, SMALL_WORLD, FRIENDS = 14, 2, 2, 3
HALF_RING: overlays.Box = ((0, RING_MASK >> 1),)


def overlay(heartbeat_rounds: int = 2, **changes: Any) -> overlays.Hosts:
    """Fourteen peers with links of every kind."""
    settings = Settings(
        ring_links=RING,
        small_world_links=SMALL_WORLD,
        friend_links=FRIENDS,
        view_size=6,
        shuffle_length=3,
        failure_age=6,
        heartbeat_rounds=heartbeat_rounds,
        load_shifting=False,
    )
    return overlays.Hosts.ring(settings, NODES, 4, **changes)


def wants_answer(hosts: overlays.Hosts, words: Words) -> int:
    """What an INSTALL says of an answer."""
    return int(words[BODY + 1 + hosts.state.link_profile.shape[2]])


def asked(hosts: overlays.Hosts, p: int) -> dict[int, int]:
    """Whether each neighbour is asked for an answer at the next installation, by slot."""
    slot_of = {int(w) & overlays.HANDLE: k for k, w in enumerate(hosts.state.links[p]) if w >= 0}
    sent = hosts.step(p, overlays.record(records.INSTALL_TIMER, p, p))
    return {slot_of[int(words[TO])]: wants_answer(hosts, words) for words in sent}


@pytest.mark.parametrize("kind", [records.INSTALL, records.INSTALL_NEWS])
@pytest.mark.parametrize("boxes", [[], [(0, HALF_RING)]])
@pytest.mark.parametrize("answer", [False, True])
def test_an_installation_is_answered_if_that_is_wanted(
    kind: int, boxes: list[tuple[int, overlays.Box]], answer: bool
) -> None:
    """The first time, and again when nothing has changed."""
    hosts = overlay()
    source = hosts.neighbours(0)[-1]
    words = overlays.install_record(hosts.state, kind, 0, source, boxes, answer=answer)
    for _ in range(2):
        sent = hosts.step(0, words)
        answers = [(int(w[TO]), int(w[FROM])) for w in sent if w[KIND] == records.ACKNOWLEDGE]
        assert answers == [(source, 0)] * answer


@pytest.mark.parametrize("heartbeat_rounds", [1, 2, 5])
def test_ring_neighbours_always_answer_and_others_when_not_heard_of_for_some_rounds(
    heartbeat_rounds: int,
) -> None:
    """Who holds nothing for us hears nothing else."""
    hosts = overlay(heartbeat_rounds)
    slots = hosts.state.links.shape[1]
    for age in range(7):
        hosts.state.links[0] = (hosts.state.links[0] & overlays.HANDLE) | age << 32
        expected = {k: 1 for k in range(slots) if k < 2 * RING or age >= heartbeat_rounds}
        assert asked(hosts, 0) == expected


def test_ages_are_judged_one_by_one() -> None:
    hosts = overlay()
    last = hosts.state.links.shape[1] - 1
    hosts.state.links[0, last] += 2 << 32
    answering = {k for k, answer in asked(hosts, 0).items() if answer}
    assert answering == {*range(2 * RING), last}


def test_a_neighbour_that_answers_is_not_asked_again_at_once() -> None:
    """An answer makes the link young; then it is asked for only in as many rounds as before."""
    hosts = overlay()
    last = hosts.state.links.shape[1] - 1
    hosts.state.links[0, last] += 2 << 32
    hosts.tick(0, records.INSTALL_TIMER)
    assert hosts.state.links[0, last] >> 32 == 0
    assert last not in asked(hosts, 0)


def test_a_neighbour_that_holds_something_is_written_to_and_not_asked() -> None:
    hosts = overlay()
    hosts.subscribe(0, (0, RING_MASK))
    slots = hosts.state.links.shape[1]
    assert asked(hosts, 0) == {k: int(k < 2 * RING) for k in range(slots)}


def test_a_neighbour_that_is_to_hold_nothing_more_is_told_once() -> None:
    hosts = overlay()
    hosts.subscribe(0, (0, RING_MASK))
    hosts.tick(0, records.INSTALL_TIMER)
    hosts.state.constrained[0] = -1
    others = set(range(2 * RING, hosts.state.links.shape[1]))
    assert others <= set(asked(hosts, 0))
    assert not others & set(asked(hosts, 0))


def test_a_peer_that_is_only_asked_now_and_then_is_not_given_up() -> None:
    """Nobody gossips: answers alone keep all links, each within the failure age."""
    hosts = overlay()
    before = [sorted(hosts.neighbours(p)) for p in range(NODES)]
    for _ in range(12):
        words = hosts.state.links
        words[words >= 0] += 1 << 32
        hosts.cycle(timers=(records.INSTALL_TIMER,))
        assert (words[words >= 0] >> 32 <= 2).all()
    assert [sorted(hosts.neighbours(p)) for p in range(NODES)] == before


def test_news_passed_on_ask_for_no_answer() -> None:
    hosts = overlay()
    hosts.subscribe(0, *HALF_RING)
    hosts.tick(0, records.INSTALL_TIMER)
    news = hosts.of_kind(records.INSTALL_NEWS)
    assert news
    assert not any(wants_answer(hosts, words) for words in news)


def test_news_sent_around_a_peer_that_failed_ask_for_no_answer() -> None:
    hosts = overlay(reroute=True)
    state = hosts.state
    gone = hosts.neighbours(0)[0]
    words = overlays.install_record(state, records.INSTALL, gone, 0, [(0, ((0, RING_MASK),))])
    words[KIND] += UNREACHABLE
    sent = [w for w in hosts.step(0, words) if w[KIND] == records.INSTALL_NEWS]
    assert sent
    assert not any(wants_answer(hosts, w) for w in sent)


def test_a_greeting_asks_the_new_successor_for_an_answer() -> None:
    """So that it tells of anybody in between."""
    hosts = overlay(stabilise=True)
    state = hosts.state
    second = int(state.links[0, 1]) & overlays.HANDLE
    gone = int(state.links[0, state.successor[0]]) & overlays.HANDLE
    sent = hosts.step(0, overlays.record(records.TMAN_REQUEST + UNREACHABLE, gone, 0, [0]))
    greetings = [words for words in sent if words[KIND] == records.INSTALL_NEWS]
    assert [(int(w[TO]), wants_answer(hosts, w)) for w in greetings] == [(second, 1)]
    (answer, *_) = hosts.step(second, greetings[0])
    assert (answer[KIND], answer[TO]) == (records.ACKNOWLEDGE, 0)


def test_a_former_neighbour_is_not_asked_for_an_answer() -> None:
    hosts = overlay()
    state = hosts.state
    hosts.subscribe(0, (0, RING_MASK))
    hosts.tick(0, records.INSTALL_TIMER)
    last = state.links.shape[1] - 1
    former = int(state.links[0, last]) & overlays.HANDLE
    other = next(q for q in range(1, NODES) if q not in hosts.neighbours(0))
    put_link(state, 0, last, hosts.descriptor(other), 0)
    settle_ring(state, 0)
    sent = {int(w[TO]): w for w in hosts.step(0, overlays.record(records.INSTALL_TIMER, 0, 0))}
    assert wants_answer(hosts, sent[former]) == 0


def test_what_an_answer_says_is_taken_in() -> None:
    """The neighbour has moved since."""
    hosts = overlay()
    state = hosts.state
    other = int(state.links[0, 0]) & overlays.HANDLE
    state.sampler.profile[other, IDENTIFIER] -= 1
    hosts.handle(overlays.install_record(state, records.INSTALL, other, 0, []))
    np.testing.assert_array_equal(state.link_profile[0, 0], state.sampler.profile[other])
