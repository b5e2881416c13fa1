"""Layouts: how the words of a record are checked and copied, and how many there are at most.

A layout is a list of parts, each of which can pass over its stretch of a record in two ways:
checking every word as one from a stranger, or copying it with other handles. `codec` is the door.
Which layout a kind has under certain settings follows from its declaration in `records`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, NoReturn, Protocol

import attrs

from gossamer.protocol.kernel.errors import MalformedRecordError
from gossamer.protocol.peer.settings.profile import (
    HANDLE_BITS,
    HANDLE_MASK,
    MAX_LOAD,
    NOTHING,
    RANGES,
    high_end,
    low_end,
)
from gossamer.protocol.peer.space.ring import RING_MASK

HANDLES: Final = range(HANDLE_MASK + 1)

# Profiles whose sanity is known; a peer meets those of its neighbours again and again.
_KNOWN_PROFILES: Final = 1024


class Swap(Protocol):
    """What `Codec.rewrite` puts in place of handles; None leaves them out."""

    def peer(self, word: int, /) -> int | None:
        """The word for a handle that stands alone."""
        ...

    def descriptor(self, words: Sequence[int], of_sender: bool, /) -> Sequence[int] | None:
        """The words for a descriptor; ``of_sender`` where the record's sender speaks of itself."""
        ...


class _KeepAll:
    """Puts nothing in the place of anything."""

    def peer(self, word: int) -> int:
        return word

    def descriptor(self, words: Sequence[int], _of_sender: bool) -> Sequence[int]:
        return words


KEEP: Final = _KeepAll()


@attrs.define
class Source:
    """A record or a body being read.

    Attributes:
        kind: of the record.
        words: what is read, from ``at`` on.
        profile_words: how many of them a profile takes.
        first_range: from which of these on it tells ranges.
        own: the sender's handle, where words are checked.
        swap: what takes the place of handles, where words are copied.
    """

    kind: int
    words: Sequence[int]
    at: int
    profile_words: int
    first_range: int = RANGES
    own: int = -1
    swap: Swap = attrs.field(default=KEEP)

    def take(self) -> int:
        at = self.at
        self.at = at + 1
        if at >= len(self.words):
            self._fail_short()
        return self.words[at]

    def take_many(self, count: int) -> Sequence[int]:
        at = self.at
        self.at = end = at + count
        if end > len(self.words):
            self._fail_short()
        return self.words[at:end]

    def fail(self, field: str, value: int, expected: str) -> MalformedRecordError:
        return MalformedRecordError(self.kind, field, value, expected)

    def _fail_short(self) -> NoReturn:
        raise self.fail("length", len(self.words), f"at least {self.at} words")


class Size(NamedTuple):
    """How large something is.

    Attributes:
        words: of 64 bits.
        handles: how many of them hold one.
    """

    words: int
    handles: int


class Part(Protocol):
    """A stretch of a record's body."""

    def check(self, source: Source) -> None:
        """Pass over this part; raises `MalformedRecordError` where a word is not as it must be."""
        ...

    def copy(self, source: Source, target: list[int]) -> bool:
        """Pass over this part and append it, swapped, to ``target``; False if it was left out."""
        ...

    def most(self, profile_words: int) -> Size:
        """The most that it takes where a profile has so many words."""
        ...


@attrs.frozen
class Word:
    """A word between two bounds, both included."""

    name: str
    low: int
    high: int

    def check(self, source: Source) -> None:
        word = source.take()
        if not self.low <= word <= self.high:
            raise source.fail(self.name, word, f"{self.low} to {self.high}")

    def copy(self, source: Source, target: list[int]) -> bool:
        target.append(source.take())
        return True

    def most(self, _profile_words: int) -> Size:
        return Size(1, 0)


@attrs.frozen
class Handle:
    """A handle alone."""

    name: str

    def check(self, source: Source) -> None:
        word = source.take()
        if not 0 <= word <= HANDLE_MASK:
            raise source.fail(self.name, word, f"a handle from 0 to {HANDLE_MASK}")

    def copy(self, source: Source, target: list[int]) -> bool:
        word = source.swap.peer(source.take())
        if word is not None:
            target.append(word)
        return word is not None

    def most(self, _profile_words: int) -> Size:
        return Size(1, 1)


@attrs.frozen
class PerhapsHandle:
    """A handle alone, or -1 for nobody."""

    name: str

    def check(self, source: Source) -> None:
        word = source.take()
        if not -1 <= word <= HANDLE_MASK:
            raise source.fail(self.name, word, f"a handle from 0 to {HANDLE_MASK}, or -1")

    def copy(self, source: Source, target: list[int]) -> bool:
        word = source.take()
        swapped = None if word < 0 else source.swap.peer(word)
        target.append(-1 if swapped is None else swapped)
        return True

    def most(self, _profile_words: int) -> Size:
        return Size(1, 1)


@attrs.frozen
class Interval:
    """Two words, the lowest and the highest value of a range on the ring."""

    name: str

    def check(self, source: Source) -> None:
        low, high = source.take(), source.take()
        if not 0 <= low <= RING_MASK:
            raise source.fail(self.name, low, f"a lowest value from 0 to {RING_MASK}")
        if not low <= high <= RING_MASK:
            raise source.fail(self.name, high, f"a highest value from {low} to {RING_MASK}")

    def copy(self, source: Source, target: list[int]) -> bool:
        target.extend(source.take_many(2))
        return True

    def most(self, _profile_words: int) -> Size:
        return Size(2, 0)


@attrs.frozen
class Descriptor:
    """A descriptor: an age of at most ``oldest`` above a handle, and a profile."""

    name: str
    oldest: int
    of_sender: bool = False

    def check(self, source: Source) -> None:
        words = source.take_many(1 + source.profile_words)
        age, handle = words[0] >> HANDLE_BITS, words[0] & HANDLE_MASK
        if not 0 <= age <= self.oldest:
            raise source.fail(f"age of {self.name}", age, f"0 to {self.oldest}")
        if self.of_sender and handle != source.own:
            raise source.fail(self.name, handle, f"the sender, {source.own}")
        fault = profile_fault(tuple(words[1:]), source.first_range)
        if fault is not None:
            raise source.fail(f"{fault.field} of {self.name}", fault.value, fault.expected)

    def copy(self, source: Source, target: list[int]) -> bool:
        words = source.take_many(1 + source.profile_words)
        swapped = source.swap.descriptor(words, self.of_sender)
        if swapped is not None:
            target.extend(swapped)
        return swapped is not None

    def most(self, profile_words: int) -> Size:
        return Size(1 + profile_words, 1)


@attrs.frozen
class List:
    """A count, and so many entries; the first may be of another form than the ``others``."""

    name: str
    others: tuple[Part, ...]
    most_entries: int
    first: tuple[Part, ...] = ()
    _plain_words: int | None = attrs.field(init=False)

    @_plain_words.default
    def _words_without_handles(self) -> int | None:
        """Words of an entry, where there is none with a handle in it."""
        if self.first or not all(isinstance(part, Word | Interval) for part in self.others):
            return None
        return sum(2 if isinstance(part, Interval) else 1 for part in self.others)

    def check(self, source: Source) -> None:
        for parts in self._entries(source, source.take()):
            for part in parts:
                part.check(source)

    def copy(self, source: Source, target: list[int]) -> bool:
        count_at = len(target)
        count = source.take()
        if self._plain_words is not None and 0 <= count <= self.most_entries:
            target.append(count)
            target.extend(source.take_many(count * self._plain_words))
            return True
        target.append(0)
        for parts in self._entries(source, count):
            entry_at = len(target)
            whole = True
            for part in parts:
                # All parts are passed over, also those of an entry that is left out.
                whole &= part.copy(source, target)
            if whole:
                target[count_at] += 1
                continue
            del target[entry_at:]
            if parts is self.first:
                return False
        return True

    def _entries(self, source: Source, count: int) -> Iterator[tuple[Part, ...]]:
        least = 1 if self.first else 0
        if not least <= count <= self.most_entries:
            raise source.fail(f"number of {self.name}", count, f"{least} to {self.most_entries}")
        for i in range(count):
            yield self.first if i == 0 and self.first else self.others

    def most(self, profile_words: int) -> Size:
        other = most_of(self.others, profile_words)
        first = most_of(self.first, profile_words) if self.first else other
        others = self.most_entries - 1
        return Size(1 + first.words + others * other.words, first.handles + others * other.handles)


@attrs.frozen
class Perhaps:
    """A part that a record may end without, and that may be left out."""

    part: Part

    def check(self, source: Source) -> None:
        if source.at < len(source.words):
            self.part.check(source)

    def copy(self, source: Source, target: list[int]) -> bool:
        if source.at < len(source.words):
            self.part.copy(source, target)
        return True

    def most(self, profile_words: int) -> Size:
        return self.part.most(profile_words)


class ProfileFault(NamedTuple):
    """What is wrong with a profile: the field, what is there and what was expected."""

    field: str
    value: int
    expected: str


# The words of a profile before its ranges, and the most that they may be.
_SCALARS: Final = (("identifier", RING_MASK), ("arc", RING_MASK), ("load", MAX_LOAD))


@lru_cache(_KNOWN_PROFILES)
def profile_fault(profile: tuple[int, ...], first_range: int) -> ProfileFault | None:
    """What no sane peer would say of itself in a profile, None where all is well."""
    for (name, most), word in zip(_SCALARS, profile[:first_range], strict=False):
        if not 0 <= word <= most:
            return ProfileFault(name, word, f"0 to {most}")
    for word in profile[first_range:]:
        sane = 0 <= word <= RING_MASK and low_end.interpreted(word) <= high_end.interpreted(word)
        if not sane and word != NOTHING:
            return ProfileFault("range", word, "a low end up to a high end, 31 bits each")
    return None


Layout = tuple[Part, ...]


def most_of(layout: Layout, profile_words: int) -> Size:
    """The most that a body of this layout takes."""
    sizes = [part.most(profile_words) for part in layout]
    return Size(sum(size.words for size in sizes), sum(size.handles for size in sizes))


def bounds_of(layout: Layout) -> list[range] | None:
    """What each word may be, where a layout is made of words that stand alone; else None."""
    bounds = []
    for part in layout:
        if isinstance(part, Word):
            bounds.append(range(part.low, part.high + 1))
        elif isinstance(part, Handle):
            bounds.append(HANDLES)
        elif isinstance(part, PerhapsHandle):
            bounds.append(range(-1, HANDLE_MASK + 1))
        else:
            return None
    return bounds
