"""An overlay whose network misbehaves, whose schema or clocks change, or with a copied identity."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from unittest.mock import create_autospec

import attrs
import pytest
import trio

from gossamer.node.errors import ClusterFolderError, NotAcknowledged
from gossamer.node.peer.assembly import run_peer
from gossamer.node.peer.peer import Peer, Subscription
from gossamer.node.peer.persistence import LAST_GAP, read_gap
from gossamer.node.peer.runtime import Runtime
from gossamer.node.security.identity import key_text
from gossamer.node.security.schema_document import (
    SchemaDocument,
    load_document,
    save_document,
    version_in_force,
)
from gossamer.node.store import Store
from gossamer.node.store.writer import open_writer
from gossamer.node.transport.base import Address
from gossamer.protocol.content.schema import (
    BooleanAttribute,
    EnumerationAttribute,
    SchemaVersion,
    changed,
)
from gossamer.protocol.content.values import Payload
from gossamer.protocol.kernel.errors import ContentError, ExpressionError
from support.clusters import DAY_S, MadeCluster
from support.memory_peers import (
    SCHEMA,
    MemberPeers,
    MemoryPeers,
    acquainted,
    address_of,
    linked,
    member_peers,
    memory_peers,
    ring_errors,
    rounds_pass,
    take_ids,
    whole,
)
from support.memory_transport import Faults, MemoryNetwork
from support.transport_peers import on_jumping_clock
from support.waiting import comes_true, eventually, running

pytestmark = [on_jumping_clock, pytest.mark.usefixtures("each_preset")]

KEYS = [1 + (i << 58) for i in range(6)]
SHORT_S = (7.0, 12.0, 16.0, 20.0, 24.0)


async def test_frames_on_their_way_are_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads while it says its goodbyes, and passes nothing on."""
    told = create_autospec(Runtime.report_loss, side_effect=Runtime.report_loss)
    async with whole(memory_peers(tmp_path, *KEYS[:3])) as crowd:
        await crowd.rounds(4)
        monkeypatch.setattr(Runtime, "report_loss", told)
        await crowd.stop(KEYS[2])
        await eventually(lambda: [call.args[1] for call in told.mock_calls].count(KEYS[2]) == 2)


@pytest.mark.parametrize(
    ("together", "parted_s", "pause_s", "times", "peers"),
    [
        (1, 12.0, 0.0, 1, 4),
        (2, 40.0, 10.5, 1, 4),
        *(pytest.param(1, s, 0.0, 3, 6, marks=pytest.mark.campaign) for s in SHORT_S),
        pytest.param(2, 40.0, 10.5, 10, 4, marks=pytest.mark.campaign),
    ],
)
async def test_nothing_published_in_another_part_is_missed(
    tmp_path: Path, together: int, parted_s: float, pause_s: float, times: int, peers: int
) -> None:
    """Short parts end no connection, though neighbours count as failed and each part acknowledges.

    Long ones begin at any moment between two looks at connections, which find them within 25 s.
    """
    keys = KEYS[:peers]
    async with whole(memory_peers(tmp_path, *keys)) as crowd, running() as reading:
        published, got = set[int](), [set[int]() for _ in keys]

        async def read(events: Subscription, taken: set[int]) -> None:
            async for event in events:
                taken.add(event.id)

        async def publish(key: int) -> None:
            for i in range(60):
                with suppress(NotAcknowledged):
                    event = {"price": (i * 37 + key) % 100, "symbol": "ABCD"[i % 4]}
                    published.add(await crowd.peers[key].publish(event))
                await trio.sleep(parted_s / 60)

        for key, taken in zip(keys, got, strict=True):
            reading.start_soon(read, crowd.peers[key].subscribe("price >= 0"), taken)
        await crowd.rounds(8)
        for first in range(times):
            await trio.sleep(pause_s)
            apart = [keys[(first + i) % peers] for i in range(together)]
            crowd.network.partition(apart, [key for key in keys if key not in apart])
            async with trio.open_nursery() as publishing:
                for key in keys:
                    publishing.start_soon(publish, key)
                await trio.sleep(parted_s)
                crowd.network.heal()
            await comes_true(lambda: all(published <= taken for taken in got))
            lacking = [len(published - taken) for taken in got]
            assert lacking == [0] * peers, f"parted {first + 1} times, {len(published)} published"


@pytest.mark.parametrize("heals_first", [True, pytest.param(False, marks=pytest.mark.campaign)])
async def test_a_peer_that_crashed_apart_misses_nothing(tmp_path: Path, heals_first: bool) -> None:
    """It asks for what was published since it was cut off, not since it crashed."""
    keys = KEYS[:4]
    async with whole(memory_peers(tmp_path, *keys)) as crowd:
        crowd.peers[keys[0]].subscribe("price >= 0", name="ada")
        await crowd.rounds(8)
        crowd.network.partition(keys[:1], keys[1:])
        await trio.sleep(30)
        published = [await crowd.publish(key, 1) for key in keys[1:]]
        await trio.sleep(45)
        await crowd.crash(keys[0])
        await trio.sleep(20)
        if heals_first:
            crowd.network.heal()
        peer = await crowd.add(keys[0])
        await trio.sleep(20)
        crowd.network.heal()
        events = peer.subscribe("price >= 0", name="ada")
        assert await take_ids(events, len(published)) == set(published)


async def test_peers_come_back_after_all_have_been_stopped(tmp_path: Path) -> None:
    """They remember each other: the first one, whom all were told of, stays away."""
    async with whole(memory_peers(tmp_path, *KEYS[:4])) as crowd:
        for key in KEYS[:4]:
            await crowd.stop(key)
        for key in KEYS[1:4]:
            await crowd.add(key)
        await crowd.whole()
        assert len(crowd.peers) == 3


async def test_peers_that_joined_in_pairs_find_the_others(tmp_path: Path) -> None:
    """Neither pair has ever heard from the other: all it has is addresses."""
    chosen = KEYS[:4]
    network = MemoryNetwork()
    network.partition(chosen[:2], chosen[2:])
    others = {key: [one for one in chosen if one != key] for key in chosen}
    async with memory_peers(tmp_path, *chosen, network=network, bootstrap=others.get) as crowd:
        peers = list(crowd.peers.values())
        await eventually(lambda: all(len(peer.snapshot().peers) == 1 for peer in peers))
        await rounds_pass(*peers, rounds=16)
        network.heal()
        await crowd.whole()


# Pairs of peers that do not reach each other, while others reach both.

EVENTS = 5
only_kindred = pytest.mark.parametrize("each_preset", ["kindred"], indirect=True)


def forwards(crowd: MemoryPeers) -> int:
    return sum(peer.counters.events_forwarded for peer in crowd.peers.values())


@only_kindred
@pytest.mark.parametrize(
    "apart",
    [
        pytest.param([(1, 3)], id="a pair", marks=pytest.mark.campaign),
        pytest.param([(4, 1), (4, 2), (4, 3)], id="one behind a gateway"),
        pytest.param(
            [(1, 3), (1, 4), (2, 3), (2, 4)], id="two networks", marks=pytest.mark.campaign
        ),
    ],
)
async def test_nothing_is_lost_nothing_storms_and_pairs_are_named(
    tmp_path: Path, apart: Sequence[tuple[int, int]]
) -> None:
    keys = KEYS[:5]
    network = MemoryNetwork(1, Faults(latency_s=(0.001, 0.01)))
    network.cuts.update(frozenset((keys[a], keys[b])) for a, b in apart)
    async with memory_peers(tmp_path, *keys, network=network) as crowd:
        await trio.sleep(30)
        streams = {key: peer.subscribe("price >= 0") for key, peer in crowd.peers.items()}
        await trio.sleep(10)
        before, failed = forwards(crowd), list[int]()

        async def publish(key: int) -> None:
            for price in range(EVENTS):
                try:
                    await crowd.publish(key, price)
                except NotAcknowledged as error:
                    failed.append(error.event)
                await trio.sleep(0.2)

        async with trio.open_nursery() as nursery:
            for key in keys:
                nursery.start_soon(publish, key)
        # The first answer that finds no way waits until connecting is given up.
        assert len(failed) <= 2 * len(apart), f"{failed} of {EVENTS * len(keys)} not acknowledged"
        all_got = lambda: all(len(one) == EVENTS * len(keys) for one in streams.values())  # noqa: E731
        assert await comes_true(all_got, 120.0), {key: len(one) for key, one in streams.items()}
        named = lambda: all(any_named(crowd, keys[a], keys[b]) for a, b in apart)  # noqa: E731
        assert await comes_true(named, 300.0)
        assert forwards(crowd) - before < 20 * EVENTS * len(keys), "copies go round"


def any_named(crowd: MemoryPeers, *pair: int) -> bool:
    """Whether one of two peers says that it does not reach the other, and who does."""
    said = {key: crowd.peers[key].standing.by_kind().get("unreachable", "") for key in pair}
    return any(
        key_text(there) in said[here] or "more" in said[here] for here, there in permutations(pair)
    )


@only_kindred
async def test_a_copied_identity_is_named_by_all_with_both_places(tmp_path: Path) -> None:
    copied, restarted = KEYS[2:4]
    here, elsewhere = address_of(copied), Address("memory", 7000)
    async with whole(memory_peers(tmp_path, *KEYS[:4])) as crowd:
        original = crowd.peers[copied]
        await crowd.stop(restarted)
        await crowd.add(restarted)
        await crowd.whole()
        assert not any(peer.standing.troubles() for peer in crowd.peers.values())
        async with open_writer(tmp_path / "copy.db") as writer:
            dependencies = crowd._dependencies(copied, writer)
            changed = attrs.evolve(dependencies, listen=[elsewhere], name="copy")
            async with run_peer(changed) as copy:
                others = [peer for key, peer in crowd.peers.items() if key != copied]

                def said() -> list[str]:
                    standings = [peer.standing for peer in (original, copy, *others)]
                    return [one.by_kind().get("identity", "") for one in standings]

                assert await comes_true(lambda: all(said()), 120.0)
                by_original, by_copy, *by_others = said()
                for sentence in by_others:
                    assert f"{copied:016x}" in sentence
                    assert str(elsewhere) in sentence
                    assert str(here) in sentence
                assert str(elsewhere) in by_original
                assert str(here) in by_copy
        await trio.sleep(90)
        assert not any("identity" in peer.standing.by_kind() for peer in crowd.peers.values())


# Schemas and clocks change: events flow on, what is subscribed and held stays.

# An hour, years, and before the cluster was made: certificates are valid for 30 days.
JUMPS_S = (3600.0, 1000 * DAY_S, -1000 * DAY_S, -3600.0, 1e-3)
FIRST = SchemaVersion.first(SCHEMA)
ADDED = FIRST.added(BooleanAttribute("halted"))
WIDER = ADDED.widened(changed(SCHEMA["price"], {"maximum": 1_000_000}))
NARROWER = WIDER.added(EnumerationAttribute("side", ("buy", "sell"))).without("symbol")


def sign(cluster: MadeCluster, version: SchemaVersion) -> None:
    """As `gossamer node schema` does it, while the peers run."""
    document = SchemaDocument.signed(cluster.first.authority, version, cluster.registrar.signer)
    save_document(cluster.first.folder.schema, document)


async def all_at(crowd: MemberPeers, version: SchemaVersion) -> None:
    peers = crowd.peers.values()
    await eventually(lambda: all(peer.version == version for peer in peers))


async def take_waiting(stream: Subscription) -> list[object]:
    return [(await anext(stream)).values.get("price") for _ in range(len(stream))]


@pytest.mark.parametrize(
    ("count", "each"),
    [(5, 10), *(pytest.param(*size, marks=pytest.mark.campaign) for size in ((6, 40), (40, 5)))],
)
async def test_events_flow_on_through_versions(cluster: MadeCluster, count: int, each: int) -> None:
    """Every acknowledged event reaches every subscription that it matches, once."""
    async with whole(member_peers(cluster, count)) as crowd:
        peers = list(crowd.peers.values())
        streams = [peer.subscribe("price >= 10") for peer in peers]
        await rounds_pass(*peers, rounds=6)
        published: list[int] = []

        async def publish(peer: Peer, first: int) -> None:
            for step in range(each):
                values = {"price": 10 + first + len(peers) * step}
                await peer.publish(values)
                published.append(values["price"])
                await trio.sleep(0.25)

        async with trio.open_nursery() as nursery:
            for number, peer in enumerate(peers):
                nursery.start_soon(publish, peer, number)
            for version in (ADDED, WIDER, NARROWER):
                sign(cluster, version)
                await all_at(crowd, version)
        await rounds_pass(*peers, rounds=8)
        for stream in streams:
            assert sorted(await take_waiting(stream), key=str) == sorted(published, key=str)
    assert len(published) == count * each


async def test_older_and_newer_peers_work_together(cluster: MadeCluster) -> None:
    """Before a version has come to everybody, each reads of an event what it knows."""
    async with acquainted(member_peers(cluster, 4)) as crowd:
        old, new, *_ = crowd.peers.values()
        dear, cheap = old.subscribe("price > 500"), old.subscribe("not price > 500")
        named = old.subscribe('symbol != "A"')
        new.change_schema(NARROWER)
        halted = new.subscribe('halted == true or side == "sell"')
        beyond = new.subscribe("price in [2000, 3000]")
        await crowd.rounds(6)
        payload = Payload(b"data", "text/plain")
        await new.publish({"price": 2500, "halted": True}, payload=payload)
        await old.publish({"price": 400, "symbol": "B"})
        await old.publish({"symbol": "A"})
        await crowd.rounds(6)
        (event,) = [await anext(dear) for _ in range(len(dear))]
        assert (event.values, event.payload) == ({"price": 2500}, payload)
        waiting = [await take_waiting(stream) for stream in (cheap, named, halted, beyond)]
        assert waiting == [[400], [400], [2500], [2500]]
        with pytest.raises(ContentError, match="'symbol' is retired since version 5"):
            await new.publish({"symbol": "B"})
        with pytest.raises(ContentError, match="no attribute 'halted'"):
            await old.publish({"halted": True})
        with pytest.raises(ExpressionError, match="no attribute 'halted'"):
            old.subscribe("halted == true")


async def test_who_was_away_gets_the_version_and_what_it_missed(cluster: MadeCluster) -> None:
    async with acquainted(member_peers(cluster, 4)) as crowd:
        first, away, *_ = crowd.peers
        crowd.peers[away].subscribe('price > 5 and symbol == "A"', name="reader").close()
        await crowd.rounds(6)
        await crowd.stop(away)
        await crowd.publish(first, 6)
        sign(cluster, NARROWER)
        await all_at(crowd, NARROWER)
        await crowd.add(away)
        stream = crowd.peers[away].subscribe('price > 5 and symbol == "A"', name="reader")
        await eventually(lambda: len(stream) == 1)
        assert (await anext(stream)).values == {"price": 6, "symbol": "A"}
        await all_at(crowd, NARROWER)
        folder, authority = crowd.members[away].folder, cluster.first.authority
        await eventually(folder.schema.exists)
        assert version_in_force(folder.schema, authority, FIRST) == NARROWER


async def test_a_forged_document_changes_nothing(cluster: MadeCluster) -> None:
    async with acquainted(member_peers(cluster, 3)) as crowd:
        member, authority = crowd.members[list(crowd.peers)[1]], cluster.first.authority

        def has_taken_its_place() -> bool:
            with suppress(ClusterFolderError):
                found = load_document(member.folder.schema, authority)
                return found is not None and found.version == ADDED
            return False

        forged = SchemaDocument.signed(authority, WIDER, member.identity)
        save_document(member.folder.schema, forged)
        await crowd.rounds(20)
        assert all(peer.version == FIRST for peer in crowd.peers.values())
        sign(cluster, ADDED)
        await all_at(crowd, ADDED)
        await eventually(has_taken_its_place)


async def test_events_go_on_arriving_once_while_clocks_jump(cluster: MadeCluster) -> None:
    """All clocks are wrong, then one of five is: nothing that lasts is decided by them."""
    async with whole(member_peers(cluster, 5)) as crowd:
        keys = list(crowd.peers)
        events = crowd.peers[keys[2]].subscribe("price >= 0", name="ledger")
        await crowd.rounds(8)
        published = set()
        for jump_s in JUMPS_S:
            crowd.offset_s = jump_s
            for key in keys:
                published.add(await crowd.publish(key, 1))
            await crowd.rounds(4)
            crowd.offset_s = 0.0
            crowd.wrong_s = {keys[3]: jump_s}
            published.add(await crowd.publish(keys[3], 1))
            await crowd.rounds(4)
            crowd.wrong_s = {}
        assert await take_ids(events, len(published)) == published
        await crowd.rounds(8)
        assert len(events) == 0
        assert not ring_errors(crowd.peers)


async def test_a_peer_whose_clock_was_wrong_is_back_once_it_is_right(cluster: MadeCluster) -> None:
    """With a clock of years ahead all certificates have expired for it: it trusts nobody new."""
    async with member_peers(cluster, 4) as crowd:
        key = list(crowd.peers)[2]
        await crowd.stop(key)
        crowd.wrong_s = {key: 1000 * DAY_S}
        peer = await crowd.add(key)
        await trio.sleep(10)
        assert peer.counters.refused["certificate"] > 0
        assert linked(peer) == set()
        crowd.wrong_s = {}
        await crowd.whole()


async def test_a_peer_notes_from_when_to_when_its_clock_was_set(cluster: MadeCluster) -> None:
    """The doctor judges the clock by it."""
    async with member_peers(cluster, 1) as crowd:
        (key,) = crowd.peers
        await trio.sleep(15)
        before = crowd.now()
        crowd.offset_s = 1000 * DAY_S
        await trio.sleep(25)
        await crowd.stop(key)
        with Store(cluster.folder.parent / f"{key}.db") as store:
            raw = store.get_meta(LAST_GAP)
    assert raw is not None
    began, ended = (moment.timestamp() for moment in read_gap(raw))
    assert before - 15 <= began <= before
    assert before + 1000 * DAY_S <= ended <= before + 1000 * DAY_S + 25
