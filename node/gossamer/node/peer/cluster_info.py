"""What all members of a cluster know of it: what its events are made of, and where peers are.

The information is in every peer's folder (cluster.json), and travels with the answer to a join. The
schema is also there as a file for people (schema.toml); if that is changed, the node does not
start, since peers of different schemas would misunderstand every event. Later versions of the
schema are documents of their own (`gossamer.node.security.schema_document`).
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import attrs

from gossamer.node.config.broker import BROKER, PEER
from gossamer.node.config.file import load
from gossamer.node.config.node import NodeConfig
from gossamer.node.errors import ClusterFolderError, ConfigurationError
from gossamer.node.security.cluster import ClusterFolder
from gossamer.node.security.identity import read_file, write_file
from gossamer.protocol.content.encodings import EncodingError, decoded
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import literal
from gossamer.protocol.kernel.errors import ConfigError

SCHEMA_NAME: Final = "schema.toml"
SCHEMA_LIMIT: Final = 48 << 10
MAX_PEERS: Final = 64
_FILE_LIMIT: Final = 64 << 10

DEFAULT_SCHEMA: Final = """\
# What events are made of in this cluster: an event has values for some of these attributes, and
# subscriptions are about them, such as:  symbol == "IBM" and price > 80
#
# These stand for stock quotes. To have your own, write a file like this one and make the cluster
# by 'gossamer node init FOLDER --schema FILE'. Later it is changed by 'gossamer node schema', and
# not in this file.
#
# Types, with their domains:
#   integer      minimum and maximum, both included
#   float        the same; whole numbers are floats too
#   decimal      the same, and places: digits after the point; 15 digits at most
#   boolean      true or false
#   string       alphabet, minimum and maximum, all of them optional
#   date         minimum and maximum, such as "2020-01-31" or "2020-01-31T12:00:00Z"
#   enumeration  values, a list of strings

[attributes.symbol]
type = "string"

[attributes.price]
type = "float"
minimum = 0
maximum = 100000

[attributes.volume]
type = "integer"
minimum = 0
maximum = 1000000000
"""


@attrs.frozen
class ClusterInfo:
    """What members know of their cluster.

    Attributes:
        schema: text of the schema, TOML.
        peers: addresses of peers to try first.
        join_addresses: where join requests were taken, by which a certificate can be renewed late.
    """

    schema: str
    peers: tuple[str, ...] = ()
    join_addresses: tuple[str, ...] = ()

    def to_bytes(self) -> bytes:
        """As it is kept and travels."""
        content: dict[str, Any] = {"schema": self.schema, "peers": list(self.peers[:MAX_PEERS])}
        if self.join_addresses:
            content["join_addresses"] = list(self.join_addresses[:MAX_PEERS])
        return json.dumps(content).encode()


def read_cluster_info(folder: ClusterFolder) -> ClusterInfo:
    """The information in a peer's folder.

    Raises:
        ClusterFolderError: there is none, or it is not readable.
    """
    path = folder.cluster_info
    try:
        content = json.loads(read_file(path, _FILE_LIMIT))
        info = ClusterInfo(
            content["schema"], tuple(content["peers"]), tuple(content.get("join_addresses", ()))
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        reason = "is not readable, expected what 'gossamer node init' or 'join' wrote"
        raise ClusterFolderError(path, reason) from None
    if not all(isinstance(text, str) for text in (info.schema, *info.peers, *info.join_addresses)):
        raise ClusterFolderError(path, "holds something else than text")
    return info


def write_cluster_info(folder: ClusterFolder, info: ClusterInfo) -> None:
    """Keep the information, and the schema as a file for people."""
    write_file(folder.cluster_info, info.to_bytes())
    write_file(folder.path / SCHEMA_NAME, info.schema.encode())


def parse_schema(text: str, place: str) -> Schema:
    """The schema that the TOML ``text`` of the file ``place`` describes.

    Raises:
        ConfigurationError: it describes none.
    """
    try:
        content: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        found = f"no TOML ({error})"
        raise ConfigurationError(place, "the text", text, "valid TOML", found) from None
    tables = content.get("attributes")
    if not isinstance(tables, dict) or len(content) != 1:
        expected = "tables [attributes.NAME] and nothing else"
        raise ConfigurationError(place, "the content", sorted(content), expected)
    try:
        return Schema.from_mapping(tables)
    except ConfigError as error:
        field = "attributes" + error.field.removeprefix("schema")
        raise ConfigurationError(place, field, error.value, error.expected) from None


def read_schema_file(path: Path) -> str:
    """The text of a schema file that describes a schema.

    Raises:
        ConfigurationError: it cannot be read, or describes none.
    """
    what = "the schema file"
    try:
        with path.open("rb") as file:
            text = decoded(file.read(SCHEMA_LIMIT + 1))
    except OSError as error:
        found = f"unreadable ({error.strerror or error})"
        raise ConfigurationError(str(path), what, path, "a TOML file", found) from None
    except EncodingError as error:
        raise ConfigurationError(str(path), what, path, "text in UTF-8", error.reason) from None
    if len(text.encode()) > SCHEMA_LIMIT:
        expected = f"at most {SCHEMA_LIMIT} bytes"
        raise ConfigurationError(str(path), what, path, expected, "longer than that")
    parse_schema(text, str(path))
    return text


def schema_fingerprint(schema: Schema) -> str:
    """What tells schemas apart: 16 hexadecimal digits, the same for equal schemas."""
    # The order of attributes matters, the order in which a domain is written does not.
    tables = [[name, sorted(table.items())] for name, table in schema.to_mapping().items()]
    text = json.dumps(tables, default=literal, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def cluster_schema(config: NodeConfig) -> Schema:
    """The schema of the cluster that the folder of ``config`` belongs to.

    Raises:
        ClusterFolderError: the folder knows no schema, or schema.toml or the configuration describe
            another.
        ConfigurationError: the schema, or schema.toml, is none.
    """
    folder = ClusterFolder(config.identity.folder)
    if config.listen.plain_text and config.schema is not None and not folder.cluster_info.exists():
        return config.schema  # without certificates there is nobody to get it from
    schema = parse_schema(read_cluster_info(folder).schema, str(folder.cluster_info))
    path = folder.path / SCHEMA_NAME
    if path.exists():
        _compare(parse_schema(read_schema_file(path), str(path)), schema, path)
    if config.schema is not None:
        _compare(config.schema, schema, "the configuration ([attributes])")
    return schema


def with_schema(config: NodeConfig) -> NodeConfig:
    """The configuration with the schema of its cluster; raises as `cluster_schema`."""
    return attrs.evolve(config, schema=cluster_schema(config))


def peer_config(folder: str | Path, changes: Iterable[str] | None = None) -> NodeConfig:
    """The configuration of the peer whose folder `gossamer node init` or `join` has made.

    Args:
        folder: of the peer.
        changes: of settings, each ``name=value`` as behind ``--set``.

    Raises:
        ConfigurationError: it cannot be read, is impossible, or that of a broker.
        ClusterFolderError: the folder belongs to no cluster, or schema.toml or the configuration
            describe another schema.
    """
    loaded = load(Path(folder), changes)
    if loaded.config.node.role == BROKER:
        place, expected = loaded.origin("node.role").place, f"{PEER!r}, as this opens no broker"
        raise ConfigurationError(place, "node.role", BROKER, expected)
    return with_schema(loaded.config)


def _compare(found: Schema, expected: Schema, place: object) -> None:
    if found != expected:
        raise ClusterFolderError(
            place,
            f"describes schema {schema_fingerprint(found)}, expected "
            f"{schema_fingerprint(expected)}, with which the cluster was made; undo the change, or "
            "make a new cluster",
        )
