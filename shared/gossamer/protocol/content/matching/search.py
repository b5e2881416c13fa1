"""The one rule that answers every question to the index.

A publication, a filter and an advertisement are boxes of intervals over dimensions; they differ in
how stored boxes have to lie to them and in what a missing dimension means. The tree is walked from
the top; at a node that divides by a dimension, whole parts fall away, and so do parts without a
mark that is asked for.
"""

from __future__ import annotations

from gossamer.protocol.content.matching.table import (
    ABOVE,
    ACROSS,
    ALL_STORED,
    ASKED,
    BELOW,
    DOUBT_ALL,
    DOUBT_STORED,
    DOUBTFUL,
    ENCLOSING,
    ENOUGH,
    FREE,
    HEAD,
    HIGH,
    HOLDERS,
    IS_REQUIRED,
    IS_WANTED,
    LEAF,
    LENGTH,
    LISTED,
    LOW,
    MARKED,
    MARKS,
    MARKS_BELOW,
    MET,
    NEXT,
    NONE,
    OVERLAPPING,
    QUERY_HEADER,
    QUERY_WORDS,
    RECORD_HEADER,
    RELATION,
    ROW_WORDS,
    SEVERAL,
    SLOT,
    SPLIT,
    SPLIT_DIMENSION,
    STORED_WANTED,
    WANTED_HIGH,
    WANTED_LOW,
    WITHIN,
    Table,
)
from gossamer.protocol.kernel.prefetch import prefetch
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.kernel.struct import CACHE_LINE_WORDS

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
