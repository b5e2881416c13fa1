"""The signed version of the schema: what the authority said, and nothing else, is believed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gossamer.node.errors import ClusterFolderError, SchemaDocumentError
from gossamer.node.security.identity import make_identity
from gossamer.node.security.schema_document import (
    DOCUMENT_LIMIT,
    SchemaDocument,
    load_document,
    read_document,
    save_document,
    version_in_force,
)
from gossamer.protocol.content import schema
from gossamer.protocol.content.evolution import SchemaVersion
from support.clusters import MadeCluster, made_cluster

FIRST = SchemaVersion.first(
    schema.Schema([schema.FloatAttribute("price", 0, 100), schema.BooleanAttribute("open")])
)
LATER = FIRST.added(schema.DecimalAttribute("fee", 0, 1, 2)).without("open")


def signed(cluster: MadeCluster, version: SchemaVersion = LATER) -> SchemaDocument:
    return SchemaDocument.signed(cluster.first.authority, version, cluster.registrar.signer)


def test_what_the_authority_signed_is_read_back(cluster: MadeCluster) -> None:
    document = signed(cluster)
    assert read_document(document.to_bytes(), cluster.first.authority) == document
    path = cluster.first.folder.schema
    assert version_in_force(path, cluster.first.authority, FIRST) == FIRST
    save_document(path, document)
    assert load_document(path, cluster.first.authority) == document
    assert version_in_force(path, cluster.first.authority, FIRST) == LATER


def set_to(*path: str | int, to: object) -> Callable[[Any], None]:
    """A change of the content of a document."""

    def change(content: Any) -> None:
        for step in path[:-1]:
            content = content[step]
        content[path[-1]] = to

    return change


@pytest.mark.parametrize(
    "change",
    [
        set_to("version", to=LATER.number + 1),
        set_to("version", to=1),
        set_to("attributes", 0, "name", to="cost"),
        set_to("attributes", 0, "maximum", to=1000),
        lambda content: content["attributes"][1].pop("retired"),
        set_to("more", to=1),
        set_to("signature", to="00" * 64),
    ],
)
def test_what_was_changed_is_refused(cluster: MadeCluster, change: Callable[[Any], None]) -> None:
    content = json.loads(signed(cluster).to_bytes())
    change(content)
    with pytest.raises(SchemaDocumentError):
        read_document(json.dumps(content).encode(), cluster.first.authority)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"null", b"[" * 100_000, b"x" * (1 << 20)])
def test_what_is_no_document_is_refused(cluster: MadeCluster, data: bytes) -> None:
    with pytest.raises(SchemaDocumentError):
        read_document(data, cluster.first.authority)


def test_no_other_signer_and_cluster_are_believed(cluster: MadeCluster, tmp_path: Path) -> None:
    forged = SchemaDocument.signed(cluster.first.authority, LATER, make_identity())
    with made_cluster(tmp_path / "other") as other:
        foreign = signed(other)
    for document, words in (
        (forged, "not signed by the cluster's authority"),
        (foreign, "is of cluster"),
    ):
        with pytest.raises(SchemaDocumentError, match=words):
            read_document(document.to_bytes(), cluster.first.authority)


def test_what_does_not_continue_the_first_version_is_refused(cluster: MadeCluster) -> None:
    path = cluster.first.folder.schema
    save_document(path, signed(cluster))
    other = SchemaVersion.first(schema.Schema([schema.FloatAttribute("cost", 0, 1)]))
    with pytest.raises(ClusterFolderError, match="does not continue the schema"):
        version_in_force(path, cluster.first.authority, other)


def test_documents_have_a_limit(cluster: MadeCluster) -> None:
    values = tuple(f"value number {count}" for count in range(20_000))
    large = FIRST.added(schema.EnumerationAttribute("many", values))
    with pytest.raises(SchemaDocumentError, match=f"more than {DOCUMENT_LIMIT} bytes"):
        signed(cluster, large)
