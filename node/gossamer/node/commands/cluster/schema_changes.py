"""`gossamer node schema`: shows the schema in force, and makes its next version."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from gossamer.node.config.file import load
from gossamer.node.errors import ConfigurationError
from gossamer.node.peer.cluster_info import cluster_schema
from gossamer.node.security.cluster import ClusterFolder, load_signer, open_membership
from gossamer.node.security.schema_document import (
    SchemaDocument,
    save_document,
    version_in_force,
)
from gossamer.node.store import Store
from gossamer.protocol.content.schema import SchemaVersion, attribute_of, changed
from gossamer.protocol.kernel.errors import ConfigError

Made = TypeVar("Made")
Change = Callable[[SchemaVersion], SchemaVersion]

# A field of a domain that is a list of strings; on the command line with commas between.
_VALUES: Final = "values"


def show(folder: Path | None) -> list[str]:
    """The version in force as far as the folder knows; what to print.

    Raises:
        NodeError, ConfigError: the folder holds no schema.
    """
    config = load(folder).config
    first = SchemaVersion.first(cluster_schema(config))
    version = first
    if not config.listen.plain_text:
        member = open_membership(config.identity.folder)
        version = version_in_force(member.folder.schema, member.authority, first)
    lines = [f"version {version.number} of the schema"]
    for number, one in enumerate(version.known):
        since = version.retired.get(one.name)
        state = "" if since is None else f", retired since version {since}"
        added = ", added later" if number >= len(first.known) else ""
        lines.append(f"{one.name} ({one.type_name}): {one.expected}{added}{state}")
    return lines


def add(folder: Path | None, name: str, type_name: str, fields: Sequence[str]) -> str:
    """One attribute more.

    Raises:
        NodeError, ConfigError: as of `change`; nothing changed.
    """
    attribute = _named(lambda: attribute_of(name, {"type": type_name, **_fields(fields)}))
    return change(folder, lambda version: version.added(attribute))


def widen(folder: Path | None, name: str, fields: Sequence[str]) -> str:
    """A wider domain for an attribute.

    Raises:
        NodeError, ConfigError: as of `change`; nothing changed.
    """
    given = _fields(fields)
    if not given:
        raise ConfigurationError("", "FIELD=VALUE", "nothing", "such as maximum=1000000")
    return change(folder, lambda version: version.widened(changed(version.in_use(name), given)))


def retire(folder: Path | None, name: str) -> str:
    """One attribute less in new events.

    Raises:
        NodeError, ConfigError: as of `change`; nothing changed.
    """
    return change(folder, lambda version: version.without(name))


def change(folder: Path | None, make: Change) -> str:
    """Sign the next version of the schema and put it in the folder; what to print.

    A node that runs in the folder spreads it within seconds, one that does not when it starts.

    Raises:
        ClusterFolderError: the folder lacks the authority's key.
        ConfigurationError: the change is impossible.
        StoreError: the state file cannot be used.
    """
    config = load(folder).config
    member = open_membership(config.identity.folder)
    signer = load_signer(member.folder, member.authority)
    first = SchemaVersion.first(cluster_schema(config))
    path = ClusterFolder(config.identity.folder).schema
    # The transaction keeps two commands from signing different documents of one version.
    with Store(member.folder.state) as store, store.transaction():
        before = version_in_force(path, member.authority, first)
        after = _named(lambda: make(before))
        save_document(path, SchemaDocument.signed(member.authority, after, signer))
    return (
        f"version {after.number} of the schema is signed; running peers learn of it from this one,"
        " as soon as its node runs"
    )


def _named(make: Callable[[], Made]) -> Made:
    """What is made, with faults named as those of the command's arguments."""
    try:
        return make()
    except ConfigError as error:
        field = error.field.removeprefix("schema.")
        raise ConfigurationError("", field, error.value, error.expected) from None


def _fields(texts: Sequence[str]) -> dict[str, Any]:
    """The fields of a domain that ``FIELD=VALUE`` arguments give."""
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name in found:
            raise ConfigurationError("", "FIELD=VALUE", text, "such as minimum=0, each field once")
        found[name] = value.split(",") if name == _VALUES else _value(value)
    return found


def _value(text: str) -> object:
    """A number or date as TOML has it, and anything else as text."""
    try:
        found: object = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return found
