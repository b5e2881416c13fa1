"""Certificates are renewed while peers run and by command, and only for those who belong."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from gossamer.client import connect
from gossamer.node.errors import RevokedCertificateError
from gossamer.node.peer.dependencies import Dependencies
from gossamer.node.peer.membership.renewal_requests import BURST
from gossamer.node.security.certificates import (
    CLOCK_SLACK_S,
    PEER_LIFETIME_S,
    issue_certificate,
    verify_peer,
)
from gossamer.node.security.cluster import ClusterFolder, Membership, open_membership, save_renewed
from gossamer.node.security.identity import key_text, write_file
from gossamer.node.security.joining.admission import open_registrar, record_certificate, renew_peer
from gossamer.node.security.renewal import Renewed, accept, ask
from gossamer.node.store import Store
from support.attackers import attacker
from support.clusters import DAY_S, MadeCluster, made_cluster
from support.memory_peers import MemberPeers, linked, member_peers, ring_errors, take_ids, whole
from support.node_processes import PATIENCE_S, Shell, end, free_ports, wait_for_log
from support.transport_peers import on_jumping_clock
from support.waiting import eventually

YEAR_S = 365 * DAY_S


def on_disk(crowd: MemberPeers, key: int) -> Membership:
    return open_membership(crowd.members[key].folder.path)


def ends(crowd: MemberPeers) -> dict[int, float]:
    expires = {key: peer.gauges().certificate_expires_s for key, peer in crowd.peers.items()}
    return {key: when for key, when in expires.items() if when is not None}


def broken(crowd: MemberPeers) -> int:
    """Connections that ended in any way but for want of use."""
    closed = [peer.counters.closed for peer in crowd.peers.values()]
    return sum(sum(counts.values()) - counts["unused"] for counts in closed)


async def all_last_beyond(crowd: MemberPeers, when: float) -> None:
    await eventually(lambda: min(ends(crowd).values()) > when)


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
async def test_running_peers_renew_every_year(cluster: MadeCluster, count: int, years: int) -> None:
    """That of the authority, which lasts for twenty years, too. Nothing breaks, nothing is lost."""
    async with whole(member_peers(cluster, count)) as crowd:
        keys = list(crowd.peers)
        events = crowd.peers[keys[-1]].subscribe("price >= 0", name="ledger")
        await crowd.rounds(8)
        made = {key: on_disk(crowd, key) for key in keys}
        closed, published = broken(crowd), set[int]()

        async def publish() -> None:
            published.add(await crowd.publish(keys[0], 1))

        crowd.offset_s = 25 * DAY_S
        await years_pass(crowd, years, publish)
        assert (await take_ids(events, len(published)), broken(crowd)) == (published, closed)
        assert not ring_errors(crowd.peers)
        for key in keys:
            before, after = made[key], on_disk(crowd, key)
            assert after.identity == before.identity
            assert after.certificate.name == before.certificate.name
            assert after.authority.public_key == before.authority.public_key
            assert after.authority.not_after > before.authority.not_after
            assert crowd.peers[key].gauges().certificate_expires_s == after.certificate.not_after


@on_jumping_clock
async def test_a_rename_spreads_unless_another_has_the_name(cluster: MadeCluster) -> None:
    """A peer's, that of the one who holds the authority, and one to a name that is taken."""
    names: dict[int, str] = {}

    def change(key: int, dependencies: Dependencies) -> Dependencies:
        return attrs.evolve(dependencies, name=names.get(key, dependencies.name))

    async with whole(member_peers(cluster, 3, change=change)) as crowd:
        holder, one, other = crowd.peers

        async def rename(key: int, name: str) -> None:
            names[key] = name
            await crowd.stop(key)
            crowd.members[key] = on_disk(crowd, key)
            await crowd.add(key)

        def called(key: int) -> set[str]:
            tables = [peer.members()["members"] for peer in crowd.peers.values()]
            return {row["name"] for table in tables for row in table if row["key"] == key_text(key)}

        for key, name in ((one, "cellar"), (holder, "attic")):
            await rename(key, name)
            await eventually(lambda key=key, name=name: called(key) == {name}, 120.0)  # type: ignore[misc]
            assert on_disk(crowd, key).certificate.name == name
        before = on_disk(crowd, other).certificate
        await rename(other, "attic")
        told = "another member has that name"
        await eventually(
            lambda: told in crowd.peers[other].standing.by_kind().get("certificate", ""), 3600.0
        )
        assert on_disk(crowd, other).certificate == before


@on_jumping_clock
async def test_who_was_away_learns_of_a_renewed_authority_at_once(cluster: MadeCluster) -> None:
    """Certificates from before and after it are good for both sides meanwhile."""
    async with whole(member_peers(cluster, 3)) as crowd:
        first, away, _ = crowd.peers
        late = cluster.certify(crowd.members[away].identity, "late", lifetime_s=16 * YEAR_S)
        renewed = Renewed(late.der, cluster.first.authority.der)
        save_renewed(accept(crowd.members[away], renewed, crowd.now()))
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
    async with whole(member_peers(cluster, 4)) as crowd:
        first, far, *_ = crowd.peers
        crowd.network.cut(first, far)
        await crowd.rounds(4)
        crowd.offset_s = 25 * DAY_S
        a_year_on = crowd.now() + YEAR_S
        await eventually(lambda: on_disk(crowd, far).certificate.not_after > a_year_on, 600)


@on_jumping_clock
async def test_while_the_holder_is_away_peers_ask_on_and_say_so(cluster: MadeCluster) -> None:
    async with whole(member_peers(cluster, 3)) as crowd:
        first, other, _ = crowd.peers
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
    async with whole(member_peers(cluster, 3)) as crowd:
        before = ends(crowd)
        crowd.offset_s = 25 * DAY_S
        await all_last_beyond(crowd, crowd.now() + YEAR_S)
        crowd.offset_s = 0
        keys = list(crowd.peers)
        await eventually(
            lambda: all(on_disk(crowd, key).certificate.not_before <= crowd.now() for key in keys)
        )
        assert ends(crowd) == before
        away = keys[2]
        crowd.members[away] = on_disk(crowd, away)
        await crowd.stop(away)
        await crowd.add(away)
        await crowd.whole()


@on_jumping_clock
async def test_forged_renewals_cost_the_connection(cluster: MadeCluster, tmp_path: Path) -> None:
    """Else anybody could keep a stolen certificate alive, or bring another cluster's authority."""
    async with member_peers(cluster, 2) as crowd:
        first, other = crowd.peers
        liar, member = cluster.admit("liar"), crowd.members[other]
        crowd.offset_s = 16 * DAY_S
        asked = {
            "certificate": member.certificate.der,
            "signature": ask(liar.identity, member.certificate).signature,
        }
        with made_cluster(tmp_path / "foreign") as foreign:
            made = foreign.certify(member.identity, "peer", lifetime_s=YEAR_S)
            authorities = foreign.first.authority, cluster.first.authority
        answers = [{"certificate": made.der, "authority": one.der} for one in authorities]
        for target, kind, fields, words in (
            (first, "renewal wanted", asked, "not signed by the owner"),
            *((other, "renewed", answer, "authority") for answer in answers),
        ):
            async with attacker(crowd, target, liar) as attack:
                await attack.send(kind, **fields)
                assert words in await attack.cut_for()
        assert on_disk(crowd, other).certificate == member.certificate


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
    async with whole(member_peers(cluster, 3)) as crowd:
        first, bad, other = crowd.peers
        cluster.registrar.revoke(cluster.store, f"{bad:016x}", crowd.now())
        crowd.offset_s = 25 * DAY_S
        a_year_on = crowd.now() + YEAR_S
        await eventually(lambda: on_disk(crowd, other).certificate.not_after > a_year_on)
        await trio.sleep(60)
        assert on_disk(crowd, bad).certificate == crowd.members[bad].certificate
        assert bad not in linked(crowd.peers[first])
        request = ask(crowd.members[bad].identity, crowd.members[bad].certificate)
        with pytest.raises(RevokedCertificateError):
            renew_peer(cluster.registrar, cluster.store, request, crowd.now())


# By command, as people type it: after a certificate has expired.


EVENT = ("symbol=IBM", "price=79", "volume=1")
QUIET = ("--set", "page.enabled=false", "--set", "protocol.round_s=0.2")


def made(shell: Shell, join_port: int = 0) -> None:
    """A cluster of `desk`, which takes joins at that port, and `kitchen`, which joined there."""
    shell.ok("node", "init", "desk", "--preset", "local")
    with shell.node("desk", *QUIET, "--set", f'listen.join_addresses=["127.0.0.1:{join_port}"]'):
        shell.ok("node", "join", shell.ok("node", "invite", "--folder", "desk").strip(), "kitchen")


def certify(shell: Shell, ends_in_s: float, *, recorded: bool = True) -> Membership:
    """Give `kitchen` a certificate that ends by then; return what it was and is a member of."""
    holder = open_registrar(open_membership(shell.folder / "desk"))
    member = open_membership(shell.folder / "kitchen")
    issued_at = time.time() + ends_in_s - 30 * DAY_S
    whose = (member.identity.public_key, "kitchen")
    authority = (holder.member.authority, holder.signer)
    certificate = issue_certificate(*authority, *whose, issued_at, 30 * DAY_S)
    assert certificate.not_before <= issued_at - CLOCK_SLACK_S + 1
    if recorded:
        with Store(ClusterFolder(shell.folder / "desk").state) as store:
            record_certificate(store, certificate)
    write_file(member.folder.peer_certificate, certificate.pem)
    return open_membership(shell.folder / "kitchen")


def days_left(shell: Shell, folder: str) -> float:
    return (open_membership(shell.folder / folder).certificate.not_after - time.time()) / DAY_S


def test_an_expired_peer_is_back_as_the_one_it_was(shell: Shell) -> None:
    """It asks at the address where it once joined, and its node need not be stopped for it.

    Its folder and the names of its applications are what they were.
    """
    port = free_ports(2)
    desk: tuple[str, ...] = ("--set", f'listen.join_addresses=["127.0.0.1:{port}"]', *QUIET)
    desk += ("--set", f'listen.addresses=["127.0.0.1:{port + 1}"]')
    made(shell, port)
    peers = ("--set", f'discovery.peers=["127.0.0.1:{port + 1}"]', *QUIET)
    with shell.node("desk", *desk):
        with shell.node("kitchen", *peers):
            subscriber = shell.subscriber(
                "--folder", "kitchen", "--name", "ada", "--count", "1", "price >= 0"
            )
            for _ in range(100):
                shell.published("kitchen", *EVENT)
                if subscriber.poll() is not None:
                    break
            assert end(subscriber)[0] == 0
            key = shell.status("kitchen")["peer"]
        certify(shell, -3600)
        with shell.node("kitchen", *peers) as node:
            assert "certificate expired" in shell.status("kitchen")["troubles"][0]
            said = shell.ok("node", "renew", "kitchen")
            assert said.startswith("the certificate of peer 'kitchen' is valid until")
            wait_for_log(node, "certificate is renewed", since_start=True)
            assert wait_for_status(shell, "kitchen", connections=1, troubles=[])["peer"] == key
            wait_for_status(shell, "desk", connections=1, troubles=[])
            shell.ok("pub", "--folder", "desk", *EVENT)
            kept = ("sub", "--folder", "kitchen", "--name", "ada", "--count", "1", "price >= 0")
            assert json.loads(shell.ok(*kept))["values"]["symbol"] == "IBM"
    assert days_left(shell, "kitchen") > 700


@pytest.mark.campaign  # they look every now and then only
@pytest.mark.parametrize("role", ["peer", "broker"])
def test_running_nodes_renew_in_time_and_use_what_they_got(shell: Shell, role: str) -> None:
    """Over TLS: the next connection is made with the new certificate, and the old one ends."""
    made(shell)
    address = f"127.0.0.1:{free_ports(1)}"
    options = ("--role", role, *QUIET)
    other: tuple[str, ...] = ("--neighbour", address) if role == "broker" else ()
    other += ("--set", f'discovery.peers=["{address}"]')
    listen = ("--set", f'listen.addresses=["{address}"]')
    old = certify(shell, 5 * DAY_S).certificate
    with shell.node("kitchen", *options, *other) as node:
        with shell.node("desk", *options, *listen) as holder:
            assert wait_for_log(holder, "a certificate is renewed")["peer"] == key_text(old.key)
            wait_for_log(node, "certificate is renewed", since_start=True)
            assert shell.status("kitchen")["connections"] == 1
        with shell.node("desk", *options, *listen):
            wait_for_status(shell, "kitchen", connections=1)
    new = open_membership(shell.folder / "kitchen").certificate
    assert new.key == old.key
    assert new.serial != old.serial
    assert days_left(shell, "kitchen") > 700


def wait_for_status(shell: Shell, folder: str, **expected: object) -> Mapping[str, Any]:
    deadline = time.monotonic() + PATIENCE_S
    with connect(shell.folder / folder) as node:
        while (status := node.status()) | expected != status:
            assert time.monotonic() < deadline, status
            time.sleep(0.05)
    return status


def test_a_renewal_is_carried_by_hand_where_there_is_no_network(shell: Shell) -> None:
    made(shell)
    certify(shell, -3600)
    (shell.folder / "request").write_text(shell.ok("node", "renew", "kitchen", "--request"))
    answer = shell.ok("node", "renew", "desk", "--grant", "request")
    assert answer == shell.ok("node", "renew", "desk", "--grant", "request")
    shell.ok("node", "renew", "kitchen", "--take", "-", text=answer)
    assert days_left(shell, "kitchen") > 700
    again = shell.refused("node", "renew", "kitchen", "--take", "-", text=answer)
    assert again.count("\n") == 1
    assert "lasts no longer" in again
    for option in ("--grant", "--take"):
        refused = shell.refused("node", "renew", "desk", option, "-", text="nonsense")
        assert refused.startswith("gossamer: the text is not what 'gossamer node renew")


def test_where_the_cluster_was_made_nobody_is_asked(one_node: Shell) -> None:
    before = open_membership(one_node.folder / "desk")
    said = one_node.ok("node", "renew", "desk").splitlines()
    after = open_membership(one_node.folder / "desk")
    assert said[0].startswith("the certificate of peer 'first' is valid until")
    assert said[1].startswith("the certificate of the authority is valid until")
    assert after.identity == before.identity
    assert after.certificate.serial != before.certificate.serial
    assert after.authority.not_before == before.authority.not_before
    one_node.ok("node", "check", "desk")


def test_what_cannot_be_renewed_is_said_in_a_sentence(shell: Shell) -> None:
    port = free_ports(1)
    made(shell, port)
    assert "the inviter was not reached" in shell.refused("node", "renew", "kitchen")
    with shell.node("desk", *QUIET, "--set", f'listen.join_addresses=["127.0.0.1:{port}"]'):
        early = shell.refused("node", "renew", "kitchen")
        assert (early.count("\n"), "need not be renewed yet" in early) == (1, True)
        certify(shell, -3600, recorded=False)
        unknown = shell.refused("node", "renew", "kitchen", "--at", f"127.0.0.1:{port}")
        assert (unknown.count("\n"), "not on record" in unknown) == (1, True)
