"""How brokers tell of their tables: as plain values for people and programs, cut where long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from gossamer.protocol.brokers.core.messages import Hop, Id
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter

# Rows of each table that are told; how many there are is told as well.
ROWS: Final = 200
# Characters of a filter that are told.
CHARACTERS: Final = 300

Label = Callable[[str], str]
"""What people call a broker."""


def filter_text(wanted: Filter) -> str:
    """A filter for people, shortened."""
    text = filters.to_text(wanted)
    return text if len(text) <= CHARACTERS else f"{text[: CHARACTERS - 3]}..."


def hop_text(hop: Hop, label: Label) -> str:
    """A client or neighbour for people."""
    return f"client {hop.name}" if hop.is_client else f"broker {label(hop.name)}"


def id_text(id_: Id) -> str:
    """How subscriptions, advertisements and publications are named to people and clients."""
    return f"{id_.broker}:{id_.number}"
