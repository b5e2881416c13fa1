"""The attribute schema: what an event is made of (Vinifera, Sec. IV-A).

A schema is an ordered list of attributes A_1 to A_n; an event is a point in the space they span.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from attrs import field, frozen

from gossamer.protocol.content.attributes import (
    Attribute,
    BooleanAttribute,
    DateAttribute,
    DecimalAttribute,
    EnumerationAttribute,
    FloatAttribute,
    IntegerAttribute,
    StringAttribute,
)
from gossamer.protocol.content.errors import ContentError, UnknownAttributeError
from gossamer.protocol.content.limits import MAX_ATTRIBUTES, MAX_KNOWN_ATTRIBUTES, MAX_NAME
from gossamer.protocol.content.values import Value
from gossamer.protocol.kernel.errors import ConfigError

__all__ = [
    "RESERVED_NAMES",
    "Attribute",
    "BooleanAttribute",
    "DateAttribute",
    "DecimalAttribute",
    "EnumerationAttribute",
    "FloatAttribute",
    "IntegerAttribute",
    "Schema",
    "StringAttribute",
]

RESERVED_NAMES: Final = frozenset({"and", "in", "startswith"})
_NAME_PATTERN: Final = re.compile(rf"[A-Za-z_][A-Za-z0-9_]{{0,{MAX_NAME - 1}}}")

_DOMAIN_FIELDS: Final[dict[str, tuple[type[Attribute], frozenset[str], frozenset[str]]]] = {
    # type name: class, required fields, optional fields
    "integer": (IntegerAttribute, frozenset({"minimum", "maximum"}), frozenset()),
    "decimal": (DecimalAttribute, frozenset({"minimum", "maximum", "places"}), frozenset()),
    "boolean": (BooleanAttribute, frozenset(), frozenset()),
    "float": (FloatAttribute, frozenset({"minimum", "maximum"}), frozenset()),
    "string": (StringAttribute, frozenset(), frozenset({"alphabet", "minimum", "maximum"})),
    "date": (DateAttribute, frozenset({"minimum", "maximum"}), frozenset()),
    "enumeration": (EnumerationAttribute, frozenset({"values"}), frozenset()),
}


def _as_tuple(attributes: Iterable[Attribute]) -> tuple[Attribute, ...]:
    return tuple(attributes)


@frozen
class Schema:
    """An ordered collection of 1 to 31 attributes with different names.

    Raises `ConfigError` on impossible names, numbers of attributes or domains.
    """

    attributes: tuple[Attribute, ...] = field(converter=_as_tuple)
    _index: dict[str, int] = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        _check_number(len(self.attributes), MAX_KNOWN_ATTRIBUTES)
        for name in self.names:
            if not isinstance(name, str) or _NAME_PATTERN.fullmatch(name) is None:
                raise ConfigError("schema", name, "a name of at most 64 letters, digits and _")
            if name in RESERVED_NAMES:
                raise ConfigError("schema", name, "a name that is no word of the language")
            if self.names.count(name) > 1:
                raise ConfigError("schema", name, "a different name for every attribute")
        object.__setattr__(self, "_index", {name: i for i, name in enumerate(self.names)})

    @classmethod
    def from_mapping(
        cls, mapping: Mapping[str, Mapping[str, object]], most: int = MAX_ATTRIBUTES
    ) -> Schema:
        """The schema that plain tables describe, as a TOML file holds them.

        Each key is a name, each value a table with `type` and the fields of that type's domain;
        there are at most so many. Raises `ConfigError` naming the field at fault.
        """
        _check_number(len(mapping), most)
        return cls(tuple(_attribute_from(name, table) for name, table in mapping.items()))

    def to_mapping(self) -> dict[str, dict[str, object]]:
        """Plain tables from which `from_mapping` makes an equal schema."""
        return {attribute.name: _table_of(attribute) for attribute in self.attributes}

    @property
    def names(self) -> tuple[str, ...]:
        """The attribute names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self.attributes)

    def __getitem__(self, name: str) -> Attribute:
        """The attribute of that name; `UnknownAttributeError` if there is none."""
        return self.attributes[self.index(name)]

    def index(self, name: str) -> int:
        """The place of the attribute, from 0; `UnknownAttributeError` if there is none."""
        place = self._index.get(name)
        if place is None:
            near = difflib.get_close_matches(name, self.names, n=1)
            raise UnknownAttributeError(name, near[0] if near else None)
        return place

    def check_event(self, values: Mapping[str, object]) -> dict[str, Value]:
        """The event in canonical form, in the schema's order.

        Any attribute may be absent, but not all of them.
        Departs from the paper: its events have a value for every attribute (Vinifera, Sec. IV-A).
        Raises `UnknownAttributeError`, `WrongValueError`, or `ContentError` for an empty event.
        """
        for name in values:
            self.index(name)
        if not values:
            raise ContentError("", "an event has a value for at least one attribute")
        return {a.name: a.check(values[a.name]) for a in self.attributes if a.name in values}


def _check_number(attributes: int, most: int) -> None:
    if not 1 <= attributes <= most:
        raise ConfigError("schema", f"{attributes} attributes", f"1 to {most} attributes")


def _attribute_from(name: str, table: object) -> Attribute:
    if not isinstance(table, Mapping):
        raise ConfigError(f"schema.{name}", table, "a table")
    type_name = table.get("type")
    if not isinstance(type_name, str) or type_name not in _DOMAIN_FIELDS:
        raise ConfigError(f"schema.{name}.type", type_name, f"one of {', '.join(_DOMAIN_FIELDS)}")
    kind, required, optional = _DOMAIN_FIELDS[type_name]
    given = {key: value for key, value in table.items() if key != "type"}
    for key in given:
        if key not in required | optional:
            known = ", ".join(sorted(required | optional))
            expected = f"only the fields {known} in type {type_name}"
            raise ConfigError(f"schema.{name}.{key}", given[key], expected)
    for key in sorted(required - given.keys()):
        raise ConfigError(f"schema.{name}.{key}", None, f"a value, as type {type_name} needs it")
    return kind(name, **given)


def _table_of(attribute: Attribute) -> dict[str, object]:
    required, optional = _DOMAIN_FIELDS[attribute.type_name][1:]
    fields = {key: getattr(attribute, key) for key in sorted(required | optional)}
    if isinstance(attribute, EnumerationAttribute):
        fields["values"] = list(attribute.values)
    present = {key: value for key, value in fields.items() if value is not None}
    return {"type": attribute.type_name, **present}
