"""Joins without a network: who is believed, tokens and what they are worth, and revocation."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gossamer.node import errors
from gossamer.node.errors import ClusterFolderError, JoinError
from gossamer.node.security.certificates import PeerCertificate, read_certificate, verify_peer
from gossamer.node.security.cluster import open_membership
from gossamer.node.security.identity import Identity, decode, encode, key_text, make_identity
from gossamer.node.security.joining import commands
from gossamer.node.security.joining import join_protocol as joins
from gossamer.node.security.joining.join_protocol import PREFIX, Token, read_token, token_id
from gossamer.node.security.revocation import Revocation
from gossamer.node.store import Store, StoreLimits
from gossamer.protocol.kernel.errors import CapacityError, ConfigError
from support.clusters import DAY_S, MadeCluster, made_cluster
from support.draws import larger

# The three messages


@pytest.fixture
def token(cluster: MadeCluster) -> Token:
    return invite(cluster)


def challenge_of(cluster: MadeCluster) -> joins.Challenge:
    return joins.Challenge(nonce=b"n" * 32, authority=cluster.first.authority.der)


def request_of(cluster: MadeCluster, token: Token, identity: Identity) -> joins.Request:
    shown = cluster.first.certificate.der
    return joins.make_request(token, identity, "kitchen", challenge_of(cluster), shown)


def test_an_exchange_from_challenge_to_certificate(cluster: MadeCluster, token: Token) -> None:
    joiner, first, now = make_identity(), cluster.first, cluster.now
    challenge = joins.unpack(joins.Challenge, joins.pack(challenge_of(cluster)))
    inviter = joins.recognise(token, challenge, first.certificate.der, now)
    request = joins.unpack(joins.Request, joins.pack(request_of(cluster, token, joiner)))
    joins.check_request(request, challenge.nonce, first.certificate.der)
    certificate = redeem(cluster, request.secret, joiner, request.name)
    answer = joins.Answer(certificate=certificate.der, revoked=first.revoked.to_bytes())
    answer = joins.unpack(joins.Answer, joins.pack(answer))
    found = joins.read_answer(answer, inviter, joiner, now)
    assert found == (certificate, first.revoked)
    assert (certificate.key, certificate.name) == (joiner.key, "kitchen")


def test_joiners_recognise_no_others(cluster: MadeCluster, token: Token, tmp_path: Path) -> None:
    """A member that answers in the inviter's place does not get to see the secret."""
    member = cluster.admit("nosy")
    nosy = member.certificate.der
    assert (member.authority, read_certificate(nosy).name) == (cluster.first.authority, "nosy")
    with pytest.raises(errors.KeyMismatchError):
        joins.recognise(token, challenge_of(cluster), nosy, cluster.now)
    with made_cluster(tmp_path / "other") as other:
        theirs = other.first.certificate.der
        with pytest.raises(errors.ForeignCertificateError, match=token.cluster):
            joins.recognise(token, challenge_of(other), theirs, cluster.now)
        with pytest.raises(errors.ForeignCertificateError):
            joins.recognise(token, challenge_of(cluster), theirs, cluster.now)


def test_a_request_with_anything_changed_proves_nothing(cluster: MadeCluster, token: Token) -> None:
    request, shown = request_of(cluster, token, make_identity()), cluster.first.certificate.der
    joins.check_request(request, b"n" * 32, shown)
    for changed, nonce, certificate in (
        (evolve(request, secret=b"?" * 16), b"n" * 32, shown),
        (evolve(request, public_key=make_identity().public_key), b"n" * 32, shown),
        (evolve(request, proof=b"?" * 64), b"n" * 32, shown),
        (request, b"m" * 32, shown),
        (request, b"n" * 32, cluster.admit("other").certificate.der),
    ):
        with pytest.raises(errors.SignedDataError, match="does not prove"):
            joins.check_request(changed, nonce, certificate)


def test_joiners_take_nothing_foreign(cluster: MadeCluster, token: Token, tmp_path: Path) -> None:
    joiner, first, now = make_identity(), cluster.first, cluster.now
    inviter = joins.recognise(token, challenge_of(cluster), first.certificate.der, now)
    with made_cluster(tmp_path / "other") as other:
        foreign, foreign_list = other.certify(joiner).der, other.first.revoked
    for certificate, revoked, error in (
        (first.certificate.der, first.revoked, errors.KeyMismatchError),
        (foreign, first.revoked, errors.ForeignCertificateError),
        (cluster.certify(joiner).der, foreign_list, errors.SignedDataError),
        (b"junk", first.revoked, errors.CertificateError),
    ):
        answer = joins.Answer(certificate=certificate, revoked=revoked.to_bytes())
        with pytest.raises(error):
            joins.read_answer(answer, inviter, joiner, now)


@pytest.mark.parametrize("kind", [joins.Challenge, joins.Answer])
def test_a_refusal_says_why(kind: Any) -> None:
    for cause, words in (
        (joins.UNKNOWN, "does not know"),
        (joins.EXPIRED, "expired"),
        (joins.USED, "used by another"),
        (joins.NAME_TAKEN, "a member of this name"),
        (joins.NO_AUTHORITY, r"holds no ca\.key"),
        (joins.THROTTLED, "try again in a minute"),
        (joins.BAD_REQUEST, "malformed"),
        (joins.REVOKED, "revoked"),
        (joins.FAILED, "log"),
    ):
        with pytest.raises(JoinError, match=words):
            joins.unpack(kind, joins.pack_refusal(cause))
    with pytest.raises(errors.SignedDataError, match="without a reason"):
        joins.unpack(kind, joins.pack_refusal("because"))


def changed_request(**fields: object) -> bytes:
    asked = joins.Request(secret=b"s" * 16, public_key=b"k" * 32, name="n", proof=b"p" * 64)
    content = decode(joins.pack(asked)) | fields
    return encode({name: value for name, value in content.items() if value is not None})


def test_a_malformed_request_is_refused() -> None:
    for data in (
        *[b"", b"\x01", b"\xff" * 40, encode([1]), encode({}), changed_request() + b"\0"],
        *(changed_request(version=version) for version in (2, None)),
        changed_request(more=1),
        *(changed_request(name=name) for name in (None, "", "n" * 65, b"n")),
        *(changed_request(secret=secret) for secret in (b"s" * 15, "s" * 16)),
        changed_request(public_key=b"k" * 33),
        *(changed_request(proof=proof) for proof in ([1], {"a": {"b": {"c": {"d": 1}}}})),
        changed_request(refused=[1]),
    ):
        with pytest.raises(errors.SignedDataError):
            joins.unpack(joins.Request, data)


# Invitations and revocation

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


def test_a_token_is_good_for_one_peer_however_often_that_asks(cluster: MadeCluster) -> None:
    token, joiner, first = invite(cluster), make_identity(), cluster.first
    authority, admissions = first.authority, cluster.store.admissions
    certificate = redeem(cluster, token.secret, joiner)
    verified = verify_peer(authority, certificate.der, joiner.key, first.revoked, cluster.now)
    assert (verified.name, token.inviter) == ("kitchen", first.identity.key)
    assert (token.cluster, token.fingerprint) == (authority.cluster, authority.fingerprint)
    assert redeem(cluster, token.secret, joiner, "other name") == certificate
    assert len(admissions.certificates_of_key(joiner.key)) == 1
    with pytest.raises(JoinError, match="used by another peer"):
        redeem(cluster, token.secret, name="two")
    assert admissions.certificates_of_name("two") == []
    # The secret itself is kept nowhere.
    cluster.store.close()
    kept = b"".join(path.read_bytes() for path in cluster.folder.parent.glob("first*/*"))
    assert token.secret not in kept + cluster.store.path.read_bytes()


def test_unknown_and_expired_tokens_and_revoked_keys_get_nothing(cluster: MadeCluster) -> None:
    early, late = invite(cluster, lifetime_s=60), invite(cluster, lifetime_s=60)
    assert redeem(cluster, early.secret, after_s=59.9, name="early")
    with pytest.raises(JoinError, match="has expired"):
        redeem(cluster, late.secret, after_s=60)
    with pytest.raises(JoinError, match="does not know"):
        redeem(cluster, b"?" * 16)
    identity = make_identity()
    cluster.certify(identity, "kitchen")
    revoke(cluster, "kitchen")
    with pytest.raises(errors.RevokedCertificateError):
        redeem(cluster, invite(cluster).secret, identity)


def test_an_invitation_needs_an_address_and_a_possible_lifetime(cluster: MadeCluster) -> None:
    with pytest.raises(ConfigError, match="number of addresses is 0"):
        cluster.registrar.invite(cluster.store, (), cluster.now)
    for lifetime_s in (0.0, -1.0, 1e10, math.nan):
        with pytest.raises(ConfigError, match="lifetime"):
            invite(cluster, lifetime_s)
    # Tokens are bounded, and old ones make room.
    cluster.store.close()
    with Store(cluster.store.path, StoreLimits(tokens=2)) as store:
        for _ in range(2):
            cluster.registrar.invite(store, HERE, cluster.now)
        with pytest.raises(CapacityError, match="tokens is full at 2"):
            cluster.registrar.invite(store, HERE, cluster.now + 7 * DAY_S)
        assert cluster.registrar.invite(store, HERE, cluster.now + 8 * DAY_S)


PROCESSES = larger(3, 4)
REDEEM = """
import sys
from pathlib import Path
from gossamer.node.errors import JoinError
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
    except JoinError as error:
        print(error.cause)
"""


def test_of_many_processes_at_once_exactly_one_redeems_a_token(cluster: MadeCluster) -> None:
    token = invite(cluster)
    command = [sys.executable, "-c", REDEEM, str(cluster.folder), str(cluster.store.path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    more = token.secret.hex(), str(cluster.now)
    processes = [
        subprocess.Popen([*command, f"p{number}", *more], env=environment, **pipes)
        for number in range(PROCESSES)
    ]
    assert [next(iter(process.stdout or ())) for process in processes] == ["ready\n"] * PROCESSES
    for process in processes:
        print(file=process.stdin, flush=True)
    outcomes = [process.communicate(timeout=60)[0].strip() for process in processes]
    assert outcomes.count(joins.USED) == PROCESSES - 1
    issued = {entry.name for entry in cluster.store.admissions.certificates()}
    assert issued == {"first", *outcomes} - {joins.USED}
    assert len(issued) == 2


def test_revoking_by_name_or_key_bars_a_peer_and_its_certificates(cluster: MadeCluster) -> None:
    one, two = make_identity(), make_identity()
    issued = [cluster.certify(one, "one"), cluster.certify(one, "new"), cluster.certify(two, "two")]
    assert set(revoke(cluster, "one").serials) == {issued[0].serial, issued[1].serial}
    revoke(cluster, key_text(two.key).upper())
    revoked = open_membership(cluster.folder).revoked
    assert (revoked.sequence, len(revoked.entries)) == (2, 2)
    for certificate in issued:
        assert revoked.forbids(certificate.key, 0)
        assert revoked.forbids(0, certificate.serial)
    assert not revoked.forbids(cluster.first.identity.key, cluster.first.certificate.serial)


def test_who_cannot_be_revoked_is_said(cluster: MadeCluster) -> None:
    twins = sorted(key_text(cluster.certify(make_identity(), "twin").key) for _ in range(2))
    for who, words in (
        ("nobody", "has issued nothing to"),
        ("0" * 16, "has issued nothing to"),
        ("first", "cannot be revoked"),
        ("twin", ", ".join(twins)),
    ):
        with pytest.raises(errors.ClusterFolderError, match=words):
            revoke(cluster, who)
    assert cluster.registrar.revoked().entries == ()


# Tokens as texts

TOKEN = Token("ab" * 16, b"f" * 32, 12345, (("192.168.1.20", 7401), ("fe80::1", 7401)), b"s" * 16)
ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def test_a_token_comes_back_from_its_text_that_shells_leave_alone() -> None:
    """Space around it does not matter, and neither text nor identifier shows the secret."""
    for text in (TOKEN.to_text(), f"  {TOKEN.to_text()}\n"):
        assert read_token(text) == TOKEN
    assert set(TOKEN.to_text().removeprefix(PREFIX)) <= set(ALPHABET)
    assert "ssss" not in repr(TOKEN)
    assert token_id(TOKEN.secret) != token_id(b"t" * 16)
    assert TOKEN.secret not in token_id(TOKEN.secret)


def test_what_is_no_token_is_refused_with_the_reason() -> None:
    whole = TOKEN.to_text()
    for text, complaint in (
        ("", "begins with gossamer1-"),
        ("hello", "begins with gossamer1-"),
        ("gossamer2-aaaa", "of version 2, expected 1"),
        (PREFIX, "character is wrong or missing"),
        (PREFIX + "a", "character is missing"),
        (PREFIX + "0" * 8, "does not belong"),
        (PREFIX + "a" * 5000, "too long"),
        (whole.upper(), "begins with"),
        (PREFIX + whole.removeprefix(PREFIX).upper(), "capital letters"),
        (whole[:-1], "character is"),
        (whole + "a", "character is"),
        (PREFIX + "ü" * 8, "does not belong"),
    ):
        with pytest.raises(JoinError, match=complaint):
            read_token(text)


def test_every_last_character_but_the_right_one_is_refused() -> None:
    """With some lengths the last one has bits that stand for nothing."""
    for host in ("h", "ho", "hos", "host", "hosts"):
        text = evolve(TOKEN, addresses=((host, 7401),)).to_text()
        accepted = []
        for letter in ALPHABET:
            with suppress(JoinError):
                accepted.append(read_token(text[:-1] + letter).to_text())
        assert accepted == [text]


@pytest.mark.parametrize(
    ("name", "impossible", "words"),
    [
        ("cluster", ["ab" * 15], "does not hold"),
        ("fingerprint", [b"f" * 31], "does not hold"),
        ("inviter", [1 << 62], "does not hold"),
        ("secret", [b"s" * 17], "does not hold"),
        ("addresses", [(), (("h", 1),) * 9, (("", 1),), (("h", 0),)], "cannot be right"),
        ("addresses", [(("h", 65_536),), (("h" * 256, 1),)], "cannot be right"),
    ],
)
def test_no_token_has_an_impossible_part(name: str, impossible: list[Any], words: str) -> None:
    for part in impossible:
        with pytest.raises(JoinError, match=words):
            read_token(evolve(TOKEN, **{name: part}).to_text())


# Commands


def test_init_names_what_to_keep_and_invite_prints_a_token(tmp_path: Path) -> None:
    text = commands.init_cluster(tmp_path / "desk", "desk", "first")
    member = open_membership(tmp_path / "desk")
    assert member.authority.cluster in text
    assert f"'first' ({key_text(member.identity.key)})" in text
    assert f"{tmp_path}/desk/ca.key offline" in text
    with Store(member.folder.state) as store:
        store.bind(member.identity.key, 0.0)
        assert [one.name for one in store.admissions.certificates()] == ["first"]
    text = commands.invite(tmp_path / "desk", HERE)
    assert re.fullmatch(r"gossamer1-[a-z2-7]+", text)
    assert read_token(text).addresses == HERE


def test_without_the_authority_or_a_token_commands_do_nothing(tmp_path: Path) -> None:
    with made_cluster(tmp_path / "first") as cluster:
        folder = cluster.admit("kitchen").folder.path
    with pytest.raises(ClusterFolderError, match="where cluster 'desk' was made"):
        commands.invite(folder, HERE)
    with pytest.raises(ClusterFolderError, match="where cluster 'desk' was made"):
        commands.revoke(folder, "first")
    with pytest.raises(JoinError, match="copy it again"):
        commands.join("gossamer1-aaaaaaaa", tmp_path / "new", "kitchen")
    assert not (tmp_path / "new").exists()


def test_revoke_names_who_is_revoked_by_its_key_where_nothing_else_is_known(tmp_path: Path) -> None:
    """As after the state file was lost, or moved away as the doctor advises."""
    first = tmp_path / "first"
    commands.init_cluster(first, "desk", "first")
    commands.admit_here(first, [(tmp_path / name, name) for name in ("kitchen", "garden")])
    kitchen, garden = (open_membership(tmp_path / name) for name in ("kitchen", "garden"))
    said = f"peer {key_text(garden.identity.key)} is revoked"
    assert said in commands.revoke(first, "garden")
    assert open_membership(first).revoked.forbids(garden.identity.key, 0)
    (first / "state.db").unlink()
    key = key_text(kitchen.identity.key)
    for who, words in (
        ("kitchen", "issued nothing to 'kitchen'"),
        (key, "if the record was lost, its key"),
    ):
        with pytest.raises(ClusterFolderError, match=words):
            commands.revoke(first, who)
    text = commands.revoke(first, key, unrecorded=True)
    assert f"peer {key} is revoked" in text
    assert "no certificate of it is on record here" in text
    revoked = open_membership(first).revoked
    assert revoked.forbids(kitchen.identity.key, kitchen.certificate.serial)
    (entry,) = (entry for entry in revoked.entries if entry.key == kitchen.identity.key)
    assert entry.not_after >= kitchen.certificate.not_after
