"""Every construct of PADRES' grammar, a row each: what it reads as and what is written for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gossamer.protocol.content import filters as api
from gossamer.protocol.content.filters import composite
from support import padres_grammar as padres
from support.refusals import check_refused

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
    assert padres.Reader(text).publication() == values
    assert api.parse_publication(text) == values
    again = api.publication_to_padres(api.exact_publication(values))
    assert padres.Reader(again).publication() == values
    assert api.parse_publication(again) == values


A, B, C, D = ("{[class,eq," + name + "]}" for name in "abcd")
X = '{class == "a"} & {class == "b"} || {class == "a"} & {class == "c"}'

# What PADRES' grammar has; what it reads as in gossamer's language.
COMPOSITES = [
    (f"{{{A}}}", '{class == "a"}'),
    (f"{{{A}&{B}}}", '{class == "a"} & {class == "b"}'),
    (f"{{{A}||{B}}};", '{class == "a"} || {class == "b"}'),
    (f"{{{A}&{B}||{C}}}", '{class == "a"} & {class == "b"} || {class == "c"}'),
    (f"{{{A}||{B}&{C}}}", '{class == "a"} & {class == "c"} || {class == "b"} & {class == "c"}'),
    (f"{{{A}&{{{B}||{C}}}}}", X),
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
    here = composite.parse_composite(text)
    assert composite.composite_text(here) == same
    assert here == composite.parse_composite(same)
    assert len(padres.alternatives(there)) == len(here.alternatives)
    again = composite.composite_padres(here)
    padres.Reader(again).composite()
    assert composite.parse_composite(again) == here


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
    ("{[class,eq,a]}|{[class,eq,b]}", 15, "expected '&', '->', '||' or the end, found '|'"),
    ("{[class,eq,a]}&", 16, "expected '{'"),
    ("{{[class,eq,a]}&{[class,eq,'b]}}", 28, "this string has no closing quote"),
    ("{[class,eq,a],[x,<,$I$X]}", 20, "a variable is bound by equality"),
]
BAD = [
    *((api.parse, *row) for row in BAD_FILTERS),
    *((api.parse_publication, *row) for row in BAD_PUBLICATIONS),
    *((composite.parse_composite, *row) for row in BAD_COMPOSITES),
]


@pytest.mark.parametrize(("parse", "text", "column", "reason"), BAD)
def test_what_is_bad_is_refused_with_its_place(
    parse: Callable[[str], object], text: str, column: int, reason: str
) -> None:
    check_refused(parse, text, column, reason)
