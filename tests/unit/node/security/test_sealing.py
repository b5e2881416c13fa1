"""Sealed events, the keys that they are signed by, and what proves whose those are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from gossamer.node import errors
from gossamer.node.security import sealing
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.security.event_keys import (
    MOST_KEYS_OF_ONE,
    Publisher,
    PublisherCache,
    about_events,
    introduce,
    load_event_key,
    make_event_key,
    save_event_key,
)
from gossamer.node.security.identity import decode, encode
from gossamer.node.security.revocation import Revocation, RevocationList
from support.clusters import DAY_S, MadeCluster, event_key, made_cluster

SEAL = sealing.Seal(coordinates=2)
POINT = bytes(range(16))


@pytest.fixture(scope="module")
def member(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Membership]:
    folder: Path = tmp_path_factory.mktemp("sealing")
    with made_cluster(folder / "first") as cluster:
        yield cluster.first


@pytest.fixture(scope="module")
def introduced(member: Membership) -> Publisher:
    return introduce(member.authority, member.identity, member.certificate, event_key(0))


def sealed_by(member: Membership, contents: list[bytes]) -> list[bytes]:
    parts = [(content, n.to_bytes(sealing.DRAW_BYTES, "big")) for n, content in enumerate(contents)]
    leaves = [SEAL.leaf(content, draw, POINT) for content, draw in parts]
    proofs = sealing.sign(member.authority, event_key(0), leaves)
    return [
        SEAL.close(content, draw, POINT, proof)
        for (content, draw), proof in zip(parts, proofs, strict=True)
    ]


def is_signed(member: Membership, introduced: Publisher, proof: sealing.Proof) -> bool:
    return introduced.signed(about_events(member.authority), proof.statement, proof.signature)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 33, sealing.MOST_SHARING])
def test_events_share_a_signature(member: Membership, introduced: Publisher, count: int) -> None:
    contents = [b"content %d" % number for number in range(count)]
    sealed = sealed_by(member, contents)
    proofs = [SEAL.open(one) for one in sealed]
    assert [proof.content for proof in proofs] == contents
    assert all(is_signed(member, introduced, proof) for proof in proofs)
    assert len({(proof.statement, proof.signature) for proof in proofs}) == 1
    assert len({sealing.identifier(one) for one in sealed}) == count
    assert all(SEAL.signer_of(one) == event_key(0).signer for one in sealed)
    around = [len(one) - len(content) for one, content in zip(sealed, contents, strict=True)]
    longest = max(around) - len(POINT)
    assert longest <= sealing.MOST_SEAL_BYTES
    assert (longest == sealing.MOST_SEAL_BYTES) == (count > sealing.MOST_SHARING / 2)


@given(data=st.data())
def test_whatever_bit_is_changed_it_is_another_event_and_nobodys(
    member: Membership, introduced: Publisher, data: st.DataObject
) -> None:
    sealed = sealed_by(member, [b"one", b"two", b"three"])[data.draw(st.integers(0, 2))]
    bit = data.draw(st.integers(0, 8 * len(sealed) - 1))
    changed = bytearray(sealed)
    changed[bit // 8] ^= 1 << bit % 8
    assert sealing.identifier(bytes(changed)) != sealing.identifier(sealed)
    with suppress(ValueError):
        proof = SEAL.open(bytes(changed))
        assert proof.signer != introduced.signer or not is_signed(member, introduced, proof)


@given(st.binary(max_size=600))
def test_random_bytes_are_nobodys(member: Membership, introduced: Publisher, data: bytes) -> None:
    assert 0 <= sealing.identifier(data) < 1 << sealing.ID_BITS
    SEAL.signer_of(data)
    with suppress(ValueError):
        assert not is_signed(member, introduced, SEAL.open(data))


def test_no_proof_is_good_for_another_event(member: Membership, introduced: Publisher) -> None:
    first, second = sealed_by(member, [b"first", b"second"])
    end = len(b"first") + sealing.DRAW_BYTES
    mixed = first[:end] + second[len(b"second") + sealing.DRAW_BYTES :]
    # An inner node is no leaf: what is said to be the sibling becomes no content.
    inner = first[end : end + 32] + SEAL.leaf(b"first", bytes(sealing.DRAW_BYTES), POINT)
    for changed in (mixed, inner + first[end + 32 :]):
        assert not is_signed(member, introduced, SEAL.open(changed))


def test_without_certificates_there_are_content_draw_and_point() -> None:
    sealed = SEAL.close(b"content", bytes(sealing.DRAW_BYTES), POINT)
    assert SEAL.open_unsigned(sealed) == b"content"
    assert len(sealed) == len(b"content") + sealing.DRAW_BYTES + len(POINT)
    for short in (b"", POINT, bytes(sealing.DRAW_BYTES) + POINT):
        with pytest.raises(ValueError, match="too short"):
            SEAL.open_unsigned(short)


# Keys


@pytest.fixture
def publisher(cluster: MadeCluster) -> Membership:
    return cluster.admit("publisher")


def introduction_of(member: Membership, number: int = 0) -> bytes:
    key = event_key(number)
    return introduce(member.authority, member.identity, member.certificate, key).introduction


def cache_of(cluster: MadeCluster, *revoked: RevocationList) -> PublisherCache:
    """That of a peer which has met nobody."""
    lists = [RevocationList(cluster.first.authority.cluster), *revoked]
    descriptors = DescriptorCache(cluster.first.authority, lists[-1])
    return PublisherCache(cluster.first.authority, descriptors, lambda: lists[-1])


def test_a_stranger_can_verify(cluster: MadeCluster, publisher: Membership, tmp_path: Path) -> None:
    authority, key = publisher.authority, event_key(0)
    cache = cache_of(cluster)
    learned = cache.learn(introduction_of(publisher), cluster.now)
    assert learned.key == publisher.identity.key
    assert cache.find(key.signer) is learned
    assert cache.learn(introduction_of(publisher), cluster.now) is learned
    signature = key.sign(authority, b"statement")
    assert learned.signed(about_events(authority), b"statement", signature)
    with made_cluster(tmp_path / "second") as other:
        foreign = key.sign(other.first.authority, b"statement")
        with pytest.raises(errors.ForeignCertificateError):
            cache_of(other).learn(introduction_of(publisher), cluster.now)
    for statement, wrong in (
        (b"another", signature),
        (b"statement", bytes(len(signature))),
        (b"statement", b""),
        (b"statement", foreign),
    ):
        assert not learned.signed(about_events(authority), statement, wrong)


def changed(introduction: bytes, **changes: Any) -> bytes:
    names = ("version", "key", "certificate", "modulus", "signature")
    parts = dict(zip(names, decode(introduction), strict=True))
    return encode(list((parts | changes).values()))


def test_wrong_introductions_teach_nothing(cluster: MadeCluster, publisher: Membership) -> None:
    good, stranger = introduction_of(publisher), cluster.admit("stranger")
    key, cache = stranger.identity.key, cache_of(cluster)
    for malformed in (
        b"",
        good + b"\0",
        encode([1, 2]),
        changed(good, version=2),
        changed(good, signature=bytes(64)),
        changed(good, modulus=event_key(1).modulus),
        changed(good, modulus=bytes(256)),
        changed(good, modulus=event_key(0).modulus[:128]),
        # Another's certificate over the key that the publisher has signed.
        changed(good, key=key, certificate=stranger.certificate.der),
    ):
        with pytest.raises(errors.CertificateError):
            cache.learn(malformed, cluster.now)
    with pytest.raises(errors.KeyMismatchError):
        cache.learn(changed(good, key=key), cluster.now)
    assert len(cache) == 0


def test_the_revoked_and_expired_are_found_out(cluster: MadeCluster, publisher: Membership) -> None:
    key = publisher.identity.key
    entry = Revocation(key, (publisher.certificate.serial,), int(cluster.now + DAY_S))
    empty = RevocationList(cluster.first.authority.cluster)
    revoked = empty.with_entry(entry, cluster.registrar.signer, cluster.now)
    with pytest.raises(errors.RevokedCertificateError):
        cache_of(cluster, revoked).learn(introduction_of(publisher), cluster.now)
    with pytest.raises(errors.UntimelyCertificateError):
        cache_of(cluster).learn(introduction_of(publisher), cluster.now + 31 * DAY_S)
    lists = [empty]
    descriptors = DescriptorCache(cluster.first.authority, empty)
    cache = PublisherCache(cluster.first.authority, descriptors, lambda: lists[-1])
    learned = cache.learn(introduction_of(publisher), cluster.now)
    assert not cache.is_revoked(learned)
    lists.append(revoked)
    assert cache.is_revoked(learned)


def test_renewed_keys_take_bounded_room(cluster: MadeCluster, publisher: Membership) -> None:
    cache = cache_of(cluster)
    first = cache.learn(introduction_of(publisher), cluster.now)
    cluster.now += 60
    renewed = cluster.certify(publisher.identity, "publisher", 60 * DAY_S)
    later = introduce(publisher.authority, publisher.identity, renewed, event_key(0))
    second = cache.learn(later.introduction, cluster.now)
    assert second is not first
    assert cache.find(event_key(0).signer) is second
    assert len(cache) == 1
    # An old introduction that somebody shows again changes nothing.
    assert second.not_before > first.not_before
    assert cache.learn(first.introduction, cluster.now) is second
    assert cache.recognise(first.introduction) is None
    assert cache.find(event_key(0).signer) is second
    count = MOST_KEYS_OF_ONE + 2
    for number in range(1, count):
        cache.learn(introduction_of(publisher, number), cluster.now)
    known = [cache.find(event_key(number).signer) is not None for number in range(count)]
    assert known == [False] * 2 + [True] * MOST_KEYS_OF_ONE


def test_a_key_is_kept_in_a_file_of_its_owner_alone(tmp_path: Path, cluster: MadeCluster) -> None:
    path = tmp_path / "events.key"
    assert load_event_key(path) is None
    key = event_key(0)
    assert make_event_key().signer != key.signer
    save_event_key(key, path)
    assert path.stat().st_mode & 0o777 == 0o600
    loaded = load_event_key(path)
    assert loaded is not None
    assert (loaded.modulus, loaded.signer) == (key.modulus, key.signer)
    path.chmod(0o644)
    with pytest.raises(errors.ClusterFolderError, match="600"):
        load_event_key(path)
    path.chmod(0o600)
    identity = cluster.first.folder.peer_key.read_bytes()
    pem = Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    short = generate_private_key(65537, 1024).private_bytes(*pem)
    remedy = r"s\.key is .*; remove it, and the peer makes"
    for content in (b"", b"nothing", identity, short):
        path.write_bytes(content)
        with pytest.raises(errors.ClusterFolderError, match=remedy):
            load_event_key(path)
