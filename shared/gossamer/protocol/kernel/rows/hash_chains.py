"""Finding a word in a ring of many: chains of those whose lowest bits are the same.

As in the windows of Lempel-Ziv compressors, chains need no care where the oldest word of a ring
makes room: a chain leads from newer to older places, and ends where the next place is newer, which
it is once that was written anew. So a word costs two writes, and finding it some three reads
whatever the size of the ring, where a search costs one for each place.

Heads and older places are one more than they are, 0 where there is none, so that new rows, which
are zeros, are empty and take no memory. Rings without chains, which are as fast while they are
small, have none of either.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.rows.row_search import position
from gossamer.protocol.kernel.rules import rule

# Words from which on a ring is worth its chains.
CHAINED_FROM = 512


def chains_of(words: int) -> tuple[int, int]:
    """How many heads, a power of two, and how many older places a ring of ``words`` has."""
    if words < CHAINED_FROM:
        return 0, 0
    return 1 << (words - 1).bit_length(), words


@rule
def chain(heads: Any, older: Any, p: int, place: int, word: int) -> None:
    """Note that ``word``, which the ring of row ``p`` does not hold, is written at ``place``."""
    if heads.shape[1] == 0:
        return
    head = word & (heads.shape[1] - 1)
    older[p, place] = heads[p, head]
    heads[p, head] = place + 1


@rule
def place_in_ring(rows: Any, heads: Any, older: Any, p: int, next_place: int, word: int) -> int:
    """Where the ring ``rows[p]`` holds ``word``, -1 where it does not.

    Args:
        rows: int64[n, m]; the places of a ring are written one after another, and over again.
        heads, older: int64[n, h] and int64[n, m], kept by `chain` for each place that is written.
        p, next_place: the place of row p that is written next.
        word: not negative.
    """
    if heads.shape[1] == 0:
        return int(position(rows, p, word))
    size = rows.shape[1]
    place = heads[p, word & (heads.shape[1] - 1)] - 1
    age = -1
    while place >= 0:
        past = (next_place - 1 - place) % size
        if past <= age:
            break
        if rows[p, place] == word:
            return int(place)
        age = past
        place = older[p, place] - 1
    return -1
