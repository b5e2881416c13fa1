"""Neighbours that do not answer are suspected, unless it is rather oneself who is cut off."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.protocol.kernel.records import TO
from gossamer.protocol.peer.record_table.records import INSTALL_TIMER, OVERLAY_TIMER
from gossamer.protocol.peer.settings.config import Settings
from support.overlays import HANDLE, Hosts

NODES = 12


def overlay(**changes: Any) -> Hosts:
    """A true ring of two links a side, whose neighbours ask each other in every round.

    Nobody learns that a peer is gone: records for it are lost, as in `reports_unreachable`.
    """
    settings = Settings(ring_links=2, friend_links=0, view_size=4, shuffle_length=2)
    hosts = Hosts.ring(settings, NODES, 5, **changes)
    hosts.timers = (OVERLAY_TIMER, INSTALL_TIMER)  # no sampler brings new candidates
    hosts.loses = lambda words: not hosts.alive[words[TO]]
    return hosts


def linked_to(hosts: Hosts, gone: int) -> list[int]:
    """Who has a link to a peer."""
    return [p for p in range(NODES) if hosts.alive[p] and gone in hosts.neighbours(p)]


def test_a_neighbour_that_does_not_answer_is_dropped_after_the_rounds_set() -> None:
    for rounds in (1, 3):
        hosts = overlay(suspect_rounds=rounds)
        hosts.rounds(3)
        hosts.alive[4] = False
        # Asked in the first round, it has not answered when as many more have begun.
        hosts.rounds(rounds)
        assert linked_to(hosts, 4)
        hosts.rounds(1)
        assert linked_to(hosts, 4) == []


def test_without_the_setting_a_silent_neighbour_stays_until_it_is_too_old() -> None:
    hosts = overlay(suspect_rounds=0, failure_age=6)
    assert hosts.state.asked.shape == (NODES, 0)
    hosts.rounds(3)
    hosts.alive[4] = False
    hosts.rounds(5)
    assert linked_to(hosts, 4)
    hosts.rounds(12)
    assert linked_to(hosts, 4) == []


def test_those_that_answer_are_never_suspected() -> None:
    hosts = overlay(suspect_rounds=1)
    before = [sorted(hosts.neighbours(p)) for p in range(NODES)]
    hosts.rounds(12)
    assert [sorted(hosts.neighbours(p)) for p in range(NODES)] == before
    assert (hosts.state.asked == -1).all()
    assert (hosts.state.failed == -1).all()


def test_who_hears_from_nobody_suspects_nobody() -> None:
    """It is cut off itself, and would have no link left when it is back."""
    hosts = overlay(suspect_rounds=1, failure_age=20)
    hosts.rounds(3)
    held = hosts.neighbours(0)
    hosts.alive[:] = False
    hosts.alive[0] = True
    hosts.rounds(8)
    assert hosts.neighbours(0) == held


def test_a_question_to_one_is_not_held_against_another_in_its_slot() -> None:
    hosts = overlay(suspect_rounds=2)
    hosts.rounds(3)
    state = hosts.state
    state.asked[0, :] = (int(state.round[0]) - 9) << 32 | 999
    held = hosts.neighbours(0)
    hosts.rounds(1)
    assert hosts.neighbours(0) == held
    assert 999 not in {int(word) & HANDLE for word in state.failed[0][state.failed[0] >= 0]}
    assert np.array_equal(np.sort(held), np.sort(hosts.neighbours(0)))
