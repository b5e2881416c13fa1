"""The arrays of a matching index, and the one rule that answers every question to it.

A publication, a filter and an advertisement are boxes of intervals over dimensions; they differ in
how stored boxes have to lie to them and in what a missing dimension means. The tree is walked from
the top; at a node that divides by a dimension, whole parts fall away, and so do parts without a
mark that is asked for.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from gossamer.protocol.kernel.prefetch import prefetch
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.kernel.struct import CACHE_LINE_WORDS, Struct

# The arrays of a matching index, which rules read and write.
#
# A filter has a slot, which stays, and a record of its constraints, which lies in the chain of one
# leaf of the tree: all that a search reads of a filter lies together, as most of its time goes into
# fetching that. Slots are linked as a forest: each filter hangs below one that covers it.
#
# A filter carries marks, which are bits, and a node those of all filters below it, so that a search
# for some marks does not enter parts without any.


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


FOUND_BITS = 32
EVERY = -1


@inline_rule
def write_wanted(table: Table) -> None:
    """Spread the query over `wanted`."""
    query, wanted = table.query, table.wanted
    for i in range(query[ASKED]):
        at = QUERY_HEADER + QUERY_WORDS * i
        dimension = query[at]
        wanted[dimension, IS_WANTED] = 1
        wanted[dimension, WANTED_LOW] = query[at + 1]
        wanted[dimension, WANTED_HIGH] = query[at + 2]
        wanted[dimension, IS_REQUIRED] = query[at + 3]


@inline_rule
def clear_wanted(table: Table) -> None:
    """Undo `write_wanted`."""
    for i in range(table.query[ASKED]):
        table.wanted[table.query[QUERY_HEADER + QUERY_WORDS * i], IS_WANTED] = 0


@inline_rule
def fits(table: Table, record: int) -> bool:
    """Whether a stored box lies to the wanted one as the query asks."""
    records, wanted, query = table.records, table.wanted, table.query
    relation = query[RELATION]
    stored_wanted = 0
    row = record + RECORD_HEADER
    for _ in range(records[record + LENGTH]):
        dimension, low, high = records[row], records[row + LOW], records[row + HIGH]
        row += ROW_WORDS
        if wanted[dimension, IS_WANTED] == 0:
            if query[ALL_STORED] != 0:
                return False
            continue
        wanted_low, wanted_high = wanted[dimension, WANTED_LOW], wanted[dimension, WANTED_HIGH]
        if relation == ENCLOSING:
            if low > wanted_low or high < wanted_high:
                return False
        elif relation == WITHIN:
            if low < wanted_low or high > wanted_high:
                return False
        elif low >= wanted_high or high <= wanted_low:
            return False
        stored_wanted += 1
    return bool(stored_wanted >= query[STORED_WANTED])


@inline_rule
def push(table: Table, node: int, depth: int) -> int:
    """Put a node on the stack, to be visited soon; returns the new depth."""
    prefetch(table.nodes, node, 0)
    table.stack[depth] = node
    return depth + 1


@inline_rule
def push_parts(table: Table, node: int, depth: int) -> int:
    """Put the parts of a node that may hold matches on the stack; returns its new depth.

    What constrains the dimension comes off the stack first: it is more specific.
    """
    nodes, query = table.nodes, table.query
    dimension, split = nodes[node, SPLIT_DIMENSION], nodes[node, SPLIT]
    is_wanted = table.wanted[dimension, IS_WANTED] != 0
    below = above = across = is_wanted or query[ALL_STORED] == 0
    if is_wanted:
        low, high = table.wanted[dimension, WANTED_LOW], table.wanted[dimension, WANTED_HIGH]
        if query[RELATION] == ENCLOSING:
            below, above = high <= split, low >= split
        else:
            below, above = low < split, high > split
            across = query[RELATION] == OVERLAPPING or (below and above)
    free = not is_wanted or table.wanted[dimension, IS_REQUIRED] == 0
    if free and nodes[node, FREE] != NONE:
        depth = push(table, nodes[node, FREE], depth)
    if across and nodes[node, ACROSS] != NONE:
        depth = push(table, nodes[node, ACROSS], depth)
    if below and nodes[node, BELOW] != NONE:
        depth = push(table, nodes[node, BELOW], depth)
    if above and nodes[node, ABOVE] != NONE:
        depth = push(table, nodes[node, ABOVE], depth)
    return depth


@rule
def search(table: Table) -> int:
    """Answer the query; writes `found`, and MET and HOLDERS of `counters`.

    Filters with a mark that is to be listed are found one by one. Of all others the answer is their
    marks: once more than one holder is known, those that were met are asked for no more, and whole
    parts of the tree fall away.

    Returns the number of matches, and that of doubtful ones times 2^FOUND_BITS. Stops at as many
    certain matches as are enough.
    """
    nodes, records, query = table.nodes, table.records, table.query
    marked, listed, enough = query[MARKED], query[LISTED], query[ENOUGH]
    found = doubtful = met = holders = 0
    write_wanted(table)
    table.stack[0] = 0
    depth = 1
    while depth > 0 and found < enough:
        depth -= 1
        node = table.stack[depth]
        if nodes[node, MARKS_BELOW] & marked == 0:
            continue
        if nodes[node, SPLIT_DIMENSION] != LEAF:
            depth = push_parts(table, node, depth)
            continue
        record = nodes[node, HEAD]
        while record != NONE:
            following = records[record + NEXT]
            if following != NONE:
                prefetch(records, following, 0)
                prefetch(records, following, CACHE_LINE_WORDS)
            marks = records[record + MARKS] & marked
            if marks != 0 and fits(table, record):
                doubt = query[DOUBT_STORED] != 0 and records[record + DOUBTFUL] != 0
                if doubt or query[DOUBT_ALL] != 0:
                    doubtful += 1
                    table.found[len(table.found) - doubtful] = records[record + SLOT]
                elif marks & listed != 0:
                    table.found[found] = records[record + SLOT]
                    found += 1
                else:
                    met |= marks
                    several = marks & (marks - 1) | marks & records[record + SEVERAL]
                    holders += 1 if several == 0 else 2
                    marked &= ~met if holders > 1 else EVERY
            record = following
    clear_wanted(table)
    table.counters[MET], table.counters[HOLDERS] = met, holders
    return found + (doubtful << FOUND_BITS)
