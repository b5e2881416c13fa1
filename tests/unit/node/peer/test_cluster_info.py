"""A cluster's schema: kept, given on, and held against what others say."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.node.config.node import Identity, Listen, NodeConfig
from gossamer.node.errors import ClusterFolderError, ConfigurationError, SchemaMismatchError
from gossamer.node.peer.cluster_info import (
    DEFAULT_SCHEMA,
    SCHEMA_LIMIT,
    ClusterInfo,
    cluster_schema,
    parse_schema,
    read_cluster_info,
    read_schema_file,
    schema_fingerprint,
    write_cluster_info,
)
from gossamer.node.security.cluster import ClusterFolder
from gossamer.protocol.content.schema import Schema

QUOTES = parse_schema(DEFAULT_SCHEMA, "default")


def config_of(folder: Path, schema: Schema | None = None, plain: bool = False) -> NodeConfig:
    listen = Listen(addresses=("127.0.0.1:0",), plain_text=plain)
    return NodeConfig(identity=Identity(folder=folder), schema=schema, listen=listen)


def test_the_default_schema_is_one() -> None:
    assert QUOTES.names == ("symbol", "price", "volume")


def test_notes_come_back_as_they_were_kept(tmp_path: Path) -> None:
    folder = ClusterFolder(tmp_path)
    cluster_info = ClusterInfo(DEFAULT_SCHEMA, ("10.0.0.1:7710",))
    write_cluster_info(folder, cluster_info)
    assert read_cluster_info(folder) == cluster_info
    assert cluster_schema(config_of(tmp_path)) == QUOTES
    assert (tmp_path / "schema.toml").read_text() == DEFAULT_SCHEMA


def test_a_changed_schema_file_is_refused(tmp_path: Path) -> None:
    write_cluster_info(ClusterFolder(tmp_path), ClusterInfo(DEFAULT_SCHEMA))
    changed = DEFAULT_SCHEMA.replace("maximum = 100000\n", "maximum = 99\n")
    (tmp_path / "schema.toml").write_text(changed)
    with pytest.raises(SchemaMismatchError, match=r"schema\.toml describes schema") as caught:
        cluster_schema(config_of(tmp_path))
    assert caught.value.expected == schema_fingerprint(QUOTES)
    assert caught.value.found == schema_fingerprint(parse_schema(changed, "changed"))


def test_comments_in_the_schema_file_make_no_difference(tmp_path: Path) -> None:
    write_cluster_info(ClusterFolder(tmp_path), ClusterInfo(DEFAULT_SCHEMA))
    (tmp_path / "schema.toml").write_text(DEFAULT_SCHEMA + "# mine\n")
    assert cluster_schema(config_of(tmp_path)) == QUOTES
    (tmp_path / "schema.toml").unlink()
    assert cluster_schema(config_of(tmp_path)) == QUOTES


def test_another_schema_in_the_configuration_is_refused(tmp_path: Path) -> None:
    write_cluster_info(ClusterFolder(tmp_path), ClusterInfo(DEFAULT_SCHEMA))
    assert cluster_schema(config_of(tmp_path, QUOTES)) == QUOTES
    with pytest.raises(SchemaMismatchError, match="the configuration"):
        cluster_schema(config_of(tmp_path, Schema(QUOTES.attributes[:2])))


def test_without_certificates_the_configuration_has_the_schema(tmp_path: Path) -> None:
    assert cluster_schema(config_of(tmp_path, QUOTES, plain=True)) == QUOTES
    with pytest.raises(ClusterFolderError, match=r"cluster\.json"):
        cluster_schema(config_of(tmp_path, plain=True))


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"schema": 1, "peers": []}', b'{"schema": "", "peers": [1]}']
)
def test_notes_that_are_none_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "cluster.json").write_bytes(content)
    with pytest.raises(ClusterFolderError, match=r"cluster\.json"):
        read_cluster_info(ClusterFolder(tmp_path))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = ", "no TOML"),
        ("", "tables \\[attributes.NAME\\]"),
        ("[attributes.a]\ntype = 'string'\n[more]\n", "and nothing else"),
        ("[attributes.a]\ntype = 'colour'\n", r"attributes\.a\.type is 'colour'"),
        ("[attributes.a]\ntype = 'integer'\nminimum = 3\nmaximum = 2\n", r"a\.maximum is 2"),
        ("#" * (SCHEMA_LIMIT + 1), "longer than that"),
    ],
)
def test_a_schema_file_that_describes_none_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=words) as caught:
        read_schema_file(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_schema_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="unreadable"):
        read_schema_file(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="no text"):
        read_schema_file(tmp_path / "binary.toml")


def test_equal_schemas_have_equal_fingerprints() -> None:
    again = Schema.from_mapping(
        {name: dict(reversed(table.items())) for name, table in QUOTES.to_mapping().items()}
    )
    assert schema_fingerprint(again) == schema_fingerprint(QUOTES)
    other_order = Schema(tuple(reversed(QUOTES.attributes)))
    assert schema_fingerprint(other_order) != schema_fingerprint(QUOTES)
