"""Whatever words arrive, a peer neither fails nor forgets what it knows.

Rules run interpreted here, where an index beyond an array is an error.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gossamer.protocol.kernel.records import BODY, FROM, LENGTH, TO, USER, Words
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.record_table import records
from gossamer.protocol.peer.recovery import comparing
from gossamer.protocol.peer.settings.profile import LOAD
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state import event_logs
from gossamer.protocol.peer.state import state as state_state
from support import overlays, record_strategies

NODES = 14
SETTINGS = record_strategies.small_settings(
    NODES, shuffle_length=2, pending_publications=2, held_events=8, ring_offers=True
)
STRANGER = 77
WAITING = 55
SEAT = 1 << 44
RANGE = (1 << 20, 1 << 60)
WORD = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(-2, 20),
    st.sampled_from([1 << 62, RING_MASK, (1 << 62) | 1, (3 << 32) | 1, -(1 << 63), STRANGER]),
)


@pytest.fixture(autouse=True)
def _words_wrap() -> Iterator[None]:
    with np.errstate(over="ignore"):
        yield


def lively_state() -> state_state.State:
    """Peers that know each other and some of each other's subscriptions and events.

    Peer 0 waits for an acknowledgement, and asks for what it missed.
    """
    state = overlays.converged(SETTINGS, overlays.random_identifiers(NODES, 3), 3)
    for p in range(NODES):
        overlays.subscribe_to_box(state, p, RANGE, (p << 50, RANGE[1]))
    hosts = overlays.Hosts(state, SETTINGS)
    for event in range(3):
        hosts.cycle()
        hosts.publish(1, event, 1 << 30, 1 << 59)
    hosts.step(0, overlays.record(records.PUBLISH, 0, 0, [WAITING, 0, 0, 0, 0, -1, 5, 6]))
    hosts.step(0, overlays.record(records.CATCH_UP, 0, 0, [50]))
    state.seat[0, state_state.WANTED] = SEAT
    state.comparison[0, event_logs.NEXT_AT] = comparing.NEVER
    asked = {"TASK": SETTINGS.replicas + 1, "PART_FROM": 5, "QUESTION": 1, "ANSWERER": -1}
    for word, value in asked.items():
        state.comparison[0, getattr(event_logs, word)] = value
    return state


LIVELY = lively_state()
SENDER = int(LIVELY.links[0, LIVELY.successor[0]]) & overlays.HANDLE
PREDECESSOR = int(LIVELY.links[0, LIVELY.predecessor[0]]) & overlays.HANDLE
DESCRIPTOR = 1 + LIVELY.link_profile.shape[2]
BOXES = [(0, (RANGE, RANGE)), (1, ((5, 9), (6, 7)))]
WITH_LINKS = (
    *(records.TMAN_REQUEST, records.TMAN_REPLY, records.SAMPLE_REQUEST, records.SAMPLE_REPLY),
    records.PLACE_FOUND,
)


def good_records(s: state_state.State) -> dict[int, Words]:
    """Of every kind a record to peer 0 that is well-formed, from its successor if it can be."""
    links = [1, *overlays.descriptor(s, SENDER)]
    part = [5, 9, 50, records.ALL_CLASSES, 0, 0]
    handed = [w for source in (3, 4) for w in (source, 1 << 40, 0, *RANGE, *RANGE)]
    remembered = int(s.event_copies[0].max())
    bodies: dict[int, list[int]] = {
        **dict.fromkeys(WITH_LINKS, links),
        records.ACKNOWLEDGE: [*overlays.descriptor(s, SENDER), *overlays.descriptor(s, 2)],
        records.EVENT: [7, 0, 0, 0, 0, -1, 5, 6],
        records.FIND_PLACE: [0, 0, *overlays.descriptor(s, SENDER)],
        records.HANDOVER: [2, *handed],
        records.COMPARE: [3, 0, 1, 16, *part, 7, 0, *RANGE, *RANGE],
        records.COMPARED: [*part, 1, 1, 3, 1 << 40],
        records.LISTED: [*part, 1, 9, 4, 1 << 30, 1 << 59],
        records.LACKING: [*part, 1, remembered],
        records.REPAIRED: [9, 0, 1, 8, 1, -1, 1 << 30, 1 << 59],
        records.COMPARE_SOON: [],
        records.REPLAY_OFFER: [2, 1 << 40, 1 << 41],
        records.RING_OFFER: [2, 1 << 40, 1 << 30, 1 << 59, 1 << 41, 1 << 30, 1 << 59],
        records.REPLAY_WANTED: [1, remembered],
        records.STORED: [WAITING, 1],
        records.FIND_SEAT: [0, 1 << 40, *overlays.descriptor(s, 3)],
        records.SEAT_FOUND: [SEAT, *links, 1, 0, *overlays.descriptor(s, 4)],
        records.MOVED: [1 << 40, *links],
    }
    own: dict[int, list[int]] = {
        records.JOIN: [*overlays.descriptor(s, SENDER)],
        records.CATCH_UP: [50],
        records.ROUNDS_SKIPPED: [4],
        records.WITHDRAW: [WAITING],
        records.LINK_BROKE: [int(LIVELY.owner[0, 0]) & overlays.HANDLE],
        records.PUBLISH: bodies[records.EVENT],
    }
    shifted = overlays.descriptor(s, PREDECESSOR)
    return {
        **{kind: overlays.record(kind, 0, SENDER, body) for kind, body in bodies.items()},
        **{kind: overlays.record(kind, 0, 0, body) for kind, body in own.items()},
        records.LOAD_SHIFTED: overlays.record(records.LOAD_SHIFTED, 0, PREDECESSOR, shifted),
        **{
            kind: overlays.install_record(s, kind, 0, SENDER, BOXES)
            for kind in (records.INSTALL, records.INSTALL_NEWS)
        },
    }


KINDS = sorted(good_records(LIVELY))
OFFERS = (records.HANDOVER, records.REPLAY_OFFER, records.RING_OFFER, records.REPLAY_WANTED)
COUNT_AT = {
    **dict.fromkeys(WITH_LINKS + OFFERS, BODY),
    records.COMPARED: BODY + records.SUMS,
    **dict.fromkeys((records.LISTED, records.LACKING), BODY + records.LISTED_COPIES),
    **dict.fromkeys((records.INSTALL, records.INSTALL_NEWS), BODY + DESCRIPTOR + 1),
    **dict.fromkeys((records.SEAT_FOUND, records.MOVED), BODY + 1),
}


def assert_ignored(words: Words) -> None:
    """Peer 0 takes the record for malformed: nothing but that counter changes."""
    state = copy.deepcopy(LIVELY)
    before = overlays.copies_of(state)
    assert overlays.Hosts(state, SETTINGS).step(0, words) == []
    assert overlays.changed_arrays(state, before) <= {"counters"}
    others = np.arange(state_state.COUNTERS) != state_state.MALFORMED
    np.testing.assert_array_equal(state.counters[:, others], LIVELY.counters[:, others])


@pytest.mark.parametrize("kind", KINDS)
def test_well_formed_records_are_not_ignored(kind: int) -> None:
    """The other tests would show nothing if these were."""
    state = copy.deepcopy(LIVELY)
    if kind != records.LINK_BROKE:
        state.table_count[0] = 0
    state.sampler.profile[SENDER, LOAD] += 5
    state.links[0] += 1 << 32
    state.sampler.views[0] = -1
    before = overlays.copies_of(state)
    sent = overlays.Hosts(state, SETTINGS).step(0, good_records(state)[kind])
    assert sent or overlays.changed_arrays(state, before)
    assert state.counters[0, state_state.MALFORMED] == LIVELY.counters[0, state_state.MALFORMED]


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_cut_short_or_drawn_out_is_ignored(kind: int) -> None:
    """At every length; the words stand at the end of their buffer, so none beyond is read."""
    words = good_records(LIVELY)[kind]
    lengths = [length for length in range(BODY, len(words) + 3) if length != len(words)]
    if kind == records.ACKNOWLEDGE:
        lengths.remove(BODY + DESCRIPTOR)
    for length in lengths:
        cut = np.append(words, [5, 5])[:length]
        cut[LENGTH] = length
        assert_ignored(cut)


@pytest.mark.parametrize("kind", COUNT_AT)
@pytest.mark.parametrize("count", [-(1 << 63), -1, 0, 5, 17, 1 << 31, (1 << 63) - 1])
def test_a_count_that_contradicts_the_length_is_ignored(kind: int, count: int) -> None:
    words = good_records(LIVELY)[kind]
    words[COUNT_AT[kind]] = count
    assert_ignored(words)


@pytest.mark.parametrize("attribute", [-(1 << 63), -1, 2, (1 << 63) - 1])
def test_an_unknown_attribute_is_ignored(attribute: int) -> None:
    for kind in (records.INSTALL, records.INSTALL_NEWS):
        words = good_records(LIVELY)[kind]
        words[COUNT_AT[kind] + 1] = attribute
        assert_ignored(words)
    assert_ignored(overlays.event_record(0, 1, 7, [5, 6], attribute=attribute))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        (records.EVENT_MODE, -1),
        (records.EVENT_MODE, records.REPLICA + SETTINGS.replicas),
        (records.EVENT_MODE, (1 << 63) - 1),
        (records.EVENT_HOPS, -1),
        (records.EVENT_HOPS, -(1 << 63)),
        (records.EVENT_ID, -1),
        (records.EVENT_ORIGIN, -2),
        (records.EVENT_ORIGIN, 1 << 32),
    ],
)
def test_an_event_that_would_travel_without_end_is_ignored(field: int, value: int) -> None:
    """More replicas than anybody asks for, or hops that are never used up."""
    words = overlays.event_record(0, 1, 7, [5, 6])
    words[BODY + field] = value
    assert_ignored(words)


@pytest.mark.parametrize("kind", [0, 4, 15, 28, 49, 127, USER, USER + 5, -1])
def test_kinds_that_no_rule_takes_are_ignored(kind: int) -> None:
    assert_ignored(overlays.record(kind, 0, 1, [1, 2, 3]))


def assert_sound(state: state_state.State) -> None:
    """What rules index by has kept its bounds, and every table entry its meaning."""
    attributes = state.params.attributes
    table = state.table[0, : state.table_count[0]]
    assert 0 <= state.table_count[0] <= state.table.shape[1]
    assert ((table[:, state_state.BOX] >= 0) & (table[:, state_state.BOX] < attributes)).all()
    assert ((state.links[0] >= 0) == (state.links[0] != -1)).all()
    for slot in (state.successor[0], state.predecessor[0]):
        assert slot == -1 or state.links[0, slot] >= 0
    assert 0 not in overlays.neighbours(state, 0)
    assert 0 <= state.primary[0] < attributes


@pytest.mark.parametrize("kind", KINDS)
@given(changes=st.dictionaries(st.integers(0, 60), WORD, max_size=12), source=st.integers(1, 9))
def test_no_hostile_record_breaks_a_peer(kind: int, changes: dict[int, int], source: int) -> None:
    """The peer takes it, keeps its tables sound, and goes on with its rounds."""
    state = copy.deepcopy(LIVELY)
    if kind == records.HANDOVER:
        state.table_count[0] = 0
    words = good_records(state)[kind]
    fixed = COUNT_AT.get(kind, -1) - BODY
    for place, word in changes.items():
        place %= max(1, len(words) - BODY)
        if place != fixed and len(words) > BODY:
            words[BODY + place] = word
    words[FROM] = 0 if kind in (records.JOIN, records.PUBLISH) else source
    hosts = overlays.Hosts(state, SETTINGS)
    hosts.step(0, words)
    assert_sound(state)
    for timer in peer.TIMERS:
        hosts.step(0, overlays.record(timer, 0, 0))
    assert_sound(state)


@given(kind=st.sampled_from(KINDS), body=st.lists(WORD, max_size=40))
@example(kind=records.HANDOVER, body=[])
def test_no_record_of_random_words_breaks_a_peer(kind: int, body: list[int]) -> None:
    state = copy.deepcopy(LIVELY)
    overlays.Hosts(state, SETTINGS).step(0, overlays.record(kind, 0, 1, body))
    assert_sound(state)


def test_entries_handed_over_in_excess_do_not_overrun_a_neighbours_list() -> None:
    """A handover names more boxes of one neighbour than it may have; its next news still fits."""
    state = copy.deepcopy(LIVELY)
    state.table_count[0] = 0
    hosts = overlays.Hosts(state, SETTINGS)
    boxes = [[3, 1 << 40, 0, 10 * i, 10 * i + 1, 10 * i, 10 * i + 1] for i in range(16)]
    hosts.step(0, overlays.record(records.HANDOVER, 0, 1, [16, *(w for box in boxes for w in box)]))
    hosts.step(0, overlays.install_record(state, records.INSTALL_NEWS, 0, 3, BOXES))
    sources = [source for source, _, _ in overlays.entries(state, 0)]
    assert sources.count(3) <= SETTINGS.boxes_per_neighbour
    sent = hosts.step(0, overlays.event_record(0, 1, 99, [11, 11], mode=2))
    assert [words for words in sent if words[TO] == 3], "its next event for the boxes above"
