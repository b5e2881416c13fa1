"""The three messages of a join, without a network: who is believed, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from gossamer.node import errors
from gossamer.node.security.encoding import decode, encode
from gossamer.node.security.identity import Identity, make_identity
from gossamer.node.security.joining import join_protocol
from gossamer.node.security.joining.join_protocol import (
    Answer,
    Challenge,
    Request,
    check_request,
    make_request,
    pack,
    pack_refusal,
    read_answer,
    recognise,
    unpack,
)
from gossamer.node.security.joining.tokens import Token
from support.clusters import MadeCluster, made_cluster


@pytest.fixture
def token(cluster: MadeCluster) -> Token:
    return cluster.registrar.invite(cluster.store, (("127.0.0.1", 1),), cluster.now)


def challenge_of(cluster: MadeCluster) -> Challenge:
    return Challenge(nonce=b"n" * 32, authority=cluster.first.authority.der)


def request_of(cluster: MadeCluster, token: Token, identity: Identity) -> Request:
    shown = cluster.first.certificate.der
    return make_request(token, identity, "kitchen", challenge_of(cluster), shown)


def test_an_exchange_from_challenge_to_certificate(cluster: MadeCluster, token: Token) -> None:
    joiner, first, now = make_identity(), cluster.first, cluster.now
    challenge = unpack(Challenge, pack(challenge_of(cluster)))
    inviter = recognise(token, challenge, first.certificate.der, now)
    request = unpack(
        Request, pack(make_request(token, joiner, "kitchen", challenge, first.certificate.der))
    )
    check_request(request, challenge.nonce, first.certificate.der)
    certificate = cluster.registrar.redeem(
        cluster.store, request.secret, request.public_key, request.name, now
    )
    answer = Answer(certificate=certificate.der, revoked=first.revoked.to_bytes())
    found, revoked = read_answer(unpack(Answer, pack(answer)), inviter, joiner, now)
    assert (found, revoked) == (certificate, first.revoked)
    assert (found.key, found.name) == (joiner.key, "kitchen")


def test_the_joiner_recognises_no_other_cluster(
    cluster: MadeCluster, token: Token, tmp_path: Path
) -> None:
    with made_cluster(tmp_path / "other") as other:
        theirs = other.first.certificate.der
        with pytest.raises(errors.ForeignCertificateError, match=token.cluster):
            recognise(token, challenge_of(other), theirs, cluster.now)
        with pytest.raises(errors.ForeignCertificateError):
            recognise(token, challenge_of(cluster), theirs, cluster.now)


def test_the_joiner_recognises_no_other_member(cluster: MadeCluster, token: Token) -> None:
    """A member that answers in the inviter's place does not get to see the secret."""
    member = cluster.admit("nosy")
    with pytest.raises(errors.KeyMismatchError):
        recognise(token, challenge_of(cluster), member.certificate.der, cluster.now)


@pytest.mark.parametrize("field", ["secret", "public_key", "proof"])
def test_a_request_with_anything_exchanged_proves_nothing(
    cluster: MadeCluster, token: Token, field: str
) -> None:
    other: dict[str, Any] = {
        "secret": b"?" * 16,
        "public_key": make_identity().public_key,
        "proof": b"?" * 64,
    }
    changed = evolve(request_of(cluster, token, make_identity()), **{field: other[field]})
    with pytest.raises(errors.JoinRequestError, match="does not prove"):
        check_request(changed, b"n" * 32, cluster.first.certificate.der)


def test_a_request_proves_nothing_to_another_nonce_or_inviter(
    cluster: MadeCluster, token: Token
) -> None:
    request = request_of(cluster, token, make_identity())
    check_request(request, b"n" * 32, cluster.first.certificate.der)
    for nonce, certificate in (
        (b"m" * 32, cluster.first.certificate.der),
        (b"n" * 32, cluster.admit("other").certificate.der),
    ):
        with pytest.raises(errors.JoinRequestError):
            check_request(request, nonce, certificate)


def test_the_joiner_takes_no_certificate_of_another_or_list_of_others(
    cluster: MadeCluster, token: Token, tmp_path: Path
) -> None:
    joiner, first, now = make_identity(), cluster.first, cluster.now
    inviter = recognise(token, challenge_of(cluster), first.certificate.der, now)
    with made_cluster(tmp_path / "other") as other:
        foreign, foreign_list = other.certify(joiner).der, other.first.revoked
    for certificate, revoked, error in (
        (first.certificate.der, first.revoked, errors.KeyMismatchError),
        (foreign, first.revoked, errors.ForeignCertificateError),
        (cluster.certify(joiner).der, foreign_list, errors.RevocationListError),
        (b"junk", first.revoked, errors.CertificateError),
    ):
        answer = Answer(certificate=certificate, revoked=revoked.to_bytes())
        with pytest.raises(error):
            read_answer(answer, inviter, joiner, now)


@pytest.mark.parametrize(
    ("cause", "error", "words"),
    [
        (join_protocol.UNKNOWN, errors.TokenUnknownError, "does not know"),
        (join_protocol.EXPIRED, errors.TokenExpiredError, "expired"),
        (join_protocol.USED, errors.TokenUsedError, "used by another"),
        (join_protocol.NO_AUTHORITY, errors.JoinRefusedError, r"holds no ca\.key"),
        (join_protocol.THROTTLED, errors.JoinRefusedError, "try again in a minute"),
        (join_protocol.BAD_REQUEST, errors.JoinRefusedError, "malformed"),
        (join_protocol.REVOKED, errors.JoinRefusedError, "revoked"),
        (join_protocol.FAILED, errors.JoinRefusedError, "log"),
        ("because", errors.JoinRequestError, "without a reason"),
    ],
)
@pytest.mark.parametrize("kind", [Challenge, Answer])
def test_a_refusal_says_why(kind: Any, cause: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        unpack(kind, pack_refusal(cause))


def changed_request(**fields: object) -> bytes:
    request = Request(secret=b"s" * 16, public_key=b"k" * 32, name="n", proof=b"p" * 64)
    content = decode(pack(request)) | fields
    return encode({name: value for name, value in content.items() if value is not None})


@pytest.mark.parametrize(
    "data",
    [
        *[b"", b"\x01", b"\xff" * 40, encode([1]), encode({}), changed_request() + b"\0"],
        *(changed_request(version=version) for version in (2, None)),
        changed_request(more=1),
        *(changed_request(name=name) for name in (None, "", "n" * 65, b"n")),
        *(changed_request(secret=secret) for secret in (b"s" * 15, "s" * 16)),
        changed_request(public_key=b"k" * 33),
        *(changed_request(proof=proof) for proof in ([1], {"a": {"b": {"c": {"d": 1}}}})),
        changed_request(refused=[1]),
    ],
)
def test_a_malformed_request_is_refused(data: bytes) -> None:
    with pytest.raises(errors.JoinRequestError):
        unpack(Request, data)
