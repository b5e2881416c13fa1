"""Searching rows: what is asked for in loops over many words, without any meaning of its own.

A loop over a row costs an interpreter a tenth of a microsecond a word and more, so these have a
second form that leaves the loop to NumPy. Tests hold both forms equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.protocol.rules import rule_with_interpreted_form
from gossamer.protocol.struct import as_array


def _copy_row_at_once(rows: Any, i: int, j: int, words: Any) -> None:
    as_array(words)[:] = as_array(rows)[i, j]


@rule_with_interpreted_form(_copy_row_at_once)
def copy_row(rows: Any, i: int, j: int, words: Any) -> None:
    """Copy the row ``rows[i, j]`` to ``words``, which is as long."""
    for w in range(rows.shape[2]):
        words[w] = rows[i, j, w]


def _position_at_once(rows: Any, p: int, word: int) -> int:
    same = as_array(rows)[p] == word
    first = int(same.argmax())
    return first if same[first] else -1


@rule_with_interpreted_form(_position_at_once, inline=False)
def position(rows: Any, p: int, word: int) -> int:
    """Where ``word`` stands first in row ``p``, -1 where it does not; rows are not empty."""
    for i in range(rows.shape[1]):
        if rows[p, i] == word:
            return i
    return -1


def _find_boxes_at_once(
    boxes: Any, p: int, count: int, first: int, words: Any, at: int, size: int, found: Any
) -> int:
    ends = as_array(boxes)[p, :count].T
    held: Any = np.True_
    for d in range(size):
        value = words[at + d]
        held = held & (ends[first + 2 * d] <= value) & (ends[first + 2 * d + 1] >= value)
    places = held.nonzero()[0]
    as_array(found)[: len(places)] = places
    return len(places)


@rule_with_interpreted_form(_find_boxes_at_once, inline=False)
def find_boxes(
    boxes: Any, p: int, count: int, first: int, words: Any, at: int, size: int, found: Any
) -> int:
    """Write to ``found``, in order, which boxes hold a point, and return how many do.

    Args:
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
