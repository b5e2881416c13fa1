"""Invitations: what a token is worth, to whom, how often and how long; and revocation."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gossamer.node import errors
from gossamer.node.security.certificates import PeerCertificate, read_certificate, verify_peer
from gossamer.node.security.cluster import open_membership
from gossamer.node.security.identity import Identity, key_text, make_identity
from gossamer.node.security.joining.tokens import Token
from gossamer.node.security.revocation import Revocation
from gossamer.node.store import Store, StoreLimits
from gossamer.protocol.kernel.errors import CapacityError, ConfigError
from support.clusters import MadeCluster

HERE = (("127.0.0.1", 7401),)


def invite(cluster: MadeCluster, lifetime_s: float = 600.0) -> Token:
    return cluster.registrar.invite(cluster.store, HERE, cluster.now, lifetime_s)


def redeem(
    cluster: MadeCluster,
    secret: bytes,
    joiner: Identity | None = None,
    name: str = "kitchen",
    after_s: float = 0.0,
) -> PeerCertificate:
    key = (joiner or make_identity()).public_key
    return cluster.registrar.redeem(cluster.store, secret, key, name, cluster.now + after_s)


def revoke(cluster: MadeCluster, who: str) -> Revocation:
    return cluster.registrar.revoke(cluster.store, who, cluster.now)


def test_a_token_gets_its_bearer_a_certificate(cluster: MadeCluster) -> None:
    token, joiner, first = invite(cluster), make_identity(), cluster.first
    certificate = redeem(cluster, token.secret, joiner)
    verified = verify_peer(first.authority, certificate.der, joiner.key, first.revoked, cluster.now)
    assert (verified.name, token.inviter) == ("kitchen", first.identity.key)
    assert token.cluster == first.authority.cluster
    assert token.fingerprint == first.authority.fingerprint


def test_the_state_does_not_hold_the_secret(cluster: MadeCluster) -> None:
    token = invite(cluster)
    cluster.store.close()
    kept = b"".join(path.read_bytes() for path in cluster.folder.parent.glob("first*/*"))
    kept += cluster.store.path.read_bytes()
    assert token.secret not in kept


def test_a_second_peer_gets_nothing_for_a_used_token(cluster: MadeCluster) -> None:
    token = invite(cluster)
    redeem(cluster, token.secret)
    with pytest.raises(errors.TokenUsedError):
        redeem(cluster, token.secret, name="two")
    assert cluster.store.admissions.certificates_of_name("two") == []


def test_the_same_peer_may_ask_again_and_gets_the_same_certificate(cluster: MadeCluster) -> None:
    token, joiner = invite(cluster), make_identity()
    first = redeem(cluster, token.secret, joiner)
    assert redeem(cluster, token.secret, joiner, "other name") == first
    assert len(cluster.store.admissions.certificates_of_key(first.key)) == 1


def test_a_token_is_good_until_just_before_its_expiry(cluster: MadeCluster) -> None:
    early, late = invite(cluster, lifetime_s=60), invite(cluster, lifetime_s=60)
    assert redeem(cluster, early.secret, after_s=59.9)
    with pytest.raises(errors.TokenExpiredError):
        redeem(cluster, late.secret, after_s=60)


def test_an_unknown_token_gets_nothing(cluster: MadeCluster) -> None:
    with pytest.raises(errors.TokenUnknownError):
        redeem(cluster, b"?" * 16)


def test_a_revoked_key_gets_no_new_certificate(cluster: MadeCluster) -> None:
    identity = make_identity()
    cluster.certify(identity, "kitchen")
    revoke(cluster, "kitchen")
    token = invite(cluster)
    with pytest.raises(errors.RevokedCertificateError):
        redeem(cluster, token.secret, identity)


@pytest.mark.parametrize("lifetime_s", [0.0, -1.0, 1e10, float("nan")])
def test_an_impossible_lifetime_is_refused(cluster: MadeCluster, lifetime_s: float) -> None:
    with pytest.raises(ConfigError, match="lifetime"):
        invite(cluster, lifetime_s)


def test_an_invitation_without_address_is_refused(cluster: MadeCluster) -> None:
    with pytest.raises(ConfigError, match="number of addresses is 0"):
        cluster.registrar.invite(cluster.store, (), cluster.now)


def test_tokens_are_bounded_and_old_ones_make_room(cluster: MadeCluster) -> None:
    day = 86_400.0
    cluster.store.close()
    with Store(cluster.store.path, StoreLimits(tokens=2)) as store:
        for _ in range(2):
            cluster.registrar.invite(store, HERE, cluster.now)
        with pytest.raises(CapacityError, match="tokens is full at 2"):
            cluster.registrar.invite(store, HERE, cluster.now + 7 * day)
        assert cluster.registrar.invite(store, HERE, cluster.now + 8 * day)


REDEEM = """
import sys
from pathlib import Path
from gossamer.node.errors import NodeError
from gossamer.node.security.joining.admission import open_registrar
from gossamer.node.security.cluster import open_membership
from gossamer.node.security.identity import make_identity
from gossamer.node.store import Store

folder, state, name, secret, now = sys.argv[1:]
registrar, key = open_registrar(open_membership(Path(folder))), make_identity().public_key
with Store(Path(state)) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        print(registrar.redeem(store, bytes.fromhex(secret), key, name, float(now)).name)
    except NodeError as error:
        print(type(error).__name__)
"""


def test_of_many_processes_at_once_exactly_one_redeems_a_token(cluster: MadeCluster) -> None:
    token = invite(cluster)
    command = (sys.executable, "-c", REDEEM, str(cluster.folder), str(cluster.store.path))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    processes = [
        subprocess.Popen(
            [*command, f"p{number}", token.secret.hex(), str(cluster.now)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    outcomes = [process.communicate(timeout=60)[0].strip() for process in processes]
    assert outcomes.count(errors.TokenUsedError.__name__) == 3
    issued = {entry.name for entry in cluster.store.admissions.certificates()}
    assert issued == {"first", *outcomes} - {errors.TokenUsedError.__name__}
    assert len(issued) == 2


def test_revoking_by_name_and_by_key_bars_the_peer(cluster: MadeCluster) -> None:
    one, two = cluster.certify(make_identity(), "one"), cluster.certify(make_identity(), "two")
    revoke(cluster, "one")
    revoke(cluster, key_text(two.key).upper())
    revoked = open_membership(cluster.folder).revoked
    assert (revoked.sequence, len(revoked.entries)) == (2, 2)
    for certificate in (one, two):
        assert revoked.forbids(certificate.key, 0)
        assert revoked.forbids(0, certificate.serial)
    assert not revoked.forbids(cluster.first.identity.key, cluster.first.certificate.serial)


def test_revoking_a_peer_bars_all_its_certificates(cluster: MadeCluster) -> None:
    identity = make_identity()
    serials = {cluster.certify(identity, name).serial for name in ("old", "new")}
    entry = revoke(cluster, "old")
    assert set(entry.serials) == serials


def test_a_name_of_several_peers_is_not_enough_to_revoke(cluster: MadeCluster) -> None:
    keys = sorted(key_text(cluster.certify(make_identity(), "twin").key) for _ in range(2))
    with pytest.raises(errors.ClusterFolderError, match=", ".join(keys)):
        revoke(cluster, "twin")
    assert cluster.registrar.revoked().entries == ()


def test_neither_nobody_nor_the_holder_of_the_authority_can_be_revoked(
    cluster: MadeCluster,
) -> None:
    for who, words in (
        ("nobody", "has issued nothing to"),
        ("0" * 16, "has issued nothing to"),
        ("first", "cannot be revoked"),
    ):
        with pytest.raises(errors.ClusterFolderError, match=words):
            revoke(cluster, who)


def test_an_admitted_member_opens_its_own_folder(cluster: MadeCluster) -> None:
    member = cluster.admit("kitchen")
    assert read_certificate(member.certificate.der).name == "kitchen"
    assert member.authority == cluster.first.authority
