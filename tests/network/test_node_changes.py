"""Schemas and clocks change while peers run: events flow on, what is subscribed and held stays."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio

from gossamer.node.errors import ClusterFolderError
from gossamer.node.peer.peer import Peer, Subscription
from gossamer.node.peer.persistence import LAST_GAP, read_gap
from gossamer.node.security.schema_document import (
    SchemaDocument,
    load_document,
    save_document,
    version_in_force,
)
from gossamer.node.store import Store
from gossamer.protocol.content.errors import ContentError
from gossamer.protocol.content.schema import (
    BooleanAttribute,
    EnumerationAttribute,
    SchemaVersion,
    changed,
)
from gossamer.protocol.content.values import Payload
from gossamer.protocol.kernel.errors import ExpressionError
from support.clusters import DAY_S, MadeCluster
from support.memory_peers import (
    SCHEMA,
    MemberPeers,
    acquainted,
    linked,
    member_peers,
    ring_errors,
    rounds_pass,
    take_ids,
    whole,
)
from support.transport_peers import on_jumping_clock
from support.waiting import eventually

pytestmark = [on_jumping_clock, pytest.mark.usefixtures("each_preset")]

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
    """Prices of what waits in a stream."""
    return [(await anext(stream)).values.get("price") for _ in range(len(stream))]


@pytest.mark.parametrize(
    ("count", "each"),
    [(5, 10), *(pytest.param(*size, marks=pytest.mark.campaign) for size in ((6, 40), (40, 5)))],
)
async def test_a_cluster_goes_through_versions_while_events_flow(
    cluster: MadeCluster, count: int, each: int
) -> None:
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
        peer = crowd.peers[away]
        stream = peer.subscribe('price > 5 and symbol == "A"', name="reader")
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
