"""Schemas that change while events flow: versions in which attributes come, widen and retire.

Goes beyond the paper, whose schema is fixed. An attribute's place in the list of all attributes
that there ever were is its id: events carry their values by it, and neither a place nor a name is
used again. So events and subscriptions of one version mean the same in every later one, which
has more attributes and wider domains. Where events are on the ring follows from the attributes and
domains of the first version alone (`peer.space`), so that peers of different versions agree on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from attrs import field, frozen

from gossamer.protocol.content.attributes import (
    Attribute,
    BooleanAttribute,
    DecimalAttribute,
    EnumerationAttribute,
    StringAttribute,
)
from gossamer.protocol.content.errors import ContentError, WrongValueError
from gossamer.protocol.content.limits import MAX_KNOWN_ATTRIBUTES
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.content.values import Kind, Value, canonical, kind_of, literal, parse_date
from gossamer.protocol.kernel.errors import ConfigError

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
