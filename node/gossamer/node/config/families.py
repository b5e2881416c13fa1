"""The families of brokers that a node can run, by the names that `broker.overlay` has for them.

Those of gossamer are in a table, and are loaded when somebody asks for their settings. Others are
named in the environment variable ``GOSSAMER_BROKER_FAMILIES``, as ``module:name`` with commas
between several; that is read once, when a node starts. Either is a `BrokerFamily`, in a module that
loads little: `config.node` loads it to know the tables of node.toml.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

import attrs

from gossamer.protocol.kernel.errors import ConfigError

NAMED: Final = "GOSSAMER_BROKER_FAMILIES"
MAX_SCHEMA: Final = 32
"""Characters of what is said for a schema when brokers meet."""

_FAMILIES: Final = "gossamer.node.broker.families"
_BUILT_IN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "tree": f"{_FAMILIES}.tree.settings:TREE",
        "scot": f"{_FAMILIES}.scot.settings:SCOT",
        "graph": f"{_FAMILIES}.graph.settings:GRAPH",
    }
)


@attrs.frozen(kw_only=True)
class BrokerFamily:
    """A family of brokers, without what only such a broker has to load.

    Attributes:
        name: what `broker.overlay` says.
        schema: what such brokers say where peers tell the schema of their events, so that nobody
            takes another for its own.
        host: where, as ``module:name``, the function is that makes a
            `gossamer.node.broker.contract.host.FamilyHost` of a configuration.
        section: its settings in a table of node.toml, a class of attrs; None without such a table.
        options: of `gossamer node run`, by the setting in that table that each gives.
        example: lines of a new node.toml.
    """

    name: str
    schema: str = attrs.field()
    host: str
    section: type[Any] | None = None
    options: Mapping[str, str] = attrs.field(factory=dict)
    example: str = ""

    @schema.validator
    def _fits_a_greeting(self, _: attrs.Attribute[str], schema: str) -> None:
        if not 0 < len(schema) <= MAX_SCHEMA:
            expected = f"1 to {MAX_SCHEMA} characters"
            raise ConfigError(f"the schema of the family {self.name!r}", schema, expected)

    def host_of(self, config: Any) -> Any:
        """The host of a broker that is configured so; raises `ConfigError`."""
        return load(self.host)(config)


def family_names() -> tuple[str, ...]:
    """The names of all families, those of gossamer first."""
    return tuple(_places())


def family_named(name: str) -> BrokerFamily:
    """A family; raises `KeyError`."""
    return _family(_places()[name])


def families() -> tuple[BrokerFamily, ...]:
    """All families."""
    return tuple(map(family_named, family_names()))


def load(place: str) -> Any:
    """What is at ``module:name``; raises `ConfigError` for what cannot be imported."""
    module, colon, name = place.partition(":")
    try:
        if not colon:
            raise ImportError("there is no colon")
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        expected = f"module:name of something that can be imported ({error})"
        raise ConfigError(NAMED, place, expected) from error


@cache
def _places() -> Mapping[str, str]:
    named = [text.strip() for text in os.environ.get(NAMED, "").split(",") if text.strip()]
    own = {_family(place).name: place for place in named}
    return {**_BUILT_IN, **{name: place for name, place in own.items() if name not in _BUILT_IN}}


@cache
def _family(place: str) -> BrokerFamily:
    found = load(place)
    if not isinstance(found, BrokerFamily):
        raise ConfigError(NAMED, place, f"an object of {BrokerFamily.__name__}")
    return found
