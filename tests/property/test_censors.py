"""A member that stands where a value has its rendezvous node, and keeps the events back.

`docs/kindred.md` says what it can do, what is lost, and how it is noticed.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import Any, Final

import numpy as np
import pytest

from gossamer.protocol.kernel.records import BODY, FROM, KIND, Words
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.rendezvous.publication import PENDING_EVENT
from gossamer.protocol.peer.settings.presets import kindred
from gossamer.protocol.peer.space import ring
from gossamer.protocol.peer.space import ring as scales
from gossamer.protocol.peer.step import subscribe
from gossamer.protocol.peer.topology.placement import want_place
from support.overlays import Hosts, record

NODES, CENSOR, EVENTS = 25, 24, 16
STEP: Final = ring.RING_MASK // (NODES - 1)
# Of the ring in steps: where peer `CENSOR` stands, and what it keeps back lies there.
PLACE = 12
# What it does with an event: nothing; acknowledge the hop; and answer the publisher, too.
DROPS, TAKES, ANSWERS = "drops", "takes", "answers"


class CensoredHosts(Hosts):
    """Hosts of which one passes no event on, and offers none."""

    manner = ""

    def copy(self) -> CensoredHosts:
        """The same peers where they are now, of which nobody was served yet."""
        copied = CensoredHosts(copy.deepcopy(self.state), self.settings)
        copied.now = self.now
        return copied

    def step(self, p: int, words: Words) -> list[Words]:
        if p != CENSOR or not self.manner:
            return super().step(p, words)
        if words[KIND] != records.EVENT:
            kept = (records.EVENT, records.REPLAY_OFFER, records.RING_OFFER)
            return [one for one in super().step(p, words) if one[KIND] not in kept]
        body = words[BODY:]
        copy = int(body[records.EVENT_ID] + body[records.EVENT_ATTRIBUTE])
        origin = int(body[records.EVENT_ORIGIN])
        said = []
        if self.manner != DROPS and body[records.EVENT_MODE] < records.TREE:
            said.append(record(records.EVENT_TAKEN, int(words[FROM]), CENSOR, [copy]))
        if self.manner == ANSWERS and origin >= 0:
            said.append(record(records.STORED, origin, CENSOR, [copy, 0]))
        return said


@cache
def overlay(wanting: int, **changes: Any) -> CensoredHosts:
    """Peers evenly on the ring; the first ``wanting`` on either side of the censor want its value.

    All others want what lies around them.
    """
    links = {"view_size": 6, "shuffle_length": 3, "move_rounds": 0, "entry_links": 0, "seed": 1}
    memory = {"held_events": 64, "retention_rounds": 40, "hop_limit": 64, "event_memory": 64}
    publishing = {"pending_publications": EVENTS, "replay_backoff": False}
    settings = kindred(NODES, **{**links, **memory, **publishing, **changes})
    places = np.arange(NODES, dtype=np.int64) * STEP
    places[CENSOR] = PLACE * STEP + STEP // 2
    hosts = CensoredHosts.ring(settings, places)
    hosts.state.links[:, settings.chosen_links :] = -1
    for p in range(NODES):
        reach = wanting * STEP if abs(p - PLACE) < wanting else STEP // 2
        middle = int(places[CENSOR]) if abs(p - PLACE) < wanting else int(places[p])
        low, high = max(middle - reach, 0), min(middle + reach, ring.RING_MASK)
        boxes, bits = np.array([[low, high]], np.int64), np.ones(1, np.int64)
        subscribe(hosts.state, p, *scales.held_boxes(settings, boxes, bits))
        want_place(hosts.state, settings, p, boxes, bits)
    hosts.rounds(12)
    return hosts


def outcome(wanting: int, manner: str, **changes: Any) -> tuple[float, int]:
    hosts = overlay(wanting, **changes).copy()
    hosts.manner = manner
    due = {p for p in range(NODES - 1) if abs(p - PLACE) < wanting}
    draws = np.random.default_rng(1)
    for event in range(EVENTS):
        value = int(hosts.identifiers()[CENSOR]) + int(draws.integers(-STEP // 8, STEP // 8))
        publisher = int(draws.choice([p for p in range(NODES - 1) if p not in due]))
        point = scales.points_of(hosts.settings, np.array([[value]]), np.array([event]))[0]
        hosts.publish(publisher, event, *point.tolist())
        hosts.cycle()
    hosts.rounds(8)
    served = [(p, event) for p, event, *_ in hosts.served if p in due]
    assert len(served) == len(set(served))
    waiting = int((hosts.state.pending[:, :, PENDING_EVENT] >= 0).sum())
    return len(served) / (len(due) * EVENTS), EVENTS - waiting


# How many want the value of the censor, where one number shows enough each time.
ONE, EIGHT = (pytest.param(wanting, marks=pytest.mark.campaign) for wanting in (1, 8))


@pytest.mark.parametrize("wanting", [ONE, 3, EIGHT])
def test_who_drops_what_comes_keeps_hardly_anything_back_and_is_noticed(wanting: int) -> None:
    """It is as silent as one that has failed: events go by another way, publishers wait."""
    assert outcome(wanting, "") == (1.0, EVENTS)
    delivered, answered = outcome(wanting, DROPS)
    assert delivered >= 0.9
    assert answered < EVENTS


@pytest.mark.parametrize("wanting", [ONE, 3])
@pytest.mark.parametrize("manner", [TAKES, ANSWERS])
def test_who_acknowledges_keeps_a_part_back_of_what_few_want(wanting: int, manner: str) -> None:
    """Publishers notice it unless they are answered, too; the documents say so."""
    delivered, answered = outcome(wanting, manner)
    assert 0.5 <= delivered < 1
    assert (answered == EVENTS) == (manner == ANSWERS)


@pytest.mark.parametrize("manner", [pytest.param(TAKES, marks=pytest.mark.campaign), ANSWERS])
def test_what_many_want_cannot_be_kept_back(manner: str) -> None:
    """Events enter their tree on the way, and neighbours offer each other what they took."""
    assert outcome(8, manner)[0] == 1.0


def test_without_the_rules_of_kindred_a_censor_keeps_more_back() -> None:
    """Without entering on the way and offers, what it acknowledges is lost to those below it."""
    without = {"enter_on_the_way": False, "ring_offers": False, "replicas": 0}
    assert outcome(8, ANSWERS, **without)[0] < 0.5
