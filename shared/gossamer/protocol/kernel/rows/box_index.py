"""Which of many boxes hold a point, for interpreters: an index of boxes that seldom change.

Every dimension is cut at the ends of all boxes. Between two cuts the same boxes hold, which are the
bits of one number, so a point takes a search among the cuts of each dimension, and the numbers
found have the boxes in common that hold it. It is many times faster than to look at all boxes, and
takes as long to make as a hundred looks at them: boxes are indexed once they have been asked for as
often as there are of them. Indexes belong to the struct that holds the boxes, as whoever runs rules
interpreted hands it to them: a node's core, or an engine.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

# Indexes kept, of which one peer has two, and answers of each.
MAX_INDEXES: Final = 256
MAX_ANSWERS: Final = 256
# Boxes of an index, which grows as their square: this many take a megabyte.
MAX_BOXES: Final = 1024


class BoxIndex:
    """An index of the boxes in an array.

    Args:
        boxes: int64[m, w].
        first, size: word ``first`` begins the lowest and highest values of ``size`` dimensions.
        label_at: the word that is a box's label, -1 where boxes have none.
    """

    def __init__(self, boxes: Any, first: int, size: int, label_at: int) -> None:
        lows = boxes[:, first : first + 2 * size : 2].T.tolist()
        highs = boxes[:, first + 1 : first + 2 * size : 2].T.tolist()
        self._dimensions = [_stretches(*ends) for ends in zip(lows, highs, strict=True)]
        self._labelled: defaultdict[int, int] = defaultdict(int)
        for i, label in enumerate(boxes[:, label_at].tolist() if label_at >= 0 else ()):
            self._labelled[label] |= 1 << i
        self._all = (1 << len(boxes)) - 1
        self._answers: dict[int, memoryview] = {}

    def find(self, words: Any, at: int) -> memoryview:
        """The places of the boxes, in order, that hold the point at ``words[at:]``."""
        return self._find(self._all, words, at)

    def find_labelled(self, label: int, words: Any, at: int) -> memoryview:
        """`find` among the boxes of one label."""
        return self._find(self._labelled.get(label, 0), words, at)

    def _find(self, held: int, words: Any, at: int) -> memoryview:
        for cuts, holding in self._dimensions:
            held &= holding[bisect_right(cuts, words[at])]
            at += 1
        answer = self._answers.get(held)
        if answer is None:
            if len(self._answers) >= MAX_ANSWERS:
                self._answers.clear()
            answer = self._answers[held] = _places(held)
        return answer


def _stretches(lows: Sequence[int], highs: Sequence[int]) -> tuple[list[int], list[int]]:
    """Where other boxes begin to hold in one dimension, and the bits of those that do.

    The first are those before all cuts.
    """
    changes: defaultdict[int, int] = defaultdict(int)
    for i, (low, high) in enumerate(zip(lows, highs, strict=True)):
        if low <= high:
            changes[low] ^= 1 << i
            changes[high + 1] ^= 1 << i
    cuts = sorted(changes)
    holding = [0]
    for cut in cuts:
        holding.append(holding[-1] ^ changes[cut])
    return cuts, holding


def _places(bits: int) -> memoryview:
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return np.array(found, np.int64).data


class _Known:
    """The boxes that stood in one place when they were last looked at."""

    def __init__(self) -> None:
        self.content = b""
        self.looks = 0
        self.index: BoxIndex | None = None


class BoxIndexes:
    """The indexes of the boxes in one struct."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], _Known] = {}

    def find(
        self, array: Any, p: int, count: int, first: int, size: int, label_at: int = -1
    ) -> BoxIndex | None:
        """The index of the boxes ``array[p, :count]``, where it is worth having by now.

        Whether they have changed is found out by comparing all of their bytes. Boxes of one row
        that two arrays lay out alike are taken for changed ones by turns.

        Args:
            array: int64[n, m, w].
            p, count: where in it the boxes are.
            first, size, label_at: as of `BoxIndex`.
        """
        if count > MAX_BOXES:
            return None
        boxes = array[p, :count]
        content = boxes.tobytes()
        place = (p, array.shape[2], first, size, label_at)
        known = self._known.get(place)
        if known is None:
            if len(self._known) >= MAX_INDEXES:
                self._known.clear()
            known = self._known[place] = _Known()
        if known.content != content:
            known.content, known.looks, known.index = content, 0, None
        if known.index is None:
            known.looks += 1
            if known.looks > count:
                known.index = BoxIndex(boxes, first, size, label_at)
        return known.index


# The name of an attribute of structs, not a field: structs are pickled and compiled without it.
_INDEXES: Final = "_box_indexes"


def indexes_of(struct: Any) -> BoxIndexes:
    """The indexes of a struct as interpreted rules take it: kept with it, and gone with it.

    Args:
        struct: a `Struct`, boxed, unboxed or checked.
    """
    attributes = vars(struct)
    indexes: BoxIndexes | None = attributes.get(_INDEXES)
    if indexes is None:
        indexes = attributes[_INDEXES] = BoxIndexes()
    return indexes
