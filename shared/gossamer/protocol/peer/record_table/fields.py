"""Fields: what the words of a record are declared as, whatever the settings.

A field has a name, by which refusals call it, a meaning and bounds. From its bounds under certain
settings follow its parts (`layouts`), which check and copy the words; from its size, where those
behind it stand.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Protocol

import attrs

from gossamer.protocol.peer.record_table import layouts
from gossamer.protocol.peer.record_table.layouts import Layout, Part
from gossamer.protocol.peer.settings.config import Settings


@attrs.frozen
class Limit:
    """A bound that the settings set.

    Attributes:
        setting: name of the setting.
        plus: what is added to it.
    """

    setting: str
    plus: int = 0

    def __str__(self) -> str:
        if self.plus == 0:
            return f"`{self.setting}`"
        return f"`{self.setting}` {'+' if self.plus > 0 else '-'} {abs(self.plus)}"


Bound = int | Limit


def value_of(bound: Bound, settings: Settings) -> int:
    """A bound under these settings."""
    if isinstance(bound, int):
        return bound
    return int(getattr(settings, bound.setting)) + bound.plus


def text_of(bound: Bound) -> str:
    """A bound as the documentation writes it."""
    if isinstance(bound, int) and bound > 1 << 16 and (bound + 1).bit_count() == 1:
        return f"2^{bound.bit_length()} - 1"
    if isinstance(bound, int) and -bound > 1 << 16 and bound.bit_count() == 1:
        return f"-2^{bound.bit_length() - 1}"
    return str(bound)


class Field(Protocol):
    """A field, or several in a row."""

    @property
    def name(self) -> str:
        """What refusals and the documentation call it."""
        ...

    @property
    def meaning(self) -> str:
        """What it says, where the name does not tell."""
        ...

    @property
    def words(self) -> int | None:
        """How many words it takes, None where that depends."""
        ...

    def bounds(self) -> str:
        """What it may be, in words."""
        ...

    def parts(self, settings: Settings) -> Layout:
        """What checks and copies it under these settings."""
        ...


@attrs.frozen
class Word:
    """A number between two bounds, both included."""

    name: str
    low: Bound
    high: Bound
    meaning: str = ""
    words: int = 1

    def bounds(self) -> str:
        return f"{text_of(self.low)} to {text_of(self.high)}"

    def parts(self, settings: Settings) -> Layout:
        return (
            layouts.Word(self.name, value_of(self.low, settings), value_of(self.high, settings)),
        )


@attrs.frozen
class Handle:
    """A handle; one that ``may_miss`` is -1 for nobody."""

    name: str
    meaning: str = ""
    may_miss: bool = False
    words: int = 1

    def bounds(self) -> str:
        return "a handle, or -1" if self.may_miss else "a handle"

    def parts(self, _settings: Settings) -> Layout:
        part: Part = (layouts.PerhapsHandle if self.may_miss else layouts.Handle)(self.name)
        return (part,)


@attrs.frozen
class Interval:
    """The lowest and the highest value of a range on the ring."""

    name: str
    meaning: str = ""
    words: int = 2

    def bounds(self) -> str:
        return "the lowest and the highest value, 0 to 2^62 - 1"

    def parts(self, _settings: Settings) -> Layout:
        return (layouts.Interval(self.name),)


@attrs.frozen
class Descriptor:
    """An age above a handle, and a profile; ``of_sender`` where the sender speaks of itself."""

    name: str
    oldest: Bound
    meaning: str = ""
    of_sender: bool = False
    words: None = None

    def bounds(self) -> str:
        whose = " with the sender's handle" if self.of_sender else ""
        return f"a descriptor{whose}, of an age of {text_of(self.oldest)} at most"

    def parts(self, settings: Settings) -> Layout:
        return (layouts.Descriptor(self.name, value_of(self.oldest, settings), self.of_sender),)


@attrs.frozen
class List:
    """A count, and so many entries; the first may be of another form than the ``others``."""

    name: str
    others: tuple[Field, ...]
    most: Bound
    first: tuple[Field, ...] = ()
    meaning: str = ""
    words: None = None

    def bounds(self) -> str:
        least = 1 if self.first else 0
        entry = " and ".join(field.name for field in self.others)
        begins = " and ".join(field.name for field in self.first)
        entries = f"first {begins}, then each {entry}" if begins else f"each {entry}"
        return f"a count from {least} to {text_of(self.most)}, and the entries: {entries}"

    def parts(self, settings: Settings) -> Layout:
        others, first = parts_of(self.others, settings), parts_of(self.first, settings)
        return (layouts.List(self.name, others, value_of(self.most, settings), first),)


@attrs.frozen
class Perhaps:
    """A field that a record may end without."""

    field: Field
    words: None = None

    @property
    def name(self) -> str:
        return self.field.name

    @property
    def meaning(self) -> str:
        return self.field.meaning

    def bounds(self) -> str:
        return f"{self.field.bounds()}; may be missing"

    def parts(self, settings: Settings) -> Layout:
        return tuple(layouts.Perhaps(part) for part in self.field.parts(settings))


@attrs.frozen
class PerAttribute:
    """A field for every coordinate: attributes, and the routing key where there is one."""

    field: Field
    words: None = None

    @property
    def name(self) -> str:
        return self.field.name

    @property
    def meaning(self) -> str:
        return self.field.meaning

    def bounds(self) -> str:
        return f"for every coordinate {self.field.bounds()}"

    def parts(self, settings: Settings) -> Layout:
        return self.field.parts(settings) * settings.coordinates


def parts_of(fields: tuple[Field, ...], settings: Settings) -> Layout:
    """What checks and copies fields that follow each other."""
    return tuple(part for field in fields for part in field.parts(settings))


# The table of records: one declaration a kind.


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
