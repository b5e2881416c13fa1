"""Layouts of records: handles are found and replaced, hostile words are refused or harmless."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from functools import cache

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel import errors, records
from gossamer.protocol.peer import step as peer
from gossamer.protocol.peer.codec import DESCRIPTOR, PEER, Codec, held_handles
from gossamer.protocol.peer.record_table import records as messages
from gossamer.protocol.peer.record_table.records import DELIVER, EVENT
from gossamer.protocol.peer.sampling.sampler import SamplerState
from gossamer.protocol.peer.settings import config
from gossamer.protocol.peer.space.ring import RING_MASK
from gossamer.protocol.peer.state.event_logs import ANSWERER
from gossamer.protocol.peer.state.state import WANTED, State, make_state
from support import draws, record_strategies
from support.overlays import Hosts, converged, random_identifiers, record, subscribe_to_box

NODES = 14
SETTINGS = record_strategies.small_settings(NODES)
RANGE = (1 << 20, 1 << 60)


@cache
def real_records(sampler: str) -> dict[int, list[list[int]]]:
    """Records of every kind between peers with a sampler, as a small overlay makes them."""
    settings = WITH_SAMPLER[sampler]
    state = converged(settings, random_identifiers(NODES, 3), 3)
    for p in range(NODES):
        subscribe_to_box(state, p, RANGE, (p << 50, RANGE[1]))
    state.guest_targets[:, 0] = state.sampler.key[::-1]
    hosts = Hosts(state, settings)
    for event in range(4):
        hosts.cycle()
        hosts.publish(event, event, 1 << 30, 1 << 59)
    # Nobody wants the last one, until somebody does after all.
    hosts.publish(0, 4, 1 << 30, 1 << 61)
    subscribe_to_box(state, 3, RANGE, (0, RING_MASK))
    hosts.cycle()
    peer.restart.interpreted(state, 5)
    hosts.handle(peer.join_record(5, 0, state.sampler.profile[0]))
    state.load[:] = 0
    state.load[2] = 1 << 20
    hosts.cycle()
    state.seat[1::3, WANTED] = state.sampler.key[::-3][: len(state.seat[1::3])] + 99
    hosts.handle(record(messages.CATCH_UP, 5, 5, [50]))
    hosts.handle(*hosts.step(2, record(records.UNREACHABLE + messages.STORED, 7, 2, [4, 0])))
    hosts.rounds(8)
    found: dict[int, list[list[int]]] = {}
    for words in hosts.passed:
        if words[records.TO] != words[records.FROM] and words[records.KIND] < records.UNREACHABLE:
            found.setdefault(int(words[records.KIND]), []).append(words.tolist())
    return found


WITH_SAMPLER = {name: attrs.evolve(SETTINGS, sampler=name) for name in config.SAMPLERS}
CODECS = {name: Codec(settings) for name, settings in WITH_SAMPLER.items()}
CODEC = CODECS["cyclon"]


@pytest.mark.parametrize("sampler", config.SAMPLERS)
def test_handles_are_found_and_replaced_and_nothing_else_is(sampler: str) -> None:
    """In all that peers really send: replacing them, and back, gives the record again."""
    codec, found = CODECS[sampler], real_records(sampler)
    assert found.keys() == codec.kinds, "the other tests would show little without some of each"
    for words in itertools.chain(*found.values()):
        codec.check(words)
        renamed = codec.replace_handles(words, lambda handle: 1000 + handle)
        places = {reference.offset for reference in codec.references(words)}
        assert {i for i, word in enumerate(words) if word != renamed[i]} == places
        assert codec.replace_handles(renamed, lambda handle: handle - 1000) == words


def test_references_tell_handles_alone_from_those_in_descriptors() -> None:
    handover = max(real_records("cyclon")[messages.HANDOVER], key=len)
    sorts = [reference.sort for reference in CODEC.references(handover)]
    assert sorts == [PEER] * (2 + handover[records.BODY])
    request = real_records("cyclon")[messages.TMAN_REQUEST][0]
    sorts = [reference.sort for reference in CODEC.references(request)]
    assert sorts == [PEER, PEER, *[DESCRIPTOR] * request[records.BODY]]


class Doubting:
    """Leaves out what it is told to doubt, and cuts profiles off."""

    def __init__(self, doubted: set[int]) -> None:
        self.doubted = doubted

    def peer(self, word: int) -> int | None:
        return None if word in self.doubted else word

    def descriptor(self, words: Sequence[int], _of_sender: bool) -> Sequence[int] | None:
        return None if words[0] & 0xFFFFFFFF in self.doubted else words


@pytest.mark.parametrize("kind", sorted(CODEC.kinds))
@given(doubted=st.sets(st.integers(0, NODES - 1)), data=st.data())
def test_what_is_not_doubted_is_sane(kind: int, doubted: set[int], data: st.DataObject) -> None:
    words = data.draw(st.sampled_from(real_records("cyclon")[kind]))
    body = CODEC.rewrite(kind, words[records.BODY :], Doubting(doubted))
    if body is None:
        assert doubted
        return
    rest = [records.BODY + len(body), *words[records.KIND : records.BODY], *body]
    CODEC.check(rest)
    assert {rest[r.offset] & 0xFFFFFFFF for r in CODEC.references(rest)[2:]}.isdisjoint(doubted)
    if not doubted:
        assert rest == words


WORD = st.one_of(
    st.integers(-(1 << 63), (1 << 63) - 1),
    st.integers(-2, 20),
    st.sampled_from([1 << 62, RING_MASK, (1 << 62) | 1, (3 << 32) | 1, -(1 << 63), 1 << 58]),
)
LIVELY_WITH = {
    name: converged(settings, random_identifiers(NODES, 3), 3)
    for name, settings in WITH_SAMPLER.items()
}
OUTBOX = records.make_outbox(2 * max(map(peer.largest_step, WITH_SAMPLER.values())))


def take_strictly(state: State, words: Sequence[int]) -> None:
    """Let peer 0 take a record; no sum of its rules may overflow."""
    OUTBOX.cursor[:] = 0
    with np.errstate(all="raise"):
        peer.step(copy.deepcopy(state), 0, 0, words, 0, OUTBOX)
    assert OUTBOX.cursor[records.REFUSED] == 0


@pytest.mark.parametrize("kind", sorted(CODEC.kinds))
@given(data=st.data())
def test_every_mutation_is_refused_or_harmless(kind: int, data: st.DataObject) -> None:
    """What passes the check makes no interpreted rule fail, words being Python's integers."""
    words = list(data.draw(st.sampled_from(real_records("cyclon")[kind])))
    for _ in range(data.draw(st.integers(1, 4))):
        words[data.draw(st.integers(records.LENGTH, len(words) - 1))] = data.draw(WORD)
    if data.draw(st.booleans()):
        words = words[: data.draw(st.integers(0, len(words)))] + data.draw(st.lists(WORD))
    try:
        CODEC.check(words)
    except errors.MalformedRecordError:
        return
    assert words[records.KIND] in CODEC.kinds
    take_strictly(LIVELY_WITH["cyclon"], words)


@pytest.mark.parametrize(
    ("sampler", "kind"),
    [(name, kind) for name, codec in CODECS.items() for kind in sorted(codec.kinds)],
)
@draws.one_in(2)
@given(sender=st.sampled_from((1, 7, NODES - 1)), data=st.data())
def test_declared_words_are_safe(sampler: str, kind: int, sender: int, data: st.DataObject) -> None:
    codec = CODECS[sampler]
    words = data.draw(record_strategies.sane_records(WITH_SAMPLER[sampler], kind, sender))
    codec.check(words)
    assert 8 * len(words) <= codec.most_bytes
    assert len(codec.references(words)) <= 2 + codec.most_references
    take_strictly(LIVELY_WITH[sampler], words)


def test_a_refusal_names_kind_field_and_value() -> None:
    words = list(real_records("cyclon")[EVENT][0])
    words[records.BODY + 1] = 7
    expected = f"record of kind {EVENT}: attribute is 7, expected 0 to 1"
    with pytest.raises(errors.MalformedRecordError, match=expected) as caught:
        CODEC.check(words)
    assert (caught.value.kind, caught.value.value) == (EVENT, 7)


@pytest.mark.parametrize(
    "kind", [0, 1, 9, 15, 28, DELIVER, records.USER, -1, EVENT + records.UNREACHABLE]
)
def test_kinds_that_peers_do_not_send_are_refused(kind: int) -> None:
    with pytest.raises(errors.MalformedRecordError, match="kind"):
        CODEC.check(record(kind, 0, 1).tolist())


def test_the_handles_that_a_row_remembers_are_found_in_every_array_that_holds_some() -> None:
    state = make_state(SETTINGS, 1)
    state.sampler.views[0, 1] = 3 << 32 | 11
    state.links[0, 2] = 1 << 32 | 12
    state.failed[0, 0] = 5 << 32 | 13
    state.owner[0, :2] = 9 << 32 | 14, 9 << 32 | 15
    state.table_count[0] = 1
    state.installed_at[0, 3] = 16
    state.comparison[0, ANSWERER] = 17
    assert held_handles(state, 0) == {11, 12, 13, 14, 16, 17}


def test_no_array_of_a_row_holds_handles_that_nobody_knows_of() -> None:
    """An array that is added to the state has to be named here, and if need be in the codec."""
    handled = (
        "links failed asked owner installed_at views handle comparison departed seat under_way"
    )
    without = (
        "params sampler round link_profile successor predecessor offsets guest_targets "
        "guest_rounds clockwise_order constrained subscriptions primary table table_count alarm "
        "event_copies event_rounds event_values event_hops event_next event_heads event_older "
        "delivered_heads delivered_older held got wanted_since delivered delivered_next pending "
        "load counters work rest "
        "installed_digest kind seed view_size "
        "shuffle_length key draws profile view_profile spare seen merges tells_times active_slots"
    )
    fields = set(State.__annotations__) | set(SamplerState.__annotations__)
    assert fields == {*handled.split(), *without.split()}
