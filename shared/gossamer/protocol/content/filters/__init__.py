"""Filters without a schema: their text forms, what they match, and how they relate.

A filter is a conjunction of predicates on numbers, strings, dates and booleans. Its text is
gossamer's or PADRES'; whatever begins with a bracket is the latter:

    >>> from gossamer.protocol.content import filters
    >>> cheap = filters.parse('symbol == "IBM" and price < 120.5')
    >>> wanted = filters.parse("[symbol,eq,'IBM'],[price,>=,80],[price,<,120]")
    >>> filters.to_text(wanted)
    'price >= 80 and price < 120 and symbol == "IBM"'
    >>> filters.to_padres(filters.parse('class == "stock" and price < 120.5'))
    "[class,eq,'stock'],[price,<,120.5]"

A publication is any mapping from names to values; text forms of it exist, too. Integers and floats
unify exactly, and a missing attribute never matches:

    >>> filters.matches(wanted, {"symbol": "IBM", "price": 80.0, "volume": 1000})
    True
    >>> filters.matches(wanted, filters.parse_publication("[symbol,'IBM'],[price,120]"))
    False
    >>> filters.matches(filters.parse('symbol != "HPQ"'), {"price": 81.5})
    False

Relations are sound, and complete but for negated and `contains` predicates on strings:

    >>> filters.covers(cheap, wanted)
    True
    >>> filters.relation(wanted, cheap)
    <Relation.COVERED_BY: 'covered by'>
    >>> filters.intersects(wanted, filters.parse("price > 100"))
    True

An advertisement is a filter as well. A publication may carry any of its attributes and no others:

    >>> offer = filters.parse('present(symbol) and price >= 0')
    >>> filters.conforms({"price": 81.5}, offer)
    True
    >>> filters.conforms({"price": 81.5, "volume": 1000}, offer)
    False
    >>> filters.meets(wanted, offer)
    True
    >>> filters.advertisement_relation(offer, filters.parse("price >= 80"))
    <Relation.COVERS: 'covers'>

What is wrong with a text is said in one sentence with the column:

    >>> filters.parse("price > 5 and price < 3")
    Traceback (most recent call last):
    ...
    gossamer.protocol.kernel.errors.ExpressionError: price > 5 and price < 3 contradict each \
other: no value satisfies both at column 15
      price > 5 and price < 3
                    ^

Begin at `filter`: what one is, with relations, made of a `constraint` for each attribute, over
`domains`. `language` and `padres` read texts, by `predicates`; `padres_writing` writes PADRES'.
`composite` has composite subscriptions, `expressions` those of applications of peers.
"""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.protocol.content.filters import language, padres, padres_writing
from gossamer.protocol.content.filters.filter import (
    Filter,
    Publication,
    Relation,
    advertisement_relation,
    advertises_more,
    both_allow,
    conforms,
    covers,
    disjoint,
    exact_publication,
    intersects,
    meets,
    relation,
)
from gossamer.protocol.content.filters.language import filter_text as to_text
from gossamer.protocol.content.filters.language import parse_written_filter as parse_written
from gossamer.protocol.content.filters.language import publication_text as publication_to_text
from gossamer.protocol.content.filters.padres_writing import (
    publication_text as publication_to_padres,
)
from gossamer.protocol.content.schema import Schema

__all__ = [
    "Filter",
    "Publication",
    "Relation",
    "advertisement_relation",
    "advertises_more",
    "both_allow",
    "conforms",
    "covers",
    "disjoint",
    "exact_publication",
    "intersects",
    "matches",
    "meets",
    "parse",
    "parse_publication",
    "parse_written",
    "publication_to_padres",
    "publication_to_text",
    "relation",
    "to_padres",
    "to_text",
]


def parse(text: str, schema: Schema | None = None) -> Filter:
    """The filter that a text describes, in either language.

    With a schema, names and types are checked as well. Raises `ExpressionError`, whose column
    points at the fault.
    """
    if is_padres(text):
        return padres.parse_filter(text, schema)
    return language.parse_filter(text, schema)


def parse_publication(text: str) -> Publication:
    """The publication that a text describes, in either language; raises `ExpressionError`."""
    if is_padres(text):
        return padres.parse_publication(text)
    return language.parse_publication(text)


def is_padres(text: str) -> bool:
    """Whether a text is in PADRES' language: it begins with a bracket."""
    return text.lstrip().startswith("[")


def matches(wanted: Filter, publication: Mapping[str, object]) -> bool:
    """Whether every predicate holds for a publication; a missing attribute fails."""
    return wanted.matches(publication)


def to_padres(wanted: Filter) -> str:
    """The text of a filter that PADRES takes and reads as meant; parses back to an equal filter.

    Raises `ContentError` for what PADRES cannot say (see `padres_writing`).
    """
    return padres_writing.filter_text(wanted)
