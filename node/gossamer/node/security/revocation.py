"""Who belongs to the cluster no more: a list that the authority signs and peers pass on.

Of two lists the one with the higher sequence number counts, whoever brings it. The file
`revoked.json` and the message are the same bytes.

Each entry carries a signature of its own as well, by which a peer can be shown that it is revoked
without the whole list. That proof lies in the peer's folder from then on (`revoked.proof`).
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Final, Self

from attrs import evolve, field, frozen

from gossamer.node.errors import ClusterFolderError, SignedDataError
from gossamer.node.security.certificates import Authority
from gossamer.node.security.identity import (
    SIGNATURE_BYTES,
    Identity,
    encode,
    key_text,
    read_file,
    verify,
    write_file,
)
from gossamer.protocol.kernel.errors import CapacityError

CONTEXT: Final = "revocation list 1"
_PROOF_CONTEXT: Final = "revocation 1"
ENTRIES: Final = 4096
# An entry takes some 240 bytes.
LIST_LIMIT: Final = 1 << 20
_SERIAL_BITS: Final = 160
_KEY_BITS: Final = 62


@frozen
class Revocation:
    """A peer that belongs no more.

    Attributes:
        key: its permanent key; no certificate of it counts.
        serials: serial numbers of the certificates that it had.
        not_after: when the last of them expires, Unix seconds; the entry may go then.
        proof: the authority's word that this peer is revoked, see `proves`; empty where older
            software made the entry.
    """

    key: int
    serials: tuple[int, ...]
    not_after: int
    proof: bytes = b""


@frozen
class RevocationList:
    """A list as signed by the authority.

    Attributes:
        cluster: identifier of the cluster.
        sequence: grows by one with every change; 0 is the empty list that nobody signed.
        entries: the revoked peers, by key.
        signature: the authority's.
    """

    cluster: str
    sequence: int = 0
    entries: tuple[Revocation, ...] = ()
    signature: bytes = b""
    _keys: frozenset[int] = field(init=False, repr=False, eq=False)
    _serials: frozenset[int] = field(init=False, repr=False, eq=False)

    @_keys.default
    def _collect_keys(self) -> frozenset[int]:
        return frozenset(entry.key for entry in self.entries)

    @_serials.default
    def _collect_serials(self) -> frozenset[int]:
        return frozenset(serial for entry in self.entries for serial in entry.serials)

    @property
    def keys(self) -> frozenset[int]:
        """The permanent keys of the peers on the list."""
        return self._keys

    def forbids(self, key: int, serial: int) -> bool:
        """Whether the peer ``key``, or the certificate ``serial``, is revoked."""
        return key in self._keys or serial in self._serials

    def proof_of(self, key: int) -> bytes:
        """The proof that the peer ``key`` is revoked; empty where there is none."""
        return next((entry.proof for entry in self.entries if entry.key == key), b"")

    def with_entry(self, entry: Revocation, signer: Identity, now: float) -> Self:
        """The next list, signed by the authority's key, with ``entry`` in place of its earlier one.

        Entries whose certificates have all expired are left out.

        Raises:
            CapacityError: there are as many as a list may have.
        """
        kept = [old for old in self.entries if old.key != entry.key and old.not_after > now]
        proven = [self._proven(one, signer) for one in (*kept, entry)]
        entries = tuple(sorted(proven, key=lambda entry: entry.key))
        if len(entries) > ENTRIES:
            raise CapacityError("revocation list", ENTRIES, "make a new cluster")
        unsigned = evolve(self, sequence=self.sequence + 1, entries=entries)
        return evolve(unsigned, signature=signer.sign(CONTEXT, unsigned._signed_bytes()))

    def _proven(self, entry: Revocation, signer: Identity) -> Revocation:
        if entry.proof:
            return entry
        signature = signer.sign(_PROOF_CONTEXT, _proof_bytes(self.cluster, entry.key))
        return evolve(entry, proof=signature)

    def to_bytes(self) -> bytes:
        """The list as a file and as a message."""
        content = {
            "cluster": self.cluster,
            "sequence": self.sequence,
            "revoked": [_entry_to_json(entry) for entry in self.entries],
            "signature": self.signature.hex(),
        }
        return (json.dumps(content, indent=1) + "\n").encode()

    def _signed_bytes(self) -> bytes:
        """What the signature is of: the content, however the text is laid out."""
        entries = [
            [
                entry.key,
                [serial.to_bytes(20, "big") for serial in entry.serials],
                entry.not_after,
                *([entry.proof] if entry.proof else []),
            ]
            for entry in self.entries
        ]
        return encode([self.cluster, self.sequence, entries])


def proves(authority: Authority, key: int, proof: bytes) -> bool:
    """Whether ``proof`` is the word of ``authority`` that the peer ``key`` is revoked."""
    return verify(authority.public_key, _PROOF_CONTEXT, _proof_bytes(authority.cluster, key), proof)


def read_list(data: bytes, authority: Authority) -> RevocationList:
    """The list in ``data``, verified.

    Raises:
        SignedDataError: it is malformed, too long, or not signed by ``authority``.
    """
    if len(data) > LIST_LIMIT:
        raise SignedDataError(
            f"the revocation list has {len(data)} bytes, expected at most {LIST_LIMIT}"
        )
    try:
        found = _parse(json.loads(data))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise SignedDataError("the revocation list is malformed") from error
    if found.cluster != authority.cluster:
        raise SignedDataError(
            f"the revocation list is of cluster {found.cluster}, expected {authority.cluster}"
        )
    signed = verify(authority.public_key, CONTEXT, found._signed_bytes(), found.signature)
    if not signed and found != RevocationList(authority.cluster):
        raise SignedDataError("the revocation list is not signed by the cluster's authority")
    return found


def load_list(path: Path, authority: Authority) -> RevocationList:
    """The list in the file ``path``.

    Raises:
        ClusterFolderError: the file is missing, or nothing that this cluster's authority signed.
    """
    try:
        return read_list(read_file(path, LIST_LIMIT), authority)
    except SignedDataError as error:
        raise ClusterFolderError(path, f"cannot be used: {error}") from error


def save_list(path: Path, revoked: RevocationList) -> None:
    """Put the list in the file ``path``, atomically."""
    write_file(path, revoked.to_bytes())


def _entry_to_json(entry: Revocation) -> dict[str, Any]:
    return {
        "key": key_text(entry.key),
        "serials": [f"{serial:x}" for serial in entry.serials],
        "not_after": entry.not_after,
        **({"proof": base64.b64encode(entry.proof).decode()} if entry.proof else {}),
    }


def _proof_bytes(cluster: str, key: int) -> bytes:
    return encode([cluster, key])


def _parse(content: Any) -> RevocationList:
    """What `to_bytes` wrote; raises ValueError, TypeError or KeyError for anything else."""
    if set(content) != {"cluster", "sequence", "revoked", "signature"}:
        raise ValueError("unknown or missing fields")
    if len(content["revoked"]) > ENTRIES or not isinstance(content["cluster"], str):
        raise ValueError("too many entries, or no cluster")
    return RevocationList(
        content["cluster"][:64],
        _whole(content["sequence"], _KEY_BITS),
        tuple(_parse_entry(entry) for entry in content["revoked"]),
        bytes.fromhex(content["signature"]),
    )


def _parse_entry(entry: Any) -> Revocation:
    if set(entry) - {"proof"} != {"key", "serials", "not_after"}:
        raise ValueError("unknown or missing fields")
    proof = base64.b64decode(entry.get("proof", ""), validate=True)
    if len(proof) not in (0, SIGNATURE_BYTES):
        raise ValueError("not a signature")
    return Revocation(
        _whole(int(entry["key"], 16), _KEY_BITS),
        tuple(_whole(int(serial, 16), _SERIAL_BITS) for serial in entry["serials"]),
        _whole(entry["not_after"], _KEY_BITS),
        proof,
    )


def _whole(value: Any, bits: int) -> int:
    if type(value) is not int or not 0 <= value < 1 << bits:
        raise ValueError("not a number of that size")
    return value
