"""Cuts between strings, in order, with labels that grow as they do.

Order maintenance as in Dietz and Sleator (STOC 1987), in its simplest form: a new cut takes an even
label between its neighbours', and only where there is none left do all get new ones. A cut next to
the newest takes a label close to it, so that names which arrive in order do not halve what is left.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from typing import Final

from gossamer.protocol.content.filters.domains import Cut, Strings
from gossamer.protocol.content.matching.keys import LEAST, MOST

Relabelled = Callable[[list[int], list[int]], None]
"""Told the old labels in order and the new ones."""

_CHUNK: Final = 512
_STRIDE: Final = 1 << 40
_SHARE: Final = 64


class StringOrder:
    """Every cut that some filter uses, counted; a cut that none uses lies between two labels."""

    def __init__(self, relabelled: Relabelled) -> None:
        self._relabelled = relabelled
        self._labels: dict[Cut, int] = {}
        self._uses: dict[Cut, int] = {}
        self._chunks: list[list[Cut]] = [[]]
        self._newest: Cut | None = None

    def __len__(self) -> int:
        return len(self._labels)

    def key(self, cut: Cut) -> int:
        """The label of a cut; of one that is not in use, an odd key between its neighbours'."""
        label = self._labels.get(cut)
        if label is not None:
            return label
        if cut == Strings.bottom:
            return LEAST
        if cut == Strings.top:
            return MOST
        return self._neighbours(cut)[0] + 1

    def use(self, cut: Cut) -> None:
        """Count a use of a cut; all keys may change, of which `relabelled` is told."""
        if cut in self._uses:
            self._uses[cut] += 1
        elif cut not in (Strings.bottom, Strings.top):
            self._uses[cut] = 1
            self._labels[cut] = self._free_label(cut)
            self._put(cut)
            self._newest = cut

    def release(self, cut: Cut) -> None:
        """Count one use of a cut less."""
        if cut in (Strings.bottom, Strings.top):
            return
        self._uses[cut] -= 1
        if not self._uses[cut]:
            del self._uses[cut], self._labels[cut]
            self._drop(cut)

    def _free_label(self, cut: Cut) -> int:
        below, above = self._neighbours(cut)
        if above - below < 4:
            self._spread()
            below, above = self._neighbours(cut)
        newest = None if self._newest is None else self._labels.get(self._newest)
        step = max(min(_STRIDE, (above - below) // _SHARE), 2) & ~1
        if newest is not None and newest == below:
            return below + step
        if newest is not None and newest == above:
            return above - step
        return (below + above) // 2 & ~1

    def _spread(self) -> None:
        cuts = [cut for chunk in self._chunks for cut in chunk]
        old = [self._labels[cut] for cut in cuts]
        step = (MOST - LEAST) // (len(cuts) + 1) & ~1
        new = [LEAST + step * (place + 1) for place in range(len(cuts))]
        self._labels = dict(zip(cuts, new, strict=True))
        self._relabelled(old, new)

    def _neighbours(self, cut: Cut) -> tuple[int, int]:
        """The labels around a cut that has none."""
        place = self._chunk_of(cut)
        chunk = self._chunks[place]
        within = bisect_left(chunk, cut)
        if within:
            below = self._labels[chunk[within - 1]]
        else:
            below = LEAST if place == 0 else self._labels[self._chunks[place - 1][-1]]
        if within < len(chunk):
            above = self._labels[chunk[within]]
        else:
            last = place + 1 >= len(self._chunks)
            above = MOST if last else self._labels[self._chunks[place + 1][0]]
        return below, above

    def _chunk_of(self, cut: Cut) -> int:
        return max(bisect_right(self._chunks, cut, key=_first) - 1, 0)

    def _put(self, cut: Cut) -> None:
        place = self._chunk_of(cut)
        chunk = self._chunks[place]
        insort(chunk, cut)
        if len(chunk) > _CHUNK:
            half = len(chunk) // 2
            self._chunks.insert(place + 1, chunk[half:])
            del chunk[half:]

    def _drop(self, cut: Cut) -> None:
        place = self._chunk_of(cut)
        chunk = self._chunks[place]
        del chunk[bisect_left(chunk, cut)]
        if not chunk and len(self._chunks) > 1:
            del self._chunks[place]


def _first(chunk: list[Cut]) -> Cut:
    return chunk[0] if chunk else ()
