"""Lists of revoked peers: the authority's newest counts, and nothing else does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gossamer.node.errors import ClusterFolderError, RevocationListError
from gossamer.node.security.identity import make_identity
from gossamer.node.security.issuing import make_authority
from gossamer.node.security.revocation import (
    ENTRIES,
    LIST_LIMIT,
    Revocation,
    RevocationList,
    load_list,
    read_list,
    save_list,
)
from gossamer.protocol.kernel.errors import CapacityError

NOW = 1_800_000_000.0
LATER = int(NOW) + 1000
CLUSTER = "00112233445566778899aabbccddeeff"
SIGNER = make_identity()
AUTHORITY = make_authority(SIGNER, CLUSTER, "desk", NOW)
EMPTY = RevocationList(CLUSTER)
ONE = EMPTY.with_entry(Revocation(1, (11, 1 << 158), LATER), SIGNER, NOW)
TWO = ONE.with_entry(Revocation(2, (22,), LATER), SIGNER, NOW)


def changed(**fields: Any) -> bytes:
    return json.dumps(json.loads(TWO.to_bytes()) | fields).encode()


def test_a_list_comes_back_from_its_bytes_and_its_file(tmp_path: Path) -> None:
    path = tmp_path / "revoked.json"
    assert read_list(TWO.to_bytes(), AUTHORITY) == TWO
    save_list(path, TWO)
    assert load_list(path, AUTHORITY) == TWO
    path.write_bytes(changed(revoked=[]))
    with pytest.raises(ClusterFolderError, match=r"revoked\.json cannot be used: .*not signed"):
        load_list(path, AUTHORITY)


def test_the_newer_list_wins_in_whichever_order_they_come() -> None:
    assert ONE.newest(TWO.to_bytes(), AUTHORITY) == TWO
    assert TWO.newest(ONE.to_bytes(), AUTHORITY) is TWO
    assert TWO.newest(EMPTY.to_bytes(), AUTHORITY) is TWO
    assert EMPTY.newest(TWO.to_bytes(), AUTHORITY) == TWO


UNSIGNED = [
    changed(sequence=9),
    changed(revoked=[]),
    changed(revoked=json.loads(TWO.to_bytes())["revoked"][:1]),
    changed(signature="00" * 64),
    changed(signature=""),
    EMPTY.with_entry(Revocation(3, (), LATER), make_identity(), NOW).to_bytes(),
    RevocationList(CLUSTER, 5).to_bytes(),
]
MALFORMED = [
    *[b"", b"[]", b"{}", b"null", b"7", b"\xff\xfe", b"[" * 100_000, b"9" * 10_000],
    changed(more=1),
    changed(cluster=7),
    *(changed(sequence=number) for number in (-1, True, 1.5, 1 << 70)),
    changed(revoked=7),
    changed(revoked=[7]),
    changed(revoked=[{"key": "1", "serials": ["x"], "not_after": 1}]),
    changed(revoked=[{"key": "-1", "serials": [], "not_after": 1}]),
    changed(revoked=[{"key": "1", "serials": ["f" * 41], "not_after": 1}]),
    changed(revoked=[{"key": 1, "serials": [], "not_after": 1}]),
    changed(revoked=[{"key": "1"}]),
    *(changed(signature=text) for text in (7, "zz")),
]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        *((data, "not signed") for data in UNSIGNED),
        *((data, "malformed") for data in MALFORMED),
        (RevocationList("f" * 32).to_bytes(), "is of cluster"),
        (b"[" * (LIST_LIMIT + 1), f"at most {LIST_LIMIT}"),
    ],
)
def test_a_list_that_the_authority_did_not_make_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(RevocationListError, match=words):
        EMPTY.newest(data, AUTHORITY)


def test_the_largest_list_fits_its_limit_and_one_entry_more_is_refused() -> None:
    entries = tuple(Revocation(key, (1 << 158,), LATER) for key in range(ENTRIES - 1))
    full = RevocationList(CLUSTER, 1, entries).with_entry(
        Revocation((1 << 62) - 1, (1 << 158,), LATER), SIGNER, NOW
    )
    assert read_list(full.to_bytes(), AUTHORITY) == full
    with pytest.raises(CapacityError, match=f"full at {ENTRIES}"):
        full.with_entry(Revocation(1 << 61, (), LATER), SIGNER, NOW)


def test_entries_leave_the_list_once_they_have_expired_or_are_replaced() -> None:
    later = TWO.with_entry(Revocation(3, (), LATER + 5000), SIGNER, LATER + 1)
    assert [entry.key for entry in later.entries] == [3]
    assert later.sequence == TWO.sequence + 1
    again = TWO.with_entry(Revocation(1, (11, 12), LATER), SIGNER, NOW)
    assert [entry.key for entry in again.entries] == [1, 2]
    assert again.forbids(99, 12)
