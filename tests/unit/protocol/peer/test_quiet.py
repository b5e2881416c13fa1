"""A host may let a peer sleep for as many rounds as it is said to be quiet, and loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gossamer.protocol.kernel.records import KIND, TO, Words
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.quiet import quiet_rounds
from gossamer.protocol.peer.record_table.records import LINK_BROKE, SAMPLE_TIMER
from gossamer.protocol.peer.settings import presets
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.space.ring import RING_MASK, point_of
from gossamer.protocol.peer.state.links import note_asked
from gossamer.protocol.peer.state.resting import stir
from gossamer.protocol.peer.state.state import (
    FINGERS_UNTIL,
    INSTALLS_SOON,
    LEVEL,
    TO_HAND_ON,
    State,
)
from support.draws import with_campaigns
from support.overlays import Hosts, record, subscribe_to_box

NODES, REST = 12, 8
SIZES: dict[str, Any] = {
    "attributes": 2,
    "subscriptions": 2,
    "view_size": 6,
    "shuffle_length": 3,
    "rest_rounds": REST,
    "event_memory": 64,
    "routing_table_entries": 128,
    "replay_rounds": 4,
}
# Of a node: publications are acknowledged, and what is held is compared.
OF_A_NODE: dict[str, Any] = {
    "pending_publications": 4,
    "held_events": 64,
    "retention_rounds": 200,
    "entry_links": 0,
    "ring_offers": False,
    "acknowledged_hops": 0,
    "replay_backoff": False,
    "friend_links": 2,
}
SORTS: dict[str, Callable[[], Settings]] = {
    "kindred": lambda: presets.kindred(NODES, **SIZES, load_shifting=False),
    "a node": lambda: presets.kindred(NODES, **SIZES | OF_A_NODE, load_shifting=False),
    "load shifting": lambda: presets.kindred(NODES, **SIZES | {"shift_threshold": 0.01}),
    "resilient": lambda: presets.resilient(NODES, **SIZES | OF_A_NODE, suspect_rounds=2),
}


class Sleepers(Hosts):
    """Peers whose steps are compared with what was said of the rounds to come."""

    def __init__(self, state: State, settings: Settings) -> None:
        super().__init__(state, settings)
        self.until = state.round.copy()  # up to which round each has said that it sends nothing
        self.slept = 0

    def step(self, p: int, words: Words) -> list[Words]:
        s = self.state
        is_timer = words[KIND] in peer.TIMERS
        if words[KIND] == SAMPLE_TIMER:
            quiet = quiet_rounds.interpreted(s, p)
            assert s.round[p] + quiet >= self.until[p], "it said that it was quiet for longer"
            self.until[p] = s.round[p] + quiet
            self.asleep = quiet > 0
            self.slept += self.asleep
        level = s.rest[p, LEVEL]
        sent = super().step(p, words)
        if not is_timer:
            self.until[p] = 0
        elif self.asleep:
            assert not sent, (p, int(words[KIND]), sent)
            assert s.rest[p, LEVEL] == level
        return sent


def disturb(hosts: Sleepers, draws: np.random.Generator) -> None:
    """Let something happen: an event, another subscription, a broken link, a crash or a return."""
    p = int(draws.integers(NODES))
    what = draws.integers(6)
    if what == 0:
        hosts.alive[p] = not hosts.alive[p] or hosts.alive.sum() < NODES // 2
    elif not hosts.alive[p]:
        return
    elif what == 1:
        low, width = (int(draws.integers(RING_MASK // 2)) for _ in range(2))
        subscribe_to_box(
            hosts.state, p, (low, low + width), (0, RING_MASK), settings=hosts.settings
        )
        hosts.until[p] = 0
    elif what == 2:
        hosts.handle(record(LINK_BROKE, p, p, [int(draws.choice(hosts.neighbours(p) or [0]))]))
    else:
        hosts.until[p] = 0
        values = [int(draws.integers(RING_MASK)) for _ in range(2)]
        point = point_of(hosts.settings, values, int(draws.integers(RING_MASK)))
        hosts.handle(peer.publish_record(p, int(draws.integers(1 << 40)), np.array(point)))


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("sort", SORTS)
@with_campaigns("seed", [0], range(1, 8))
def test_a_peer_sends_nothing_for_as_long_as_it_says(sort: str, seed: int, silent: bool) -> None:
    settings = SORTS[sort]()
    hosts = Sleepers.ring(settings, NODES, seed)
    draws = np.random.default_rng(seed)
    if silent:
        hosts.loses = lambda words: not hosts.alive[words[TO]]
    for p in range(NODES):
        low = int(draws.integers(RING_MASK // 2))
        subscribe_to_box(
            hosts.state, p, (low, low + RING_MASK // 4), (0, RING_MASK), settings=settings
        )
    for _ in range(2):
        for _ in range(3):
            disturb(hosts, draws)
            hosts.rounds(int(draws.integers(1, 4)))
        hosts.rounds(3 * REST)
    print(f"{sort}, seed {seed}: asleep in {hosts.slept} of {hosts.state.round.sum()} rounds")
    assert hosts.slept > hosts.state.round.sum() / 8


def _asks_fingers(s: State) -> None:
    s.rest[0, FINGERS_UNTIL] = s.round[0] + 1


def _installs_soon(s: State) -> None:
    s.rest[0, INSTALLS_SOON] = 1


def _hands_on(s: State) -> None:
    s.alarm[0, TO_HAND_ON] = 1


def _is_awake(s: State) -> None:
    stir(s, 0)


def _suspects(s: State) -> None:
    note_asked(s, 0, 0)


@pytest.mark.parametrize("sort", ["kindred", "a node"])
@pytest.mark.parametrize(
    "happens", [_asks_fingers, _installs_soon, _hands_on, _is_awake, _suspects]
)
def test_who_has_something_to_do_is_not_quiet(sort: str, happens: Callable[[State], None]) -> None:
    hosts = Hosts.ring(SORTS[sort](), NODES)
    hosts.rounds(6 * REST)
    while quiet_rounds.interpreted(hosts.state, 0) == 0:
        hosts.cycle()
    happens(hosts.state)
    assert quiet_rounds.interpreted(hosts.state, 0) == 0


def test_who_may_not_rest_is_never_quiet() -> None:
    hosts = Hosts.ring(presets.kindred(NODES, **SIZES | {"rest_rounds": 1}), NODES)
    hosts.rounds(2 * REST)
    assert {quiet_rounds.interpreted(hosts.state, p) for p in range(NODES)} == {0}
