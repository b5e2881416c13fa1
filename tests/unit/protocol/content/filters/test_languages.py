"""Both text forms of filters: every form they read, and where they point when they cannot."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction

import pytest

from gossamer.protocol.content import filters as api
from gossamer.protocol.content.filters.language import MAX_COMPARISONS
from gossamer.protocol.content.grammar import MAX_TEXT, Comparison, Operator
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.kernel.errors import ContentError, ExpressionError, WrongValueError
from support.refusals import check_refused

SCHEMA = Schema.from_mapping(
    {
        "symbol": {"type": "enumeration", "values": ["IBM", "HPQ"]},
        "price": {"type": "float", "minimum": 0, "maximum": 1000},
        "day": {"type": "date", "minimum": "2020-01-01", "maximum": "2020-12-31"},
    }
)


LONG_NUMBER, TOO_LONG = "9" * 1001, "a number of more than 1000 digits"
TOO_MANY = "expected at most 64 'not' in a row"
VARIABLE = "a variable means something in composite subscriptions only"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (
            'symbol == "IBM" and price >= 80 and price < 120.5 and name startswith "A"',
            'name startswith "A" and price >= 80 and price < 120.5 and symbol == "IBM"',
        ),
        ("80 <= price < 120", "price >= 80 and price < 120"),
        ("price in (80, 120]", "price > 80 and price <= 120"),
        ("price != 5 and price != 5.0", "price != 5"),
        ("price != 5 and price >= 5", "price > 5"),
        ("not price < 80", "price >= 80"),
        ("not price == 80", "price != 80"),
        ("price > 80 and price > 90.0 and price <= inf", "price > 90"),
        ("price >= -inf", "price >= -inf"),
        ("price < inf", "price < inf"),
        ("present(price) and price > 5", "price > 5"),
        ("present(price)", "present(price)"),
        ("urgent == true", "urgent == true"),
        ("urgent != true", "urgent == false"),
        ("true == urgent", "urgent == true"),
        ('name endswith "s" and name endswith "bus"', 'name endswith "bus"'),
        ('name contains "u" and name endswith "bus"', 'name endswith "bus"'),
        ('name >= "b" and name < "c"', 'name startswith "b"'),
        ('not name contains "x"', 'name not contains "x"'),
        ('name not startswith "x"', 'name not startswith "x"'),
        ('name not endswith "x" and name > "m"', 'name > "m" and name not endswith "x"'),
        ('name startswith "bus" and name endswith "s" and name == "bus"', 'name == "bus"'),
        ("day > 2020-01-31", "day > 2020-01-31"),
        ("`odd name` > 5 and `and` < 3", "`and` < 3 and `odd name` > 5"),
    ],
)
def test_forms_of_gossamer(text: str, canonical: str) -> None:
    assert api.to_text(api.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("[price,<=,1/3]", "price <= 1/3"),
        ("[s,isPresent,'any'],[t,isPresent]", 's >= "" and present(t)'),
        ("[s,eq,'it\\'s, \"so\" [x]']", r"""s == "it's, \"so\" [x]" """),
        ("['odd, name',eq,true]", "`odd, name` == true"),
        ("[a-b.c,=,1]", "`a-b.c` == 1"),
    ],
)
def test_forms_beyond_those_of_padres(text: str, same: str) -> None:
    assert api.parse(text) == api.parse(same)


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("", 1, "expected an attribute name, found the end"),
        ("price > 5 and price < 3", 15, "price > 5 and price < 3 contradict each other"),
        ("price > 5 and price <= 5", 15, "contradict each other: no value satisfies both"),
        ("x >= 5 and x <= 5 and x != 5", 23, "x == 5 and x != 5 contradict each other"),
        ("b != true and b != false", 15, "contradict each other"),
        ('s startswith "a" and s < "a"', 22, "contradict each other"),
        ('s endswith "a" and s endswith "b"', 20, "contradict each other"),
        ('s not contains "a" and s endswith "cab"', 24, "contradict each other"),
        ("price > inf", 1, "price > inf can never hold"),
        (
            'price > 5 and price < "a"',
            23,
            "'price' takes a number in its other predicates, not the",
        ),
        ("price startswith 5", 18, "'price' takes a string for startswith, not the integer 5"),
        ("b > true", 5, "takes a value that has an order for >, not the boolean True"),
        ("price = 5", 7, "expected a comparison (== != < <= > >="),
        ("price ~= 5", 7, "expected a comparison"),
        ("price not > 5", 11, "expected startswith, endswith or contains, found '>'"),
        ("not present(price)", 5, "a missing attribute never matches"),
        ("not 5 < price < 6", 5, "a range cannot be negated"),
        ("present price", 9, "expected '(', found 'price'"),
        ("true and price > 5", 6, "expected a comparison"),
        ("price > $X", 9, VARIABLE),
        ("`price > 5", 1, "unexpected character '`'"),
        ("[", 2, "expected a name, an operator or a value, found the end"),
        ("[price,>", 9, "expected ']', found the end"),
        ("[price]", 7, "expected ',', found ']'"),
        ("[price,>]", 8, "> needs a value"),
        ("[price,~,80]", 8, "unknown operator '~', there are eq neq str-lt"),
        ("[class,equals,'stock']", 8, "unknown operator 'equals'"),
        ("[price,>,80],[price,<,70]", 15, "price > 80 and price < 70 contradict each other"),
        ("[price,>,'80']", 10, "attribute 'price': > takes a number, not '80'"),
        ("[class,eq,80]", 11, "attribute 'class': eq takes a string, not 80"),
        ("[class,eq,a.b]", 11, "expected a number, a word or a string in quotes, found 'a.b'"),
        ("[price,>,80],[price,eq,'a']", 24, "'price' takes a number in its other predicates"),
        ("[price,>,80] [x,=,1]", 14, "expected ',', ';' or the end, found '['"),
        ("[price,>,80],", 14, "expected '[', found the end"),
        ("[price,>,80,9]", 12, "expected ']', found ','"),
        *((f"[price,=,{variable}]", 10, VARIABLE) for variable in ("$X", "$I$X")),
        *(("[s,eq,'$S$X']", 7, VARIABLE), ("[s,isPresent,$S$X]", 14, VARIABLE)),
        ("[s,eq,$I$X]", 7, "attribute 's': eq takes a string, not $I$X"),
        ("[price,>,1/0]", 10, "1/0 is not a finite number"),
        (r"[class,eq,'a\q']", 11, r"unknown escape \q"),
        ("not " * 65 + "x > 5", 261, f"{TOO_MANY}, found 'x'"),
        *(("not " * count + "x > 5", 261, f"{TOO_MANY}, found 'not'") for count in (1000, 1020)),
        *((f"x > {sign}{LONG_NUMBER}", 5, TOO_LONG) for sign in ("", "-", "1/")),
        (f"x > {'9' * 4000}", 5, TOO_LONG),
        (f"[x,>,{LONG_NUMBER}]", 6, TOO_LONG),
        ("(" * 4000, 1, "expected an attribute name, found '('"),
        ("x in " + "[" * 4000, 7, "expected a number, date"),
        ("[" * 4000, 2, "expected a name, an operator or a value, found '['"),
        ("`\ud800` > 1", 1, "a lone surrogate is no character"),
    ],
)
def test_errors_point_at_the_fault(text: str, column: int, reason: str) -> None:
    check_refused(api.parse, text, column, reason)


def check_schema(text: str, column: int, reason: str) -> None:
    check_refused(lambda refused: api.parse(refused, SCHEMA), text, column, reason)


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("prise > 5", 1, "there is no attribute 'prise', did you mean 'price'?"),
        ('price == "IBM"', 10, "'price' takes a number, not the string \"IBM\""),
        ('symbol == "SAP"', 11, 'one of the enumeration "IBM", "HPQ"'),
        ("[prise,>,5]", 2, "there is no attribute 'prise'"),
    ],
)
def test_a_schema_checks_names_and_types(text: str, column: int, reason: str) -> None:
    check_schema(text, column, reason)
    api.parse(text)


def test_a_schema_says_what_is_present_and_reads_dates() -> None:
    text = "[symbol,isPresent,'any'],[price,isPresent,100],[day,isPresent,'any']"
    assert api.parse(text, SCHEMA) == api.parse(
        "present(symbol) and present(price) and present(day)", SCHEMA
    )
    check_schema("[price,isPresent,'any']", 18, "attribute 'price' takes a number")
    check_schema("[symbol,isPresent,1]", 19, "not a number")
    wanted = api.parse('day > "2020-01-31" and present(symbol)', SCHEMA)
    assert api.to_text(wanted) == "day > 2020-01-31 and present(symbol)"


def test_publications_in_both_languages() -> None:
    expected = {"class": "stock", "price": 81.5, "urgent": True, "top": math.inf}
    text = 'class = "stock", price = 81.5, urgent = true, top = inf'
    assert (api.parse_publication(text), api.publication_to_text(expected)) == (expected, text)
    assert api.parse_publication("[class,'stock'],[price,81.5],[urgent,true],[top,inf]") == expected
    plain = {"price": 81.5, "class": "stock", "volume": 1000}
    assert api.publication_to_padres(plain) == "[class,'stock'],[price,81.5],[volume,1000]"


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("price 5", 7, "expected '=', found '5'"),
        ("price = $X", 9, "expected a number"),
        ("[price,$X]", 8, "expected a number"),
        ("price = 5, price = 6", 12, "attribute 'price' has a value already"),
        ("price = 5 volume = 6", 11, "expected ',', found 'volume'"),
        ("[price,5],[price,6]", 12, "attribute 'price' has a value already"),
        ("[price,>,5]", 9, "expected ']', found ','"),
    ],
)
def test_errors_in_publications_point_at_the_fault(text: str, column: int, reason: str) -> None:
    check_refused(api.parse_publication, text, column, reason)


def test_what_is_none_is_refused_numbers_unify_exactly_and_kinds_never_mix() -> None:
    with pytest.raises(WrongValueError, match="'price' takes a number, string, date or boolean"):
        api.exact_publication({"price": math.nan})
    assert not api.matches(api.parse("present(price)"), {"price": math.nan})
    assert not api.conforms({"price": math.nan}, api.parse("present(price)"))
    assert not api.matches(api.parse("x != 5"), {"x": "a"})
    assert not api.matches(api.parse("x == 1"), {"x": True})
    assert not api.matches(api.parse("x == true"), {"x": 1})
    assert not api.intersects(api.parse("x == 1"), api.parse("x == true"))
    assert api.covers(api.parse("present(x)"), api.parse("x == true"))
    assert api.parse("x == 80") == api.parse("x == 80.0") == api.parse("x == 8e1")
    above = api.parse(f"x > {2**53}")
    assert api.matches(above, {"x": 2**53 + 1})
    assert not api.matches(above, {"x": float(2**53)})
    assert not api.intersects(above, api.parse(f"x < {2**53 + 1} and x <= {2**53}"))
    assert api.matches(api.parse("x > 1e300"), {"x": math.inf})


def test_length_and_number_are_bounded_what_is_long_is_read_and_negations_cancel_out() -> None:
    for text in (" " * MAX_TEXT + "x > 5", "[x,>,5]" + " " * MAX_TEXT):
        with pytest.raises(ExpressionError, match="more than the 4096 allowed"):
            api.parse(text)
    most = ["x > 5"] * MAX_COMPARISONS
    assert api.to_text(api.parse(" and ".join(most))) == "x > 5"
    with pytest.raises(ExpressionError, match="more than 256 comparisons"):
        api.parse(" and ".join([*most, "x > 5"]))
    assert api.parse("not " * 64 + "x > 5") == api.parse("x > 5")
    assert api.parse("not " * 63 + "x > 5") == api.parse("x <= 5")
    assert api.parse(f"x > {'0' * 1000}{'9' * 500}") == api.parse(f"x > {'9' * 500}")
    for value in (10**500 - 1, Fraction(1, 10**500 - 1), 5e-324, 2**1023):
        publication = api.exact_publication({"x": value})
        assert api.parse_publication(api.publication_to_text(publication)) == publication


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *((huge, "the integer of more than 1000 digits") for huge in (10**5000, -(10**5000))),
        (Fraction(10**5000, 3), "the number of more than 1000 digits"),
        *((Decimal(f"1e{sign}999999999"), f"the number 1E{sign}999999999") for sign in "+-"),
        ([10**5000], "[a whole number of 16610 bits] of type list"),
    ],
    ids=["huge", "negative", "fraction", "exponent", "small", "list"],
)
def test_numbers_too_long_to_write_are_no_values(value: object, shown: str) -> None:
    with pytest.raises(WrongValueError) as caught:
        api.exact_publication({"x": value})
    assert str(caught.value).endswith(f"takes a number, string, date or boolean, not {shown}")
    with pytest.raises(WrongValueError):
        api.Filter.of([Comparison("x", Operator.EQUAL, value)])


def test_filters_survive_pickling_and_print_as_their_text_unless_names_cannot_be_quoted() -> None:
    wanted = api.parse('s >= "a" and s not contains "b" and x != 5 and day > 2020-01-31')
    again = pickle.loads(pickle.dumps(wanted))
    assert (again, hash(again)) == (wanted, hash(wanted))
    assert again.matches({"s": "c", "x": 6, "day": "no date"}) is False
    wanted = api.parse("[symbol,eq,IBM],[price,<,120.5]")
    assert str(wanted) == 'price < 120.5 and symbol == "IBM"' == api.to_text(wanted)
    assert repr([wanted]) == '[<Filter price < 120.5 and symbol == "IBM">]'
    assert str(api.parse("[a`b,=,1]")) == "'a`b' == 1"
    with pytest.raises(ContentError, match="cannot be written between backquotes"):
        api.to_text(api.parse("[a`b,=,1]"))


@pytest.mark.parametrize(
    ("text", "padres"),
    [
        ('class == "" and x == 80.0', "[class,eq,''],[x,=,80]"),
        ('class == "a" and x < 1e20', "[class,eq,'a'],[x,<,100000000000000000000.0]"),
        ('class == "a" and x < 1e-7', "[class,eq,'a'],[x,<,0.0000001]"),
        ('class == "a" and s contains "[b] $"', "[class,eq,'a'],[s,str-contains,'[b] $']"),
    ],
)
def test_what_padres_takes_is_written(text: str, padres: str) -> None:
    wanted = api.parse(text)
    assert (api.to_padres(wanted), api.parse(padres)) == (padres, wanted)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x > 5", 'PADRES takes what is of one class only, expected class == "..."'),
        ("class == 5", "PADRES takes what is of one class only"),
        ('class != "a"', "PADRES takes what is of one class only"),
        ('class == "a" and s not contains "a"', "PADRES has no operator for 'not contains'"),
        (
            'class == "a" and 80 <= x < 120',
            "PADRES takes one predicate on an attribute, not x >= 80 and x < 120",
        ),
        ('class == "a" and present(x)', "presence of a number or of a string, not of either"),
        (
            'class == "a" and x == true',
            "attribute 'x': PADRES has numbers and strings only, not true",
        ),
        ('class == "a" and x < 2020-01-31', "numbers and strings only, not 2020-01-31"),
        ('class == "a" and x < inf', "PADRES has 64-bit numbers only, not inf"),
        ('class == "a" and x == 1/3', "PADRES has 64-bit numbers only, not 1/3"),
        ('class == "a" and x == 9223372036854775809', "64-bit numbers only"),
        ('class == "a" and s == "$S$X"', """PADRES has no strings such as "$S$X\""""),
        ('class == "a" and s == "it\'s"', "attribute 's': PADRES has no strings such as"),
        ('class == "a" and `odd name` > 1', "PADRES has no attribute named 'odd name'"),
        ('class == "a" and `eq` > 1', "PADRES has no attribute named 'eq'"),
    ],
)
def test_what_padres_cannot_say_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ContentError) as caught:
        api.to_padres(api.parse(text))
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    "values", [{"price": 1}, {"class": 1}, {"class": "a", "x": True}, {"class": "a", "x": math.inf}]
)
def test_publications_that_padres_cannot_say_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ContentError, match="PADRES"):
        api.publication_to_padres(api.exact_publication(values))


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("present(x)", "x > 5", api.Relation.COVERS),
        ("x > 5", "x > 5 and y > 5", api.Relation.COVERED_BY),
        ("x > 5 and y > 5", "x > 7", api.Relation.COVERS),
        ("x >= 5", "x >= 5.0", api.Relation.EQUAL),
        ("x > 5 and y > 5", "x > 7 and y > 3", api.Relation.INTERSECTS),
        ("x > 5 and y > 5", "x < 3 and y > 6", api.Relation.INTERSECTS),
        ("x > 5", "y > 5", api.Relation.DISJOINT),
        ("x > 5", "x < 5", api.Relation.DISJOINT),
    ],
)
def test_advertisements_relate(one: str, other: str, found: api.Relation) -> None:
    assert api.advertisement_relation(api.parse(one), api.parse(other)) is found
    both = {api.Relation.COVERS, api.Relation.COVERED_BY}
    turned = (both - {found}).pop() if found in both else found
    assert api.advertisement_relation(api.parse(other), api.parse(one)) is turned
