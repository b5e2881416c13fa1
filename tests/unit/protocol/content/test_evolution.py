"""Versions of a schema: what may change, and what stays the same for events and subscriptions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gossamer.protocol.content import evolution
from gossamer.protocol.content.errors import ContentError, WrongValueError
from gossamer.protocol.content.schema import (
    MAX_KNOWN_ATTRIBUTES,
    Attribute,
    BooleanAttribute,
    DateAttribute,
    DecimalAttribute,
    EnumerationAttribute,
    FloatAttribute,
    IntegerAttribute,
    Schema,
    StringAttribute,
)
from gossamer.protocol.kernel.errors import ConfigError

FIRST = evolution.SchemaVersion.first(
    Schema([FloatAttribute("price", 0, 100), EnumerationAttribute("side", ("buy", "sell"))])
)
DAY = datetime(2020, 1, 1, tzinfo=UTC)


def test_an_attribute_comes_behind_all_others() -> None:
    later = FIRST.added(BooleanAttribute("open"))
    assert (later.number, later.known.names) == (2, ("price", "side", "open"))
    assert later.continues(FIRST)
    assert not FIRST.continues(later)
    assert later.check_event({"open": True}) == {"open": True}


def test_a_retired_attribute_keeps_its_place_and_its_name() -> None:
    later = FIRST.without("price")
    assert later.known == FIRST.known
    assert later.active.names == ("side",)
    with pytest.raises(ContentError, match="'price' is retired since version 2 of the schema"):
        later.check_event({"price": 5})
    with pytest.raises(ConfigError, match="retired since version 2"):
        later.added(FloatAttribute("price", 0, 1))
    with pytest.raises(ConfigError, match="expected one of the attributes in use: side"):
        later.without("price")
    with pytest.raises(ConfigError, match="expected one of several"):
        later.without("side")


@pytest.mark.parametrize(
    ("before", "changes"),
    [
        (FloatAttribute("a", 0, 1), {"maximum": 2}),
        (FloatAttribute("a", 0, 1), {"minimum": -1.5}),
        (IntegerAttribute("a", 0, 1), {"minimum": -1, "maximum": 7}),
        (DecimalAttribute("a", 0, 1, 2), {"places": 3}),
        (DateAttribute("a", DAY, DAY), {"maximum": "2021-01-01"}),
        (StringAttribute("a", "ab", "", "b"), {"alphabet": "abc", "maximum": "c"}),
        (EnumerationAttribute("a", ("x",)), {"values": ["x", "y"]}),
    ],
)
def test_domains_become_wider_and_never_narrower(
    before: Attribute, changes: dict[str, object]
) -> None:
    wider = evolution.changed(before, changes)
    narrow, wide = (evolution.SchemaVersion.first(Schema([one])) for one in (before, wider))
    assert narrow.widened(wider).known == wide.known
    assert narrow.widened(wider).continues(narrow)
    with pytest.raises(ConfigError, match="expected more than"):
        wide.widened(before)
    with pytest.raises(ConfigError, match="expected more than"):
        wide.widened(wider)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (EnumerationAttribute("a", ("x", "y")), EnumerationAttribute("a", ("y", "x", "z"))),
        (IntegerAttribute("a", 0, 1), FloatAttribute("a", 0, 2)),
        (StringAttribute("a"), StringAttribute("a", "abc")),
        (BooleanAttribute("a"), BooleanAttribute("a")),
    ],
)
def test_what_would_change_the_meaning_of_values_is_refused(
    before: Attribute, after: Attribute
) -> None:
    with pytest.raises(ConfigError):
        evolution.SchemaVersion.first(Schema([before])).widened(after)


def test_other_schemas_are_no_continuation() -> None:
    later = FIRST.added(BooleanAttribute("open")).without("price")
    other = evolution.SchemaVersion.first(Schema([FloatAttribute("cost", 0, 100)]))
    assert later.continues(FIRST)
    assert not other.added(BooleanAttribute("open")).continues(FIRST)
    reused = evolution.SchemaVersion(4, later.known, {})
    assert not reused.continues(later)


def test_there_is_an_end_to_adding() -> None:
    version = FIRST
    for number in range(len(FIRST.known), MAX_KNOWN_ATTRIBUTES):
        version = version.added(BooleanAttribute(f"flag{number}"))
    with pytest.raises(ConfigError, match=r"at most 31 attributes, retired ones included"):
        version.added(BooleanAttribute("one_more"))


def test_a_later_value_is_read_by_its_kind() -> None:
    price, side = FIRST.known
    assert evolution.read_leniently(price, 5000) == 5000
    assert evolution.read_leniently(side, "short") == "short"
    read = evolution.read_leniently(DateAttribute("day", DAY, DAY), "2021-02-03")
    assert isinstance(read, datetime)
    assert read > DAY
    with pytest.raises(WrongValueError):
        evolution.read_leniently(price, "dear")
    with pytest.raises(WrongValueError):
        evolution.read_leniently(price, True)


@pytest.mark.parametrize(
    "attribute",
    [
        FloatAttribute("a", 0, 1.5),
        DecimalAttribute("a", 0, 1, 2),
        BooleanAttribute("a"),
        DateAttribute("a", DAY, DAY),
        StringAttribute("a", "ab"),
        EnumerationAttribute("a", ("x", "y")),
    ],
)
def test_tables_give_back_the_attribute(attribute: Attribute) -> None:
    assert evolution.attribute_of("a", evolution.table_of(attribute)) == attribute
