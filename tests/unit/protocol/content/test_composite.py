"""Composite subscriptions: their text, windows and bounds."""

from __future__ import annotations

import pytest

from gossamer.protocol.content.attributes import FloatAttribute
from gossamer.protocol.content.errors import ContentError
from gossamer.protocol.content.filters.composite import (
    MAX_ALTERNATIVES,
    MAX_DEPTH,
    MAX_PARTS,
    Composite,
    Part,
    composite_padres,
    composite_text,
    parse_composite,
)
from gossamer.protocol.content.matching.composite_matcher import CompositeMatch, CompositeMatcher
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.kernel.errors import ExpressionError
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
def test_forms(text: str, canonical: str) -> None:
    composite = parse_composite(text)
    assert composite_text(composite) == canonical
    assert parse_composite(canonical) == composite


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
def test_forms_of_padres(text: str, padres: str) -> None:
    composite = parse_composite(text)
    assert composite_padres(composite) == padres
    assert parse_composite(padres) == composite
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
def test_what_padres_cannot_say_is_refused(text: str, reason: str) -> None:
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


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
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
        ("{" * 1000, MAX_DEPTH + 2, f"braces more than {MAX_DEPTH} deep"),
        ("&".join(["{a == 1}"] * (MAX_PARTS + 1)), 9 * MAX_PARTS + 9, "more than 16 parts"),
        ("&".join(["{{a==1}||{b==1}}"] * 7), 119, f"more than {MAX_ALTERNATIVES} alternatives"),
    ],
)
def test_errors_point_at_the_fault(text: str, column: int, reason: str) -> None:
    check_refused(parse_composite, text, column, reason)


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
    assert matcher.waiting == 0
    assert matcher.step(200, {"a": 1}, 4) == []
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
