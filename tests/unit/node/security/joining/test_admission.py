"""Invitations: what a token is worth, to whom, how often and how long; and revocation."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gossamer.node import errors
from gossamer.node.security.certificates import read_certificate, verify_peer
from gossamer.node.security.cluster import open_membership
from gossamer.node.security.identity import key_text, make_identity
from gossamer.node.store import Store, StoreLimits
from gossamer.protocol.kernel.errors import CapacityError, ConfigError
from support.clusters import MadeCluster

HERE = (("127.0.0.1", 7401),)


def test_a_token_gets_its_bearer_a_certificate(cluster: MadeCluster) -> None:
    token = cluster.registrar.invite(cluster.store, HERE, cluster.now)
    joiner = make_identity()
    certificate = cluster.registrar.redeem(
        cluster.store, token.secret, joiner.public_key, "kitchen", cluster.now
    )
    first = cluster.first
    verified = verify_peer(first.authority, certificate.der, joiner.key, first.revoked, cluster.now)
    assert (verified.name, token.inviter) == ("kitchen", first.identity.key)
    assert (token.cluster, token.fingerprint) == (
        first.authority.cluster,
        first.authority.fingerprint,
    )


def test_the_state_does_not_hold_the_secret(cluster: MadeCluster) -> None:
    token = cluster.registrar.invite(cluster.store, HERE, cluster.now)
    cluster.store.close()
    kept = b"".join(path.read_bytes() for path in cluster.folder.parent.glob("first*/*"))
    kept += cluster.store.path.read_bytes()
    assert token.secret not in kept


def test_a_second_peer_gets_nothing_for_a_used_token(cluster: MadeCluster) -> None:
    token = cluster.registrar.invite(cluster.store, HERE, cluster.now)
    redeem = cluster.registrar.redeem
    redeem(cluster.store, token.secret, make_identity().public_key, "one", cluster.now)
    with pytest.raises(errors.TokenUsedError):
        redeem(cluster.store, token.secret, make_identity().public_key, "two", cluster.now)
    assert cluster.store.admissions.certificates_of_name("two") == []


def test_the_same_peer_may_ask_again_and_gets_the_same_certificate(cluster: MadeCluster) -> None:
    token = cluster.registrar.invite(cluster.store, HERE, cluster.now)
    key = make_identity().public_key
    redeem = cluster.registrar.redeem
    first = redeem(cluster.store, token.secret, key, "one", cluster.now)
    assert redeem(cluster.store, token.secret, key, "other name", cluster.now) == first
    assert len(cluster.store.admissions.certificates_of_key(first.key)) == 1


def test_a_token_is_good_until_just_before_its_expiry(cluster: MadeCluster) -> None:
    now = cluster.now
    redeem = cluster.registrar.redeem
    early = cluster.registrar.invite(cluster.store, HERE, now, lifetime_s=60)
    assert redeem(cluster.store, early.secret, make_identity().public_key, "a", now + 59.9)
    late = cluster.registrar.invite(cluster.store, HERE, now, lifetime_s=60)
    with pytest.raises(errors.TokenExpiredError):
        redeem(cluster.store, late.secret, make_identity().public_key, "b", now + 60)


def test_an_unknown_token_gets_nothing(cluster: MadeCluster) -> None:
    with pytest.raises(errors.TokenUnknownError):
        cluster.registrar.redeem(
            cluster.store, b"?" * 16, make_identity().public_key, "a", cluster.now
        )


def test_a_revoked_key_gets_no_new_certificate(cluster: MadeCluster) -> None:
    identity = make_identity()
    cluster.certify(identity, "kitchen")
    cluster.registrar.revoke(cluster.store, "kitchen", cluster.now)
    token = cluster.registrar.invite(cluster.store, HERE, cluster.now)
    with pytest.raises(errors.RevokedCertificateError):
        cluster.registrar.redeem(
            cluster.store, token.secret, identity.public_key, "kitchen", cluster.now
        )


@pytest.mark.parametrize("lifetime_s", [0.0, -1.0, 1e10, float("nan")])
def test_an_impossible_lifetime_is_refused(cluster: MadeCluster, lifetime_s: float) -> None:
    with pytest.raises(ConfigError, match="lifetime"):
        cluster.registrar.invite(cluster.store, HERE, cluster.now, lifetime_s)


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
    token = cluster.registrar.invite(cluster.store, HERE, cluster.now)
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
    cluster.registrar.revoke(cluster.store, "one", cluster.now)
    cluster.registrar.revoke(cluster.store, key_text(two.key).upper(), cluster.now)
    revoked = open_membership(cluster.folder).revoked
    assert (revoked.sequence, len(revoked.entries)) == (2, 2)
    for certificate in (one, two):
        assert revoked.forbids(certificate.key, 0)
        assert revoked.forbids(0, certificate.serial)
    assert not revoked.forbids(cluster.first.identity.key, cluster.first.certificate.serial)


def test_revoking_a_peer_bars_all_its_certificates(cluster: MadeCluster) -> None:
    identity = make_identity()
    serials = {cluster.certify(identity, name).serial for name in ("old", "new")}
    entry = cluster.registrar.revoke(cluster.store, "old", cluster.now)
    assert set(entry.serials) == serials


def test_a_name_of_several_peers_is_not_enough_to_revoke(cluster: MadeCluster) -> None:
    keys = sorted(key_text(cluster.certify(make_identity(), "twin").key) for _ in range(2))
    with pytest.raises(errors.ClusterFolderError, match=", ".join(keys)):
        cluster.registrar.revoke(cluster.store, "twin", cluster.now)
    assert cluster.registrar.revoked().entries == ()


@pytest.mark.parametrize("who", ["nobody", "0" * 16])
def test_nobody_cannot_be_revoked(cluster: MadeCluster, who: str) -> None:
    with pytest.raises(errors.ClusterFolderError, match="has issued nothing to"):
        cluster.registrar.revoke(cluster.store, who, cluster.now)


def test_the_holder_of_the_authority_cannot_be_revoked(cluster: MadeCluster) -> None:
    with pytest.raises(errors.ClusterFolderError, match="cannot be revoked"):
        cluster.registrar.revoke(cluster.store, "first", cluster.now)


def test_an_admitted_member_opens_its_own_folder(cluster: MadeCluster) -> None:
    member = cluster.admit("kitchen")
    assert read_certificate(member.certificate.der).name == "kitchen"
    assert member.authority == cluster.first.authority
