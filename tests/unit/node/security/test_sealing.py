"""Sealed events: identifiers, shared signatures, and what becomes of changed bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.node.security import sealing
from gossamer.node.security.cluster import Membership
from gossamer.node.security.event_keys import Publisher, about_events, introduce
from support.clusters import event_key, made_cluster

SEAL = sealing.Seal(coordinates=2)
POINT = bytes(range(16))


@pytest.fixture(scope="module")
def member(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Membership]:
    folder: Path = tmp_path_factory.mktemp("sealing")
    with made_cluster(folder / "first") as cluster:
        yield cluster.first


@pytest.fixture(scope="module")
def publisher(member: Membership) -> Publisher:
    return introduce(member.authority, member.identity, member.certificate, event_key(0))


def sealed_by(member: Membership, contents: list[bytes]) -> list[bytes]:
    """Events that share a signature."""
    parts = [
        (content, number.to_bytes(sealing.DRAW_BYTES, "big"))
        for number, content in enumerate(contents)
    ]
    leaves = [SEAL.leaf(content, draw, POINT) for content, draw in parts]
    proofs = sealing.sign(member.authority, event_key(0), leaves)
    return [
        SEAL.close(content, draw, POINT, proof)
        for (content, draw), proof in zip(parts, proofs, strict=True)
    ]


def is_signed(member: Membership, publisher: Publisher, proof: sealing.Proof) -> bool:
    return publisher.signed(about_events(member.authority), proof.statement, proof.signature)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 33, sealing.MOST_SHARING])
def test_events_of_one_turn_share_a_signature_and_each_is_proven_alone(
    member: Membership, publisher: Publisher, count: int
) -> None:
    contents = [b"content %d" % number for number in range(count)]
    sealed = sealed_by(member, contents)
    proofs = [SEAL.open(one) for one in sealed]
    assert [proof.content for proof in proofs] == contents
    assert all(is_signed(member, publisher, proof) for proof in proofs)
    assert len({(proof.statement, proof.signature) for proof in proofs}) == 1
    assert len({sealing.identifier(one) for one in sealed}) == count
    assert all(SEAL.signer_of(one) == event_key(0).signer for one in sealed)
    longest = max(
        len(one) - len(content) - len(POINT) for one, content in zip(sealed, contents, strict=True)
    )
    assert longest <= sealing.MOST_SEAL_BYTES
    assert (longest == sealing.MOST_SEAL_BYTES) == (count > sealing.MOST_SHARING / 2)


@given(data=st.data())
def test_whatever_bit_is_changed_it_is_another_event_and_nobodys(
    member: Membership, publisher: Publisher, data: st.DataObject
) -> None:
    sealed = sealed_by(member, [b"one", b"two", b"three"])[data.draw(st.integers(0, 2))]
    bit = data.draw(st.integers(0, 8 * len(sealed) - 1))
    changed = bytearray(sealed)
    changed[bit // 8] ^= 1 << bit % 8
    assert sealing.identifier(bytes(changed)) != sealing.identifier(sealed)
    try:
        proof = SEAL.open(bytes(changed))
    except ValueError:
        return
    assert proof.signer != publisher.signer or not is_signed(member, publisher, proof)


def test_no_proof_is_good_for_another_event(member: Membership, publisher: Publisher) -> None:
    first, second = sealed_by(member, [b"first", b"second"])
    end = len(b"first") + sealing.DRAW_BYTES
    mixed = first[:end] + second[len(b"second") + sealing.DRAW_BYTES :]
    assert not is_signed(member, publisher, SEAL.open(mixed))
    # An inner node is no leaf: what is said to be the sibling becomes no content.
    path = first[end : end + 32]
    inner = path + SEAL.leaf(b"first", bytes(sealing.DRAW_BYTES), POINT)
    assert not is_signed(member, publisher, SEAL.open(inner + first[end + 32 :]))


@given(st.binary(max_size=600))
def test_random_bytes_are_refused_or_nobodys(
    member: Membership, publisher: Publisher, data: bytes
) -> None:
    assert 0 <= sealing.identifier(data) < 1 << sealing.ID_BITS
    SEAL.signer_of(data)
    try:
        proof = SEAL.open(data)
    except ValueError:
        return
    assert not is_signed(member, publisher, proof)


def test_without_certificates_there_are_content_draw_and_point() -> None:
    sealed = SEAL.close(b"content", bytes(sealing.DRAW_BYTES), POINT)
    assert SEAL.open_unsigned(sealed) == b"content"
    assert len(sealed) == len(b"content") + sealing.DRAW_BYTES + len(POINT)
    for short in (b"", POINT, bytes(sealing.DRAW_BYTES) + POINT):
        with pytest.raises(ValueError, match="too short"):
            SEAL.open_unsigned(short)
