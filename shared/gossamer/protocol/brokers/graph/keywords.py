"""Documents and subscriptions by keywords (Sec. VII-A), said with attributes and filters.

A keyword is an attribute that is true. A subscription to some keywords is a filter for each, as a
document matches it with any of them; keywords and other attributes go together.

    >>> from gossamer.protocol.content import filters
    >>> from gossamer.protocol.brokers.graph.keywords import by_keywords, keyword_filter
    >>> filters.to_text(keyword_filter("nokia"))
    'nokia == true'
    >>> by_keywords(["nokia", "motorola"], price=80)
    {'price': 80, 'nokia': True, 'motorola': True}
"""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.operators import Comparison, Operator


def keyword_filter(keyword: str) -> Filter:
    """A filter that matches the documents with a keyword."""
    return filters.Filter.of([Comparison(keyword, Operator.EQUAL, True)])


def by_keywords(keywords: Iterable[str], **values: object) -> dict[str, object]:
    """What a document with these keywords, and perhaps other attributes, says."""
    return {**values, **dict.fromkeys(keywords, True)}
