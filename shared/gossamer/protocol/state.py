"""The state of peers: struct of arrays, one row a peer.

The simulator allocates a row a node, a node allocates one row. A rule reads and writes its own row
only; `Work` holds scratch space that no rule expects to find as it left it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gossamer.protocol.config import Parameters, Settings
from gossamer.protocol.overlay.sampling import SamplerState, make_sampler
from gossamer.protocol.space.ring import RING_MASK
from gossamer.protocol.struct import Struct

Int64s = npt.NDArray[np.int64]

# Words of a profile, the part of a descriptor that says who a peer is and what it wants.
KEY, IDENTIFIER, ARC_START, LOAD, RANGES = 0, 1, 2, 3, 4

# Words of a content routing table entry; from BOX on, the words of a box: the attribute it is
# routed by, then the lowest and highest value of every attribute.
SOURCE, EXPIRES, SOURCE_IDENTIFIER, BOX = 0, 1, 2, 3

# Columns of `State.counters`: things that happen to a peer and that its owner should know.
FALSE_POSITIVES = 0  # events taken from a tree that nothing here wanted
MERGED = 1  # subscriptions merged with a loss of precision
REFUSED_ENTRIES = 2  # subscriptions that found no room
HOPS_EXCEEDED = 3  # event copies dropped at the hop limit
REPLAYED = 4  # remembered events handed to new subscriptions
MALFORMED = 5  # records ignored because their lengths contradict
SHIFTED = 6  # moves of the identifier
REPEATED = 7  # event copies taken a second time and dropped
COUNTERS = 8

STAMP_SLOTS = 1024


class Work(Struct):
    """Scratch space of one thread.

    Attributes:
        candidates: int64[candidates, 1 + W], descriptors under selection.
        score: float64[candidates], friend utilities of them.
        chosen: int64[candidates], 1 where a candidate already holds a slot.
        stamp, stamp_slot: int64[1024], direct-mapped table of candidates by handle.
        marks: int64[4]: epoch of the stamps, number of candidates.
        bounds, hops: int64[K + 1], arcs of the ring by next hop (see `rendezvous.showering`).
        box: int64[1 + 2A], the box in hand.
        hull: int64[1 + 2A].
        lists: int64[(K + 1) * B, 1 + 2A], aggregated boxes per next hop, and one list more.
        counts: int64[K + 1].
        news: int64[B], what is to be done with each box of a message.
        told: int64[T], neighbours that were sent the event in hand.
    """

    candidates: Int64s
    score: npt.NDArray[np.float64]
    chosen: Int64s
    stamp: Int64s
    stamp_slot: Int64s
    marks: Int64s
    bounds: Int64s
    hops: Int64s
    box: Int64s
    hull: Int64s
    lists: Int64s
    counts: Int64s
    news: Int64s
    told: Int64s


class State(Struct):
    """All rows of all peers of one overlay.

    With n rows, K link slots, C view slots, W profile words, A attributes, S subscriptions,
    T routing table entries, F remembered failures and L remembered events:

    Attributes:
        params: the settings as integers.
        sampler: the peer sampling layer; holds keys, handles, draw counters and own profiles.
        round: int64[n], rounds this peer has been through.
        links: int64[n, K, 1 + W], descriptors of neighbours: R successors, R predecessors, K_sw
            small-world links, K_f friends; first word age << 32 | handle, or -1.
        successor, predecessor: int64[n], slots of the nearest neighbours on the ring, or -1.
        offsets: int64[n, K_sw], clockwise distances at which small-world links are sought.
        failed: int64[n, F], round << 32 | handle of peers found dead, -1 where none.
        constrained: int64[n, S], bit a set where subscription s constrains attribute a; -1 where
            there is no subscription.
        subscriptions: int64[n, S, 2A], lowest and highest hashed value of every attribute.
        primary: int64[n], the primary attribute.
        table: int64[n, T, 4 + 2A], the content routing table.
        table_count: int64[n].
        installed_at: int64[n, K], handles that last round's subscriptions went to, -1 none.
        event_copies: int64[n, L], copies of events seen (event * A + attribute), -1 none.
        event_rounds, event_values: int64[n, L] and [n, L, A], when they came and what they say.
        event_hops: int64[n, L].
        event_next: int64[n], the slot that the next one takes.
        delivered: int64[n, L], events handed to the application, -1 none.
        delivered_next: int64[n].
        load: int64[n], events taken as rendezvous node without interest, fading (see `config`).
        counters: int64[n, COUNTERS].
    """

    params: Parameters
    sampler: SamplerState
    round: Int64s
    links: Int64s
    successor: Int64s
    predecessor: Int64s
    offsets: Int64s
    failed: Int64s
    constrained: Int64s
    subscriptions: Int64s
    primary: Int64s
    table: Int64s
    table_count: Int64s
    installed_at: Int64s
    event_copies: Int64s
    event_rounds: Int64s
    event_values: Int64s
    event_hops: Int64s
    event_next: Int64s
    delivered: Int64s
    delivered_next: Int64s
    load: Int64s
    counters: Int64s
    work: Work


def profile_words(settings: Settings) -> int:
    """W, the words of a profile."""
    return RANGES + 2 * settings.attributes * settings.profile_ranges


def make_work(settings: Settings) -> Work:
    """Scratch space large enough for any rule under ``settings``."""
    slots = settings.links + 1
    candidates = 2 * settings.links + settings.view_size + 8
    box_words = 1 + 2 * settings.attributes
    return Work(
        candidates=np.zeros((candidates, 1 + profile_words(settings)), np.int64),
        score=np.zeros(candidates),
        chosen=np.zeros(candidates, np.int64),
        stamp=np.zeros(STAMP_SLOTS, np.int64),
        stamp_slot=np.zeros(STAMP_SLOTS, np.int64),
        marks=np.zeros(4, np.int64),
        bounds=np.zeros(slots, np.int64),
        hops=np.zeros(slots, np.int64),
        box=np.zeros(box_words, np.int64),
        hull=np.zeros(box_words, np.int64),
        lists=np.zeros((slots * settings.boxes_per_neighbour, box_words), np.int64),
        counts=np.zeros(slots, np.int64),
        news=np.zeros(settings.boxes_per_neighbour, np.int64),
        told=np.zeros(settings.routing_table_entries, np.int64),
    )


def make_state(
    settings: Settings, nodes: int, keys: Int64s | None = None, identifiers: Int64s | None = None
) -> State:
    """Rows for ``nodes`` peers that know nobody and want nothing.

    Args:
        settings: shared by all rows.
        nodes: number of rows n.
        keys: int64[n], permanent keys in [0, 2^62); drawn from the seed where not given.
        identifiers: int64[n], places on the ring; the keys where not given, which are uniform
            as the paper asks (Sec. IV-A).
    """
    if keys is None:
        draws = np.random.Generator(np.random.Philox(key=settings.seed))
        keys = draws.integers(0, RING_MASK, nodes, dtype=np.int64, endpoint=True)
    sampler = make_sampler(
        nodes,
        ("cyclon", "newscast").index(settings.sampler),
        settings.view_size,
        settings.shuffle_length,
        profile_words(settings),
        settings.seed,
        keys,
    )
    sampler.profile[:, KEY] = sampler.key
    sampler.profile[:, IDENTIFIER] = sampler.key if identifiers is None else identifiers
    sampler.profile[:, ARC_START] = sampler.profile[:, IDENTIFIER]
    sampler.profile[:, RANGES::2] = RING_MASK
    a, memory = settings.attributes, settings.event_memory
    entry_words = BOX + 1 + 2 * a
    return State(
        params=settings.parameters(),
        sampler=sampler,
        round=np.zeros(nodes, np.int64),
        links=_empty(nodes, settings.links, 1 + profile_words(settings)),
        successor=_empty(nodes),
        predecessor=_empty(nodes),
        offsets=_empty(nodes, settings.small_world_links),
        failed=_empty(nodes, settings.failures_remembered),
        constrained=_empty(nodes, settings.subscriptions),
        subscriptions=np.zeros((nodes, settings.subscriptions, 2 * a), np.int64),
        primary=np.zeros(nodes, np.int64),
        table=np.zeros((nodes, settings.routing_table_entries, entry_words), np.int64),
        table_count=np.zeros(nodes, np.int64),
        installed_at=_empty(nodes, settings.links),
        event_copies=_empty(nodes, memory),
        event_rounds=np.zeros((nodes, memory), np.int64),
        event_values=np.zeros((nodes, memory, a), np.int64),
        event_hops=np.zeros((nodes, memory), np.int64),
        event_next=np.zeros(nodes, np.int64),
        delivered=_empty(nodes, memory),
        delivered_next=np.zeros(nodes, np.int64),
        load=np.zeros(nodes, np.int64),
        counters=np.zeros((nodes, COUNTERS), np.int64),
        work=make_work(settings),
    )


def _empty(*shape: int) -> Int64s:
    return np.full(shape, -1, np.int64)
