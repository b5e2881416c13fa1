"""What peers and the authority sign: what is believed of it, and what believing costs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen

from gossamer.node.errors import ClusterFolderError, RevokedCertificateError, SignedDataError
from gossamer.node.security import schema_document
from gossamer.node.security.certificates import PeerCertificate, issue_certificate, make_authority
from gossamer.node.security.descriptors import (
    Descriptor,
    DescriptorCache,
    DescriptorLimits,
    SignedDescriptor,
    Verdict,
    sign_descriptor,
)
from gossamer.node.security.identity import Identity, encode, make_identity
from gossamer.node.security.revocation import Revocation, RevocationList
from gossamer.node.security.schema_document import SchemaDocument
from gossamer.protocol.content import schema
from gossamer.protocol.content.schema import SchemaVersion
from gossamer.protocol.kernel.errors import ConfigError
from support.clusters import MadeCluster, made_cluster

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


def book_with(*owners: Owner, **limits: int) -> DescriptorCache:
    cache = DescriptorCache(AUTHORITY, NOBODY, DescriptorLimits(**limits))
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
    said = owner.says(1)
    verdicts = [cache.take(said, NOW) for _ in range(100)]
    assert verdicts == [Verdict.NEW] + [Verdict.KNOWN] * 99
    assert cache.counts == {"certificates": 1, "new": 1, "known": 99, "verifications": 1}
    assert cache.find(owner.identity.key) == owner.descriptor(1)
    assert cache.find_packed(owner.identity.key) == said.packed
    assert SignedDescriptor.unpack(said.packed) == said
    assert cache.find_certificate(owner.identity.key) == owner.certificate.der
    # Of two contents with one number the first stays.
    assert cache.take(owner.says(1, profile=(7,)), NOW) is Verdict.CONFLICTING
    assert cache.find(owner.identity.key) == owner.descriptor(1)
    # An older one is dropped unverified.
    assert cache.take(owner.says(2, profile=(7,)), NOW) is Verdict.NEW
    before = cache.counts["verifications"]
    assert cache.take(owner.says(1, profile=(8,)), NOW) is Verdict.STALE
    assert cache.take(said, NOW) is Verdict.STALE
    assert cache.find(owner.identity.key) == owner.descriptor(2, profile=(7,))
    assert cache.counts["verifications"] == before


def test_a_peer_cannot_speak_for_another(owner: Owner) -> None:
    """Neither by changing its words, nor with its own signature, nor with its own certificate.

    A signature for another purpose or cluster is worth nothing either.
    """
    liar = make_owner()
    cache = book_with(owner, liar)
    about_owner = owner.says(2)
    forged = SignedDescriptor(owner.says(2, profile=(7,)).content, about_owner.signature)
    assert cache.take(forged, NOW) is Verdict.FORGED
    content = about_owner.content
    by_liar = SignedDescriptor(content, liar.identity.sign(f"descriptor 1 {CLUSTER}", content))
    assert cache.take(by_liar, NOW) is Verdict.FORGED
    assert cache.take(by_liar, NOW, liar.certificate.der) is Verdict.FORGED
    for context in ("join 1", f"descriptor 1 {'f' * 32}", f"descriptor 2 {CLUSTER}"):
        signed = SignedDescriptor(content, owner.identity.sign(context, content))
        assert cache.take(signed, NOW) is Verdict.FORGED
    assert cache.find(owner.identity.key) is None
    with pytest.raises(ValueError, match="signed by"):
        sign_descriptor(AUTHORITY, liar.identity, owner.descriptor(3))


def test_a_stranger_is_not_believed_until_its_certificate_is_met(owner: Owner) -> None:
    signer = make_identity()
    other = make_authority(signer, CLUSTER, "desk", NOW)
    foreign = issue_certificate(other, signer, owner.identity.public_key, "peer", NOW)
    cache = book_with()
    assert cache.take(owner.says(1), NOW) is Verdict.UNCERTIFIED
    assert cache.take(owner.says(1), NOW, foreign.der) is Verdict.FOREIGN
    assert len(cache) == 0
    assert cache.take(owner.says(1), NOW, owner.certificate.der) is Verdict.NEW


def test_a_renewed_certificate_replaces_the_older(owner: Owner, cache: DescriptorCache) -> None:
    renewed = issue_certificate(AUTHORITY, SIGNER, owner.identity.public_key, "p", NOW + 500, 1e3)
    cache.take(owner.says(1), NOW)
    later = owner.says(2, serial=renewed.serial)
    assert cache.take(later, NOW) is Verdict.UNCERTIFIED
    assert cache.take(later, NOW + 500, renewed.der) is Verdict.NEW
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
    assert cache.take(owner.says(2), NOW + 1000, owner.certificate.der) is Verdict.EXPIRED
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
    assert cache.take(owner.says(2), NOW, owner.certificate.der) is Verdict.REVOKED
    with pytest.raises(RevokedCertificateError):
        cache.learn(owner.certificate.der, owner.identity.key, NOW)
    assert cache.take(other.says(1), NOW) is Verdict.NEW


def test_the_book_is_bounded_and_forgets_who_was_not_heard_of_longest() -> None:
    one, two, three = make_owner(), make_owner(), make_owner()
    cache = book_with(one, two, peers=2)
    said = one.says(1)
    cache.take(said, NOW)
    cache.take(two.says(1), NOW)
    cache.take(said, NOW)
    cache.take(three.says(1), NOW, three.certificate.der)
    assert len(cache) == 2
    assert cache.find(two.identity.key) is None
    assert cache.take(said, NOW) is Verdict.KNOWN


FIELDS: list[Any] = [1, 5, b"\0" * 20, [["h", 1]], [1], 1, 1]


def with_field(at: int, value: object) -> bytes:
    return encode([*FIELDS[:at], value, *FIELDS[at + 1 :]])


@pytest.mark.parametrize(
    "content",
    [
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
    ],
)
def test_a_malformed_descriptor_is_dropped(content: bytes) -> None:
    assert book_with().take(SignedDescriptor(content, b"s" * 64), NOW) is Verdict.MALFORMED
    assert Verdict.MALFORMED.guilty


def test_sizes_are_bounded_and_addresses_possible_or_none(owner: Owner) -> None:
    cache = book_with(owner, content_bytes=100, profile_words=4)
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


def test_a_flood_of_forgeries_leaves_no_trace(owner: Owner, cache: DescriptorCache) -> None:
    cache.take(owner.says(1), NOW)
    for sequence in range(2, 52):
        forged = SignedDescriptor(owner.says(sequence).content, bytes(64))
        assert cache.take(forged, NOW) is Verdict.FORGED
    assert (cache.counts["forged"], len(cache)) == (50, 1)
    assert cache.find(owner.identity.key) == owner.descriptor(1)


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


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.update(version=LATER.number + 1),
        lambda content: content.update(version=1),
        lambda content: content.update(more=1),
        lambda content: content.update(signature="00" * 64),
        lambda content: content["attributes"][0].update(name="cost"),
        lambda content: content["attributes"][0].update(maximum=1000),
        lambda content: content["attributes"][1].pop("retired"),
    ],
)
def test_what_was_changed_is_refused(cluster: MadeCluster, change: Callable[[Any], None]) -> None:
    content = json.loads(signed(cluster).to_bytes())
    change(content)
    with pytest.raises(SignedDataError):
        schema_document.read_document(json.dumps(content).encode(), cluster.first.authority)


def test_no_other_signer_and_cluster_are_believed(cluster: MadeCluster, tmp_path: Path) -> None:
    forged = SchemaDocument.signed(cluster.first.authority, LATER, make_identity())
    with made_cluster(tmp_path / "other") as other:
        foreign = signed(other)
    for document, words in (
        (forged, "not signed by the cluster's authority"),
        (foreign, "is of cluster"),
    ):
        with pytest.raises(SignedDataError, match=words):
            schema_document.read_document(document.to_bytes(), cluster.first.authority)


def test_what_is_no_document_is_refused_and_documents_have_a_limit(cluster: MadeCluster) -> None:
    for data in (b"", b"[]", b"{}", b"null", b"[" * 100_000, b"x" * (1 << 20)):
        with pytest.raises(SignedDataError):
            schema_document.read_document(data, cluster.first.authority)
    values = tuple(f"value number {count}" for count in range(20_000))
    large = FIRST.added(schema.EnumerationAttribute("many", values))
    most = f"more than {schema_document.DOCUMENT_LIMIT} bytes"
    with pytest.raises(SignedDataError, match=most):
        signed(cluster, large)
