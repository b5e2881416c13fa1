"""The version of the schema in force: a document that the authority signs and peers pass on.

Of two documents the one with the higher version counts, whoever brings it, if it continues what is
in force. The file `schema.json` and the message are the same bytes. The first version is what the
cluster was made with (`cluster.json`), and has no document.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from gossamer.node.errors import ClusterFolderError, SignedDataError
from gossamer.node.security.certificates import Authority
from gossamer.node.security.identity import Identity, encode, read_file, verify, write_file
from gossamer.protocol.content.schema import (
    FIRST_VERSION,
    Schema,
    SchemaVersion,
    attribute_of,
    table_of,
)
from gossamer.protocol.kernel.errors import ConfigError

CONTEXT: Final = "schema 1"
DOCUMENT_LIMIT: Final = 256 << 10
_VERSION_BITS: Final = 31


@frozen
class SchemaDocument:
    """A version of the schema, signed by the authority.

    Attributes:
        cluster: identifier of the cluster.
        version: what it says.
        signature: the authority's.
    """

    cluster: str
    version: SchemaVersion
    signature: bytes

    @classmethod
    def signed(
        cls, authority: Authority, version: SchemaVersion, signer: Identity
    ) -> SchemaDocument:
        """The document of a version, signed by the authority's key.

        Raises:
            SignedDataError: it is longer than peers take; nothing was signed.
        """
        signed = _signed_bytes(authority.cluster, version)
        made = cls(authority.cluster, version, signer.sign(CONTEXT, signed))
        if len(made.to_bytes()) > DOCUMENT_LIMIT:
            raise SignedDataError(f"the schema takes more than {DOCUMENT_LIMIT} bytes")
        return made

    def to_bytes(self) -> bytes:
        """The document as a file and as a message."""
        content = {
            "cluster": self.cluster,
            "version": self.version.number,
            "attributes": _entries(self.version),
            "signature": self.signature.hex(),
        }
        return (json.dumps(content, indent=1) + "\n").encode()


def read_document(data: bytes, authority: Authority) -> SchemaDocument:
    """The document in ``data``, verified.

    Raises:
        SignedDataError: it is malformed, too long, or not signed by ``authority``.
    """
    if len(data) > DOCUMENT_LIMIT:
        limit = f"expected at most {DOCUMENT_LIMIT}"
        raise SignedDataError(f"the schema has {len(data)} bytes, {limit}")
    try:
        found = _parse(json.loads(data))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ConfigError) as error:
        raise SignedDataError("the schema is malformed") from error
    if found.cluster != authority.cluster:
        raise SignedDataError(
            f"the schema is of cluster {found.cluster}, expected {authority.cluster}"
        )
    signed = _signed_bytes(found.cluster, found.version)
    if not verify(authority.public_key, CONTEXT, signed, found.signature):
        raise SignedDataError("the schema is not signed by the cluster's authority")
    return found


def load_document(path: Path, authority: Authority) -> SchemaDocument | None:
    """The document in the file ``path``, None where there is no file.

    Raises:
        ClusterFolderError: it cannot be read, or holds nothing that the authority signed.
    """
    if not path.exists():
        return None
    try:
        return read_document(read_file(path, DOCUMENT_LIMIT), authority)
    except SignedDataError as error:
        raise ClusterFolderError(path, f"cannot be used: {error}") from error


def save_document(path: Path, document: SchemaDocument) -> None:
    """Put the document in the file ``path``, atomically."""
    write_file(path, document.to_bytes())


def version_in_force(path: Path, authority: Authority, first: SchemaVersion) -> SchemaVersion:
    """The version that the file ``path`` has, or the first.

    Raises:
        ClusterFolderError: the file cannot be used, or does not continue the first.
    """
    document = load_document(path, authority)
    if document is None:
        return first
    if not document.version.continues(first):
        raise ClusterFolderError(
            path, "does not continue the schema that the cluster was made with"
        )
    return document.version


def _entries(version: SchemaVersion) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            **table_of(one),
            **({"retired": version.retired[one.name]} if one.name in version.retired else {}),
        }
        for one in version.known
    ]


def _signed_bytes(cluster: str, version: SchemaVersion) -> bytes:
    """What the signature is of: the content, however the text is laid out."""
    entries = json.dumps(_entries(version), sort_keys=True, separators=(",", ":"))
    return encode([cluster, version.number, entries])


def _parse(content: Any) -> SchemaDocument:
    """What `to_bytes` wrote; raises what malformed content leads to."""
    if set(content) != {"cluster", "version", "attributes", "signature"}:
        raise ValueError("unknown or missing fields")
    number = _whole(content["version"])
    attributes, retired = [], {}
    for entry in content["attributes"]:
        table = {key: value for key, value in entry.items() if key not in ("name", "retired")}
        attributes.append(attribute_of(entry["name"], table))
        if "retired" in entry:
            retired[entry["name"]] = _whole(entry["retired"])
    version = SchemaVersion(number, Schema(attributes), retired)
    return SchemaDocument(
        str(content["cluster"])[:64], version, bytes.fromhex(content["signature"])
    )


def _whole(value: Any) -> int:
    if type(value) is not int or not FIRST_VERSION < value < 1 << _VERSION_BITS:
        raise ValueError("no number of a later version")
    return value
