"""Small overlays in plain Python: made converged or run, record by record, without an engine."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Self

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel import records as kernel
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.record_table.records import DELIVER, EVENT, INSTALL_TIMER, SAMPLE_TIMER
from gossamer.protocol.peer.sampling import sampler as sampling
from gossamer.protocol.peer.sampling.sampler import pack
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_MASK, held_boxes
from gossamer.protocol.peer.state.links import put_link, settle_ring, write_own_descriptor
from gossamer.protocol.peer.state.lookup import next_hop
from gossamer.protocol.peer.state.state import BOX, State, make_state

Ints = npt.NDArray[np.int64]
HANDLE = (1 << 32) - 1

# Far more records than anything in an overlay of some dozen peers may cause.
ENDLESS = 200_000

Box = tuple[tuple[int, int], ...]
Boxes = Iterable[tuple[int, Box]]  # with their attributes

# What small overlays begin with; others set more.
SMALL = Settings(view_size=4, shuffle_length=2, load_shifting=False)
MENDING = {"join_lookup": True, "stabilise": True, "reroute": True}


def arrays_of(
    value: Any, name: str = "state", *, scratch: bool = False
) -> dict[str, npt.NDArray[Any]]:
    """Every array of a struct by its path, perhaps with those of scratch space."""
    if isinstance(value, np.ndarray):
        return {name: value}
    found: dict[str, npt.NDArray[Any]] = {}
    if isinstance(value, Struct):
        for field in type(value).__annotations__:
            if scratch or field not in ("work", "spare", "seen", "merges"):
                found |= arrays_of(getattr(value, field), f"{name}.{field}", scratch=scratch)
    return found


def copies_of(state: State) -> dict[str, npt.NDArray[Any]]:
    return {name: array.copy() for name, array in arrays_of(state).items()}


def changed_arrays(state: State, before: dict[str, npt.NDArray[Any]]) -> set[str]:
    """The paths, first word left off, of the arrays that differ from ``before``."""
    now = arrays_of(state)
    return {one.partition(".")[2] for one in before if not np.array_equal(before[one], now[one])}


def random_identifiers(nodes: int, seed: int) -> Ints:
    return np.random.default_rng(seed).integers(0, RING_MASK, nodes, np.int64, endpoint=True)


def true_rendezvous(identifiers: Iterable[int], value: int) -> int:
    """The index of the closest identifier at or after ``value``, wrapping: the definition."""
    return min(enumerate(identifiers), key=lambda item: (int(item[1]) - value) & RING_MASK)[0]


def converged(settings: Settings, identifiers: Ints, seed: int) -> State:
    """An overlay with the true ring, right arcs, and random other links and views.

    Fewer peers than link slots leave slots empty.
    """
    nodes = len(identifiers)
    state = make_state(settings, nodes, keys=identifiers.copy())
    order = np.argsort(identifiers, kind="stable")
    place = np.argsort(order, kind="stable")
    if nodes > 1:
        state.sampler.profile[:, ARC_START] = identifiers[order[place - 1]]
    draws = np.random.default_rng(seed)
    ring = settings.ring_links
    for p in range(nodes):
        wanted: list[int | None] = [None] * settings.links
        taken = {p}
        for r in range(ring):
            for side, step in ((0, 1), (1, -1)):
                other = int(order[(place[p] + step * (r + 1)) % nodes])
                if other not in taken:
                    taken.add(other)
                    wanted[side * ring + r] = other
        others = [int(q) for q in draws.permutation(nodes) if q not in taken]
        for k, other in zip(range(2 * ring, settings.links), others, strict=False):
            wanted[k] = other
        for k, neighbour in enumerate(wanted):
            if neighbour is not None:
                put_link.interpreted(state, p, k, descriptor(state, neighbour), 0)
        settle_ring.interpreted(state, p)
        view = [int(q) for q in draws.permutation(nodes) if q != p][: settings.view_size]
        for slot, q in enumerate(view):
            state.sampler.views[p, slot] = pack.interpreted(0, q)
            state.sampler.view_profile[p, slot] = state.sampler.profile[q]
    return state


def subscribe_to_box(
    state: State, p: int, *box: tuple[int, int], settings: Settings | None = None
) -> None:
    """Let ``p`` want one range of every attribute; the full range counts as no constraint.

    ``settings`` are needed where the overlay routes by keys.
    """
    mask = sum(1 << a for a, (low, high) in enumerate(box) if (low, high) != (0, RING_MASK))
    bounds = np.array([[bound for pair in box for bound in pair]], np.int64)
    held = bounds, np.array([mask])
    peer.subscribe(state, p, *(held if settings is None else held_boxes(settings, *held)))


def record(kind: int, to: int, source: int, body: Iterable[int] = ()) -> kernel.Words:
    words = [int(w) for w in body]
    return np.array([kernel.BODY + len(words), kind, to, source, *words], np.int64)


def descriptor(state: State, q: int, age: int = 0) -> kernel.Words:
    """The descriptor of peer ``q``, written ``age`` rounds ago."""
    words = np.zeros(1 + state.link_profile.shape[2], np.int64)
    write_own_descriptor.interpreted(state, q, words, 0)
    words[0] |= age << 32
    return words


def install_record(
    state: State, kind: int, to: int, source: int, boxes: Boxes, *, answer: bool = True
) -> kernel.Words:
    rows = [[a, *(bound for pair in box for bound in pair)] for a, box in boxes]
    body = [*descriptor(state, source), int(answer), len(rows), *(w for row in rows for w in row)]
    return record(kind, to, source, body)


def event_record(
    to: int,
    source: int,
    event: int,
    values: Iterable[int],
    *,
    attribute: int = 0,
    mode: int = 0,
    hops: int = 0,
    tree_hops: int = 0,
    origin: int = -1,
) -> kernel.Words:
    return record(EVENT, to, source, [event, attribute, mode, hops, tree_hops, origin, *values])


def written(out: kernel.Outbox) -> list[kernel.Words]:
    records = []
    at = int(out.cursor[kernel.HEAD])
    while at < out.cursor[kernel.TAIL]:
        end = at + int(out.words[at + kernel.LENGTH])
        records.append(out.words[at:end].copy())
        at = end
    return records


def neighbours(state: State, p: int) -> list[int]:
    """The handles among the links of ``p``, by slot."""
    return [int(w) & HANDLE for w in state.links[p] if w >= 0]


def entries(state: State, p: int) -> list[tuple[int, int, Box]]:
    """(source, attribute, ranges) of the content routing table of ``p``."""
    count = int(state.table_count[p])
    rows = zip(state.owner[p, :count].tolist(), state.table[p, :count].tolist(), strict=True)
    return [
        (owner & HANDLE, row[BOX], tuple(zip(row[BOX + 1 :: 2], row[BOX + 2 :: 2], strict=True)))
        for owner, row in rows
    ]


def arc_of(state: State, q: int) -> tuple[int, int]:
    """The arc that ``q`` answers for: where its predecessor is, and where it is itself."""
    me = int(state.sampler.profile[q, IDENTIFIER])
    slot = state.predecessor[q]
    return (int(state.link_profile[q, slot, IDENTIFIER]) if slot >= 0 else me), me


def misinform(state: State, seed: int) -> None:
    """Let three in ten of the identifiers and arcs that peers know of each other be wrong."""
    draws = np.random.default_rng(seed)
    for word in (IDENTIFIER, ARC_START):
        wrong = draws.random(state.links.shape) < 0.3
        state.link_profile[wrong, word] = draws.integers(0, RING_MASK, int(wrong.sum()))


def contains(box: Box, point: Iterable[int]) -> bool:
    return all(low <= value <= high for (low, high), value in zip(box, point, strict=True))


def ten_in_a_row(**changes: Any) -> Hosts:
    """Ten peers on a ring of nothing but ring links, unless asked for more.

    Peer p stands at (p + 1) * 100 and answers for the hundred values up to there; 0 for the rest.
    """
    least = {"friend_links": 0, "view_size": 2, "shuffle_length": 1, "event_memory": 4}
    return Hosts.ring(SMALL, range(100, 1001, 100), **{**least, **changes})


def mended(nodes: int, seed: int = 3, **changes: Any) -> Hosts:
    """A converged overlay with all that mends it, replicas of events and their replay."""
    links = {"ring_links": 3, "friend_links": 4, "view_size": 8, "shuffle_length": 4, "replicas": 2}
    return Hosts.ring(SMALL, nodes, seed, **{**links, **MENDING, **changes})


def nothing(_: kernel.Words) -> bool:
    return False


class Hosts:
    """Peers joined by one first-in first-out queue; what the cycle engine does, interpreted.

    Attributes:
        alive: bool[n]; records for others come back to their senders.
        served: (peer, event, hops, tree hops) in order of delivery.
        passed: every record that a peer took, as it was.
        loses: says of every record that somebody sends whether it is lost.
        timers: what a round gives every peer.
        largest: words that the largest step wrote.
    """

    def __init__(self, state: State, settings: Settings) -> None:
        self.state = state
        self.settings = settings
        self.alive = np.ones(len(state.round), np.bool_)
        self.now = 0
        self.served: list[tuple[int, int, int, int]] = []
        self.passed: list[kernel.Words] = []
        self.loses: Callable[[kernel.Words], bool] = nothing
        self.timers: tuple[int, ...] = peer.TIMERS
        self.largest = 0
        self._out = kernel.make_outbox(2 * peer.largest_step(settings))

    @classmethod
    def ring(cls, settings: Settings, places: Any, seed: int = 1, **changes: Any) -> Self:
        """A converged overlay at these places, or of so many peers at places that are drawn."""
        settings = attrs.evolve(settings, **changes)
        if isinstance(places, int):
            places = random_identifiers(places, seed)
        return cls(converged(settings, np.array(places, np.int64), seed), settings)

    @property
    def state(self) -> State:
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = state
        self._unboxed = state.unboxed()

    def step(self, p: int, words: kernel.Words) -> list[kernel.Words]:
        """Let ``p`` take one record; return what it wrote."""
        self._out.cursor[:] = 0
        peer.step(self._unboxed, p, self.now, words, 0, self._out)
        assert self._out.cursor[kernel.REFUSED] == 0, "the outbox was too small"
        self.largest = max(self.largest, int(self._out.cursor[kernel.TAIL]))
        return [record for record in written(self._out) if not self.loses(record)]

    def handle(self, *records: kernel.Words) -> None:
        """Take records, and all that follows from them, until none is left."""
        queue = deque(words.copy() for words in records)
        taken = 0
        while queue:
            taken += 1
            assert taken < ENDLESS, "the records cause each other without end"
            words = queue.popleft()
            to = int(words[kernel.TO])
            if not self.alive[to]:
                to = int(words[kernel.FROM])
                if words[kernel.KIND] >= kernel.UNREACHABLE or not self.alive[to]:
                    continue
                words[kernel.KIND] += kernel.UNREACHABLE
            elif words[kernel.KIND] == DELIVER:
                event, hops, tree_hops = (int(w) for w in words[kernel.BODY : kernel.BODY + 3])
                self.served.append((to, event, hops, tree_hops))
                continue
            else:
                self.passed.append(words.copy())
            queue.extend(self.step(to, words))

    def cycle(
        self,
        order: Iterable[int] | None = None,
        timers: Iterable[int] = (),
        before_turn: Callable[[int], None] | None = None,
    ) -> None:
        """Give every peer that is up its timers, in ``order``."""
        for p in range(len(self.alive)) if order is None else order:
            if self.alive[p]:
                if before_turn is not None:
                    before_turn(int(p))
                for timer in timers or self.timers:
                    self.handle(record(timer, int(p), int(p)))
        self.now += 1

    def rounds(self, count: int, *timers: int) -> None:
        for _ in range(count):
            self.cycle(timers=timers)

    def tick(self, p: int, timer: int) -> None:
        self.handle(record(timer, p, p))

    def subscribe(self, p: int, *box: tuple[int, int]) -> None:
        subscribe_to_box(self.state, p, *box)

    def install(self, p: int, *box: tuple[int, int]) -> None:
        """Let ``p`` install what it wants: one range of every attribute, if some are given."""
        if box:
            self.subscribe(p, *box)
        self.tick(p, INSTALL_TIMER)

    def entries(self, p: int) -> list[tuple[int, int, Box]]:
        return entries(self.state, p)

    def neighbours(self, p: int) -> list[int]:
        return neighbours(self.state, p)

    def descriptor(self, q: int, age: int = 0) -> kernel.Words:
        return descriptor(self.state, q, age)

    def of_kind(self, kind: int) -> list[kernel.Words]:
        return [words for words in self.passed if words[kernel.KIND] == kind]

    def rendezvous(self, value: int) -> int:
        """The rendezvous node of a value among peers that are up."""
        up: list[int] = np.flatnonzero(self.alive).tolist()
        return up[true_rendezvous(self.identifiers()[up].tolist(), value)]

    def publish(self, p: int, event: int, *values: int) -> list[int]:
        """Publish at ``p``; return who was served, in order, once for every time."""
        before = len(self.served)
        self.handle(peer.publish_record(p, event, np.array(values, np.int64)))
        return [server for server, *_ in self.served[before:]]

    def lookup(self, p: int, value: int) -> list[int]:
        """The peers that a lookup passes, from ``p`` to the last; stops at n + 1 of them."""
        path = [p]
        while len(path) <= len(self.alive):
            hop = next_hop(self.state, path[-1], value)
            if hop < 0:
                break
            path.append(int(self.state.links[path[-1], hop >> 1]) & HANDLE)
        return path

    def identifiers(self) -> Ints:
        return self.state.sampler.profile[:, IDENTIFIER]


# Samplers alone.


STATE_ARRAYS = ("key", "handle", "draws", "profile", "views", "view_profile")


def ring_sampler(
    nodes: int, name: str, view_size: int, shuffle: int, profile_words: int, seed: int
) -> sampling.SamplerState:
    """Peers that know their next neighbours on a ring; every profile word tells its owner."""
    sampler = sampling.make_sampler(nodes, name, view_size, shuffle, profile_words, seed)
    sampler.profile[:] = profile_of(np.arange(nodes), profile_words)
    for p in range(nodes):
        for slot in range(min(view_size, nodes - 1)):
            other = (p + 1 + slot) % nodes
            sampler.views[p, slot] = sampling.pack(0, other)
            sampler.view_profile[p, slot] = sampler.profile[other]
    return sampler


def profile_of(handles: kernel.Words, profile_words: int) -> kernel.Words:
    """The profile that `ring_sampler` gives to peers."""
    return handles[:, None] * 1000 + np.arange(profile_words)


def timer_record(p: int) -> kernel.Words:
    return record(SAMPLE_TIMER, p, p)


def descriptors_of(sampler: sampling.SamplerState, p: int) -> list[tuple[int, int]]:
    """(freshness, handle) of row p's view, in order."""
    words = sampler.views[p][sampler.views[p] != sampling.EMPTY]
    return [(int(w) >> 32 & (1 << 29) - 1, int(w) & (1 << 32) - 1) for w in words]


def take(
    sampler: sampling.SamplerState, p: int, words: kernel.Words, now: int = 0
) -> list[kernel.Words]:
    """Hand row p one record; returns what it writes."""
    out = kernel.make_outbox(4096)
    sampling.sample_step(sampler, p, now, words, 0, out)
    return written(out)


def run_cycle(sampler: sampling.SamplerState, alive: Any, order: kernel.Words, now: int) -> None:
    """One cycle as the cycle engine runs it, in plain Python."""
    for p in order:
        if not alive[p]:
            continue
        queue = [timer_record(int(p))]
        while queue:
            words = queue.pop(0)
            to = int(words[kernel.TO])
            if not alive[to]:
                to = int(words[kernel.FROM])
                words[kernel.KIND] += kernel.UNREACHABLE
            queue.extend(take(sampler, to, words, now))


def states_equal(one: sampling.SamplerState, other: sampling.SamplerState) -> bool:
    """Whether two samplers hold the same state, work areas apart."""
    return all(np.array_equal(getattr(one, a), getattr(other, a)) for a in STATE_ARRAYS)
