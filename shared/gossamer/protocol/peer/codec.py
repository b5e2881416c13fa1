"""Records between peers, for hosts that carry them: where handles stand, and what to believe.

A handle means something to one peer only. Whoever carries records from one peer to another
replaces every handle by something that both understand; whoever takes records from strangers
checks every word first. Both follow from how each kind is declared (`records`).

A host may leave profiles out on the way and put others in (a node takes them from what their
owners signed), and may leave out descriptors that it does not believe; `Codec.rewrite` keeps the
rest of the record consistent. Records are sequences of Python integers here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import contains
from typing import NamedTuple

import attrs

from gossamer.protocol.kernel.errors import MalformedRecordError
from gossamer.protocol.kernel.records import BODY, FROM, KIND, LENGTH, TO
from gossamer.protocol.kernel.struct import WORD_BYTES
from gossamer.protocol.peer.record_table.layouts import (
    HANDLES,
    Layout,
    Source,
    Swap,
    bounds_of,
    most_of,
)
from gossamer.protocol.peer.record_table.records import EVENT_ORIGIN, TABLE
from gossamer.protocol.peer.sampling.sampler import record_layouts
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.state.event_logs import ANSWERER
from gossamer.protocol.peer.state.links import HANDLE_MASK
from gossamer.protocol.peer.state.state import (
    COPY,
    OLD_PREDECESSOR,
    OLD_SUCCESSOR,
    RECORD,
    SENT_TO,
    State,
    profile_words,
)

PEER, DESCRIPTOR = "peer", "descriptor"


class Reference(NamedTuple):
    """A word of a record that holds a handle.

    Attributes:
        offset: of the word, from the record's beginning.
        sort: PEER for a handle alone, DESCRIPTOR for one below an age, before a profile.
    """

    offset: int
    sort: str


def layouts_of(settings: Settings) -> dict[int, Layout]:
    """The bodies of all records between peers that agree on ``settings``, by kind."""
    return record_layouts(settings) | TABLE.layouts(settings)


class Codec:
    """Reads and rewrites the records of peers that agree on ``settings``.

    Attributes:
        profile_words: words of a profile.
        first_range: the word of a profile from which on it tells ranges.
        kinds: the kinds of record that there are between peers.
        most_references: most handles that the body of a record can hold.
        most_bytes: size of the largest record.
    """

    def __init__(self, settings: Settings) -> None:
        self.profile_words = profile_words(settings)
        self.first_range = settings.first_range
        self._layouts = layouts_of(settings)
        self._bounds = {kind: bounds_of(layout) for kind, layout in self._layouts.items()}
        self.kinds = frozenset(self._layouts)
        sizes = [most_of(layout, self.profile_words) for layout in self._layouts.values()]
        self.most_references = max(size.handles for size in sizes)
        self.most_bytes = WORD_BYTES * (BODY + max(size.words for size in sizes))

    def check(self, record: Sequence[int]) -> None:
        """Let a record from a stranger pass if every word of it is sane.

        Raises:
            MalformedRecordError: it is not of a kind between peers, or a word of it cannot be.
        """
        if len(record) < BODY or record[LENGTH] != len(record):
            raise MalformedRecordError(
                -1, "length", len(record), "as many words as the record says"
            )
        kind = record[KIND]
        if self._is_plainly_sane(record):
            return
        for name, place in (("sender", FROM), ("addressee", TO)):
            if not 0 <= record[place] <= HANDLE_MASK:
                raise MalformedRecordError(kind, name, record[place], f"0 to {HANDLE_MASK}")
        source = Source(kind, record, BODY, self.profile_words, self.first_range, own=record[FROM])
        for part in self._layout(kind):
            part.check(source)
        self._check_end(source)

    def rewrite(
        self, kind: int, body: Sequence[int], swap: Swap, *, profiles: bool = True
    ) -> list[int] | None:
        """The body of a record with its handles swapped.

        Entries of lists, and what may be missing, are left out where ``swap`` gives None; where it
        does so for anything else the record says nothing any more.

        Args:
            kind: of the record.
            body: its words after the header; counts are checked, other words are not.
            swap: what to put in place of handles.
            profiles: whether descriptors in ``body`` have profiles.

        Returns:
            The new body, or None where nothing is left of the record.

        Raises:
            MalformedRecordError: the body is not laid out as that kind is.
        """
        source = Source(kind, body, 0, self.profile_words if profiles else 0, swap=swap)
        target: list[int] = []
        for part in self._layout(kind):
            if not part.copy(source, target):
                return None
        self._check_end(source)
        return target

    def _is_plainly_sane(self, record: Sequence[int]) -> bool:
        """Whether `check` would find nothing, where that can be seen at a glance."""
        bounds = self._bounds.get(record[KIND])
        return (
            bounds is not None
            and len(record) == BODY + len(bounds)
            and record[TO] in HANDLES
            and record[FROM] in HANDLES
            and all(map(contains, bounds, record[BODY:]))
        )

    def references(self, record: Sequence[int]) -> list[Reference]:
        """Where handles stand in a record, its header included.

        Raises:
            MalformedRecordError: the record is not laid out as its kind is.
        """
        source = Source(record[KIND], record, BODY, self.profile_words)
        source.swap = finder = _Finder(source)
        for part in self._layout(record[KIND]):
            part.copy(source, [])
        self._check_end(source)
        return [Reference(TO, PEER), Reference(FROM, PEER), *finder.found]

    def replace_handles(
        self, record: Sequence[int], replacement: Callable[[int], int]
    ) -> list[int]:
        """A copy of a record with every handle replaced.

        Raises:
            MalformedRecordError: the record is not laid out as its kind is.
        """
        copy = list(record)
        for offset, sort in self.references(record):
            above = copy[offset] & ~HANDLE_MASK if sort == DESCRIPTOR else 0
            copy[offset] = above | replacement(copy[offset] & HANDLE_MASK)
        return copy

    def _layout(self, kind: int) -> Layout:
        layout = self._layouts.get(kind)
        if layout is None:
            raise MalformedRecordError(kind, "kind", kind, "one that peers send each other")
        return layout

    def _check_end(self, source: Source) -> None:
        if source.at != len(source.words):
            raise source.fail("length", len(source.words), f"{source.at} words")


@attrs.frozen
class _Finder:
    """Notes where handles are met."""

    source: Source
    found: list[Reference] = attrs.field(factory=list)

    def peer(self, word: int) -> int:
        self.found.append(Reference(self.source.at - 1, PEER))
        return word

    def descriptor(self, words: Sequence[int], _of_sender: bool) -> Sequence[int]:
        self.found.append(Reference(self.source.at - len(words), DESCRIPTOR))
        return words


def held_handles(s: State, p: int) -> set[int]:
    """Every handle of others that row ``p`` remembers, so that it must keep its meaning."""
    count = int(s.table_count[p])
    packed = (
        *(s.sampler.views[p], s.links[p], s.failed[p], s.asked[p], s.departed[p, :, 0]),
        *(s.owner[p, :count], s.installed_at[p]),
    )
    held = {int(word) & HANDLE_MASK for words in packed for word in words if word >= 0}
    others = s.comparison[p, ANSWERER : ANSWERER + 1].tolist()
    if s.params.move_rounds > 0:
        others += s.seat[p, [OLD_PREDECESSOR, OLD_SUCCESSOR]].tolist()
    for copy in s.under_way[p]:
        if copy[COPY] >= 0:
            others += [int(copy[SENT_TO]), int(copy[RECORD + EVENT_ORIGIN])]
    return held | {handle for handle in others if handle >= 0}
