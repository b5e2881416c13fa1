"""HyParView: its rules record by record, overlays after mass failures, and peers of the node."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gossamer.node.peer.frames.core import SELF
from gossamer.node.peer.peer import Peer
from gossamer.protocol.kernel.records import BODY, KIND, TO, UNREACHABLE, Words, make_outbox
from gossamer.protocol.peer.record_table.records import LINK_BROKE
from gossamer.protocol.peer.sampling import hyparview_views as wire
from gossamer.protocol.peer.sampling.descriptors import ACTIVE, FIRST_MARK
from gossamer.protocol.peer.sampling.hyparview import SILENT
from gossamer.protocol.peer.sampling.hyparview_views import JOINING, MOST_MARKED, active_slots
from gossamer.protocol.peer.sampling.sampler import (
    SamplerState,
    add_contact,
    make_sampler,
    pack,
    sample_link_broke,
)
from support.draws import with_campaigns
from support.memory_peers import memory_peers, ring_errors, rounds_pass, take
from support.overlays import record, timer_record, written
from support.overlays import take as handed
from support.sampler_quality import Overlay
from support.transport_peers import on_jumping_clock
from support.waiting import eventually

NO_PROFILE = np.zeros(0, np.int64)
VIEW_SIZE = 35
PATIENCE_S = 120.0


def sampler_with(active: list[int], passive: list[int], view_size: int = VIEW_SIZE) -> SamplerState:
    """A sampler whose row 0 has these members, of age 1."""
    sampler = make_sampler(64, "hyparview", view_size, 8, 0, seed=3)
    for slot, handle in enumerate([*active, *passive]):
        sampler.views[0, slot] = pack(1, handle) | (ACTIVE if slot < len(active) else 0)
    return sampler


def members(sampler: SamplerState, p: int = 0) -> tuple[set[int], set[int]]:
    held = [int(word) for word in sampler.views[p] if word >= 0]
    active = {word & 0xFFFFFFFF for word in held if word >= ACTIVE}
    passive = {word & 0xFFFFFFFF for word in held if word < ACTIVE}
    assert len(active) + len(passive) == len(held)
    return active, passive


def sent(records: list[Words]) -> list[tuple[int, int]]:
    return [(int(words[KIND]), int(words[TO])) for words in records]


def from_peer(kind: int, source: int, *said: int) -> Words:
    """A record of what is said and the sender's descriptor."""
    return record(kind, 0, source, [*said, pack(0, source)])


@pytest.mark.parametrize(("view", "active"), [(1, 1), (2, 2), (14, 2), (20, 3), (35, 5), (256, 37)])
def test_a_seventh_of_a_view_is_active(view: int, active: int) -> None:
    assert active_slots(view) == active
    assert make_sampler(2, "hyparview", view, 1, 0, seed=1).active_slots == active


def test_a_newcomer_asks_its_contact_to_join_until_it_answers() -> None:
    sampler = sampler_with([], [])
    add_contact(sampler, 0, 0, 9, NO_PROFILE, 0)
    assert members(sampler) == ({9}, set())
    for _ in range(2):
        assert (wire.JOIN_THROUGH, 9) in sent(handed(sampler, 0, timer_record(0)))
    assert handed(sampler, 0, from_peer(wire.NEIGHBOUR_REPLY, 9, wire.ACCEPTED)) == []
    assert sampler.views[0, 0] == pack(0, 9) | ACTIVE
    assert (wire.KEEP_ALIVE, 9) in sent(handed(sampler, 0, timer_record(0)))


def test_a_contact_that_never_answers_is_dropped_and_one_too_many_is_passive() -> None:
    sampler = sampler_with([], [])
    add_contact(sampler, 0, 0, 9, NO_PROFILE, 0)
    asked = 0
    while members(sampler) != (set(), set()):
        asked += (wire.JOIN_THROUGH, 9) in sent(handed(sampler, 0, timer_record(0)))
    assert asked == 16
    full = sampler_with([1, 2, 3, 4, 5], [6])
    add_contact(full, 0, 0, 9, NO_PROFILE, 0)
    assert members(full) == ({1, 2, 3, 4, 5}, {6, 9})


def test_a_contact_takes_a_newcomer_in_and_sends_it_on_walks_by_all_others() -> None:
    sampler = sampler_with([1, 2, 3, 4, 5], [])
    replies = handed(sampler, 0, from_peer(wire.JOIN_THROUGH, 9))
    active, passive = members(sampler)
    assert 9 in active
    assert len(active) == 5
    (dropped,) = passive
    assert sent(replies)[0] == (wire.DISCONNECT, dropped)
    assert sent(replies)[1] == (wire.NEIGHBOUR_REPLY, 9)
    walks = [words for words in replies if words[KIND] == wire.FORWARD_JOIN]
    assert {int(words[TO]) for words in walks} == active - {9}
    assert all(list(words[BODY:]) == [wire.ARWL, pack(0, 9)] for words in walks)
    # It asks again, if the answer was lost, and is on its way already.
    assert sent(handed(sampler, 0, from_peer(wire.JOIN_THROUGH, 9))) == [(wire.NEIGHBOUR_REPLY, 9)]


@pytest.mark.parametrize("steps", range(1, wire.ARWL + 1))
def test_a_newcomer_walks_on_and_leaves_one_passive_member(steps: int) -> None:
    sampler = sampler_with([1, 2, 3], [])
    (walk,) = handed(sampler, 0, record(wire.FORWARD_JOIN, 0, 2, [steps, pack(0, 9)]))
    assert list(walk[BODY:]) == [steps - 1, pack(0, 9)]
    assert walk[TO] in (1, 3)
    assert members(sampler) == ({1, 2, 3}, {9} if steps == wire.PRWL else set())


@pytest.mark.parametrize(("steps", "active"), [(0, [1, 2, 3]), (4, [2])])
def test_a_newcomer_is_a_neighbour_where_its_walk_ends(steps: int, active: list[int]) -> None:
    sampler = sampler_with(active, [])
    (request,) = handed(sampler, 0, record(wire.FORWARD_JOIN, 0, 2, [steps, pack(0, 9)]))
    assert sent([request]) == [(wire.NEIGHBOUR, 9)]
    assert list(request[BODY:]) == [wire.HIGH, pack(0, 0)]
    assert members(sampler) == ({*active, 9}, set())


@pytest.mark.parametrize(
    ("active", "priority", "answer"),
    [
        ([1, 2], wire.LOW, wire.ACCEPTED),
        ([1, 2, 3, 4, 5], wire.LOW, wire.REFUSED),
        ([1, 2, 3, 4, 5], wire.HIGH, wire.ACCEPTED),
    ],
)
def test_a_request_is_refused_if_it_is_low_and_there_is_no_room(
    active: list[int], priority: int, answer: int
) -> None:
    sampler = sampler_with(active, [])
    replies = handed(sampler, 0, from_peer(wire.NEIGHBOUR, 9, priority))
    (reply,) = [words for words in replies if words[KIND] == wire.NEIGHBOUR_REPLY]
    assert list(reply[BODY:]) == [answer, pack(0, 0)]
    held, _ = members(sampler)
    assert (9 in held) == (answer == wire.ACCEPTED)
    assert len(held) == min(5, len(active) + answer)
    # Whoever refuses finds out whether its own neighbours live.
    greeted = {to for kind, to in sent(replies) if kind == wire.KEEP_ALIVE}
    assert greeted == (set(active) if answer == wire.REFUSED else set())


@pytest.mark.parametrize(("active", "priority"), [([7], wire.HIGH), ([7, 8], wire.LOW)])
def test_a_failed_neighbour_is_replaced_at_once(active: list[int], priority: int) -> None:
    sampler = sampler_with(active, [1, 2, 3])
    (request,) = handed(sampler, 0, record(wire.KEEP_ALIVE + UNREACHABLE, 7, 0, [pack(0, 0)]))
    asked = int(request[TO])
    assert sent([request]) == [(wire.NEIGHBOUR, asked)]
    assert request[BODY] == priority
    assert members(sampler) == (set(active) - {7}, {1, 2, 3})
    # A passive member that failed, too, is forgotten, and another one is asked.
    request[KIND] += UNREACHABLE
    (request,) = handed(sampler, 0, request)
    assert request[TO] in {1, 2, 3} - {asked}
    handed(sampler, 0, from_peer(wire.NEIGHBOUR_REPLY, int(request[TO]), wire.ACCEPTED))
    rest = {1, 2, 3} - {asked, int(request[TO])}
    assert members(sampler) == (set(active) - {7} | {int(request[TO])}, rest)


def test_all_that_refuse_are_asked_once_and_only_so_many() -> None:
    sampler = sampler_with([7], list(range(10, 30)))
    replies = handed(sampler, 0, record(wire.KEEP_ALIVE + UNREACHABLE, 7, 0, [pack(0, 0)]))
    asked = []
    while replies:
        (request,) = replies
        asked.append(int(request[TO]))
        replies = handed(sampler, 0, from_peer(wire.NEIGHBOUR_REPLY, asked[-1], wire.REFUSED))
    assert len(set(asked)) == len(asked) == MOST_MARKED
    assert any(kind == wire.NEIGHBOUR for kind, _ in sent(handed(sampler, 0, timer_record(0))))


def test_a_neighbour_is_tried_if_its_connection_breaks_and_dropped_if_it_is_silent() -> None:
    sampler = sampler_with([7, 8], [1])
    for handle, tried in ((7, [(wire.KEEP_ALIVE, 7)]), (1, []), (50, [])):
        out = make_outbox(256)
        sample_link_broke(sampler, 0, 0, record(LINK_BROKE, 0, 0, [handle]), 0, out)
        assert sent(written(out)) == tried
    sampler = sampler_with([7, 8], [])
    for _ in range(SILENT):
        handed(sampler, 0, from_peer(wire.KEEP_ALIVE, 8))
        handed(sampler, 0, timer_record(0))
    assert members(sampler) == ({8}, set())


def test_a_greeting_leaves_no_view_one_sided() -> None:
    full, free = sampler_with([1, 2, 3, 4, 5], []), sampler_with([1], [])
    assert sent(handed(full, 0, from_peer(wire.KEEP_ALIVE, 9))) == [(wire.DISCONNECT, 9)]
    assert handed(free, 0, from_peer(wire.KEEP_ALIVE, 9)) == []
    assert members(full)[0] == {1, 2, 3, 4, 5}
    assert members(free)[0] == {1, 9}
    handed(free, 0, record(wire.DISCONNECT, 0, 9, []))
    assert members(free) == ({1}, {9})


def test_a_shuffle_has_neighbours_and_passive_members_and_walks_on_to_where_it_is_answered() -> (
    None
):
    sampler = sampler_with([1, 2, 3, 4, 5], list(range(10, 40)))
    records = handed(sampler, 0, timer_record(0))
    (walk,) = [words for words in records if words[KIND] == wire.SHUFFLE]
    count, *words = (int(word) for word in walk[BODY + 1 :])
    assert count == 8
    assert words[0] == pack(0, 0)
    handles = [word & 0xFFFFFFFF for word in words]
    assert len(set(handles)) == 8
    assert walk[TO] not in handles
    assert len(set(handles) & {1, 2, 3, 4, 5}) == 3
    marked = {int(w) & 0xFFFFFFFF for w in sampler.views[0] if FIRST_MARK <= w < ACTIVE}
    assert marked == set(handles) - {0, 1, 2, 3, 4, 5}
    sampler = sampler_with([1, 2], list(range(10, 40)))
    body = [2, pack(0, 9), pack(3, 50)]
    (walk,) = handed(sampler, 0, record(wire.SHUFFLE, 0, 1, [3, *body]))
    assert sent([walk]) == [(wire.SHUFFLE, 2)]
    assert list(walk[BODY:]) == [2, *body]
    (reply,) = handed(sampler, 0, record(wire.SHUFFLE, 0, 1, [0, *body]))
    assert sent([reply]) == [(wire.SHUFFLE_REPLY, 9)]
    given = {int(word) & 0xFFFFFFFF for word in reply[BODY + 1 :]}
    assert reply[BODY] == len(given) == 2
    # What was given makes room.
    assert members(sampler)[1] == set(range(10, 40)) - given | {9, 50}


@pytest.mark.parametrize(
    "words",
    [
        record(wire.FORWARD_JOIN, 0, 2, [wire.ARWL + 1, pack(0, 9)]),
        record(wire.FORWARD_JOIN, 0, 2, [3, pack(0, 0)]),
        record(wire.FORWARD_JOIN, 0, 2, [3]),
        record(wire.NEIGHBOUR, 0, 2, [wire.HIGH, pack(0, 9)]),
        record(wire.NEIGHBOUR, 0, 0, [wire.HIGH, pack(0, 0)]),
        record(wire.NEIGHBOUR_REPLY, 0, 9, []),
        record(wire.JOIN_THROUGH, 0, 9, [pack(0, 8)]),
        record(wire.KEEP_ALIVE, 0, 9, [pack(0, 8)]),
        record(wire.SHUFFLE, 0, 9, [1, 9, *[pack(0, 20 + i) for i in range(9)]]),
        record(wire.SHUFFLE, 0, 9, [1, 2, pack(0, 9)]),
        record(wire.SHUFFLE, 0, 9, [-1, 1, pack(0, 9)]),
        record(wire.SHUFFLE_REPLY, 0, 9, [2, pack(0, 9)]),
        record(wire.DISCONNECT, 0, 9, []),
    ],
    ids=lambda words: "-".join(str(word) for word in words[KIND : BODY + 2]),
)
def test_a_malformed_record_changes_nothing(words: Words) -> None:
    sampler = sampler_with([1, 2, 3], [10, 11])
    before = sampler.views.copy()
    assert handed(sampler, 0, words) == []
    np.testing.assert_array_equal(sampler.views, before)


def neighbours_of_all(overlay: Overlay) -> list[set[int]]:
    sampler = overlay.sampler
    return [members(sampler, p)[0] for p in range(len(sampler.key))]


def test_active_views_are_full_and_symmetric() -> None:
    overlay = Overlay("hyparview", 500, seed=1)
    overlay.run(20)
    held = neighbours_of_all(overlay)
    assert all(p in held[q] for p in range(500) for q in held[p])
    assert np.mean([len(active) == 5 for active in held]) > 0.98
    assert all(share == 1.0 for share in overlay.broadcasts(5))


@with_campaigns("seed", [1], [2, 3])
@pytest.mark.parametrize(("share", "cycles"), [(0.6, 1), (0.8, 4)])
def test_a_mass_failure_is_healed_by_cycles(share: float, cycles: int, seed: int) -> None:
    overlay = Overlay("hyparview", 500, seed)
    overlay.run(20)
    overlay.fail(share)
    assert np.mean([overlay.fork().broadcast()[0] for _ in range(10)]) < 0.99, f"seed {seed}"
    overlay.run(cycles)
    assert overlay.broadcasts(5) == [1.0] * 5, f"seed {seed}"
    overlay.run(5)
    up = np.flatnonzero(overlay.alive)
    held = neighbours_of_all(overlay)
    assert all(overlay.alive[q] for p in up for q in held[p]), f"seed {seed}"


def test_a_mass_failure_is_healed_by_broadcasts_alone() -> None:
    overlay = Overlay("hyparview", 500, seed=2)
    overlay.run(20)
    overlay.fail(0.6)
    overlay.broadcasts(60)
    assert np.mean(overlay.broadcasts(10)) > 0.98


def test_an_overlay_grows_by_joins_through_one_contact() -> None:
    overlay = Overlay("hyparview", 200, seed=4)
    overlay.sampler.views[:] = -1
    for p in range(1, 200):
        add_contact(overlay.sampler, p, 0, 0, NO_PROFILE, 0)
    overlay.run(15)
    held = neighbours_of_all(overlay)
    assert all(p in held[q] for p in range(200) for q in held[p])
    assert overlay.broadcasts(5) == [1.0] * 5
    assert max(int(word) for word in overlay.sampler.views[:, 0]) < pack(JOINING, 0) | ACTIVE


def active_keys(peer: Peer) -> set[int]:
    core, book = peer._core, peer._runtime._address_book
    words = core.state.sampler.views[SELF].tolist()
    return {book.key_of(word & 0xFFFFFFFF) for word in words if word >= ACTIVE}


def is_symmetric(peers: dict[int, Peer]) -> bool:
    """Whether all have neighbours, each of which has them for a neighbour, too."""
    held = {key: active_keys(peer) for key, peer in peers.items()}
    return all(held[key] and held[key] <= peers.keys() for key in peers) and all(
        key in held[other] for key in peers for other in held[key]
    )


@on_jumping_clock
async def test_peers_of_the_node_replace_neighbours_that_vanish(tmp_path: Path) -> None:
    """They deliver before and after half of them are gone without a word."""
    keys = [1 + (i << 58) for i in range(8)]
    async with memory_peers(tmp_path, *keys, settings={"sampler": "hyparview"}) as crowd:
        await eventually(lambda: is_symmetric(crowd.peers), PATIENCE_S)
        await eventually(lambda: not ring_errors(crowd.peers), PATIENCE_S)
        for key in keys[1::2]:
            await crowd.crash(key)
        await eventually(lambda: is_symmetric(crowd.peers), PATIENCE_S)
        await eventually(lambda: not ring_errors(crowd.peers), PATIENCE_S)
        events = crowd.peers[keys[0]].subscribe("price >= 0")
        await rounds_pass(*crowd.peers.values(), rounds=8)
        publisher = crowd.peers[keys[4]]
        published = {await publisher.publish({"price": i, "symbol": "A"}) for i in range(10)}
        assert {event.id for event in await take(events, 10, PATIENCE_S)} == published
