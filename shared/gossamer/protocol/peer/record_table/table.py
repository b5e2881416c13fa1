"""The table of records: one declaration a kind."""

from __future__ import annotations

import enum
from collections.abc import Iterator

import attrs

from gossamer.protocol.peer.record_table.fields import Field, parts_of
from gossamer.protocol.peer.record_table.layouts import Layout
from gossamer.protocol.peer.settings.config import Settings


class Sort(enum.Enum):
    """Who writes a record, and to whom."""

    TIMER = "Timers, one firing of each a round"
    COMMAND = "Commands of the application or host"
    MESSAGE = "Messages between peers"
    EFFECT = "Effects for the host"


@attrs.frozen
class Kind:
    """What there is to say of a kind of record.

    Attributes:
        number: the word KIND.
        name: of its constant.
        sort: who writes it.
        meaning: what it says, in a sentence.
        fields: what its body is made of.
        only_with: the setting without which there are no such records: they are refused where it is
            0. None for kinds that there are always.
    """

    number: int
    name: str
    sort: Sort
    meaning: str
    fields: tuple[Field, ...]
    only_with: str | None = None


class Table:
    """Kinds of record, by number."""

    def __init__(self) -> None:
        self._kinds: dict[int, Kind] = {}

    def declare(
        self,
        sort: Sort,
        number: int,
        name: str,
        meaning: str,
        fields: tuple[Field, ...] = (),
        only_with: str | None = None,
    ) -> int:
        """Add a kind, and return its number.

        Raises:
            ValueError: there is one of that number or name.
        """
        taken = {name, number} & {mark for kind in self for mark in (kind.name, kind.number)}
        if taken:
            raise ValueError(f"{taken.pop()} is declared twice, expected once")
        self._kinds[number] = Kind(number, name, sort, meaning, fields, only_with)
        return number

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def __getitem__(self, number: int) -> Kind:
        return self._kinds[number]

    def layouts(self, settings: Settings, sort: Sort = Sort.MESSAGE) -> dict[int, Layout]:
        """The bodies of all kinds of a sort that there are under these settings."""
        return {
            kind.number: parts_of(kind.fields, settings)
            for kind in self
            if kind.sort is sort
            and (kind.only_with is None or getattr(settings, kind.only_with) > 0)
        }


def offset(fields: tuple[Field, ...], name: str) -> int:
    """Where in a body a field begins.

    Raises:
        ValueError: there is no such field, or what comes before it may be of any size.
    """
    words = 0
    for field in fields:
        if field.name == name:
            return words
        if field.words is None:
            break
        words += field.words
    raise ValueError(f"{name} has no fixed place, expected one of {[f.name for f in fields]}")
