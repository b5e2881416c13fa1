"""The attribute schema (Vinifera, Sec. IV-A), and its versions where it changes.

A schema is an ordered list of attributes A_1 to A_n; an event is a point in the space they span.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
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
from gossamer.protocol.content.limits import MAX_ATTRIBUTES, MAX_KNOWN_ATTRIBUTES, MAX_NAME
from gossamer.protocol.content.values import Kind, Value, canonical, kind_of, literal, parse_date
from gossamer.protocol.kernel.errors import (
    ConfigError,
    ContentError,
    UnknownAttributeError,
    WrongValueError,
)

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


# Schemas that change while events flow: versions in which attributes come, widen and retire.
#
# Goes beyond the paper, whose schema is fixed. An attribute's place in the list of all attributes
# that there ever were is its id: events carry their values by it, and neither a place nor a name is
# used again. So events and subscriptions of one version mean the same in every later one, which has
# more attributes and wider domains. Where events are on the ring follows from the attributes and
# domains of the first version alone (`peer.space`), so that peers of different versions agree on
# it.

FIRST_VERSION: Final = 1
"""Of the schema that a cluster was made with; every change makes the next."""


@frozen
class SchemaVersion:
    """One version of a cluster's schema.

    Attributes:
        number: from 1 on.
        known: all attributes that there were and are, each at the place that is its id.
        retired: of those that events have no more, since which version.
    """

    number: int
    known: Schema
    retired: Mapping[str, int] = field(factory=dict)

    @classmethod
    def first(cls, schema: Schema) -> SchemaVersion:
        """The version that a cluster is made with."""
        return cls(FIRST_VERSION, schema)

    @property
    def active(self) -> Schema:
        """The attributes that events may have."""
        return Schema([one for one in self.known if one.name not in self.retired])

    def check_event(self, values: Mapping[str, object]) -> dict[str, Value]:
        """The event in canonical form, as `Schema.check_event`; nothing of it may be retired."""
        for name in values:
            if name in self.retired:
                since = f"is retired since version {self.retired[name]} of the schema"
                raise ContentError(name, f"attribute {name!r} {since}")
        return self.known.check_event(values)

    def added(self, attribute: Attribute) -> SchemaVersion:
        """The next version, with one attribute more; `ConfigError` if its name was ever used."""
        name = attribute.name
        if name in self.retired:
            since = f"retired since version {self.retired[name]}"
            raise ConfigError(f"schema.{name}", since, "a name that was never used")
        if name in self.known.names:
            raise ConfigError(f"schema.{name}", "there already", "a name that was never used")
        if len(self.known) >= MAX_KNOWN_ATTRIBUTES:
            expected = f"at most {MAX_KNOWN_ATTRIBUTES} attributes, retired ones included"
            raise ConfigError("schema", f"{len(self.known)} attributes", expected)
        known = Schema((*self.known, attribute))
        return SchemaVersion(self.number + 1, known, self.retired)

    def widened(self, attribute: Attribute) -> SchemaVersion:
        """The next version, with an attribute's domain replaced by one that holds all of it.

        Raises `ConfigError` if there is no such attribute in use, or the domain is not wider.
        """
        before = self.in_use(attribute.name)
        if attribute == before or not is_wider(before, attribute):
            raise ConfigError(
                f"schema.{attribute.name}",
                attribute.expected,
                f"more than {before.expected}, of the same type",
            )
        known = [attribute if one.name == attribute.name else one for one in self.known]
        return SchemaVersion(self.number + 1, Schema(known), self.retired)

    def without(self, name: str) -> SchemaVersion:
        """The next version, with an attribute retired.

        Raises `ConfigError` if it is not in use, or no other is.
        """
        self.in_use(name)
        if len(self.known) - len(self.retired) == 1:
            raise ConfigError(f"schema.{name}", "the only attribute", "one of several")
        number = self.number + 1
        return SchemaVersion(number, self.known, {**self.retired, name: number})

    def continues(self, earlier: SchemaVersion) -> bool:
        """Whether this is a later version of the same schema."""
        if self.number <= earlier.number or len(self.known) < len(earlier.known):
            return False
        pairs = zip(earlier.known, self.known, strict=False)
        kept = all(self.retired.get(name) == since for name, since in earlier.retired.items())
        return kept and all(one.name == two.name and is_wider(one, two) for one, two in pairs)

    def in_use(self, name: str) -> Attribute:
        """The attribute of a name; `ConfigError` if there is none, or it is retired."""
        if name not in self.known.names or name in self.retired:
            listed = ", ".join(self.active.names)
            raise ConfigError("schema", name, f"one of the attributes in use: {listed}")
        return self.known[name]


def is_wider(before: Attribute, after: Attribute) -> bool:
    """Whether a domain holds all values of another and orders them alike; the same one does."""
    if type(before) is not type(after):
        return False
    if isinstance(before, EnumerationAttribute):
        assert isinstance(after, EnumerationAttribute)
        return after.values[: len(before.values)] == before.values
    if isinstance(before, BooleanAttribute):
        return True
    if isinstance(before, StringAttribute):
        return _is_wider_text(before, after)
    assert not isinstance(after, EnumerationAttribute | StringAttribute)
    holds: bool = after.minimum <= before.minimum and before.maximum <= after.maximum  # type: ignore[operator]
    if isinstance(before, DecimalAttribute):
        assert isinstance(after, DecimalAttribute)
        return holds and before.places <= after.places
    return holds


def _is_wider_text(before: StringAttribute, after: Attribute) -> bool:
    assert isinstance(after, StringAttribute)
    letters = after.alphabet
    spells = letters is None or (
        before.alphabet is not None and set(before.alphabet) <= set(letters)
    )
    ends = after.maximum is None or (before.maximum is not None and before.maximum <= after.maximum)
    return spells and ends and after.minimum <= before.minimum


def read_leniently(attribute: Attribute, value: object) -> Value:
    """The canonical form of a value that a later version of the attribute may have.

    Raises `WrongValueError` unless it is of the attribute's kind; its domain may be wider.
    """
    try:
        return attribute.check(value)
    except WrongValueError:
        is_date = attribute.kind is Kind.DATE and isinstance(value, str)
        found = parse_date(str(value)) if is_date else canonical(value)
        if found is None or kind_of(found) is not attribute.kind:
            raise
        return found


def table_of(attribute: Attribute) -> dict[str, object]:
    """The plain table of an attribute, as `Schema.to_mapping` gives it, with dates as text."""
    return {
        key: literal(value) if isinstance(value, datetime) else value
        for key, value in Schema([attribute]).to_mapping()[attribute.name].items()
    }


def attribute_of(name: str, table: Mapping[str, object]) -> Attribute:
    """The attribute that a plain table describes; `ConfigError` if it describes none."""
    return Schema.from_mapping({name: table})[name]


def changed(attribute: Attribute, changes: Mapping[str, object]) -> Attribute:
    """An attribute with some fields of its domain replaced; `ConfigError` if one is none."""
    return attribute_of(attribute.name, {**table_of(attribute), **changes})
