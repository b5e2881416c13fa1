"""Whatever goes wrong, acknowledged events reach all who asked for them, and nobody twice.

A small overlay under drawn faults: a promise that is broken is told as the steps that break it, as
few as there can be. What happens in a round is compiled; thousands of schedules take a minute or
two. Ten thousand: `pytest --all --draws 10000 tests/property/test_promises.py`.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import Any, Final

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import (
    FROM,
    HEAD,
    KIND,
    LENGTH,
    OPEN,
    REFUSED,
    TAIL,
    TO,
    UNREACHABLE,
    Outbox,
    Words,
    make_outbox,
)
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.commands import join_record, largest_step, publish_record
from gossamer.protocol.peer.record_table.records import (
    DELIVER,
    EVENT_ID,
    HELD,
    INSTALL_TIMER,
    LINK_BROKE,
    OVERLAY_TIMER,
    PUBLISHED,
    ROUNDS_SKIPPED,
    SAMPLE_TIMER,
)
from gossamer.protocol.peer.settings import presets
from gossamer.protocol.peer.space.ring import RING_MASK, held_boxes, points_of
from gossamer.protocol.peer.state.state import State, make_state
from gossamer.protocol.peer.topology.placement import want_place
from support.overlays import Ints, record

PEERS: Final = 6
DOWN, UP, PAUSED = 0, 1, 2
# Rounds in which an overlay finds together, and in which all that is missing is found.
FORM_ROUNDS: Final = 12
REPAIR_ROUNDS: Final = 60
MOST_SERVED: Final = 1 << 14
PRESETS: Final = {"kindred": presets.kindred, "resilient": presets.resilient}
MEMORY: Final = {"event_memory": 256, "held_events": 256, "pending_publications": 64}


@rule
def pump(
    s: State,
    now: int,
    state_of: Any,
    reaches: Any,
    out: Outbox,
    served: Any,
    answered: Any,
    counts: Any,
) -> None:
    """Take all records in the outbox, and what follows from them, until none is left.

    Peers are up, down or paused as `state_of` says, and the first of `reaches` can send to the
    second. `served` are peers and what they were handed, `answered` publications that were
    acknowledged; `counts` says how many.
    """
    while out.cursor[HEAD] < out.cursor[TAIL] and out.cursor[REFUSED] == 0:
        at = out.cursor[HEAD]
        kind = out.words[at + KIND]
        to = out.words[at + TO]
        source = out.words[at + FROM]
        if to == source and DELIVER <= kind <= HELD:
            if kind == DELIVER:
                served[counts[0], 0] = to
                served[counts[0], 1] = out.words[at + 4 + EVENT_ID]
                counts[0] += 1
            elif kind == PUBLISHED:
                answered[counts[1]] = out.words[at + 4]
                counts[1] += 1
        elif to == source or (state_of[to] == UP and reaches[source, to] == 1):
            peer.step(s, to, now, out.words, at, out)
        elif state_of[to] == DOWN and reaches[source, to] == 1 and state_of[source] == UP:
            out.words[at + KIND] = kind + UNREACHABLE
            peer.step(s, source, now, out.words, at, out)
        out.cursor[HEAD] = at + out.words[at + LENGTH]
    out.cursor[HEAD] = 0
    out.cursor[TAIL] = 0


@attrs.frozen
class Want:
    low: int
    high: int
    since: int


class World:
    """So many peers of a preset that form an overlay, and what goes wrong for them."""

    def __init__(self, preset: str, peers: int, seed: int) -> None:
        self.settings = PRESETS[preset](16, seed=seed, retention_rounds=10_000, **MEMORY)
        self.draws = random.Random(seed)
        self.n = peers
        keys = np.array([self.draws.randrange(RING_MASK) for _ in range(peers)], np.int64)
        self.state = make_state(self.settings, peers, keys)
        self.state_of = np.full(peers, UP, np.int64)
        self.reaches = np.ones((peers, peers), np.int64)
        self.now = 0
        self.values: dict[int, int] = {}
        self.published_at: dict[int, int] = {}
        self.excused = set[int]()
        self.wanted: list[list[Want]] = [[] for _ in range(peers)]
        self._skipped = np.zeros(peers, np.int64)
        self._served = np.zeros((MOST_SERVED, 2), np.int64)
        self._answered = np.zeros(MOST_SERVED, np.int64)
        self._counts = np.zeros(2, np.int64)
        self._out = make_outbox(64 * largest_step(self.settings))
        for p in range(peers):
            self.want(p)
        for p in range(1, peers):
            self.join(p, self.draws.randrange(p))
            self.rounds(1)
        self.rounds(FORM_ROUNDS)

    def handle(self, *records: Words) -> None:
        """Let peers take these records, and all that follows from them."""
        for words in records:
            tail = int(self._out.cursor[TAIL])
            self._out.words[tail : tail + len(words)] = words
            self._out.cursor[TAIL] = tail + len(words)
        taken = (self._served, self._answered, self._counts)
        pump.compiled(self.state, self.now, self.state_of, self.reaches, self._out, *taken)
        assert self._out.cursor[REFUSED] == self._out.cursor[OPEN] == 0

    def rounds(self, count: int) -> None:
        for _ in range(count):
            for p in self.draws.sample(range(self.n), self.n):
                if self.state_of[p] == UP:
                    timers = (SAMPLE_TIMER, OVERLAY_TIMER, INSTALL_TIMER)
                    self.handle(*(record(timer, p, p) for timer in timers))
            self.now += 1

    def join(self, p: int, contact: int) -> None:
        self.handle(join_record(p, contact, self.state.sampler.profile[contact]))

    def want(self, p: int) -> None:
        """Let a reader ask for another range, and nothing else; its peer may move for that."""
        low = self.draws.randrange(RING_MASK)
        high = min(RING_MASK, low + RING_MASK // self.draws.randrange(1, 5))
        bounds, mask = np.array([[low, high]], np.int64), np.array([1])
        peer.subscribe(self.state, p, *held_boxes(self.settings, bounds, mask))
        if self.settings.placement == "interest":
            want_place(self.state, self.settings, p, bounds, mask)
        self.wanted[p].append(Want(low, high, self.now))
        if self.state_of[p] == UP:
            self.handle(record(INSTALL_TIMER, p, p))

    def publish(self, p: int) -> None:
        event = len(self.values)
        value = self.draws.randrange(RING_MASK)
        self.values[event], self.published_at[event] = value, self.now
        drawn = np.array([self.draws.randrange(1 << 58)])
        (point,) = points_of(self.settings, np.array([[value]], np.int64), drawn)
        self.handle(publish_record(p, event, point))

    def crash(self, p: int) -> None:
        """Let a peer forget all that it holds; what nobody else holds by then is not promised."""
        if self.state_of[p] != DOWN:
            self.state_of[p] = DOWN
            peer.restart.interpreted(self.state, p)
            held = set[int]().union(*(self.held(q) for q in range(self.n)))
            self.excused |= self.acknowledged - held

    def start(self, p: int) -> None:
        if self.state_of[p] == DOWN:
            self._be_back(p)

    def pause(self, p: int) -> None:
        if self.state_of[p] == UP:
            self.state_of[p] = PAUSED

    def resume(self, p: int) -> None:
        if self.state_of[p] == PAUSED:
            self._be_back(p)
            self._break(p, range(self.n))

    def _be_back(self, p: int) -> None:
        self.state_of[p] = UP
        skipped = self.now - int(self.state.round[p] + self._skipped[p])
        self._skipped[p] += skipped
        self.handle(record(ROUNDS_SKIPPED, p, p, [skipped]))
        others = [q for q in range(self.n) if q != p and self.is_linkable(p, q)]
        if others:
            self.join(p, self.draws.choice(others))

    def is_linkable(self, p: int, q: int) -> bool:
        both = self.reaches[p, q] and self.reaches[q, p]
        return bool(both and self.state_of[p] == self.state_of[q] == UP)

    def cut(self, island: int) -> None:
        """Let peers whose bits are set in ``island`` and the others not reach each other."""
        sides = np.array([(island >> p) & 1 for p in range(self.n)])
        self.reaches[sides[:, None] != sides] = 0

    def mute(self, p: int, q: int) -> None:
        if p != q:
            self.reaches[p, q] = 0

    def heal(self) -> None:
        """Let everybody reach everybody; connections broke, and some dial the others anew."""
        apart = [(p, q) for p in range(self.n) for q in range(self.n) if not self.reaches[p, q]]
        self.reaches[:] = 1
        for p, q in apart:
            self._break(p, [q])
            self._break(q, [p])
            if self.is_linkable(p, q):
                self.join(q, p)

    def _break(self, p: int, others: Any) -> None:
        if self.state_of[p] == UP:
            self.handle(*(record(LINK_BROKE, p, p, [q]) for q in others if q != p))

    @property
    def acknowledged(self) -> set[int]:
        return set(self._answered[: self._counts[1]].tolist())

    def held(self, p: int) -> set[int]:
        log = self.state.held
        copies: Ints = log.copies[p, : min(int(log.next[p]), log.copies.shape[1])]
        return set((copies[copies >= 0] // self.state.params.attributes).tolist())

    def settle(self) -> None:
        self.heal()
        for p in range(self.n):
            self.resume(p)
            self.start(p)
        self.rounds(REPAIR_ROUNDS)

    def broken(self) -> dict[str, Any]:
        """Which promises are broken: who misses what, and who was handed what twice."""
        served = [tuple(one) for one in self._served[: self._counts[0]].tolist()]
        times, got = Counter(served), set(served)
        owed = self.acknowledged - self.excused
        missing = {
            p: sorted(event for event in owed if self.is_due(p, event) and (p, event) not in got)
            for p in range(self.n)
        }
        twice = sorted(one for one, count in times.items() if count > 1)
        found = {"missing": {p: events for p, events in missing.items() if events}}
        return {name: what for name, what in {**found, "twice": twice}.items() if what}

    def is_due(self, p: int, event: int) -> bool:
        """Whether a reader asked for an event when it was published, and does so still."""
        want = self.wanted[p][-1]
        in_force = want.since + 4 <= self.published_at[event]
        return in_force and want.low <= self.values[event] <= want.high


peers = st.integers(0, PEERS - 1)
STEPS = st.one_of(
    st.tuples(st.just("rounds"), st.integers(1, 30)),
    st.tuples(st.just("publish"), peers),
    st.tuples(st.just("publish"), peers),
    st.tuples(st.sampled_from(["crash", "start", "pause", "resume", "want"]), peers),
    st.tuples(st.just("cut"), st.integers(1, (1 << PEERS) - 2)),
    st.tuples(st.just("mute"), peers, peers),
    st.tuples(st.just("heal")),
)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("preset", PRESETS)
@given(seed=st.integers(0, 1 << 20), schedule=st.lists(STEPS, max_size=30))
def test_nothing_acknowledged_is_lost_or_comes_twice(
    preset: str, seed: int, schedule: list[tuple[str, int]]
) -> None:
    world = World(preset, PEERS, seed)
    for name, *arguments in schedule:
        if name != "publish" or world.state_of[arguments[0]] == 1:
            getattr(world, name)(*arguments)
    world.settle()
    assert world.broken() == {}, f"seed {seed}"
