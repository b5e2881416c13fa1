"""Schemas: domains are enforced, impossible ones refused, tables read and written, versions."""

from __future__ import annotations

import tomllib
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gossamer.protocol.content import schema
from gossamer.protocol.content.limits import MAX_ATTRIBUTES, MAX_KNOWN_ATTRIBUTES, MAX_PAYLOAD_BYTES
from gossamer.protocol.content.values import (
    UNKNOWN_TYPE,
    Payload,
    canonical,
    literal,
    parse_date,
    prefix_successor,
)
from gossamer.protocol.kernel.errors import (
    ConfigError,
    ContentError,
    UnknownAttributeError,
    WrongValueError,
)

QUOTES = """
[symbol]
type = "enumeration"
values = ["IBM", "HPQ", "GE"]
[price]
type = "float"
minimum = 0
maximum = 1000.5
[volume]
type = "integer"
minimum = 0
maximum = 1_000_000
[name]
type = "string"
alphabet = "ABCabc"
minimum = "A"
[day]
type = "date"
minimum = 2020-01-01
maximum = 2020-12-31T12:00:00Z
[fee]
type = "decimal"
minimum = 0
maximum = 1
places = 2
[urgent]
type = "boolean"
"""


@pytest.fixture
def quotes() -> schema.Schema:
    return schema.Schema.from_mapping(tomllib.loads(QUOTES))


def test_tables_of_a_toml_file_are_read_and_round_trip(quotes: schema.Schema) -> None:
    assert quotes.attributes == (
        schema.EnumerationAttribute("symbol", ("IBM", "HPQ", "GE")),
        schema.FloatAttribute("price", 0, 1000.5),
        schema.IntegerAttribute("volume", 0, 1_000_000),
        schema.StringAttribute("name", alphabet="ABCabc", minimum="A"),
        schema.DateAttribute("day", datetime(2020, 1, 1), datetime(2020, 12, 31, 12)),
        schema.DecimalAttribute("fee", 0, 1, 2),
        schema.BooleanAttribute("urgent"),
    )
    for one in quotes:
        assert schema.attribute_of(one.name, schema.table_of(one)) == one
    assert quotes.index("volume") == 2
    again = schema.Schema.from_mapping(quotes.to_mapping())
    assert (again, hash(again)) == (quotes, hash(quotes))


def test_events_come_back_in_canonical_form_and_schema_order(quotes: schema.Schema) -> None:
    both = {"volume": 5.0, "price": Decimal("80.0")}
    checked = quotes.check_event({"day": date(2020, 1, 31), "name": "Ab", **both, "symbol": "GE"})
    assert list(checked) == ["symbol", "price", "volume", "name", "day"]
    assert checked["volume"] == 5
    assert type(checked["volume"]) is int
    assert checked["day"] == datetime(2020, 1, 31, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("price", "80", "attribute 'price' takes a number from 0 to 1000.5, not the string \"80\""),
        ("price", 1001, "not the integer 1001"),
        ("price", True, "not the boolean True"),
        ("price", float("nan"), "not the number nan"),
        ("price", Decimal("sNaN"), "not the number sNaN"),
        ("price", float("inf"), "not the number inf"),
        ("price", None, "not None of type NoneType"),
        ("volume", 5.5, "takes an integer from 0 to 1000000, not the number 5.5"),
        ("volume", -1, "not the integer -1"),
        ("name", "Ax", 'takes a string of the characters "ABCabc" from "A", not the string "Ax"'),
        ("name", "", 'not the string ""'),
        ("name", b"A", "of type bytes"),
        ("symbol", "XX", 'takes one of the enumeration "IBM", "HPQ", "GE", not the string "XX"'),
        ("symbol", 0, "not the integer 0"),
        ("day", 5, "takes a date from 2020-01-01 to 2020-12-31T12:00:00Z, not the integer 5"),
        ("day", date(2021, 1, 1), "not the date 2021-01-01"),
        ("day", "yesterday", 'not the string "yesterday"'),
    ],
)
def test_values_outside_the_domain_are_refused(
    quotes: schema.Schema, name: str, value: object, message: str
) -> None:
    with pytest.raises(WrongValueError) as caught:
        quotes[name].check(value)
    assert message in str(caught.value)
    assert caught.value.attribute == name


def test_an_event_has_attributes_of_the_schema_which_are_different_and_no_other(
    quotes: schema.Schema,
) -> None:
    event = {"symbol": "GE", "price": 1, "volume": 1, "name": "A", "day": date(2020, 1, 1)}
    assert quotes.check_event(event)["price"] == 1
    with pytest.raises(UnknownAttributeError, match="no attribute 'prize', did you mean 'price'"):
        quotes.check_event({**event, "prize": 1})
    assert quotes.check_event({"volume": 1}) == {"volume": 1}
    with pytest.raises(ContentError, match="a value for at least one attribute"):
        quotes.check_event({})
    with pytest.raises(UnknownAttributeError) as caught:
        quotes["temperature"]
    assert caught.value.suggestion is None
    with pytest.raises(ConfigError, match="a different name"):
        schema.Schema([schema.IntegerAttribute("x", 0, 1), schema.FloatAttribute("x", 0, 1)])


def test_decimals_are_exact_and_booleans_no_numbers() -> None:
    fee = schema.DecimalAttribute("fee", 0, 10**9, 4)
    same = [0.1, Decimal("0.1"), Fraction(1, 10), Decimal("0.1000")]
    assert {fee.check(value) for value in same} == {0.1}
    assert fee.check(Decimal("999999999.9999")) == 999999999.9999
    for wrong in (0.00001, Fraction(1, 3), "0.1", True, 10**9 + 1):
        with pytest.raises(WrongValueError, match="a decimal from 0 to 1000000000 with 4 after"):
            fee.check(wrong)
    with pytest.raises(ConfigError, match="at most 15 digits"):
        schema.DecimalAttribute("fee", 0, 10**12, 4)
    is_open = schema.BooleanAttribute("open")
    assert is_open.check(True) is True
    with pytest.raises(WrongValueError, match="takes true or false, not the integer 1"):
        is_open.check(1)


NUMBER_1 = {"type": "integer", "minimum": 1, "maximum": 1}
EAST, LATER = timezone(timedelta(hours=2)), date(2020, 1, 2)


@pytest.mark.parametrize(
    ("tables", "field"),
    [
        ({}, "schema"),
        ({f"a{i}": NUMBER_1 for i in range(MAX_ATTRIBUTES + 1)}, "schema"),
        *(({name: NUMBER_1}, "schema") for name in ("two words", "and")),
        *(({"x": 5}, "schema.x"), ({"x": {}}, "schema.x.type")),
        ({"x": {"type": ["float"]}}, "schema.x.type"),
        ({"x": {**NUMBER_1, "maximum": 0}}, "schema.x.maximum"),
        ({"x": {"type": "integer", "minimum": 1}}, "schema.x.maximum"),
        ({"x": {"type": "integer", "minimum": True, "maximum": 2}}, "schema.x.minimum"),
        ({"x": {**NUMBER_1, "size": 3}}, "schema.x.size"),
        ({"x": {"type": "float", "minimum": 1, "maximum": 1.0}}, "schema.x.maximum"),
        ({"x": {"type": "float", "minimum": 1, "maximum": float("inf")}}, "schema.x.maximum"),
        ({"x": {"type": "string", "alphabet": ""}}, "schema.x.alphabet"),
        ({"x": {"type": "string", "alphabet": "ab", "minimum": "c"}}, "schema.x.minimum"),
        ({"x": {"type": "string", "minimum": "b", "maximum": "a"}}, "schema.x.maximum"),
        ({"x": {"type": "string", "minimum": "\ud800"}}, "schema.x.minimum"),
        ({"x": {"type": "date", "minimum": 5, "maximum": date(2020, 1, 1)}}, "schema.x.minimum"),
        (
            {"x": {"type": "date", "minimum": LATER, "maximum": date(2020, 1, 1)}},
            "schema.x.maximum",
        ),
        *(
            ({"x": {"type": "enumeration", "values": values}}, "schema.x.values")
            for values in ([], ["a", "a"], "ab", [1])
        ),
    ],
)
def test_impossible_schemas_are_refused(tables: dict[str, dict[str, object]], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        schema.Schema.from_mapping(tables)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((5.0, 5), (-0.0, 0), (Fraction(6, 3), 2), (np.int16(7), 7), ("é", "é")),
        *((Decimal("0.5"), 0.5), (Decimal("0.1"), Fraction(1, 10))),
        (np.float32(0.1), float(np.float32(0.1))),
        *((huge, huge) for huge in (10**400, Fraction(10**400, 3))),
        (date(2020, 1, 1), datetime(2020, 1, 1, tzinfo=UTC)),
        (datetime(2020, 1, 1, 3), datetime(2020, 1, 1, 3, tzinfo=UTC)),
        (datetime(2020, 1, 1, tzinfo=EAST), datetime(2019, 12, 31, 22, tzinfo=UTC)),
    ],
)
def test_equal_values_share_one_canonical_form(value: object, expected: object) -> None:
    form = canonical(value)
    assert form == expected
    assert type(form) is type(expected)


@pytest.mark.parametrize(
    "value",
    [
        *(True, np.True_, float("nan"), float("-inf"), Decimal("Infinity"), 1j, None, "\ud800"),
        datetime.min.replace(tzinfo=EAST),
    ],
)
def test_what_is_no_value_has_no_canonical_form(value: object) -> None:
    assert canonical(value) is None


def test_literals_are_short_dates_strict_and_successors_characters() -> None:
    assert (literal(80), literal(int(1e300)), literal(Fraction(1, 3))) == ("80", "1e+300", "1/3")
    assert literal('a"\\\n\x07') == '"a\\"\\\\\\n\\u0007"'
    assert literal(datetime(2020, 1, 31, tzinfo=UTC)) == "2020-01-31"
    assert literal(datetime(2020, 1, 31, 0, 0, 0, 5, UTC)) == "2020-01-31T00:00:00.000005Z"
    assert parse_date("2020-01-31T12:00+02:00") == datetime(2020, 1, 31, 10, tzinfo=UTC)
    for text in ("2020-02-30", "20200131", "2020-W05-1", "2020-01-31 12:00", "2020-01-31T25:00"):
        assert parse_date(text) is None
    texts = ("ab", "\ud7ff", "a\U0010ffff\U0010ffff", "\U0010ffff", "")
    assert list(map(prefix_successor, texts)) == ["ac", "\ue000", "b", None, None]


def test_bytes_of_any_type_are_taken() -> None:
    named = ("image/png", "text/plain; charset=utf-8", "application/vnd.a+json;v=1")
    for content_type in (UNKNOWN_TYPE, *named):
        assert Payload(bytes(range(256)), content_type).content_type == content_type
    assert Payload(b"").content_type == UNKNOWN_TYPE


@pytest.mark.parametrize(
    ("data", "content_type", "words"),
    [
        (b"x" * (MAX_PAYLOAD_BYTES + 1), UNKNOWN_TYPE, "takes 49152 bytes, not 49153"),
        ("text", UNKNOWN_TYPE, "is bytes, not str"),
        *(
            (b"", wrong, "is no content type, such as 'image/png'")
            for wrong in ("", "text", "text/", "text/plain\n", "a/" + "b" * 126, 5)
        ),
    ],
)
def test_anything_else_is_refused(data: Any, content_type: Any, words: str) -> None:
    with pytest.raises(ContentError, match=words):
        Payload(data, content_type)


def first_version(*attributes: schema.Attribute) -> schema.SchemaVersion:
    return schema.SchemaVersion.first(schema.Schema(attributes))


PRICE = schema.FloatAttribute("price", 0, 100)
FIRST = first_version(PRICE, schema.EnumerationAttribute("side", ("buy", "sell")))
DAY = datetime(2020, 1, 1, tzinfo=UTC)


def test_an_attribute_comes_behind_all_others_until_there_is_no_room() -> None:
    later = FIRST.added(schema.BooleanAttribute("open"))
    assert (later.number, later.known.names) == (2, ("price", "side", "open"))
    assert later.continues(FIRST)
    assert not FIRST.continues(later)
    assert later.check_event({"open": True}) == {"open": True}
    version = FIRST
    for number in range(len(FIRST.known), MAX_KNOWN_ATTRIBUTES):
        version = version.added(schema.BooleanAttribute(f"flag{number}"))
    with pytest.raises(ConfigError, match=r"at most 31 attributes, retired ones included"):
        version.added(schema.BooleanAttribute("one_more"))


def test_a_retired_attribute_keeps_its_place_and_other_schemas_are_no_continuation() -> None:
    later = FIRST.without("price")
    assert later.known == FIRST.known
    assert later.active.names == ("side",)
    with pytest.raises(ContentError, match="'price' is retired since version 2 of the schema"):
        later.check_event({"price": 5})
    with pytest.raises(ConfigError, match="retired since version 2"):
        later.added(schema.FloatAttribute("price", 0, 1))
    with pytest.raises(ConfigError, match="expected one of the attributes in use: side"):
        later.without("price")
    with pytest.raises(ConfigError, match="expected one of several"):
        later.without("side")
    later = FIRST.added(schema.BooleanAttribute("open")).without("price")
    other = first_version(schema.FloatAttribute("cost", 0, 100))
    assert later.continues(FIRST)
    assert not other.added(schema.BooleanAttribute("open")).continues(FIRST)
    assert not schema.SchemaVersion(4, later.known, {}).continues(later)


@pytest.mark.parametrize(
    ("before", "changes"),
    [
        (schema.FloatAttribute("a", 0, 1), {"maximum": 2}),
        (schema.FloatAttribute("a", 0, 1), {"minimum": -1.5}),
        (schema.IntegerAttribute("a", 0, 1), {"minimum": -1, "maximum": 7}),
        (schema.DecimalAttribute("a", 0, 1, 2), {"places": 3}),
        (schema.DateAttribute("a", DAY, DAY), {"maximum": "2021-01-01"}),
        (schema.StringAttribute("a", "ab", "", "b"), {"alphabet": "abc", "maximum": "c"}),
        (schema.EnumerationAttribute("a", ("x",)), {"values": ["x", "y"]}),
    ],
)
def test_domains_become_wider_only(before: schema.Attribute, changes: dict[str, object]) -> None:
    wider = schema.changed(before, changes)
    narrow, wide = first_version(before), first_version(wider)
    assert narrow.widened(wider).known == wide.known
    assert narrow.widened(wider).continues(narrow)
    for not_wider in (before, wider):
        with pytest.raises(ConfigError, match="expected more than"):
            wide.widened(not_wider)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        tuple(schema.EnumerationAttribute("a", values) for values in (("x", "y"), ("y", "x", "z"))),
        (schema.IntegerAttribute("a", 0, 1), schema.FloatAttribute("a", 0, 2)),
        (schema.StringAttribute("a"), schema.StringAttribute("a", "abc")),
        (schema.BooleanAttribute("a"), schema.BooleanAttribute("a")),
    ],
)
def test_values_keep_their_meaning(before: schema.Attribute, after: schema.Attribute) -> None:
    with pytest.raises(ConfigError):
        first_version(before).widened(after)


def test_a_later_value_is_read_by_its_kind() -> None:
    price, side = FIRST.known
    assert schema.read_leniently(price, 5000) == 5000
    assert schema.read_leniently(side, "short") == "short"
    read = schema.read_leniently(schema.DateAttribute("day", DAY, DAY), "2021-02-03")
    assert isinstance(read, datetime)
    assert read > DAY
    for wrong in ("dear", True):
        with pytest.raises(WrongValueError):
            schema.read_leniently(price, wrong)
