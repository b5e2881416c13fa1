"""The arrays of a matching index, which rules read and write.

A filter has a slot, which stays, and a record of its constraints, which lies in the chain of one
leaf of the tree: all that a search reads of a filter lies together, as most of its time goes into
fetching that. Slots are linked as a forest: each filter hangs below one that covers it.

A filter carries marks, which are bits, and a node those of all filters below it, so that a search
for some marks does not enter parts without any.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gossamer.protocol.kernel.struct import Struct

# Columns of `slots`.
RECORD, CHILD, LEFT, RIGHT = range(4)
# Words of a record, before its rows: the slot, the next record of the leaf, the number of rows,
# whether they are not all there is to the filter, the slot it hangs below, its marks, and which of
# them stand for more than one holder.
SLOT, NEXT, LENGTH, DOUBTFUL, PARENT, MARKS, SEVERAL, RECORD_HEADER = range(8)
# Words of a row: a dimension, and an interval by its keys.
DIMENSION, LOW, HIGH, ROW_WORDS = range(4)
# Columns of `nodes`; the four children are named by their place, a leaf holds a chain instead.
SPLIT_DIMENSION, SPLIT, BELOW, ABOVE, ACROSS, FREE, COUNT, MARKS_BELOW, NODE_WORDS = range(9)
HEAD: Final = SPLIT
LEAF: Final = -1
NONE: Final = -1
# Columns of `wanted`; what a query asks of a dimension.
IS_WANTED, WANTED_LOW, WANTED_HIGH, IS_REQUIRED = range(4)
# Words of `counters`; the last two are an answer in marks, and how many holders it is sure of.
FREE_NODE, FREE_NODES, CHOSEN_DIMENSION, CHOSEN_SPLIT, MET, HOLDERS = range(6)
# The first words of `query`: how stored and wanted intervals have to lie, whether every stored
# dimension has to be wanted, how many wanted ones have to be stored, whose matches are in doubt,
# the marks that are asked for, those of them whose filters are listed, how many filters are enough,
# and how many dimensions follow.
(
    RELATION,
    ALL_STORED,
    STORED_WANTED,
    DOUBT_STORED,
    DOUBT_ALL,
    MARKED,
    LISTED,
    ENOUGH,
    ASKED,
    QUERY_HEADER,
) = range(10)
ENCLOSING, WITHIN, OVERLAPPING = range(3)
QUERY_WORDS: Final = 4
MARKS_FREE: Final = 60
"""Bits that marks of the host may use."""
HELD: Final = 1 << MARKS_FREE
"""The mark of every filter."""
ROOT: Final = HELD << 1
"""The mark of filters that hang below none."""

Words = np.ndarray[Any, np.dtype[np.int64]]


class Table(Struct):
    """Everything compiled code knows of an index; all arrays are int64.

    Attributes:
        slots: [filters, 4], see the columns above.
        records: where a slot's record begins there are its words, then those of its rows.
        nodes: [nodes, 8], the tree; node 0 is its root.
        budget: [nodes], additions and removals left until the part below is built anew.
        wanted: [dimensions, 4], what the present query asks; clear between queries.
        query: what the host asks, a header and QUERY_WORDS for each dimension.
        found: [filters], matches from the beginning, doubtful ones from the end.
        work, spare: [filters], records while a part of the tree is built.
        stack: for walking the tree.
        counters: see the words above.
    """

    slots: Words
    records: Words
    nodes: Words
    budget: Words
    wanted: Words
    query: Words
    found: Words
    work: Words
    spare: Words
    stack: Words
    counters: Words


def make_table(filters: int, words: int, nodes: int, dimensions: int) -> Table:
    """An empty table with room for so much, words being those of records."""
    table = Table(
        slots=np.full((filters, 4), NONE, np.int64),
        records=np.zeros(words, np.int64),
        nodes=np.zeros((nodes, NODE_WORDS), np.int64),
        budget=np.zeros(nodes, np.int64),
        wanted=np.zeros((dimensions, 4), np.int64),
        query=np.zeros(QUERY_HEADER + QUERY_WORDS * dimensions, np.int64),
        found=np.zeros(filters, np.int64),
        work=np.zeros(filters, np.int64),
        spare=np.zeros(filters, np.int64),
        stack=np.zeros(3 * nodes + 16, np.int64),
        counters=np.zeros(6, np.int64),
    )
    table.nodes[0] = (LEAF, NONE, NONE, NONE, NONE, NONE, 0, 0)
    _add_free_nodes(table, 1)
    return table


def grown(table: Table, filters: int, words: int, nodes: int, dimensions: int) -> Table:
    """A table with more room that holds the same."""
    larger = make_table(filters, words, nodes, dimensions)
    for name in ("slots", "records", "nodes", "budget"):
        before = getattr(table, name)
        getattr(larger, name)[: len(before)] = before
    larger.counters[:] = table.counters
    _add_free_nodes(larger, len(table.nodes))
    return larger


def _add_free_nodes(table: Table, first: int) -> None:
    """Chain the nodes from `first` on, before those that are free already."""
    more = len(table.nodes) - first
    if more:
        table.nodes[first:, SPLIT_DIMENSION] = LEAF
        table.nodes[first:, HEAD] = np.arange(first + 1, len(table.nodes) + 1)
        table.nodes[-1, HEAD] = table.counters[FREE_NODE] if table.counters[FREE_NODES] else NONE
        table.counters[FREE_NODE] = first
        table.counters[FREE_NODES] += more
