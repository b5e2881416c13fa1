"""Lists of nodes in columns: rules for a row that holds nodes from its left end on, then NOBODY.

``near = column(int, 20, initial=NOBODY)`` is such a list for every node, ``self.near[me]`` that of
node ``me``. Plain nodes have lists of Python, of which `add_to` is ``append`` within bounds and
`remove_from` is ``remove``.
"""

from __future__ import annotations

from typing import Any, Final

from gossamer.protocol.kernel.draws import below
from gossamer.protocol.kernel.rules import rule
from gossamer.sim.custom.library.draws import draw

NOBODY: Final = -1


@rule
def count_in(row: Any) -> Any:
    """How many nodes a row holds."""
    count = 0
    while count < len(row) and row[count] >= 0:
        count += 1
    return count


@rule
def place_in(row: Any, node: int) -> Any:
    """Where a node stands in a row, -1 where it does not."""
    for place in range(len(row)):
        if row[place] == node:
            return place
    return -1


@rule
def holds(row: Any, node: int) -> Any:
    """Whether a row holds a node."""
    return place_in(row, node) >= 0


@rule
def add_to(row: Any, node: int) -> Any:
    """Append a node; returns whether it did, as the row was not full and did not hold it."""
    for place in range(len(row)):
        if row[place] == node:
            return False
        if row[place] < 0:
            row[place] = node
            return True
    return False


@rule
def insert_at(row: Any, place: int, node: int) -> None:
    """Write a node to a place of a row; those from there on move down, the last one out."""
    for later in range(len(row) - 1, place, -1):
        row[later] = row[later - 1]
    row[place] = node


@rule
def remove_from(row: Any, node: int) -> Any:
    """Remove a node, those behind it move up; returns whether it was there."""
    place = 0
    while place < len(row) and row[place] != node:
        place += 1
    if node < 0 or place == len(row):
        return False
    while place + 1 < len(row) and row[place] >= 0:
        row[place] = row[place + 1]
        place += 1
    row[place] = -1
    return True


@rule
def draw_from(state: Any, me: int, row: Any) -> Any:
    """A node of a row, by the node's next draw; NOBODY, and no draw, where it holds none."""
    count = count_in(row)
    if count == 0:
        return -1
    return row[below(draw(state, me), count)]


@rule
def draw_but(state: Any, me: int, row: Any, but: int) -> Any:
    """A node of a row other than ``but``, by the next draw; NOBODY, and no draw, without such."""
    place = place_in(row, but) if but >= 0 else -1
    others = count_in(row) - (place >= 0)
    if others == 0:
        return -1
    drawn = below(draw(state, me), others)
    return row[drawn + 1] if 0 <= place <= drawn else row[drawn]


@rule
def put_into(state: Any, me: int, row: Any, node: int) -> Any:
    """Append another node to a row; where it is full a random one makes room.

    Returns:
        The node that made room; NOBODY where none had to, or nothing changed, as ``node`` is
        nobody, node ``me`` itself, or there already.
    """
    if node < 0 or node == me or place_in(row, node) >= 0 or add_to(row, node):
        return -1
    gone = draw_from(state, me, row)
    remove_from(row, gone)
    add_to(row, node)
    return gone
