"""PADRES' grammar, a row for each construct, both ways; composites, expressions and faults."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from gossamer.protocol.content import filters as api
from gossamer.protocol.content import schema
from gossamer.protocol.content.attributes import FloatAttribute
from gossamer.protocol.content.filters.composite import (
    MAX_ALTERNATIVES,
    MAX_PARTS,
    Composite,
    Part,
    composite_padres,
    composite_text,
    parse_composite,
)
from gossamer.protocol.content.filters.composite import MAX_DEPTH as MAX_BRACES
from gossamer.protocol.content.filters.expressions import MAX_DEPTH, parse_expression
from gossamer.protocol.content.matching.composite_matcher import CompositeMatch, CompositeMatcher
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.kernel.errors import ContentError, ExpressionError
from support import padres_grammar as padres
from support.refusals import check_refused

JOIN = '{class == "stock" and price == $X} & {class == "order" and limit == $X}'


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("{a == 1}", "{a == 1}"),
        ("{{a == 1}&{b == 2}||{c == 3}}", "{a == 1} & {b == 2} || {c == 3}"),
        ("{a == 1}&{{b == 2}||{c == 3}}", "{a == 1} & {b == 2} || {a == 1} & {c == 3}"),
        ("{{{a == 1}}}", "{a == 1}"),
        ("{[class,eq,'}'],[price,=,$X]}", '{class == "}" and price == $X}'),
        ("{$X == price and price > 5}", "{price > 5 and price == $X}"),
        ("{`odd}name` == $X}", "{`odd}name` == $X}"),
        (JOIN, JOIN),
        ("{a == 1}followed  by{b == 2}", "{a == 1} -> {b == 2}"),
        ("{a == 1}->{{b == 2}->{c == 3}}", "{a == 1} -> {b == 2} -> {c == 3}"),
        ("{a == 1} & {b == 2} -> {c == 3}", "{a == 1} & {b == 2} -> {c == 3}"),
        ("{a == 1} & {{b == 2} -> {c == 3}}", "{a == 1} & {{b == 2} -> {c == 3}}"),
        ("{a == 1} -> {{b == 2} || {c == 3}}", "{a == 1} -> {b == 2} || {a == 1} -> {c == 3}"),
        ("{[a,=,1]} -> {[b,=,2]} & {[c,=,3]}", "{{a == 1} -> {b == 2}} & {c == 3}"),
    ],
)
def test_forms_of_composites(text: str, canonical: str) -> None:
    composite = parse_composite(text)
    assert (composite_text(composite), parse_composite(canonical)) == (canonical, composite)


TYPED = (
    '{class == "stock" and price >= -inf and price == $X} & '
    '{class == "order" and name >= "" and name == $Y}'
)


@pytest.mark.parametrize(
    ("text", "padres"),
    [
        ('{class == "a"}', "{{[class,eq,'a']}}"),
        (
            '{class == "a"} & {class == "b"} & {class == "c"}',
            "{{{[class,eq,'a']}&{[class,eq,'b']}}&{[class,eq,'c']}}",
        ),
        (
            '{class == "a"} || {class == "b"} & {class == "c"}',
            "{{[class,eq,'a']}||{{[class,eq,'b']}&{[class,eq,'c']}}}",
        ),
        (TYPED, "{{[class,eq,'stock'],[price,=,$I$X]}&{[class,eq,'order'],[name,eq,$S$Y]}}"),
    ],
)
def test_forms_of_composites_in_padres(text: str, padres: str) -> None:
    composite = parse_composite(text)
    assert (composite_padres(composite), parse_composite(padres)) == (padres, composite)
    assert parse_composite(padres.replace("$I$X", "'$F$X'")) == composite


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (JOIN, "PADRES has variables for numbers and for strings"),
        ('{class == "a" and x > 5 and x == $X}', "no other predicate beside one"),
        ('{class == "a" and x >= -inf and x == $X and x == $Y}', "'x' is several variables"),
        ('{class == "a" and s >= "" and s == $X} & {x > 1}', "of one class only"),
        ("{class == $X}", "of one class only"),
        ('{class == "a"} -> {class == "b"}', "PADRES has no order of publications"),
        ('{class == "a" and s == "}"}', "PADRES takes braces in strings for those of composite"),
    ],
)
def test_composites_that_padres_cannot_say_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ContentError) as caught:
        composite_padres(parse_composite(text))
    assert reason in str(caught.value)


def test_what_cannot_be_written_or_held_is_refused() -> None:
    parts = parse_composite("{a == 1} & {b == 1} & {c == 1} & {d == 1}").alternatives
    composite = Composite(parts, (frozenset({(0, 2), (1, 2), (1, 3)}),))
    with pytest.raises(ContentError, match="cannot be said by '&' and '->'"):
        composite_text(composite)
    with pytest.raises(ExpressionError, match="more than the 262144 allowed"):
        parse_composite("{a == 1}" + " " * (1 << 18))
    part = Part(parse_composite(f'{{a == "{"x" * 4000}"}}').alternatives[0][0].filter)
    composite = Composite(((part,) * 2,) * MAX_ALTERNATIVES)
    with pytest.raises(ContentError, match="more than 262144"):
        composite_text(composite)
    matcher = CompositeMatcher()
    with pytest.raises(ContentError, match="the window is 0, expected more than 0"):
        matcher.add(parse_composite(JOIN), window=0)
    with pytest.raises(ContentError, match="no composite subscription has the id 7"):
        matcher.remove(7)


def test_a_schema_is_held_against_every_part() -> None:
    schema = Schema((FloatAttribute("price", 0, 100),))
    assert parse_composite("{price > 5} -> {price == $X}", schema)
    with pytest.raises(ExpressionError, match="'size'") as caught:
        parse_composite("{price > 5} -> {size == 3}", schema)
    assert caught.value.column == 17


def names(found: list[CompositeMatch]) -> list[tuple[object, ...]]:
    return [match.publications for match in found]


def test_a_variable_has_one_value_and_what_expires_is_counted() -> None:
    matcher = CompositeMatcher()
    matcher.add(parse_composite("{low == $X and high == $X}"), window=1)
    assert matcher.step(0, {"low": 1, "high": True}, "a") == []
    assert names(matcher.step(0, {"low": 1, "high": 1.0}, "b")) == [("b",)]
    assert matcher.waiting == 0
    matcher.add(parse_composite(JOIN), window=10)
    matcher.step(1, {"class": "stock", "price": 80}, "c")
    for time, expired in ((11, 0), (12, 1)):
        matcher.step(time, {}, time)
        assert matcher.expired == expired


def test_what_waits_and_what_matches_is_bounded_and_counted() -> None:
    matcher = CompositeMatcher(most_waiting=3, most_matches=2)
    first = matcher.add(parse_composite("{a == 1} & {b == 1}"), window=100)
    second = matcher.add(parse_composite("{a == 1} & {c == 1}"), window=5)
    matcher.add(parse_composite("{c == 1} & {a == 1}"), window=5)
    for time in range(3):
        matcher.step(time, {"a": 1}, time)
    assert (matcher.waiting, matcher.dropped, matcher.expired) == (3, 3, 0)
    assert names(matcher.step(3, {"c": 1}, "c")) == []  # for it the last one had to go
    assert (matcher.waiting, matcher.dropped) == (3, 4)
    matcher.step(3, {"a": 1}, 3)
    matcher.remove(second)
    assert len(matcher) == 2
    assert matcher.waiting <= 3
    matcher.remove(first)
    matcher.remove(2)
    assert (matcher.waiting, matcher.step(200, {"a": 1}, 4)) == (0, [])
    matcher = CompositeMatcher(most_matches=2)
    matcher.add(parse_composite("{a == 1} & {b == 1}"), window=100)
    for time in range(3):
        matcher.step(time, {"a": 1}, time)
    assert names(matcher.step(3, {"b": 1}, "b")) == [(0, "b"), (1, "b")]
    assert matcher.cut_short == 1


def test_windows_begin_with_subscriptions_and_do_not_disturb_each_other() -> None:
    matcher = CompositeMatcher()
    first = matcher.add(parse_composite("{a == $X} & {b == $X}"), window=3)
    matcher.add(parse_composite("{a == $X} & {b == $X}"), window=9)
    matcher.step(0, {"a": 7}, "a")
    assert matcher.waiting == 2
    assert [one.id for one in matcher.step(3, {"b": 7}, "b")] == [first, 1]
    assert [one.id for one in matcher.step(4, {"b": 7}, "c")] == [1]
    matcher.remove(first)
    assert [one.id for one in matcher.step(5, {"b": 7}, "d")] == [1]
    assert matcher.step(5, {"b": 8}, "e") == []
    matcher = CompositeMatcher()
    matcher.add(parse_composite("{a == 1} & {b == 1}"), window=10)
    matcher.step(0, {"a": 1}, "early")
    late = matcher.add(parse_composite("{a == 1} & {b == 2}"), window=10)
    matcher.step(1, {"a": 1}, "late")
    assert matcher.waiting == 2
    assert names(matcher.step(2, {"b": 2}, "b")) == [("late", "b")]
    matcher.remove(late)
    assert names(matcher.step(2, {"b": 1}, "b")) == [("early", "b"), ("late", "b")]


def test_a_publication_is_brought_to_few_of_many_parts_that_it_matches() -> None:
    matcher = CompositeMatcher()
    for number in range(40):
        matcher.add(parse_composite(f"{{a >= {number} and a == $X}} & {{b == $X}}"), window=10)
    tried = []
    matcher._complete = lambda *asked: tried.append(asked)  # type: ignore[method-assign]
    for time in range(5):
        matcher.step(time, {"a": 50 + time}, time)
    assert tried == []
    matcher.step(5, {"b": 52}, 5)
    assert len(tried) == 40


OF_EXPRESSIONS = schema.Schema(
    [
        schema.FloatAttribute("price", 0, 1000),
        schema.StringAttribute("symbol"),
        schema.IntegerAttribute("n", 0, 10),
        schema.EnumerationAttribute("size", ("S", "M", "L")),
    ]
)
EVENT = {"price": 80, "symbol": "IBM", "n": 3}
NEWER = {"size": "XL"}  # of a schema that appends to the enumeration


@pytest.mark.parametrize(
    ("text", "event", "expected"),
    [
        # Beside what random expressions of property/test_content.py have.
        ("not price in (80, 90]", EVENT, True),
        ("price in [80, 90]", EVENT, True),
        ("n == 1 or n == 3 and price == 80", EVENT, True),
        ("n == 3 or n == 1 and price == 79", EVENT, True),
        ("not not n == 3", EVENT, True),
        ("not n == 3 or price == 79", EVENT, False),
        ('symbol not startswith "H"', EVENT, True),
        ('symbol == "ibm"', EVENT, False),
        ("`n` == 3", EVENT, True),
        ("(" * MAX_DEPTH + "n == 3" + ")" * MAX_DEPTH, EVENT, True),
        ('size > "S" and size != "L"', NEWER, True),
        ('size < "L"', NEWER, False),
    ],
)
def test_expressions_match(text: str, event: dict[str, object], expected: bool) -> None:
    assert parse_expression(OF_EXPRESSIONS, text).matches(event) is expected


STOCK = "[class,eq,'stock']"

# What PADRES' grammar has; the predicates that it reads as; what is written for these.
FILTERS = [
    ("[class,eq,stock]", {"class": ("eq", "stock")}, STOCK),
    ('[class,eq,"stock"]', {"class": ("eq", "stock")}, STOCK),
    ("[class,eq,'stock'];", {"class": ("eq", "stock")}, STOCK),
    ("[class,eq,:/a_b-1]", {"class": ("eq", ":/a_b-1")}, "[class,eq,':/a_b-1']"),
    (f"{STOCK},[s,eq,IBM]", {"s": ("eq", "IBM")}, f"{STOCK},[s,eq,'IBM']"),
    (f"{STOCK},[s,eq,'a,b']", {"s": ("eq", "a,b")}, f"{STOCK},[s,eq,'a,b']"),
    (f'{STOCK},[s,eq,"a,[b];"]', {"s": ("eq", "a,[b];")}, f"{STOCK},[s,eq,'a,[b];']"),
    (f"{STOCK},[s,eq,'']", {"s": ("eq", "")}, f"{STOCK},[s,eq,'']"),
    (f'{STOCK},[s,eq,""]', {"s": ("eq", "")}, f"{STOCK},[s,eq,'']"),
    (f"{STOCK},[s,eq,'80']", {"s": ("eq", "80")}, f"{STOCK},[s,eq,'80']"),
    (f"{STOCK},[s,neq,IBM]", {"s": ("neq", "IBM")}, f"{STOCK},[s,neq,'IBM']"),
    (f"{STOCK},[s,str-lt,m]", {"s": ("str-lt", "m")}, f"{STOCK},[s,str-lt,'m']"),
    (f"{STOCK},[s,str-le,m]", {"s": ("str-le", "m")}, f"{STOCK},[s,str-le,'m']"),
    (f"{STOCK},[s,str-gt,m]", {"s": ("str-gt", "m")}, f"{STOCK},[s,str-gt,'m']"),
    (f"{STOCK},[s,str-ge,m]", {"s": ("str-ge", "m")}, f"{STOCK},[s,str-ge,'m']"),
    (f"{STOCK},[s,str-prefix,I]", {"s": ("str-prefix", "I")}, f"{STOCK},[s,str-prefix,'I']"),
    (f"{STOCK},[s,str-prefix,true]", {"s": ("str-prefix", "true")}, None),
    (f"{STOCK},[s,eq,inf]", {"s": ("eq", "inf")}, f"{STOCK},[s,eq,'inf']"),
    (f"{STOCK},[s,str-postfix,M]", {"s": ("str-postfix", "M")}, f"{STOCK},[s,str-postfix,'M']"),
    (f"{STOCK},[s,str-contains,B]", {"s": ("str-contains", "B")}, f"{STOCK},[s,str-contains,'B']"),
    (f"{STOCK},[x,=,0]", {"x": ("=", 0)}, f"{STOCK},[x,=,0]"),
    (f"{STOCK},[x,=,+10]", {"x": ("=", 10)}, f"{STOCK},[x,=,10]"),
    (f"{STOCK},[x,<>,-10]", {"x": ("<>", -10)}, f"{STOCK},[x,<>,-10]"),
    (f"{STOCK},[x,<,.5]", {"x": ("<", 0.5)}, f"{STOCK},[x,<,0.5]"),
    (f"{STOCK},[x,<=,+.5]", {"x": ("<=", 0.5)}, f"{STOCK},[x,<=,0.5]"),
    (f"{STOCK},[x,>,-.5]", {"x": (">", -0.5)}, f"{STOCK},[x,>,-0.5]"),
    (f"{STOCK},[x,>=,+1.25]", {"x": (">=", 1.25)}, f"{STOCK},[x,>=,1.25]"),
    (f"{STOCK},[x,isPresent,100]", {"x": ("isPresent", 100)}, f"{STOCK},[x,isPresent,0]"),
    (f"{STOCK},[x,isPresent,.5]", {"x": ("isPresent", 0.5)}, f"{STOCK},[x,isPresent,0]"),
    (f"{STOCK},[s,isPresent,any]", {"s": ("isPresent", "any")}, f"{STOCK},[s,isPresent,'any']"),
    (f"{STOCK},[s,isPresent,'1']", {"s": ("isPresent", "1")}, f"{STOCK},[s,isPresent,'any']"),
    (f"{STOCK},[a/b:c-1,<,1]", {"a/b:c-1": ("<", 1)}, f"{STOCK},[a/b:c-1,<,1]"),
    (f" {STOCK} ,\n[ x, < , 1 ] ; ", {"x": ("<", 1)}, f"{STOCK},[x,<,1]"),
]
STRINGS = ["", "80", "1", "a,b", "a,[b];", "IBM", "I", "M", "m", "n", "true", "true1", "inf", "any"]
NUMBERS = [-10.5, -10, -0.5, -0.25, 0, 0.25, 0.5, 1, 1.25, 10, 11, 100]


@pytest.mark.parametrize(("text", "predicates", "written"), FILTERS)
def test_filters(text: str, predicates: dict[str, Any], written: str | None) -> None:
    there = padres.Reader(text).subscription()
    assert dict(there.predicates).items() >= predicates.items()
    here = api.parse(text)
    for name in {"s", "x", *predicates}:
        for value in (*STRINGS, *NUMBERS, "stock"):
            values = {"class": "stock", name: value}
            assert here.matches(values) is padres.matches(there, values), values
    again = api.to_padres(here)
    assert written in (None, again)
    padres.Reader(again).subscription()
    assert api.parse(again) == here


# What PADRES' grammar has; what it reads as.
PUBLICATIONS = [
    ("[class,stock]", {"class": "stock"}),
    ('[class,"stock"];', {"class": "stock"}),
    ("[class,true]", {"class": "true"}),
    ("[class,stock],[s,IBM],[t,'a,b']", {"class": "stock", "s": "IBM", "t": "a,b"}),
    ("[class,stock],[x,+10],[y,.5],[z,-.5]", {"class": "stock", "x": 10, "y": 0.5, "z": -0.5}),
    ("[class,stock],[x,0],[y,1.25];", {"class": "stock", "x": 0, "y": 1.25}),
    ("[class,stock];Fri Nov 20 17:07:43 EST 2009;", {"class": "stock"}),
    ("[class,stock] ; Fri Nov 20 17:07:43 CET 2009 ; ", {"class": "stock"}),
    (
        "[class,BROKER],[command,'PUT'],[content,'[class,eq,stock],[x,>,1]']",
        {"class": "BROKER", "command": "PUT", "content": "[class,eq,stock],[x,>,1]"},
    ),
]


@pytest.mark.parametrize(("text", "values"), PUBLICATIONS)
def test_publications(text: str, values: dict[str, Any]) -> None:
    assert (padres.Reader(text).publication(), api.parse_publication(text)) == (values, values)
    again = api.publication_to_padres(api.exact_publication(values))
    assert (padres.Reader(again).publication(), api.parse_publication(again)) == (values, values)


A, B, C, D = ("{[class,eq," + name + "]}" for name in "abcd")
EITHER = '{class == "a"} & {class == "b"} || {class == "a"} & {class == "c"}'

# What PADRES' grammar has; what it reads as in gossamer's language.
COMPOSITES = [
    (f"{{{A}}}", '{class == "a"}'),
    (f"{{{A}&{B}}}", '{class == "a"} & {class == "b"}'),
    (f"{{{A}||{B}}};", '{class == "a"} || {class == "b"}'),
    (f"{{{A}&{B}||{C}}}", '{class == "a"} & {class == "b"} || {class == "c"}'),
    (f"{{{A}||{B}&{C}}}", '{class == "a"} & {class == "c"} || {class == "b"} & {class == "c"}'),
    (f"{{{A}&{{{B}||{C}}}}}", EITHER),
    (
        f"{{{A}||{B}&{C}||{D}}}",
        '{class == "a"} & {class == "c"} || {class == "b"} & {class == "c"} || {class == "d"}',
    ),
    (f"{{{A}||{{{B}&{C}}}}}", '{class == "a"} || {class == "b"} & {class == "c"}'),
    (
        "{{[class,eq,a],[s,eq,$S$X]}&{[class,eq,b],[t,eq,'$S$X']}}",
        '{class == "a" and s >= "" and s == $X} & {class == "b" and t >= "" and t == $X}',
    ),
    (
        '{{[class,eq,a],[x,=,$I$X-1]}&{[class,eq,b],[y,=,"$F$X-1"]}}',
        '{class == "a" and x >= -inf and x == $X-1} & {class == "b" and y >= -inf and y == $X-1}',
    ),
]


@pytest.mark.parametrize(("text", "same"), COMPOSITES)
def test_composites(text: str, same: str) -> None:
    there = padres.Reader(text).composite()
    here = parse_composite(text)
    assert (composite_text(here), here) == (same, parse_composite(same))
    assert len(padres.alternatives(there)) == len(here.alternatives)
    again = composite_padres(here)
    padres.Reader(again).composite()
    assert parse_composite(again) == here


BAD_FILTERS = [
    ("[class,eq,stock exchange]", 11, "a number, a word or a string in quotes, found"),
    ("[class,eq,stock];;", 18, "expected the end, found ';'"),
    ("[class,eq,stock]; x", 19, "expected the end, found 'x'"),
    ("[class,eq,stock,];", 16, "expected ']', found ','"),
    ("[class,eq,'sto];", 11, "this string has no closing quote"),
    ('[class,eq,"sto];', 11, "this string has no closing quote"),
    ("[x,>,+]", 6, "a number, a word or a string in quotes, found '+'"),
    ("[x,>,+.5.5]", 9, "unexpected character after number 0.5"),
    ("[x,>,10a]", 8, "unexpected character after number 10"),
    ("[x,>,IBM]", 6, "attribute 'x': > takes a number, not IBM"),
    ("[s,eq,+10]", 7, "attribute 's': eq takes a string, not +10"),
    ("[s,eq,$S$]", 9, "unexpected character '$'"),
    ("[s,str-prefix,$S$X]", 15, "a variable means something in composite subscriptions only"),
]
BAD_PUBLICATIONS = [
    ("[class,stock];yesterday;", 15, "expected a time such as 'Fri Nov 20 17:07:43 EST 2009;'"),
    ("[class,stock],[x,$I$X]", 18, "a word or a string in quotes, found '$I$X'"),
    ("[class,stock],[x,1.]", 19, "unexpected character after number 1"),
]
BAD_COMPOSITES = [
    ("", 1, "expected '{'"),
    ("{a == 1", 8, "expected '}'"),
    ("{{a == 1}", 10, "expected '&', '->', '||' or '}'"),
    ("{a == 1} {b == 1}", 10, "expected '&', '->', '||' or the end, found '{'"),
    ("{a == 1} & ", 12, "expected '{'"),
    ("{a == 1} & {b = 2}", 15, "expected a comparison"),
    ("{a == 1} & {[b,~,2]}", 16, "unknown operator '~'"),
    ("{a > 1 and a < 0}", 12, "contradict each other"),
    ("{a > $X}", 6, "a variable is bound by equality and compared by nothing else"),
    ('{a == "x}', 7, "this string has no closing quote"),
    ("{" * 1000, MAX_BRACES + 2, f"braces more than {MAX_BRACES} deep"),
    ("&".join(["{a == 1}"] * (MAX_PARTS + 1)), 9 * MAX_PARTS + 9, "more than 16 parts"),
    ("&".join(["{{a==1}||{b==1}}"] * 7), 119, f"more than {MAX_ALTERNATIVES} alternatives"),
    ("{[class,eq,a]}|{[class,eq,b]}", 15, "expected '&', '->', '||' or the end, found '|'"),
    ("{[class,eq,a]}&", 16, "expected '{'"),
    ("{{[class,eq,a]}&{[class,eq,'b]}}", 28, "this string has no closing quote"),
    ("{[class,eq,a],[x,<,$I$X]}", 20, "a variable is bound by equality"),
]
BAD_EXPRESSIONS = [
    ("price > 5 and price < 3", 15, "contradict each other"),
    ("price > 2000 or n == 3", 1, "price > 2000 can never hold: it is a number from 0 to"),
    ("n > 1 and n < 2", 11, "can never hold, with what else is asked of n"),
    ('size < "S"', 1, "can never hold"),
    ('size > "S" and size < "M"', 16, "can never hold, with what else"),
    ("not present(price)", 5, "presence cannot be negated"),
    ('n startswith "3"', 14, "startswith needs a string attribute, this is of type integer"),
    ("symbol > 3", 10, "takes a string, not the integer 3"),
    ("n == 1.5", 6, "takes an integer from 0 to 10, not the number 1.5"),
    ("(n == 1", 8, "expected 'and', 'or' or ')', found the end"),
    ("n == 1)", 7, "expected 'and' or 'or', found ')'"),
    ("n == 1 or", 10, "expected an attribute name, found the end"),
    ("n in {}", 7, "expected a number"),
    ("n in {1, 2", 11, "expected ',' or '}', found the end"),
    ("prise == 3", 1, "there is no attribute 'prise', did you mean 'price'?"),
    ("price == $x", 10, "a variable means something in composite subscriptions only"),
    ("(" * (MAX_DEPTH + 1) + "n == 1", MAX_DEPTH + 1, "parentheses at most 32 deep"),
    (" or ".join(f"n == {k % 9}" for k in range(257)), 2561, "more than 256 comparisons"),
]


BAD = [
    *((api.parse, *row) for row in BAD_FILTERS),
    *((api.parse_publication, *row) for row in BAD_PUBLICATIONS),
    *((parse_composite, *row) for row in BAD_COMPOSITES),
    *((partial(parse_expression, OF_EXPRESSIONS), *row) for row in BAD_EXPRESSIONS),
]


@pytest.mark.parametrize(("parse", "text", "column", "reason"), BAD)
def test_what_is_bad_is_refused_with_its_place(
    parse: Callable[[str], object], text: str, column: int, reason: str
) -> None:
    check_refused(parse, text, column, reason)
