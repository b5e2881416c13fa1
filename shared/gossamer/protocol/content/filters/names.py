"""Names of attributes in gossamer's language, and the text of a conjunction."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from attrs import evolve

from gossamer.protocol.content.errors import ContentError
from gossamer.protocol.content.filters.predicates import comparison_text
from gossamer.protocol.content.grammar import Comparison
from gossamer.protocol.content.values import described, is_well_formed

RESERVED: Final = frozenset(
    {"and", "or", "not", "in", "present", "true", "false", "inf"}
    | {"startswith", "endswith", "contains"}
)
"""Words that are attribute names between backquotes only."""

_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def name_text(name: str) -> str:
    """An attribute name as text holds it; `ContentError` if none can, as it has a backquote."""
    if not isinstance(name, str) or not is_well_formed(name):
        raise ContentError("", f"expected the name of an attribute, not {described(name)}")
    if _PLAIN_NAME.fullmatch(name) and name not in RESERVED:
        return name
    if "`" in name or not name:
        raise ContentError(name, f"the name {name[:60]!r} cannot be written between backquotes")
    return f"`{name}`"


def conjunction_text(comparisons: Iterable[Comparison]) -> str:
    """The text of comparisons joined by `and`; raises as `name_text` does."""
    named = (evolve(one, attribute=name_text(one.attribute)) for one in comparisons)
    return " and ".join(map(comparison_text, named))


def shown_text(comparisons: Iterable[Comparison]) -> str:
    """The same for people to look at, whatever the names are."""
    shown = (evolve(one, attribute=_shown_name(one.attribute)) for one in comparisons)
    return " and ".join(map(comparison_text, shown))


def _shown_name(name: str) -> str:
    try:
        return name_text(name)
    except ContentError:
        return repr(name)
