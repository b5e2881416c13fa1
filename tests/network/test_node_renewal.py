"""Certificates are renewed while peers run, whatever clocks do, and only for those who belong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import trio

from gossamer.node.errors import RevokedCertificateError
from gossamer.node.peer.membership.renewal_requests import BURST
from gossamer.node.security.certificates import PeerCertificate, verify_peer
from gossamer.node.security.cluster import Membership, open_membership, save_renewed
from gossamer.node.security.issuing import PEER_LIFETIME_S
from gossamer.node.security.joining.extending import renew_peer
from gossamer.node.security.renewal import Renewed, accept, ask
from support.attackers import attacker
from support.clusters import DAY_S, MadeCluster, made_cluster
from support.memory_members import MemberPeers, member_peers
from support.memory_peers import ring_errors
from support.node_peers import linked, take_ids
from support.transport_peers import on_jumping_clock
from support.waiting import eventually

YEAR_S = 365 * DAY_S


def on_disk(crowd: MemberPeers, key: int) -> Membership:
    return open_membership(crowd.members[key].folder.path)


def ends(crowd: MemberPeers) -> dict[int, float]:
    expires = {key: peer.gauges().certificate_expires_s for key, peer in crowd.peers.items()}
    return {key: when for key, when in expires.items() if when is not None}


def answered(cluster: MadeCluster, certificate: PeerCertificate) -> Renewed:
    """What the holder would answer who gave this certificate."""
    return Renewed(certificate.der, cluster.first.authority.der)


def broken(crowd: MemberPeers) -> int:
    """Connections that ended in any way but for want of use."""
    closed = [peer.counters.closed for peer in crowd.peers.values()]
    return sum(sum(counts.values()) - counts["unused"] for counts in closed)


async def all_last_beyond(crowd: MemberPeers, when: float) -> None:
    """Wait until the certificate of each peer is valid for longer."""
    await eventually(lambda: min(ends(crowd).values()) > when)


def lasts_beyond(crowd: MemberPeers, key: int) -> bool:
    """Whether the certificate in a peer's folder is valid for a year."""
    return on_disk(crowd, key).certificate.not_after > crowd.now() + YEAR_S


async def years_pass(
    crowd: MemberPeers, years: int, each: Callable[[], Awaitable[None]] = trio.lowlevel.checkpoint
) -> None:
    """Set the clocks ahead by what a certificate lasts, again and again; all are renewed."""
    await all_last_beyond(crowd, crowd.now() + 30 * DAY_S)
    while crowd.offset_s < years * YEAR_S:
        crowd.offset_s += 0.82 * PEER_LIFETIME_S
        await all_last_beyond(crowd, crowd.now() + 0.3 * PEER_LIFETIME_S)
        await each()
        # Years pass in moments here: what one peer may send about renewals is bounded.
        await trio.sleep(20)


@pytest.mark.parametrize(
    ("count", "years"), [(2, 14), pytest.param(4, 30, marks=pytest.mark.campaign)]
)
@on_jumping_clock
async def test_certificates_of_running_peers_are_renewed_year_after_year(
    cluster: MadeCluster, count: int, years: int
) -> None:
    """That of the authority, which lasts for twenty years, too. Nothing breaks, nothing is lost."""
    async with member_peers(cluster, count) as crowd:
        keys = list(crowd.peers)
        await crowd.whole()
        events = crowd.peers[keys[-1]].subscribe("price >= 0", name="ledger")
        await crowd.rounds(8)
        made = {key: on_disk(crowd, key) for key in keys}
        closed, published = broken(crowd), set[int]()

        async def publish() -> None:
            published.add(await crowd.publish(keys[0], 1))

        crowd.offset_s = 25 * DAY_S
        await years_pass(crowd, years, publish)
        assert await take_ids(events, len(published)) == published
        assert broken(crowd) == closed
        assert not ring_errors(crowd.peers)
        for key in keys:
            before, after = made[key], on_disk(crowd, key)
            assert after.identity == before.identity
            assert after.certificate.name == before.certificate.name
            assert after.authority.public_key == before.authority.public_key
            assert after.authority.not_after > before.authority.not_after
            assert crowd.peers[key].gauges().certificate_expires_s == after.certificate.not_after


@on_jumping_clock
async def test_who_was_away_learns_of_a_renewed_authority_at_once(cluster: MadeCluster) -> None:
    """Certificates from before and after it are good for both sides meanwhile."""
    async with member_peers(cluster, 3) as crowd:
        first, away, _ = crowd.peers
        await crowd.whole()
        late = cluster.certify(crowd.members[away].identity, "late", lifetime_s=16 * YEAR_S)
        save_renewed(accept(crowd.members[away], answered(cluster, late), crowd.now()))
        await crowd.stop(away)
        crowd.offset_s = 25 * DAY_S
        await years_pass(crowd, 14)
        authority = on_disk(crowd, first).authority
        assert authority.not_after > 20 * YEAR_S + cluster.now
        crowd.members[away] = on_disk(crowd, away)
        assert crowd.members[away].authority != authority
        crowd.network.certificates[away] = late.der
        await crowd.add(away)
        await crowd.whole()
        await eventually(lambda: on_disk(crowd, away).authority == authority)
        for key in crowd.peers:
            der = on_disk(crowd, key).certificate.der
            for one in (cluster.first.authority, authority):
                verify_peer(one, der, key, cluster.registrar.revoked(), crowd.now())


@on_jumping_clock
async def test_a_request_finds_its_way_to_the_holder_past_others(cluster: MadeCluster) -> None:
    """Brokers know their neighbours only, and peers of large overlays are not all connected."""
    async with member_peers(cluster, 4) as crowd:
        first, far, *_ = crowd.peers
        await crowd.whole()
        crowd.network.cut(first, far)
        await crowd.rounds(4)
        crowd.offset_s = 25 * DAY_S
        await eventually(lambda: lasts_beyond(crowd, far), 600)


@on_jumping_clock
async def test_while_the_holder_is_away_peers_ask_on_and_say_so(cluster: MadeCluster) -> None:
    async with member_peers(cluster, 3) as crowd:
        first, other, _ = crowd.peers
        await crowd.whole()
        await crowd.stop(first)
        crowd.offset_s = 29.9 * DAY_S
        peer = crowd.peers[other]
        await eventually(lambda: bool(peer.snapshot().troubles), 300)
        (trouble,) = peer.snapshot().troubles
        assert "nobody who can renew it has answered" in trouble
        assert "gossamer node renew" in trouble
        await crowd.add(first)
        await all_last_beyond(crowd, crowd.now() + YEAR_S)
        assert peer.snapshot().troubles == ()


@on_jumping_clock
async def test_what_was_renewed_by_clocks_ahead_is_taken_back(cluster: MadeCluster) -> None:
    """All clocks of a machine are wrong for a while; nobody is shut out when they are right."""
    async with member_peers(cluster, 3) as crowd:
        await crowd.whole()
        before = ends(crowd)
        crowd.offset_s = 25 * DAY_S
        await all_last_beyond(crowd, crowd.now() + YEAR_S)
        crowd.offset_s = 0
        folders = [crowd.members[key].folder.path for key in crowd.peers]
        await eventually(
            lambda: all(
                open_membership(path).certificate.not_before <= crowd.now() for path in folders
            )
        )
        assert ends(crowd) == before
        away = list(crowd.peers)[2]
        crowd.members[away] = on_disk(crowd, away)
        await crowd.stop(away)
        await crowd.add(away)
        await crowd.whole()


@on_jumping_clock
async def test_new_files_are_put_in_place_while_a_peer_runs(cluster: MadeCluster) -> None:
    """`gossamer node renew` writes them."""
    async with member_peers(cluster, 2) as crowd:
        _, other = crowd.peers
        await crowd.whole()
        member = crowd.members[other]
        longer = cluster.certify(member.identity, "peer", lifetime_s=YEAR_S)
        save_renewed(accept(member, answered(cluster, longer), crowd.now()))
        peer = crowd.peers[other]
        await eventually(lambda: peer.gauges().certificate_expires_s == longer.not_after)
        assert crowd.network.certificates[other] == longer.der


@on_jumping_clock
async def test_only_the_owner_of_a_certificate_has_it_renewed(cluster: MadeCluster) -> None:
    """Else a stolen or abandoned certificate could be kept alive by anybody."""
    async with member_peers(cluster, 2) as crowd:
        first, other = crowd.peers
        liar = cluster.admit("liar")
        crowd.offset_s = 16 * DAY_S
        certificate = crowd.members[other].certificate
        signature = ask(liar.identity, certificate).signature
        async with attacker(crowd, first, liar) as attack:
            await attack.send("renewal wanted", certificate=certificate.der, signature=signature)
            assert "not signed by the owner" in await attack.cut_for()
        assert on_disk(crowd, other).certificate == certificate


@on_jumping_clock
async def test_nobody_takes_a_certificate_of_another_authority(
    cluster: MadeCluster, tmp_path: Path
) -> None:
    async with member_peers(cluster, 2) as crowd:
        _, other = crowd.peers
        liar = cluster.admit("liar")
        with made_cluster(tmp_path / "foreign") as foreign:
            made = foreign.certify(crowd.members[other].identity, "peer", lifetime_s=YEAR_S)
            for authority in (foreign.first.authority, cluster.first.authority):
                async with attacker(crowd, other, liar) as attack:
                    await attack.send("renewed", certificate=made.der, authority=authority.der)
                    assert "authority" in await attack.cut_for()
        assert on_disk(crowd, other).certificate == crowd.members[other].certificate


@on_jumping_clock
async def test_a_member_that_asks_all_the_time_is_answered_once(cluster: MadeCluster) -> None:
    async with member_peers(cluster, 1) as crowd:
        (first,) = crowd.peers
        crowd.offset_s = 16 * DAY_S
        greedy = cluster.admit("greedy")
        request = ask(greedy.identity, greedy.certificate)
        frame = {"certificate": request.certificate, "signature": request.signature}
        async with attacker(crowd, first, greedy) as attack:
            for _ in range(3 * BURST):
                await attack.send("renewal wanted", **frame)
            answer = await attack.next_frame("renewed")
            await attack.send("ping", number=1)
            assert (await attack.next_frame("renewed", "pong"))["type"] == "pong"
        assert crowd.peers[first].counters.dropped["flood"] >= BURST
        renewed = Renewed(answer["certificate"], answer["authority"])
        found = accept(greedy, renewed, crowd.now()).certificate
        assert found.not_after > crowd.now() + YEAR_S
        assert found.public_key == greedy.identity.public_key


@on_jumping_clock
async def test_who_is_revoked_is_not_renewed(cluster: MadeCluster) -> None:
    async with member_peers(cluster, 3) as crowd:
        first, bad, other = crowd.peers
        await crowd.whole()
        cluster.registrar.revoke(cluster.store, f"{bad:016x}", crowd.now())
        crowd.offset_s = 25 * DAY_S
        await eventually(lambda: lasts_beyond(crowd, other))
        await trio.sleep(60)
        assert on_disk(crowd, bad).certificate == crowd.members[bad].certificate
        assert bad not in linked(crowd.peers[first])
        request = ask(crowd.members[bad].identity, crowd.members[bad].certificate)
        with pytest.raises(RevokedCertificateError):
            renew_peer(cluster.registrar, cluster.store, request, crowd.now())
