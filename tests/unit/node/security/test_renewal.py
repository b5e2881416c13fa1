"""Who gets a renewed certificate, when, and what is believed of it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from attrs import evolve

from gossamer.node import errors
from gossamer.node.security import cluster as security_cluster
from gossamer.node.security.certificates import AUTHORITY_LIFETIME_S, PEER_LIFETIME_S
from gossamer.node.security.identity import make_identity
from gossamer.node.security.joining import join_protocol
from gossamer.node.security.joining.admission import renew_here, renew_peer, request_of
from gossamer.node.security.renewal import (
    CONTEXT,
    RenewalRequest,
    Renewed,
    accept,
    authority_due_at,
    due_at,
    newer_authority,
)
from support.clusters import DAY_S, MadeCluster, made_cluster

LIFE_S = 30 * DAY_S


def renewed(cluster: MadeCluster, member: security_cluster.Membership, now: float) -> Renewed:
    return renew_peer(cluster.registrar, cluster.store, request_of(member), now)


@pytest.mark.parametrize("age_s", [0.6 * LIFE_S, 0.99 * LIFE_S, LIFE_S + 1, 20 * LIFE_S])
def test_a_renewed_certificate_is_valid_from_now_on(cluster: MadeCluster, age_s: float) -> None:
    member, now = cluster.admit("kitchen", LIFE_S), cluster.now + age_s
    found = accept(member, renewed(cluster, member, now), now)
    security_cluster.save_renewed(found)
    assert security_cluster.open_membership(member.folder.path) == found
    assert found.identity == member.identity
    assert found.certificate.name == "kitchen"
    assert found.certificate.not_after == pytest.approx(now + PEER_LIFETIME_S, abs=2)
    found_of_key = cluster.store.admissions.certificates_of_key(member.identity.key)
    serials = {member.certificate.serial, found.certificate.serial}
    assert {one.serial for one in found_of_key} == serials


def test_certificates_are_renewed_at_half_their_time_and_twice_alike(cluster: MadeCluster) -> None:
    """An expired one that is not on record is not renewed."""
    member, now = cluster.admit("kitchen", LIFE_S), cluster.now + LIFE_S
    assert due_at(member.certificate) == pytest.approx(cluster.now + LIFE_S * 2 / 3, abs=2)
    with pytest.raises(errors.JoinError, match="can be renewed from"):
        renewed(cluster, member, cluster.now + 0.49 * LIFE_S)
    first = renewed(cluster, member, cluster.now + 0.51 * LIFE_S)
    assert renewed(cluster, member, now + DAY_S) == first
    later = accept(member, first, now)
    with pytest.raises(errors.JoinError, match="can be renewed from"):
        renewed(cluster, later, now + DAY_S)
    assert renewed(cluster, later, now + PEER_LIFETIME_S) != first
    cluster.store.database.execute("DELETE FROM certificates")
    renewed(cluster, member, cluster.now + 0.9 * LIFE_S)
    cluster.store.database.execute("DELETE FROM certificates")
    with pytest.raises(errors.JoinError, match="not on record"):
        renewed(cluster, member, cluster.now + 1.1 * LIFE_S)


def test_only_owners_of_certificates_of_ours_can_ask(cluster: MadeCluster, tmp_path: Path) -> None:
    member, now = cluster.admit("kitchen", LIFE_S), cluster.now + LIFE_S
    digest = hashlib.sha256(member.certificate.der).digest()
    for signature in (make_identity().sign(CONTEXT, digest), bytes(64)):
        forged = RenewalRequest(member.certificate.der, signature)
        with pytest.raises(errors.JoinError, match="not signed by the owner"):
            renew_peer(cluster.registrar, cluster.store, forged, now)
    with made_cluster(tmp_path / "foreign") as foreign:
        with pytest.raises(errors.ForeignCertificateError):
            renewed(cluster, foreign.admit("stranger", LIFE_S), now)
        with pytest.raises(errors.ForeignCertificateError):
            newer_authority(member.authority, foreign.first.authority.der)


def test_the_revoked_are_not_renewed_even_when_off_the_list(cluster: MadeCluster) -> None:
    bad, other = cluster.admit("bad", LIFE_S), cluster.admit("other", LIFE_S)
    cluster.registrar.revoke(cluster.store, "bad", cluster.now)
    with pytest.raises(errors.RevokedCertificateError):
        renewed(cluster, bad, cluster.now + 0.9 * LIFE_S)
    later = cluster.now + 2 * LIFE_S
    cluster.registrar.revoke(cluster.store, "other", later)
    listed = [entry.key for entry in cluster.registrar.revoked().entries]
    assert listed == [other.identity.key]
    with pytest.raises(errors.RevokedCertificateError):
        renewed(cluster, bad, later)


def test_what_a_clock_that_was_ahead_gave_is_not_taken_and_given_anew(cluster: MadeCluster) -> None:
    member = cluster.admit("kitchen", LIFE_S)
    now, ahead = cluster.now + 0.9 * LIFE_S, cluster.now + 5 * PEER_LIFETIME_S
    given = renewed(cluster, member, ahead)
    with pytest.raises(errors.UntimelyCertificateError):
        accept(member, given, now)
    again = renewed(cluster, member, now)
    assert again != given
    accept(member, again, now)
    found = accept(member, given, ahead)
    security_cluster.save_renewed(found)
    assert security_cluster.previous_membership(found, ahead) is None
    before = security_cluster.previous_membership(found, cluster.now)
    assert before is not None
    assert before.certificate == member.certificate


def test_the_authority_is_renewed_with_its_key_and_its_beginning(cluster: MadeCluster) -> None:
    first = cluster.first
    assert renew_here(cluster.registrar, cluster.store, cluster.now) == first
    now = authority_due_at(first.authority) + 1
    found = renew_here(cluster.registrar, cluster.store, now)
    old, new = first.authority, found.authority
    assert security_cluster.open_membership(first.folder.path) == found
    assert (new.cluster, new.name, new.public_key) == (old.cluster, old.name, old.public_key)
    assert (new.not_before, new.fingerprint) == (old.not_before, old.fingerprint)
    assert new.not_after == pytest.approx(now + AUTHORITY_LIFETIME_S, abs=2)
    assert newer_authority(old, new.der) == new
    assert newer_authority(new, old.der) == new


def test_an_answer_of_less_use_or_that_is_none_is_not_taken(cluster: MadeCluster) -> None:
    member, now = cluster.admit("kitchen", LIFE_S), cluster.now + LIFE_S - 1
    request, answer = request_of(member), Renewed(member.certificate.der, member.authority.der)
    with pytest.raises(errors.JoinError, match="lasts no longer"):
        accept(member, answer, now)
    other = renewed(cluster, cluster.admit("other", LIFE_S), now)
    with pytest.raises(errors.CertificateError):
        accept(member, other, now)
    assert RenewalRequest.from_text(request.to_text()) == request
    assert Renewed.from_text("\n" + answer.to_text()) == answer
    for bad in ("", answer.to_text(), request.to_text()[:-9], "x" * 10**6, request.to_text() * 2):
        with pytest.raises(errors.JoinError, match="the text is not what"):
            RenewalRequest.from_text(bad)


def test_a_late_request_is_good_for_one_exchange_with_one_holder(cluster: MadeCluster) -> None:
    member = cluster.admit("kitchen", LIFE_S)
    nonce, shown = bytes(32), cluster.first.certificate.der
    challenge = join_protocol.Challenge(nonce=nonce, authority=cluster.first.authority.der)
    made = join_protocol.make_renewal(member.identity, request_of(member), challenge, shown)
    asked = join_protocol.unpack_asked(join_protocol.pack(made))
    assert isinstance(asked, join_protocol.Renewal)
    assert join_protocol.check_renewal(asked, nonce, shown) == request_of(member)
    stolen = evolve(made, proof=make_identity().sign("late renewal 1", b""))
    for renewal, other_nonce, other_shown in (
        (made, b"x" * 32, shown),
        (made, nonce, member.certificate.der),
        (stolen, nonce, shown),
    ):
        with pytest.raises(errors.SignedDataError):
            join_protocol.check_renewal(renewal, other_nonce, other_shown)
