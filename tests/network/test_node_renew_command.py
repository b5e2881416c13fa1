"""`gossamer node renew`, as people type it: after a certificate has expired."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import pytest

from gossamer.client import connect
from gossamer.node.security.cluster import ClusterFolder, Membership, open_membership
from gossamer.node.security.files import write_file
from gossamer.node.security.identity import key_text
from gossamer.node.security.issuing import CLOCK_SLACK_S, issue_certificate
from gossamer.node.security.joining.admission import open_registrar, record_certificate
from gossamer.node.store import Store
from support.clusters import DAY_S
from support.node_processes import PATIENCE_S, Shell, end, free_ports, wait_for_log

EVENT = ("symbol=IBM", "price=79", "volume=1")
QUIET = ("--set", "page.enabled=false", "--set", "protocol.round_s=0.2")


def made(shell: Shell, join_port: int = 0) -> None:
    """A cluster of `desk`, which takes joins at that port, and `kitchen`, which joined there."""
    shell.ok("node", "init", "desk", "--preset", "local")
    with shell.node("desk", *QUIET, "--set", f'listen.join_addresses=["127.0.0.1:{join_port}"]'):
        token = shell.ok("node", "invite", "--folder", "desk").strip()
        shell.ok("node", "join", token, "kitchen")


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
                shell.ok("pub", "--folder", "kitchen", *EVENT)
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
            status = wait_for_status(shell, "kitchen", connections=1, troubles=[])
            assert status["peer"] == key
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
    """What a node says of itself once it says this."""
    deadline = time.monotonic() + PATIENCE_S
    with connect(shell.folder / folder) as node:
        while (status := node.status()) | expected != status:
            assert time.monotonic() < deadline, status
            time.sleep(0.05)
    return status


def test_a_renewal_is_carried_by_hand_where_there_is_no_network(shell: Shell) -> None:
    made(shell)
    certify(shell, -3600)
    request = shell.ok("node", "renew", "kitchen", "--request")
    (shell.folder / "request").write_text(request)
    answer = shell.ok("node", "renew", "desk", "--grant", "request")
    assert answer == shell.ok("node", "renew", "desk", "--grant", "request")
    shell.ok("node", "renew", "kitchen", "--take", "-", text=answer)
    assert days_left(shell, "kitchen") > 700
    again = shell.refused("node", "renew", "kitchen", "--take", "-", text=answer)
    assert again.count("\n") == 1
    assert "lasts no longer" in again


@pytest.mark.parametrize("text", ["", "nonsense", "gossamer-renewal-request 1\nAAAA\n"])
@pytest.mark.parametrize("option", ["--grant", "--take"])
def test_texts_that_are_no_requests_or_answers_are_refused(
    desk: Shell, option: str, text: str
) -> None:
    done = desk.refused("node", "renew", "desk", option, "-", text=text)
    assert done.startswith("gossamer: the text is not what 'gossamer node renew")


def test_where_the_cluster_was_made_nobody_is_asked(desk: Shell) -> None:
    before = open_membership(desk.folder / "desk")
    said = desk.ok("node", "renew", "desk").splitlines()
    after = open_membership(desk.folder / "desk")
    assert said[0].startswith("the certificate of peer 'first' is valid until")
    assert said[1].startswith("the certificate of the authority is valid until")
    assert after.identity == before.identity
    assert after.certificate.serial != before.certificate.serial
    assert after.authority.not_before == before.authority.not_before
    desk.ok("node", "check", "desk")


def test_who_is_revoked_is_not_renewed_though_all_has_expired(shell: Shell) -> None:
    """It is on the list no more then."""
    made(shell)
    certify(shell, -3600)
    shell.ok("node", "revoke", "kitchen", "--folder", "desk")
    (shell.folder / "request").write_text(shell.ok("node", "renew", "kitchen", "--request"))
    refused = shell.run("node", "renew", "desk", "--grant", "request")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "revoked" in refused.stderr
    for name in ("another", "third"):
        with shell.node("desk", *QUIET):
            token = shell.ok("node", "invite", "--folder", "desk").strip()
            shell.ok("node", "join", token, name)
    listed = json.loads((shell.folder / "desk/revoked.json").read_text())["revoked"]
    assert len(listed) == 1


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
