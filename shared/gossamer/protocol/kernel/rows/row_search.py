"""Searching, copying and comparing rows of words, in loops that have no meaning of their own.

A loop over a row costs an interpreter a tenth of a microsecond a word and more, so these have a
second form that leaves the loop to NumPy. Tests hold both forms equal.
"""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.rows.box_index import indexes_of
from gossamer.protocol.kernel.rules import rule_with_interpreted_form
from gossamer.protocol.kernel.struct import as_array


def _same(i: int) -> int:
    return i


@rule_with_interpreted_form(_same)
def index(i: int) -> Any:
    """``i`` for use as an index that is not negative.

    Spares the compiled form Python's counting from the end, which keeps loops over a row from
    being vectorised.
    """
    return np.uint64(i)


def _copy_row_at_once(rows: Any, i: int, j: int, words: Any) -> None:
    as_array(words)[:] = as_array(rows)[i, j]


@rule_with_interpreted_form(_copy_row_at_once)
def copy_row(rows: Any, i: int, j: int, words: Any) -> None:
    """Copy the row ``rows[i, j]`` to ``words``, which is as long."""
    for w in range(rows.shape[2]):
        words[w] = rows[i, j, w]


def _copy_words_at_once(words: Any, at: int, size: int, target: Any, to: int) -> None:
    copied = words[at : at + size]
    if type(target) is memoryview:
        target[to : to + size] = array(target.format, copied) if type(copied) is list else copied
    else:
        target[to : to + size] = copied if type(copied) is list else copied.tolist()


@rule_with_interpreted_form(_copy_words_at_once)
def copy_words(words: Any, at: int, size: int, target: Any, to: int) -> None:
    """Copy ``words[at:at + size]`` to ``target[to:]``, another array or later in the same one."""
    for w in range(size):
        target[to + w] = words[at + w]


# Words that are compared before any is looked at: a loop that may end at each is not vectorised,
# and takes ten times as long.
BLOCK = 64


def _count_at_once(rows: Any, p: int, begin: int, end: int, word: int) -> int:
    return int((as_array(rows)[p, begin:end] == word).sum())


@rule_with_interpreted_form(_count_at_once)
def count_of(rows: Any, p: int, begin: int, end: int, word: int) -> int:
    """How often ``word`` stands in ``rows[p, begin:end]``."""
    found = 0
    for i in range(begin, end):
        found += rows[index(p), index(i)] == word
    return found


def _position_at_once(rows: Any, p: int, word: int) -> int:
    same = as_array(rows)[p] == word
    first = int(same.argmax())
    return first if same[first] else -1


@rule_with_interpreted_form(_position_at_once, inline=False)
def position(rows: Any, p: int, word: int) -> int:
    """Where ``word`` stands first in row ``p``, -1 where it does not; rows are not empty."""
    size = rows.shape[1]
    begin = 0
    while begin < size:
        end = min(begin + BLOCK, size)
        if count_of(rows, p, begin, end, word) > 0:
            for i in range(begin, end):
                if rows[p, i] == word:
                    return i
        begin = end
    return -1


def _position_in_column_at_once(rows: Any, p: int, w: int, word: int) -> int:
    same = as_array(rows)[p, :, w] == word
    first = int(same.argmax())
    return first if same[first] else -1


@rule_with_interpreted_form(_position_in_column_at_once, inline=False)
def position_in_column(rows: Any, p: int, w: int, word: int) -> int:
    """The first i for which ``rows[p, i, w]`` is ``word``, -1 if none is; there are some rows."""
    for i in range(rows.shape[1]):
        if rows[p, i, w] == word:
            return i
    return -1


# Bits of a number that holds two places: one above them, one below.
PAIR_BITS = 32


def _around_in_column_at_once(rows: Any, keys: Any, p: int, w: int, point: int, mask: int) -> int:
    past = (as_array(rows)[p, :, w] - point) & mask
    filled = as_array(keys)[p] >= 0
    farthest = int(np.where(filled, past, -1).argmax())
    nearest = int(np.where(filled, past, mask).argmin())
    # Where all of those filled are as far as can be, an empty one may stand before them.
    nearest = nearest if filled[nearest] else farthest
    return farthest + 1 << PAIR_BITS | nearest + 1 if filled[farthest] else 0


@rule_with_interpreted_form(_around_in_column_at_once, inline=False)
def around_in_column(rows: Any, keys: Any, p: int, w: int, point: int, mask: int) -> int:
    """The places whose words, counted upwards from ``point`` and around, come last and first.

    Args:
        rows: int64[n, m, k]; word ``w`` of ``rows[p, i]`` is that of place i, if it is filled.
        keys: int64[n, m]; place i is filled where ``keys[p, i]`` is not negative.
        point, mask: a word lies ``(word - point) & mask`` past the point.

    Returns:
        Of either the first such place, plus 1, that of the last above `PAIR_BITS`; 0 where none
        is filled.
    """
    farthest = 0
    nearest = 0
    farthest_past = -1
    nearest_past = mask
    for i in range(keys.shape[1]):
        if keys[p, i] < 0:
            continue
        past = (rows[p, i, w] - point) & mask
        if past > farthest_past:
            farthest = i + 1
            farthest_past = past
        if past < nearest_past or nearest == 0:
            nearest = i + 1
            nearest_past = past
    return farthest << PAIR_BITS | nearest


def _is_in_ring_at_once(rows: Any, p: int, begin: int, end: int, word: int) -> bool:
    row = as_array(rows)[p]
    size = len(row)
    first = begin % size
    last = first + max(end - begin, 0)
    # Past its end, the ring goes on where it begins.
    return bool((row[first:last] == word).any() or (row[: max(0, last - size)] == word).any())


@rule_with_interpreted_form(_is_in_ring_at_once, inline=False)
def is_in_ring(rows: Any, p: int, begin: int, end: int, word: int) -> bool:
    """Whether row ``p``, a ring, holds ``word`` among its entries from number ``begin`` to ``end``.

    Entry i stands at place i modulo the size of the ring, which is not empty; ``end`` is past the
    last of them, and they are no more than fit.
    """
    size = rows.shape[1]
    number = end
    while number > begin:
        # A block ends where the ring does; the newest are looked at first.
        last = (number - 1) % size + 1
        first = max(last - min(BLOCK, number - begin), 0)
        if count_of(rows, p, first, last, word) > 0:
            return True
        number -= last - first
    return False


def _boxes_that_hold(ends: Any, first: int, words: Any, at: int, size: int) -> Any:
    held: Any = np.True_
    for d in range(size):
        value = words[at + d]
        held = held & (ends[first + 2 * d] <= value) & (ends[first + 2 * d + 1] >= value)
    return held


def _write_places(places: Any, found: Any) -> int:
    found[: len(places)] = places
    return len(places)


def _find_boxes_at_once(
    s: Any, boxes: Any, p: int, count: int, first: int, words: Any, at: int, size: int, found: Any
) -> int:
    array = as_array(boxes)
    index = indexes_of(s).find(array, p, count, first, size)
    if index is not None:
        return _write_places(index.find(words, at), found)
    held = _boxes_that_hold(array[p, :count].T, first, words, at, size)
    return _write_places(held.nonzero()[0].data, found)


@rule_with_interpreted_form(_find_boxes_at_once, inline=False)
def find_boxes(
    _s: Any, boxes: Any, p: int, count: int, first: int, words: Any, at: int, size: int, found: Any
) -> int:
    """Write to ``found``, in order, which boxes hold a point, and return how many do.

    Args:
        _s: the struct that boxes are a field of; interpreters keep an index of them with it.
        boxes: int64[n, m, w], a lowest and a highest value a dimension from word ``first`` on.
        p, count: the boxes are ``boxes[p, :count]``.
        first: the word of a box where its ends begin.
        words, at, size: the point is ``words[at:at + size]``.
        found: int64[m] at least.
    """
    held = 0
    for i in range(count):
        holds = True
        for d in range(size):
            value = words[at + d]
            if value < boxes[p, i, first + 2 * d] or value > boxes[p, i, first + 2 * d + 1]:
                holds = False
                break
        if holds:
            found[held] = i
            held += 1
    return held


def _find_labelled_boxes_at_once(
    s: Any,
    boxes: Any,
    p: int,
    count: int,
    label_at: int,
    label: int,
    first: int,
    words: Any,
    at: int,
    size: int,
    found: Any,
) -> int:
    array = as_array(boxes)
    index = indexes_of(s).find(array, p, count, first, size, label_at)
    if index is not None:
        return _write_places(index.find_labelled(label, words, at), found)
    ends = array[p, :count].T
    held = (ends[label_at] == label) & _boxes_that_hold(ends, first, words, at, size)
    return _write_places(held.nonzero()[0].data, found)


@rule_with_interpreted_form(_find_labelled_boxes_at_once, inline=False)
def find_labelled_boxes(
    _s: Any,
    boxes: Any,
    p: int,
    count: int,
    label_at: int,
    label: int,
    first: int,
    words: Any,
    at: int,
    size: int,
    found: Any,
) -> int:
    """`find_boxes` among the boxes of which word ``label_at`` is ``label``."""
    held = 0
    for i in range(count):
        holds = boxes[p, i, label_at] == label
        for d in range(size):
            if not holds:
                break
            value = words[at + d]
            if value < boxes[p, i, first + 2 * d] or value > boxes[p, i, first + 2 * d + 1]:
                holds = False
        if holds:
            found[held] = i
            held += 1
    return held


def _mark_points_at_once(
    points: Any, p: int, words: Any, at: int, size: int, mark: int, marks: Any
) -> None:
    columns = as_array(points)[p].T
    held: Any = np.True_
    for d in range(size):
        held = held & (columns[d] >= words[at + 2 * d]) & (columns[d] <= words[at + 2 * d + 1])
    as_array(marks)[held] |= mark


@rule_with_interpreted_form(_mark_points_at_once, inline=False)
def mark_points(points: Any, p: int, words: Any, at: int, size: int, mark: int, marks: Any) -> None:
    """Set the bits of ``mark`` in the marks of all points that a box holds.

    Args:
        points: int64[n, m, size]; those of row ``p`` are looked at.
        words, at: the box, a lowest and a highest value a dimension from ``words[at]`` on.
        marks: int64[m].
    """
    for i in range(points.shape[1]):
        holds = True
        for d in range(size):
            value = points[p, i, d]
            if value < words[at + 2 * d] or value > words[at + 2 * d + 1]:
                holds = False
                break
        if holds:
            marks[i] |= mark


# Copying, comparing and summing up rows, so that a change of them is noticed; see `scans`.


def _write_rows_at_once(rows: Any, first: int, count: int, words: Any, at: int) -> None:
    copied = as_array(rows)[first : first + count].ravel().tolist()
    as_array(words)[at : at + len(copied)] = copied


@rule_with_interpreted_form(_write_rows_at_once)
def write_rows(rows: Any, first: int, count: int, words: Any, at: int) -> None:
    """Write ``rows[first:first + count]`` to ``words[at:]``, one after another."""
    size = rows.shape[1]
    for i in range(count):
        for w in range(size):
            words[at + i * size + w] = rows[first + i, w]


def _row_differs_at_once(rows: Any, i: int, j: int, words: Any, at: int) -> bool:
    row = as_array(rows)[i, j].tolist()
    return bool(row != list(words[at : at + len(row)]))


@rule_with_interpreted_form(_row_differs_at_once)
def row_differs(rows: Any, i: int, j: int, words: Any, at: int) -> Any:
    """Whether the row ``rows[i, j]`` is other than what stands at ``words[at:]``."""
    # No branch: mostly all words are alike.
    changes = 0
    for w in range(rows.shape[2]):
        changes |= rows[index(i), index(j), index(w)] ^ words[index(at + w)]
    return changes != 0


# Odd, so that no word is lost; the multiplier of Knuth's MMIX generator.
_FACTOR: Final = 6364136223846793005
_WORD: Final = 1 << 64
_SIGN: Final = 1 << 63


def _signed(number: int) -> int:
    """The number of 64 bits with a sign that has the lowest bits of this one."""
    return (number + _SIGN) % _WORD - _SIGN


# Its powers, so that of four words in a row only one product waits for what came before.
_SQUARE: Final = _signed(_FACTOR**2)
_CUBE: Final = _signed(_FACTOR**3)
_FOURTH: Final = _signed(_FACTOR**4)


@lru_cache(64)
def _powers(count: int) -> npt.NDArray[np.int64]:
    """The powers of the factor from ``count`` down to 0, modulo 2^64."""
    powers = np.empty(count + 1, np.uint64)
    power = 1
    for i in range(count, -1, -1):
        powers[i] = power
        power = power * _FACTOR % _WORD
    return powers.view(np.int64)


def _digest_at_once(digest: int, words: npt.NDArray[np.int64]) -> int:
    powers = _powers(words.size)
    return _signed(int(digest) * int(powers[0]) + int(words.ravel().dot(powers[1:])))


def _digest_row_at_once(digest: int, rows: Any, p: int) -> int:
    return _digest_at_once(digest, as_array(rows)[p])


@rule_with_interpreted_form(_digest_row_at_once, inline=False)
def digest_row(digest: int, rows: Any, p: int) -> int:
    """The digest of what came before and the words of row ``p``, modulo 2^64."""
    words = rows.shape[1]
    whole = words - words % 4
    for w in range(0, whole, 4):
        ahead = rows[p, w] * _CUBE + rows[p, w + 1] * _SQUARE + rows[p, w + 2] * _FACTOR
        digest = digest * _FOURTH + (ahead + rows[p, w + 3])
    for w in range(whole, words):
        digest = digest * _FACTOR + rows[p, w]
    return digest


def _digest_rows_at_once(digest: int, rows: Any, p: int, count: int) -> int:
    return _digest_at_once(digest, as_array(rows)[p, :count])


@rule_with_interpreted_form(_digest_rows_at_once, inline=False)
def digest_rows(digest: int, rows: Any, p: int, count: int) -> int:
    """The digest of what came before and the words of ``rows[p, :count]``, modulo 2^64."""
    words = rows.shape[2]
    whole = words - words % 4
    for i in range(count):
        for w in range(0, whole, 4):
            ahead = rows[p, i, w] * _CUBE + rows[p, i, w + 1] * _SQUARE
            ahead += rows[p, i, w + 2] * _FACTOR
            digest = digest * _FOURTH + (ahead + rows[p, i, w + 3])
        for w in range(whole, words):
            digest = digest * _FACTOR + rows[p, i, w]
    return digest
