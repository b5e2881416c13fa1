"""The state of peers: struct of arrays, one row a peer.

The simulator allocates a row a node, a node allocates one row. A rule reads and writes its own row
only; `Work` holds scratch space that no rule expects to find as it left it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.rows.hash_chains import chains_of
from gossamer.protocol.kernel.struct import Rows, Struct
from gossamer.protocol.peer.sampling.sampler import SamplerState, make_sampler, sampler_columns
from gossamer.protocol.peer.settings.config import Parameters, Settings
from gossamer.protocol.peer.settings.profile import (
    ARC_START,
    IDENTIFIER,
    NOTHING,
    RANGES_OF_FRIENDS_ALONE,
)
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.event_logs import (
    COMPARISON_WORDS,
    Log,
    got_events,
    make_comparison,
    make_log,
)

Int64s = npt.NDArray[np.int64]

# Words of a content routing table entry; from BOX on, the words of a box: the attribute it is
# routed by, then the lowest and highest value of every attribute.
SOURCE_IDENTIFIER, BOX = 0, 1
# Set in the identifier of an entry that was handed over, until its owner asks for it itself.
HANDED_OVER = 1 << 62

# Words of `State.alarm`: the last round in which a peer's ring was disturbed; the round of its last
# repairs, and how many there were; the last round in which several neighbours were silent; the last
# round in which events were missed, how many were asked for in it, and how much less it asks for
# since some did not come; whether there are events that are to be handed on in the next turn; how
# many copies are under way, less one; and the first copies that were asked for in that round.
DISTURBED_IN, REPAIRED_IN, REPAIRS, SILENCE_IN = 0, 1, 2, 3
MISSED_IN, ASKED_FOR, MISS_LEVEL, TO_HAND_ON, UNDER_WAY, SAMPLE = 4, 5, 6, 7, 8, 9
SAMPLED = 8
ALARM_WORDS = SAMPLE + SAMPLED

# Words of a copy in `State.under_way`: the event copy (-1 where the place is free), who it was sent
# to and in which round, and the body of the record.
COPY, SENT_TO, SENT_IN, RECORD = 0, 1, 2, 3

# Words of `State.seat`, what a peer has to do with its place: the place it is to move to (-1 where
# it stays), the first round in which it may, the round of its last move with the neighbours it had
# until then, and how many new successors it has greeted in which round (round * `MOST_GREETINGS` +
# number).
WANTED, MOVES_FROM, MOVED_IN, OLD_PREDECESSOR, OLD_SUCCESSOR = 0, 1, 2, 3, 4
GREETINGS, SEAT_WORDS = 5, 6

# Words of `State.rest` (see `resting`): the level at which a peer rests; how many turns in a row it
# is to have; the last round in which it asks its fingers in any case; whether anything has changed
# that its installations follow from; the last round in which anybody was heard of; and the round
# since which a neighbour that has failed may have missed what it was sent, 0 for none.
LEVEL, AWAKE, FINGERS_UNTIL, INSTALLS_SOON, HEARD_IN, MISSED_SINCE, REST_WORDS = range(7)

# Columns of `State.counters`: things that happen to a peer and that its owner should know.
FALSE_POSITIVES = 0  # events taken from a tree, the first time, that nothing here wanted
MERGED = 1  # subscriptions merged with a loss of precision
REFUSED_ENTRIES = 2  # subscriptions that found no room
HOPS_EXCEEDED = 3  # event copies dropped at the hop limit
REPLAYED = 4  # remembered events handed to new subscriptions
MALFORMED = 5  # records ignored because their lengths contradict
SHIFTED = 6  # changes of the identifier
REPEATED = 7  # event copies taken a second time and dropped
FORGOTTEN = 8  # event copies forgotten that may still come again or be asked for
PUSHED_OUT = 9  # held copies that made room before their time was over
REPAIRS_TAKEN = 10  # copies that were lacking here when logs were compared
NOT_TAKEN = 11  # publications of its own that found no room to wait in
FAILURES_FORGOTTEN = 12  # failed peers forgotten whose old descriptors may still come
# What those who collect them call them.
COUNTER_NAMES = (
    "false_positives",
    "merged_subscriptions",
    "refused_subscriptions",
    "hop_limit_drops",
    "replayed_events",
    "malformed_records",
    "identifier_shifts",
    "repeated_copies",
    "forgotten_copies",
    "pushed_out_copies",
    "repaired_copies",
    "publications_not_taken",
    "forgotten_failures",
)
COUNTERS = len(COUNTER_NAMES)

# Places of `Work.link_place`, a power of two, many times the links of a peer.
LINK_PLACES = 256


class Work(Struct, shared=True):
    """Scratch space of one thread.

    Attributes:
        seat_word, seat_identifier, seat_source: int64[K + 1], who holds each link slot while links
            are selected, and where its descriptor stands; the last is a candidate in hand.
        seat_utility: float64[K + 1], friend utilities of them.
        seat_profile: int64[K, W], the profiles of those selected.
        seated: int64[3], how many successors, predecessors and friends are.
        target, reach: int64[K_sw], where on the ring small-world links are sought, and how far from
            it those found are.
        farthest: int64[2], distance of the farthest ring link on either side.
        lowest: float64[1], utility of the worst friend.
        link_handle: int64[K + 1], the handle of every neighbour, -1 in empty slots.
        link_place: int64[LINK_PLACES], by the low bits of a handle, which of these it may be.
        link_utility: float64[K], friend utility of every neighbour.
        utility: float64[max(K + 1, C)], friend utilities of the candidates in hand.
        suiting: int64[max(K + 1, C)], which of them may deserve a slot.
        bounds, hops: int64[K + 1], arcs of the ring by next hop (see `rendezvous.showering`).
        places: int64[1, 3 + 3K], what routing reads of a peer and its neighbours.
        box: int64[1 + 2A], the box in hand.
        entry: int64[2 + 2A], a routing table entry, as in `State.table`.
        profile: int64[W], the profile in hand.
        hull: int64[1 + 2A].
        lists: int64[(K + 1) * B, 1 + 2A], aggregated boxes per next hop, and one list more.
        counts: int64[K + 1].
        news: int64[B], what is to be done with each box of a message.
        event: int64[6 + A], an event that is sent again.
        found: int64[T or S, the greater], entries or subscriptions that match the event in hand.
        marks: int64[L], for each remembered event the attributes by which it is asked for, as bits.
        told: int64[T], neighbours that were sent the event in hand.
        part: int64[8 + 2A], what is asked about, as in a question.
        sums: int64[32], count and sum of the hashes of each sixteenth of it.
        compared: int64[64], places of logs that are listed.
    """

    seat_word: Int64s
    seat_identifier: Int64s
    seat_source: Int64s
    seat_utility: npt.NDArray[np.float64]
    seat_profile: Int64s
    seated: Int64s
    target: Int64s
    reach: Int64s
    farthest: Int64s
    lowest: npt.NDArray[np.float64]
    link_handle: Int64s
    link_place: Int64s
    link_utility: npt.NDArray[np.float64]
    utility: npt.NDArray[np.float64]
    suiting: Int64s
    bounds: Int64s
    hops: Int64s
    places: Int64s
    box: Int64s
    entry: Int64s
    profile: Int64s
    hull: Int64s
    lists: Int64s
    counts: Int64s
    news: Int64s
    event: Int64s
    found: Int64s
    marks: Int64s
    told: Int64s
    part: Int64s
    sums: Int64s
    compared: Int64s


class State(Struct):
    """All rows of all peers of one overlay.

    With n rows, K link slots, C view slots, W profile words, A attributes, S subscriptions,
    T routing table entries, F remembered failures, L remembered events, M held ones and P
    publications that may wait for their acknowledgement:

    Attributes:
        params: the settings as integers.
        sampler: the peer sampling layer; holds keys, handles, draw counters and own profiles.
        round: int64[n], rounds this peer has been through.
        links: int64[n, K], neighbours as age << 32 | handle, or -1: R successors, R predecessors,
            K_sw small-world links, K_f friends.
        link_profile: int64[n, K, W], their profiles.
        successor, predecessor: int64[n], slots of the nearest neighbours on the ring, or -1.
        clockwise_order: int64[n, K / 8], the link slots, a byte each, in the order in which they
            were last found on the ring.
        offsets: int64[n, K_sw], clockwise distances at which small-world links are sought.
        asked: int64[n, K], of every neighbour the first question that it has not answered, as round
            << 32 | handle, -1 none; int64[n, 0] where nobody is suspected.
        alarm: int64[n, ALARM_WORDS], when the ring was disturbed (see `ring_offers`); int64[n, 0]
            where nothing follows from it.
        guest_targets: int64[n, G], places at which a host is sought, -1 after the last.
        guest_rounds: int64[n, 2G], when each guest last came.
        failed: int64[n, F], round << 32 | handle of peers found dead, -1 where none.
        constrained: int64[n, S], bit a set where subscription s constrains attribute a; -1 where
            there is no subscription.
        subscriptions: int64[n, S, 2A], lowest and highest hashed value of every attribute.
        primary: int64[n], the primary attribute.
        table: int64[n, T, 2 + 2A], the content routing table.
        owner: int64[n, T], expiry in rounds << 32 | handle of who installed each entry.
        table_count: int64[n].
        installed_at: int64[n, K], handles that the last installation went to, -1 none.
        installed_digest: int64[n, 1 + K], a word for what it followed from, and for what went to
            each of them; int64[n, 0] where there is
            one in every round.
        event_copies: int64[n, L], copies of events seen (event * A + attribute), -1 none.
        event_rounds, event_values: int64[n, L] and [n, L, A], when they came and what they say.
        event_hops: int64[n, L].
        event_next: int64[n], the slot that the next one takes.
        event_heads, event_older: int64[n, H] and [n, L], chains of `event_copies` (see
            `kernel.rows.hash_chains`); int64[n, 0] where L is small.
        delivered: int64[n, L], events handed to the application, -1 none.
        delivered_next: int64[n].
        delivered_heads, delivered_older: int64[n, H] and [n, L], chains of `delivered`.
        pending: int64[n, P, 4 + A], publications not yet acknowledged (see `publication`).
        under_way: int64[n, U, 9 + A], copies that the next hop has not acknowledged (see
            `hop_acknowledgements`).
        held: the copies that a peer holds for others; got: the events that its application got, as
            copies of attribute 0; of no places where nothing is compared.
        wanted_since: int64[n, S], the round since which each subscription is in force.
        comparison: int64[n, COMPARISON_WORDS], how far it is in comparing these with others.
        departed: int64[n, F, 2], round << 32 | handle of peers that have moved, -1 where none, and
            the places they left; int64[n, 0, 2] where nobody moves.
        rest: int64[n, REST_WORDS], how it rests; int64[n, 0] where nobody does.
        seat: int64[n, SEAT_WORDS], its place and where it moves; int64[n, 0] where nobody does.
        load: int64[n], events taken as rendezvous node without interest, fading (see `config`).
        counters: int64[n, COUNTERS].
    """

    params: Parameters
    sampler: SamplerState
    round: Int64s
    links: Int64s
    link_profile: Int64s
    successor: Int64s
    predecessor: Int64s
    clockwise_order: Int64s
    offsets: Int64s
    asked: Int64s
    alarm: Int64s
    guest_targets: Int64s
    guest_rounds: Int64s
    failed: Int64s
    constrained: Int64s
    subscriptions: Int64s
    primary: Int64s
    table: Int64s
    owner: Int64s
    table_count: Int64s
    installed_at: Int64s
    installed_digest: Int64s
    event_copies: Int64s
    event_rounds: Int64s
    event_values: Int64s
    event_hops: Int64s
    event_next: Int64s
    event_heads: Int64s
    event_older: Int64s
    delivered: Int64s
    delivered_next: Int64s
    delivered_heads: Int64s
    delivered_older: Int64s
    pending: Int64s
    under_way: Int64s
    held: Log
    got: Log
    wanted_since: Int64s
    comparison: Int64s
    departed: Int64s
    rest: Int64s
    seat: Int64s
    load: Int64s
    counters: Int64s
    work: Work


def identifiers(state: State) -> Int64s:
    """int64[n]: every row's place on the ring, or its permanent key where no peer has a place."""
    if state.params.first_range == RANGES_OF_FRIENDS_ALONE:
        return state.sampler.key
    places: Int64s = state.sampler.profile[:, IDENTIFIER]
    return places


def profile_words(settings: Settings) -> int:
    """W, the words of a profile."""
    return settings.first_range + settings.ranked_attributes * settings.profile_ranges


def order_words(settings: Settings) -> int:
    """Words that hold a byte for every link slot."""
    return -(-settings.links // 8)


def make_work(settings: Settings) -> Work:
    """Scratch space large enough for any rule under ``settings``."""
    slots = settings.links + 1
    candidates = max(slots, settings.view_size)
    box_words = 1 + 2 * settings.coordinates
    return Work(
        seat_word=np.zeros(slots, np.int64),
        seat_identifier=np.zeros(slots, np.int64),
        seat_source=np.zeros(slots, np.int64),
        seat_utility=np.zeros(slots),
        seat_profile=np.zeros((settings.links, profile_words(settings)), np.int64),
        seated=np.zeros(3, np.int64),
        target=np.zeros(settings.small_world_links, np.int64),
        reach=np.zeros(settings.small_world_links, np.int64),
        farthest=np.zeros(2, np.int64),
        lowest=np.zeros(1),
        link_handle=np.zeros(slots, np.int64),
        link_place=np.zeros(LINK_PLACES, np.int64),
        link_utility=np.zeros(settings.links),
        utility=np.zeros(candidates),
        suiting=np.zeros(candidates, np.int64),
        bounds=np.zeros(slots, np.int64),
        hops=np.zeros(slots, np.int64),
        places=np.zeros((1, 3 + 3 * settings.links), np.int64),
        box=np.zeros(box_words, np.int64),
        entry=np.zeros(BOX + box_words, np.int64),
        profile=np.zeros(profile_words(settings), np.int64),
        hull=np.zeros(box_words, np.int64),
        lists=np.zeros((slots * settings.boxes_per_neighbour, box_words), np.int64),
        counts=np.zeros(slots, np.int64),
        news=np.zeros(settings.boxes_per_neighbour, np.int64),
        event=np.zeros(6 + settings.coordinates, np.int64),
        found=np.zeros(max(settings.routing_table_entries, settings.rows), np.int64),
        marks=np.zeros(settings.event_memory, np.int64),
        told=np.zeros(settings.routing_table_entries, np.int64),
        part=np.zeros(8 + 2 * settings.coordinates, np.int64),
        sums=np.zeros(32, np.int64),
        compared=np.zeros(64, np.int64),
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
    rows = Rows(
        nodes,
        sampler_columns(settings.view_size, profile_words(settings))
        | {
            "round": (),
            "primary": (),
            "links": (settings.links,),
            "link_profile": (settings.links, profile_words(settings)),
            "successor": (),
            "predecessor": (),
            "load": (),
            "table_count": (),
            "event_next": (),
            "delivered_next": (),
            "clockwise_order": (order_words(settings),),
            "offsets": (settings.small_world_links,),
            "asked": (settings.links if settings.suspect_rounds else 0,),
            "alarm": (ALARM_WORDS if settings.has_alarm else 0,),
            "guest_targets": (settings.guest_links,),
            "guest_rounds": (2 * settings.guest_links,),
            "rest": (REST_WORDS if settings.rest_levels else 0,),
        },
    )
    sampler = make_sampler(
        nodes,
        settings.sampler,
        settings.view_size,
        settings.shuffle_length,
        profile_words(settings),
        settings.seed,
        keys,
        rows,
    )
    if settings.first_range != RANGES_OF_FRIENDS_ALONE:
        sampler.profile[:, IDENTIFIER] = sampler.key if identifiers is None else identifiers
    if settings.ring_links > 0:
        sampler.profile[:, ARC_START] = sampler.profile[:, IDENTIFIER]
    sampler.profile[:, settings.first_range :] = NOTHING
    a, memory = settings.coordinates, settings.event_memory
    heads, older = chains_of(memory)
    compares = settings.retention_rounds > 0
    entry_words = BOX + 1 + 2 * a
    columns = rows.views()
    columns["clockwise_order"][:] = np.arange(8 * order_words(settings), dtype=np.uint8).view(
        np.int64
    )
    negative = ("links", "successor", "predecessor", "offsets", "asked", "alarm", "guest_targets")
    for name in negative:
        columns[name][:] = -1
    return State(
        rows,
        params=settings.parameters(),
        sampler=sampler,
        failed=_empty(nodes, settings.failures_remembered),
        constrained=_empty(nodes, settings.rows),
        subscriptions=np.zeros((nodes, settings.rows, 2 * a), np.int64),
        table=np.zeros((nodes, settings.routing_table_entries, entry_words), np.int64),
        owner=np.zeros((nodes, settings.routing_table_entries), np.int64),
        installed_at=_empty(nodes, settings.links),
        installed_digest=np.zeros(
            (nodes, (1 + settings.links) * (settings.refresh_rounds > 1)), np.int64
        ),
        event_copies=_empty(nodes, memory),
        event_rounds=np.zeros((nodes, memory), np.int64),
        event_values=np.zeros((nodes, memory, a), np.int64),
        event_hops=np.zeros((nodes, memory), np.int64),
        event_heads=np.zeros((nodes, heads), np.int64),
        event_older=np.zeros((nodes, older), np.int64),
        delivered=_empty(nodes, memory),
        delivered_heads=np.zeros((nodes, heads), np.int64),
        delivered_older=np.zeros((nodes, older), np.int64),
        pending=_empty(nodes, settings.pending_publications, 4 + a),
        under_way=_empty(nodes, settings.acknowledged_hops, RECORD + 6 + a),
        held=make_log(settings, nodes, settings.held_events),
        got=make_log(settings, nodes, got_events(settings)),
        wanted_since=np.zeros((nodes, settings.rows if compares else 0), np.int64),
        comparison=make_comparison(nodes, COMPARISON_WORDS if compares else 0),
        departed=_empty(nodes, settings.failures_remembered if settings.move_rounds else 0, 2),
        seat=_empty(nodes, SEAT_WORDS if settings.move_rounds else 0),
        counters=np.zeros((nodes, COUNTERS), np.int64),
        work=make_work(settings),
    )


def _empty(*shape: int) -> Int64s:
    return np.full(shape, -1, np.int64)
