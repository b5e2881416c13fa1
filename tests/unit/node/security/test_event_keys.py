"""Keys that events are signed by, and what proves whose they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from gossamer.node import errors
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.security.encoding import decode, encode
from gossamer.node.security.event_keys import (
    MOST_KEYS_OF_ONE,
    PublisherCache,
    about_events,
    introduce,
    load_event_key,
    make_event_key,
    save_event_key,
)
from gossamer.node.security.revocation import Revocation, RevocationList
from support.clusters import DAY_S, MadeCluster, event_key, made_cluster


@pytest.fixture
def publisher(cluster: MadeCluster) -> Membership:
    return cluster.admit("publisher")


def introduction_of(member: Membership, number: int = 0) -> bytes:
    made = introduce(member.authority, member.identity, member.certificate, event_key(number))
    return made.introduction


def cache_of(cluster: MadeCluster, revoked: RevocationList | None = None) -> PublisherCache:
    """That of a peer which has met nobody."""
    current = revoked or RevocationList(cluster.first.authority.cluster)
    descriptors = DescriptorCache(cluster.first.authority, current)
    return PublisherCache(cluster.first.authority, descriptors, lambda: current)


def test_who_trusts_the_authority_verifies_what_a_stranger_signed(
    cluster: MadeCluster, publisher: Membership
) -> None:
    authority, key = publisher.authority, event_key(0)
    cache = cache_of(cluster)
    learned = cache.learn(introduction_of(publisher), cluster.now)
    assert learned.key == publisher.identity.key
    assert cache.find(key.signer) is learned
    assert cache.learn(introduction_of(publisher), cluster.now) is learned
    signature = key.sign(authority, b"statement")
    assert learned.signed(about_events(authority), b"statement", signature)
    assert not learned.signed(about_events(authority), b"another", signature)
    assert not learned.signed(about_events(authority), b"statement", bytes(len(signature)))
    assert not learned.signed(about_events(authority), b"statement", b"")


def test_a_signature_is_worth_nothing_in_another_cluster(
    cluster: MadeCluster, publisher: Membership, tmp_path: Path
) -> None:
    with made_cluster(tmp_path / "second") as other:
        learned = cache_of(cluster).learn(introduction_of(publisher), cluster.now)
        signature = event_key(0).sign(other.first.authority, b"statement")
        assert not learned.signed(about_events(publisher.authority), b"statement", signature)
        with pytest.raises(errors.ForeignCertificateError):
            cache_of(other).learn(introduction_of(publisher), cluster.now)


def changed(introduction: bytes, **changes: Any) -> bytes:
    names = ("version", "key", "certificate", "modulus", "signature")
    parts = dict(zip(names, decode(introduction), strict=True))
    return encode(list((parts | changes).values()))


def test_what_is_no_introduction_teaches_nothing(
    cluster: MadeCluster, publisher: Membership
) -> None:
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
        with pytest.raises(errors.MalformedCertificateError):
            cache.learn(malformed, cluster.now)
    with pytest.raises(errors.KeyMismatchError):
        cache.learn(changed(good, key=key), cluster.now)
    assert len(cache) == 0


def test_who_was_revoked_or_has_expired_is_not_learned_and_found_out_later(
    cluster: MadeCluster, publisher: Membership
) -> None:
    key = publisher.identity.key
    entry = Revocation(key, (publisher.certificate.serial,), int(cluster.now + DAY_S))
    empty = RevocationList(cluster.first.authority.cluster)
    revoked = empty.with_entry(entry, cluster.registrar.signer, cluster.now)
    with pytest.raises(errors.RevokedCertificateError):
        cache_of(cluster, revoked).learn(introduction_of(publisher), cluster.now)
    with pytest.raises(errors.ExpiredCertificateError):
        cache_of(cluster).learn(introduction_of(publisher), cluster.now + 31 * DAY_S)
    lists = [empty]
    descriptors = DescriptorCache(cluster.first.authority, empty)
    cache = PublisherCache(cluster.first.authority, descriptors, lambda: lists[-1])
    learned = cache.learn(introduction_of(publisher), cluster.now)
    assert not cache.is_revoked(learned)
    lists.append(revoked)
    assert cache.is_revoked(learned)


def test_a_renewed_certificate_introduces_the_same_key(
    cluster: MadeCluster, publisher: Membership
) -> None:
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


def test_one_publisher_takes_no_more_room_than_it_may(
    cluster: MadeCluster, publisher: Membership
) -> None:
    cache = cache_of(cluster)
    count = MOST_KEYS_OF_ONE + 2
    for number in range(count):
        cache.learn(introduction_of(publisher, number), cluster.now)
    known = [cache.find(event_key(number).signer) is not None for number in range(count)]
    assert known == [False] * 2 + [True] * MOST_KEYS_OF_ONE


def test_a_key_is_kept_in_a_file_of_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "events.key"
    assert load_event_key(path) is None
    key = event_key(0)
    save_event_key(key, path)
    assert path.stat().st_mode & 0o777 == 0o600
    loaded = load_event_key(path)
    assert loaded is not None
    assert (loaded.modulus, loaded.signer) == (key.modulus, key.signer)
    path.chmod(0o644)
    with pytest.raises(errors.KeyFileError, match="600"):
        load_event_key(path)


def test_a_file_that_holds_no_such_key_is_refused_with_a_remedy(
    tmp_path: Path, cluster: MadeCluster
) -> None:
    path = tmp_path / "events.key"
    identity = cluster.first.folder.peer_key.read_bytes()
    short = generate_private_key(65537, 1024).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    for content in (b"", b"nothing", identity, short):
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(
            errors.KeyFileError, match=r"s\.key is .*; remove it, and the peer makes"
        ):
            load_event_key(path)


def test_every_key_is_another() -> None:
    assert make_event_key().signer != event_key(0).signer
