"""What peers and the authority sign: what is believed of it; who gets a renewed certificate."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen

from gossamer.node import errors
from gossamer.node.errors import (
    ClusterFolderError,
    ForeignCertificateError,
    RevokedCertificateError,
    SignedDataError,
)
from gossamer.node.security import cluster as security_cluster
from gossamer.node.security import descriptors, schema_document
from gossamer.node.security.certificates import (
    AUTHORITY_LIFETIME_S,
    PEER_LIFETIME_S,
    PeerCertificate,
    issue_certificate,
    make_authority,
)
from gossamer.node.security.descriptors import (
    Descriptor,
    DescriptorCache,
    SignedDescriptor,
    Verdict,
    sign_descriptor,
)
from gossamer.node.security.identity import Identity, encode, make_identity
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
from gossamer.node.security.revocation import Revocation, RevocationList
from gossamer.node.security.schema_document import SchemaDocument
from gossamer.protocol.content import schema
from gossamer.protocol.content.schema import SchemaVersion
from gossamer.protocol.kernel.errors import ConfigError
from support.clusters import DAY_S, MadeCluster, made_cluster

NOW = 1_800_000_000.0
CLUSTER = "00112233445566778899aabbccddeeff"
SIGNER = make_identity()
AUTHORITY = make_authority(SIGNER, CLUSTER, "desk", NOW)
NOBODY = RevocationList(CLUSTER)


@frozen
class Owner:
    identity: Identity
    certificate: PeerCertificate

    def says(self, sequence: int, **fields: Any) -> SignedDescriptor:
        return sign_descriptor(AUTHORITY, self.identity, self.descriptor(sequence, **fields))

    def descriptor(self, sequence: int, **fields: Any) -> Descriptor:
        addresses, profile = (("192.168.1.20", 7400),), (1, -1, (1 << 63) - 1, -(1 << 63))
        key, serial = self.identity.key, self.certificate.serial
        return evolve(Descriptor(key, serial, addresses, profile, sequence, int(NOW)), **fields)


def make_owner(lifetime_s: float = 1000.0) -> Owner:
    identity = make_identity()
    certificate = issue_certificate(AUTHORITY, SIGNER, identity.public_key, "peer", NOW, lifetime_s)
    return Owner(identity, certificate)


def book_with(*owners: Owner) -> DescriptorCache:
    cache = DescriptorCache(AUTHORITY, NOBODY)
    for owner in owners:
        cache.learn(owner.certificate.der, owner.identity.key, NOW)
    return cache


@pytest.fixture
def owner() -> Owner:
    return make_owner()


@pytest.fixture
def cache(owner: Owner) -> DescriptorCache:
    return book_with(owner)


def test_a_member_is_believed_and_verified_but_once(owner: Owner, cache: DescriptorCache) -> None:
    said, key = owner.says(1), owner.identity.key
    verdicts = [cache.take(said, NOW) for _ in range(100)]
    assert verdicts == [Verdict.NEW] + [Verdict.KNOWN] * 99
    assert (cache.find(key), cache.find_packed(key)) == (owner.descriptor(1), said.packed)
    assert SignedDescriptor.unpack(said.packed) == said
    assert cache.find_certificate(key) == owner.certificate.der
    # Of two contents with one number the first stays.
    assert cache.take(owner.says(1, profile=(7,)), NOW) is Verdict.CONFLICTING
    assert cache.find(key) == owner.descriptor(1)
    # An older one is dropped unverified.
    assert cache.take(owner.says(2, profile=(7,)), NOW) is Verdict.NEW
    for older in (owner.says(1, profile=(8,)), said):
        assert cache.take(older, NOW) is Verdict.STALE
    assert cache.find(key) == owner.descriptor(2, profile=(7,))
    # A flood of forgeries leaves no trace.
    for sequence in range(3, 53):
        assert cache.take(SignedDescriptor(owner.says(sequence).content, bytes(64)), NOW) is (
            Verdict.FORGED
        )
    assert len(cache) == 1
    assert cache.find(key) == owner.descriptor(2, profile=(7,))


def test_a_peer_cannot_speak_for_another(owner: Owner) -> None:
    """Neither by changing its words, nor with its own signature, nor with its own certificate.

    A signature for another purpose or cluster is worth nothing either.
    """
    liar = make_owner()
    cache = book_with(owner, liar)
    content, signature = owner.says(2).content, owner.says(2).signature
    by_liar = SignedDescriptor(content, liar.identity.sign(f"descriptor 1 {CLUSTER}", content))
    for forged in (
        SignedDescriptor(owner.says(2, profile=(7,)).content, signature),
        by_liar,
        *(
            SignedDescriptor(content, owner.identity.sign(context, content))
            for context in ("join 1", f"descriptor 1 {'f' * 32}", f"descriptor 2 {CLUSTER}")
        ),
    ):
        assert cache.take(forged, NOW) is Verdict.FORGED
    assert cache.find(owner.identity.key) is None
    with pytest.raises(ValueError, match="signed by"):
        sign_descriptor(AUTHORITY, liar.identity, owner.descriptor(3))


def test_a_stranger_is_not_believed_until_its_certificate_is_met(owner: Owner) -> None:
    signer = make_identity()
    other = make_authority(signer, CLUSTER, "desk", NOW)
    foreign = issue_certificate(other, signer, owner.identity.public_key, "peer", NOW)
    cache = book_with()
    assert cache.take(owner.says(1), NOW) is Verdict.UNCERTIFIED
    with pytest.raises(ForeignCertificateError):
        cache.learn(foreign.der, owner.identity.key, NOW)
    assert len(cache) == 0
    cache.learn(owner.certificate.der, owner.identity.key, NOW)
    assert cache.take(owner.says(1), NOW) is Verdict.NEW


def test_a_renewed_certificate_replaces_the_older(owner: Owner, cache: DescriptorCache) -> None:
    renewed = issue_certificate(AUTHORITY, SIGNER, owner.identity.public_key, "p", NOW + 500, 1e3)
    cache.take(owner.says(1), NOW)
    later = owner.says(2, serial=renewed.serial)
    assert cache.take(later, NOW) is Verdict.UNCERTIFIED
    cache.learn(renewed.der, owner.identity.key, NOW + 500)
    assert cache.take(later, NOW + 500) is Verdict.NEW
    cache.learn(owner.certificate.der, owner.identity.key, NOW + 500)
    assert cache.find_certificate(owner.identity.key) == renewed.der


def test_what_an_expired_owner_said_before_stays(owner: Owner, cache: DescriptorCache) -> None:
    """While the clock is a century off nothing new is believed; after, everything is.

    When it signed, as it says, is of no account.
    """
    for wrong in (NOW + 3e9, NOW - 3e9):
        assert cache.take(owner.says(1), wrong) is Verdict.EXPIRED
    assert cache.take(owner.says(1), NOW) is Verdict.NEW
    assert cache.take(owner.says(2), NOW + 1000) is Verdict.EXPIRED
    assert cache.find(owner.identity.key) == owner.descriptor(1)
    assert cache.take(owner.says(3, issued_at=int(NOW) + 10**9), NOW) is Verdict.NEW
    assert cache.take(owner.says(4, issued_at=0), NOW) is Verdict.NEW


def test_revoked_peers_are_forgotten_and_not_learned_again(owner: Owner) -> None:
    other = make_owner()
    cache = book_with(owner, other)
    said = owner.says(1)
    cache.take(said, NOW)
    entry = Revocation(owner.identity.key, (owner.certificate.serial,), int(NOW) + 1000)
    assert cache.revoke(NOBODY.with_entry(entry, SIGNER, NOW)) == [owner.identity.key]
    assert cache.find(owner.identity.key) is None
    assert cache.take(said, NOW) is Verdict.REVOKED
    with pytest.raises(RevokedCertificateError):
        cache.learn(owner.certificate.der, owner.identity.key, NOW)
    assert cache.take(other.says(1), NOW) is Verdict.NEW


def test_the_book_is_bounded_and_forgets_who_was_not_heard_of_longest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(descriptors, "MOST_PEERS", 2)
    one, two, three = make_owner(), make_owner(), make_owner()
    cache = book_with(one, two)
    said = one.says(1)
    cache.take(said, NOW)
    cache.take(two.says(1), NOW)
    cache.take(said, NOW)
    cache.learn(three.certificate.der, three.identity.key, NOW)
    assert len(cache) == 2
    assert cache.find(two.identity.key) is None
    assert cache.take(said, NOW) is Verdict.KNOWN


FIELDS: list[Any] = [1, 5, b"\0" * 20, [["h", 1]], [1], 1, 1]


def with_field(at: int, value: object) -> bytes:
    return encode([*FIELDS[:at], value, *FIELDS[at + 1 :]])


def test_a_malformed_descriptor_is_dropped(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (
        *[b"", b"\xff", encode(FIELDS) + b"\0", encode(FIELDS)[:-1], encode(FIELDS[:-1])],
        *[encode({"key": 1}), b"\x9f\x01\xff", b"\xc2\x41\x05", b"\x81" * 100 + b"\x01"],
        b"\x87\x18\x01" + encode(FIELDS)[2:],
        with_field(0, 2),
        *(with_field(1, key) for key in (-1, 1 << 62, True)),
        with_field(2, b"short"),
        *(with_field(3, place) for place in ([["h", 0]], [["h"]], [["h", 1]] * 9, "h")),
        *(with_field(4, profile) for profile in ([1 << 63], [1.0], [0] * 257, [[1]])),
        with_field(5, "1"),
        with_field(6, None),
    ):
        assert book_with().take(SignedDescriptor(content, b"s" * 64), NOW) is Verdict.MALFORMED
    assert Verdict.MALFORMED.guilty
    # Sizes are bounded, and addresses possible or none.
    cache = book_with(owner)
    monkeypatch.setattr(descriptors, "MOST_CONTENT_BYTES", 100)
    monkeypatch.setattr(descriptors, "MOST_PROFILE_WORDS", 4)
    assert cache.take(owner.says(1), NOW) is Verdict.NEW
    for said in (
        owner.says(2, profile=(1,) * 5),
        owner.says(2, addresses=(("h" * 60, 1),) * 2),
        SignedDescriptor(owner.says(2).content, b"short"),
    ):
        assert cache.take(said, NOW) is Verdict.MALFORMED
    with pytest.raises(ConfigError, match="port is 0"):
        owner.says(1, addresses=(("h", 0),))
    assert book_with(owner).take(owner.says(1, addresses=()), NOW) is Verdict.NEW


FIRST = SchemaVersion.first(
    schema.Schema([schema.FloatAttribute("price", 0, 100), schema.BooleanAttribute("open")])
)
LATER = FIRST.added(schema.DecimalAttribute("fee", 0, 1, 2)).without("open")


def signed(cluster: MadeCluster, version: SchemaVersion = LATER) -> SchemaDocument:
    return SchemaDocument.signed(cluster.first.authority, version, cluster.registrar.signer)


def test_what_the_authority_signed_is_read_back(cluster: MadeCluster) -> None:
    document = signed(cluster)
    assert schema_document.read_document(document.to_bytes(), cluster.first.authority) == document
    path = cluster.first.folder.schema
    assert schema_document.version_in_force(path, cluster.first.authority, FIRST) == FIRST
    schema_document.save_document(path, document)
    assert schema_document.load_document(path, cluster.first.authority) == document
    assert schema_document.version_in_force(path, cluster.first.authority, FIRST) == LATER
    other = SchemaVersion.first(schema.Schema([schema.FloatAttribute("cost", 0, 1)]))
    with pytest.raises(ClusterFolderError, match="does not continue the schema"):
        schema_document.version_in_force(path, cluster.first.authority, other)


def test_what_was_changed_is_refused(cluster: MadeCluster) -> None:
    changes: list[Callable[[Any], object]] = [
        lambda content: content.update(version=LATER.number + 1),
        lambda content: content.update(version=1),
        lambda content: content.update(more=1),
        lambda content: content.update(signature="00" * 64),
        lambda content: content["attributes"][0].update(name="cost"),
        lambda content: content["attributes"][0].update(maximum=1000),
        lambda content: content["attributes"][1].pop("retired"),
    ]
    for change in changes:
        content = json.loads(signed(cluster).to_bytes())
        change(content)
        with pytest.raises(SignedDataError):
            schema_document.read_document(json.dumps(content).encode(), cluster.first.authority)


def test_documents_of_others_none_and_large_ones_are_refused(
    cluster: MadeCluster, tmp_path: Path
) -> None:
    forged = SchemaDocument.signed(cluster.first.authority, LATER, make_identity())
    with made_cluster(tmp_path / "other") as other:
        foreign = signed(other)
    for data, words in (
        (forged.to_bytes(), "not signed by the cluster's authority"),
        (foreign.to_bytes(), "is of cluster"),
        *((bad, ".") for bad in (b"", b"[]", b"{}", b"null", b"[" * 100_000, b"x" * (1 << 20))),
    ):
        with pytest.raises(SignedDataError, match=words):
            schema_document.read_document(data, cluster.first.authority)
    values = tuple(f"value number {count}" for count in range(20_000))
    large = FIRST.added(schema.EnumerationAttribute("many", values))
    most = f"more than {schema_document.DOCUMENT_LIMIT} bytes"
    with pytest.raises(SignedDataError, match=most):
        signed(cluster, large)


LIFE_S = 30 * DAY_S


def renewed(cluster: MadeCluster, member: security_cluster.Membership, now: float) -> Renewed:
    return renew_peer(cluster.registrar, cluster.store, request_of(member), now)


@pytest.mark.parametrize("age_s", [0.6 * LIFE_S, 0.99 * LIFE_S, LIFE_S + 1, 20 * LIFE_S])
def test_a_renewed_certificate_is_valid_from_now_on(cluster: MadeCluster, age_s: float) -> None:
    member, now = cluster.admit("kitchen", LIFE_S), cluster.now + age_s
    found = accept(member, renewed(cluster, member, now), now)
    security_cluster.save_renewed(found)
    assert security_cluster.open_membership(member.folder.path) == found
    assert (found.identity, found.certificate.name) == (member.identity, "kitchen")
    assert found.certificate.not_after == pytest.approx(now + PEER_LIFETIME_S, abs=2)
    recorded = cluster.store.admissions.certificates_of_key(member.identity.key)
    assert {one.serial for one in recorded} == {member.certificate.serial, found.certificate.serial}


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
    assert [one.key for one in cluster.registrar.revoked().entries] == [other.identity.key]
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
    with pytest.raises(errors.CertificateError):
        accept(member, renewed(cluster, cluster.admit("other", LIFE_S), now), now)
    text = request.to_text()
    assert RenewalRequest.from_text(text) == request
    assert Renewed.from_text("\n" + answer.to_text()) == answer
    for bad in ("", answer.to_text(), text[:-9], "x" * 10**6, text * 2):
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
