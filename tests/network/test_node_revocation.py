"""Who is revoked is out: at once, everywhere, for good; and nobody else can be put out."""

from __future__ import annotations

import errno
from unittest.mock import Mock

import pytest
import trio

from gossamer.node.errors import PeerRevoked
from gossamer.node.security.cluster import open_membership
from gossamer.node.security.identity import make_identity
from gossamer.node.security.revocation import Revocation, RevocationList, proves, save_list
from support.attackers import attacker
from support.clusters import DAY_S, MadeCluster
from support.memory_peers import (
    MemberPeers,
    acquainted,
    linked,
    member_peers,
    rounds_pass,
    take_ids,
)
from support.transport_peers import on_jumping_clock
from support.waiting import eventually

pytestmark = on_jumping_clock


def sequence_kept(crowd: MemberPeers, key: int) -> int:
    return open_membership(crowd.members[key].folder.path).revoked.sequence


def connected(crowd: MemberPeers, key: int) -> set[int]:
    return {one.key for one in crowd.peers[key].snapshot().peers if one.connected}


def revoke(crowd: MemberPeers, key: int) -> None:
    """As `gossamer node revoke` does it, while the peers run."""
    crowd.cluster.registrar.revoke(crowd.cluster.store, f"{key:016x}", crowd.now())


async def test_who_is_revoked_is_cut_off_and_others_go_on(cluster: MadeCluster) -> None:
    """The command writes to one folder; gossip carries the list to the others, and to disk."""
    async with acquainted(member_peers(cluster, 6)) as crowd:
        keys = list(crowd.peers)
        bad, rest = keys[3], [key for key in keys if key != keys[3]]
        revoke(crowd, bad)
        await eventually(lambda: connected(crowd, bad) == set())
        await eventually(lambda: all(sequence_kept(crowd, key) == 1 for key in rest))
        assert all(bad not in linked(crowd.peers[key]) for key in rest)
        events = crowd.peers[rest[1]].subscribe("price > 5")
        await rounds_pass(*(crowd.peers[key] for key in rest), rounds=8)
        published = await crowd.publish(rest[4], 6)
        assert (await take_ids(events, 1), connected(crowd, bad)) == ({published}, set())
        assert sum(crowd.peers[key].counters.refused["revoked"] for key in rest) > 0


async def test_who_is_revoked_learns_it_and_publishes_no_more(cluster: MadeCluster) -> None:
    async with acquainted(member_peers(cluster, 4)) as crowd:
        bad = list(crowd.peers)[2]
        revoke(crowd, bad)
        peer = crowd.peers[bad]
        await eventually(lambda: peer.standing.revoked)
        with pytest.raises(PeerRevoked, match=f"this peer \\({bad:016x}\\) is revoked"):
            await peer.publish({"price": 6, "symbol": "A"})
        assert peer.snapshot().troubles == (str(PeerRevoked(bad)),)
        assert peer.gauges().troubles["revoked"] == 1
        assert not peer.standing.alone
        folder = crowd.members[bad].folder
        await eventually(folder.proof.exists)
        assert proves(cluster.first.authority, bad, folder.proof.read_bytes())
        assert open_membership(folder.path).is_revoked
        others = [crowd.peers[key].standing for key in crowd.peers if key != bad]
        assert not any(standing.revoked for standing in others)


async def test_who_was_revoked_while_away_learns_it(cluster: MadeCluster) -> None:
    """At the first contact, and it knows it from then on."""
    async with acquainted(member_peers(cluster, 3)) as crowd:
        first, bad, _ = crowd.peers
        await crowd.stop(bad)
        revoke(crowd, bad)
        await rounds_pass(crowd.peers[first], rounds=8)
        await crowd.add(bad)
        await eventually(lambda: crowd.peers[bad].standing.revoked)
        await eventually(crowd.members[bad].folder.proof.exists)
        await crowd.stop(bad)
        crowd.network.isolate(bad)
        await crowd.add(bad)
        await eventually(lambda: crowd.peers[bad].standing.revoked, 5)


async def test_nobody_is_talked_into_being_revoked(cluster: MadeCluster) -> None:
    async with member_peers(cluster, 2) as crowd:
        first, other = crowd.peers
        revoke(crowd, cluster.admit("bad").identity.key)
        proofs = [forged_list(crowd, other).proof_of(other)]
        proofs += [entry.proof for entry in cluster.registrar.revoked().entries]
        assert [len(proof) for proof in proofs] == [64, 64]
        for proof in proofs:
            async with attacker(crowd, other, cluster.admit(proof.hex()[:8])) as attack:
                await attack.send("goodbye", reason="revoked", detail="", proof=proof)
                await trio.sleep(5)
        assert not crowd.peers[other].standing.revoked
        assert not crowd.members[other].folder.proof.exists()
        assert other in linked(crowd.peers[first])


async def test_a_peer_that_has_lost_all_others_says_so(cluster: MadeCluster) -> None:
    async with acquainted(member_peers(cluster, 3)) as crowd:
        left, *gone = crowd.peers
        peer = crowd.peers[left]

        def is_alone() -> bool:
            return peer.standing.alone

        await peer.publish({"price": 6, "symbol": "A"})
        assert not is_alone()
        for key in gone:
            await crowd.stop(key)
        await eventually(is_alone)
        await peer.publish({"price": 6, "symbol": "A"})
        assert is_alone()
        (trouble,) = peer.snapshot().troubles
        assert "no other peer is reached, though others are known" in trouble
        await crowd.add(gone[0])
        await eventually(lambda: not peer.standing.alone)


async def test_a_peer_without_others_is_not_alone(cluster: MadeCluster) -> None:
    """Neither where there never were any, nor where all of them are revoked."""
    async with member_peers(cluster, 1) as crowd:
        (peer,) = crowd.peers.values()
        await peer.publish({"price": 6, "symbol": "A"})
        assert not peer.standing.alone
        assert peer.snapshot().troubles == ()
        bad = await crowd.admit("bad")
        await crowd.acquainted()
        revoke(crowd, bad)
        await eventually(lambda: crowd.peers[bad].standing.revoked)
        await rounds_pass(peer, rounds=8)
        assert not peer.standing.alone


async def test_late_joiners_learn_who_is_revoked(cluster: MadeCluster) -> None:
    async with acquainted(member_peers(cluster, 4)) as crowd:
        first, away, bad, other = crowd.peers
        await crowd.stop(away)
        await crowd.stop(bad)
        revoke(crowd, bad)
        await eventually(lambda: sequence_kept(crowd, other) == 1)
        assert sequence_kept(crowd, away) == 0
        await crowd.stop(first)
        await crowd.add(away)
        await eventually(lambda: sequence_kept(crowd, away) == 1)
        await crowd.add(bad)
        await rounds_pass(crowd.peers[away], rounds=20)
        assert linked(crowd.peers[bad]) == set()
        assert bad not in linked(crowd.peers[away]) | linked(crowd.peers[other])


async def test_a_connection_ends_with_the_certificate(cluster: MadeCluster) -> None:
    async with member_peers(cluster, 1) as crowd:
        (peer,) = crowd.peers.values()
        # The crowd's clock began when its first peer was made.
        short = cluster.admit("short", lifetime_s=trio.current_time() + 100)
        async with attacker(crowd, peer.key, short) as attack, trio.open_nursery() as nursery:
            nursery.start_soon(attack.stay)
            crowd.offset_s = 1000 * DAY_S
            await trio.sleep(90)
            assert peer.gauges().connections == 1
            crowd.offset_s = -1000 * DAY_S
            await trio.sleep(20)
            assert (peer.gauges().connections, peer.counters.refused["certificate"]) == (0, 1)
            assert attack.goodbye == "refused: its certificate has expired"


def forged_list(crowd: MemberPeers, victim: int) -> RevocationList:
    """A list that names ``victim``, signed by nobody who may."""
    entry = Revocation(victim, (), int(crowd.now()) + 1000)
    empty = RevocationList(crowd.cluster.first.authority.cluster)
    return empty.with_entry(entry, make_identity(), crowd.now())


async def test_a_wrong_list_costs_the_connection(cluster: MadeCluster) -> None:
    """One of another number than announced would make the peer ask again and again."""
    async with member_peers(cluster, 2) as crowd:
        first, other = crowd.peers
        for number, wrong, words in (
            (1, forged_list(crowd, other), "not signed by the cluster's authority"),
            (1 << 60, RevocationList(cluster.first.authority.cluster), "number is"),
        ):
            async with attacker(crowd, first, cluster.admit(f"liar {number}")) as attack:
                await attack.send("revocations", number=number)
                await attack.next_frame("revocations wanted")
                await attack.send("revocations", number=number, list=wrong.to_bytes())
                assert words in await attack.cut_for()
        await crowd.rounds()
        assert other in linked(crowd.peers[first])
        assert sequence_kept(crowd, first) == 0


async def test_lists_that_nobody_asked_for_are_not_even_read(cluster: MadeCluster) -> None:
    """Else whoever sends the longest ones possible keeps a peer busy with them."""
    async with member_peers(cluster, 1) as crowd:
        (first,) = crowd.peers
        async with attacker(crowd, first, cluster.admit("liar")) as attack:
            await attack.send("revocations", number=7, list=b"no list at all")
            await attack.send("ping", number=1)
            assert await attack.next_frame("pong", "goodbye") == {"type": "pong", "number": 1}


async def test_who_withholds_a_list_keeps_nobody_from_another(cluster: MadeCluster) -> None:
    async with member_peers(cluster, 2) as crowd:
        first, other = crowd.peers
        bad = cluster.admit("bad")
        async with attacker(crowd, other, cluster.admit("liar")) as attack:
            await attack.send("revocations", number=1 << 60)
            await attack.next_frame("revocations wanted")
            await crowd.acquainted()
            revoke(crowd, bad.identity.key)
            await eventually(lambda: sequence_kept(crowd, other) == 1)
            assert sequence_kept(crowd, first) == 1


async def test_a_list_is_given_once_to_each_connection(cluster: MadeCluster) -> None:
    """Asking takes 30 bytes, and the list up to a MiB."""
    async with member_peers(cluster, 1) as crowd:
        (first,) = crowd.peers
        revoke(crowd, cluster.admit("bad").identity.key)
        async with attacker(crowd, first, cluster.admit("greedy")) as attack:
            assert (await attack.next_frame("revocations"))["number"] == 1
            for _ in range(5):
                await attack.send("revocations wanted")
            assert "list" in await attack.next_frame("revocations")
            await attack.send("ping", number=1)
            assert (await attack.next_frame("revocations", "pong"))["type"] == "pong"


async def test_a_file_that_somebody_has_edited_is_written_anew(cluster: MadeCluster) -> None:
    async with acquainted(member_peers(cluster, 2)) as crowd:
        first, other = crowd.peers
        file = crowd.members[first].folder.revoked
        save_list(file, forged_list(crowd, other))
        await eventually(lambda: b'"revoked": []' in file.read_bytes())
        file.unlink()
        await eventually(file.exists)
        assert other in linked(crowd.peers[first])


async def test_a_full_disk_keeps_nobody_in(
    cluster: MadeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list holds although it cannot be written, and is written when it can be."""
    save = "gossamer.node.peer.membership.revocation.save_list"
    async with acquainted(member_peers(cluster, 3)) as crowd:
        _, bad, other = crowd.peers
        with monkeypatch.context() as full:
            revoke(crowd, bad)
            full.setattr(save, Mock(side_effect=OSError(errno.ENOSPC, "No space left on device")))
            await eventually(lambda: connected(crowd, bad) == set())
            await trio.sleep(10)
            assert sequence_kept(crowd, other) == 0
        await eventually(lambda: sequence_kept(crowd, other) == 1)
