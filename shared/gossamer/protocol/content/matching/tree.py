"""How the tree takes filters up, lets them go, and is built.

A node divides filters by one dimension and a key: intervals below it, above it, across it, and
filters that do not constrain the dimension. It is an interval tree (Edelsbrunner 1980) whose nodes
choose their dimension, as in the BE-tree (Sadoghi and Jacobsen, SIGMOD 2011). A part is built anew
after as many additions and removals as it held filters, so the cost of keeping it balanced is
spread over them.
"""

from __future__ import annotations

from gossamer.protocol.content.matching.search import (
    ABOVE,
    ACROSS,
    BELOW,
    CHOSEN_DIMENSION,
    CHOSEN_SPLIT,
    COUNT,
    FREE,
    FREE_NODE,
    FREE_NODES,
    HEAD,
    HIGH,
    LEAF,
    LENGTH,
    LOW,
    MARKS,
    MARKS_BELOW,
    NEXT,
    NONE,
    RECORD_HEADER,
    ROW_WORDS,
    SEVERAL,
    SPLIT,
    SPLIT_DIMENSION,
    Table,
)
from gossamer.protocol.kernel.rules import inline_rule, rule

LEAF_SIZE = 8
"""Filters that a leaf holds at least before it is divided."""
SAMPLE = 16
"""Filters looked at to choose how to divide; all of them are candidates."""
LEAST_GAIN = 0.04
"""Share of a part that a division has to keep from being visited; less is not worth a node."""


@inline_rule
def side_of(table: Table, record: int, dimension: int, split: int) -> int:
    """The child that a filter belongs to."""
    records = table.records
    row = record + RECORD_HEADER
    for _ in range(records[record + LENGTH]):
        if records[row] == dimension:
            if records[row + HIGH] <= split:
                return BELOW
            return ABOVE if records[row + LOW] >= split else ACROSS
        row += ROW_WORDS
    return FREE


@inline_rule
def make_leaf(table: Table) -> int:
    """An empty leaf; the host keeps enough nodes free."""
    node = table.counters[FREE_NODE]
    table.counters[FREE_NODE] = table.nodes[node, HEAD]
    table.counters[FREE_NODES] -= 1
    clear_node(table, node)
    return int(node)


@inline_rule
def clear_node(table: Table, node: int) -> None:
    """Make a node an empty leaf."""
    nodes = table.nodes
    nodes[node, SPLIT_DIMENSION] = LEAF
    for column in range(HEAD, FREE + 1):
        nodes[node, column] = NONE
    nodes[node, COUNT] = 0
    nodes[node, MARKS_BELOW] = 0
    table.budget[node] = LEAF_SIZE


@inline_rule
def free_node(table: Table, node: int) -> None:
    """Give a node back; its word SPLIT is a link from now on, so it divides nothing."""
    table.nodes[node, SPLIT_DIMENSION] = LEAF
    table.nodes[node, HEAD] = table.counters[FREE_NODE]
    table.counters[FREE_NODE] = node
    table.counters[FREE_NODES] += 1


@rule
def insert(table: Table, record: int) -> None:
    """Put a record, whose rows and marks are written, into its leaf."""
    nodes, records = table.nodes, table.records
    node, worn = 0, NONE
    while True:
        nodes[node, COUNT] += 1
        nodes[node, MARKS_BELOW] |= records[record + MARKS]
        table.budget[node] -= 1
        if worn == NONE and table.budget[node] <= 0:
            worn = node
        if nodes[node, SPLIT_DIMENSION] == LEAF:
            break
        side = side_of(table, record, nodes[node, SPLIT_DIMENSION], nodes[node, SPLIT])
        if nodes[node, side] == NONE:
            nodes[node, side] = make_leaf(table)
        node = nodes[node, side]
    records[record + NEXT] = nodes[node, HEAD]
    nodes[node, HEAD] = record
    if worn != NONE:
        build(table, worn, gather(table, worn))


@rule
def remove(table: Table, record: int) -> None:
    """Take a record out of its leaf; its rows are as when it was put in."""
    nodes, records = table.nodes, table.records
    depth = descend(table, record)
    worn = NONE
    for place in range(depth):
        node = table.stack[place]
        nodes[node, COUNT] -= 1
        table.budget[node] -= 1
        if worn == NONE and table.budget[node] <= 0:
            worn = node
    leaf = table.stack[depth - 1]
    before = nodes[leaf, HEAD]
    if before == record:
        nodes[leaf, HEAD] = records[record + NEXT]
    else:
        while records[before + NEXT] != record:
            before = records[before + NEXT]
        records[before + NEXT] = records[record + NEXT]
    look_for_marks(table, depth)
    if worn != NONE:
        build(table, worn, gather(table, worn))


@rule
def set_marks(table: Table, record: int, marks: int, several: int) -> None:
    """Change the marks of a record that is in its leaf."""
    nodes, records = table.nodes, table.records
    lost = records[record + MARKS] & ~marks
    records[record + MARKS] = marks
    records[record + SEVERAL] = several
    depth = descend(table, record)
    if lost != 0:
        look_for_marks(table, depth)
    for place in range(depth):
        nodes[table.stack[place], MARKS_BELOW] |= marks


@inline_rule
def descend(table: Table, record: int) -> int:
    """Put the way to a record on the stack, its leaf last; returns how long it is."""
    nodes = table.nodes
    node = table.stack[0] = 0
    depth = 1
    while nodes[node, SPLIT_DIMENSION] != LEAF:
        side = side_of(table, record, nodes[node, SPLIT_DIMENSION], nodes[node, SPLIT])
        node = table.stack[depth] = nodes[node, side]
        depth += 1
    return depth


@inline_rule
def look_for_marks(table: Table, depth: int) -> None:
    """Find out again which marks there are below the nodes on the stack, from the leaf up."""
    nodes, records = table.nodes, table.records
    while depth > 0:
        depth -= 1
        node = table.stack[depth]
        marks = 0
        if nodes[node, SPLIT_DIMENSION] == LEAF:
            record = nodes[node, HEAD]
            while record != NONE:
                marks |= records[record + MARKS]
                record = records[record + NEXT]
        else:
            for side in range(BELOW, FREE + 1):
                if nodes[node, side] != NONE:
                    marks |= nodes[nodes[node, side], MARKS_BELOW]
        if marks == nodes[node, MARKS_BELOW]:
            return
        nodes[node, MARKS_BELOW] = marks


@rule
def gather(table: Table, top: int) -> int:
    """List the records below a node in `work`, free all nodes but itself; returns their number."""
    nodes, stack = table.nodes, table.stack
    stack[0] = top
    depth, gathered = 1, 0
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if nodes[node, SPLIT_DIMENSION] == LEAF:
            record = nodes[node, HEAD]
            while record != NONE:
                table.work[gathered] = record
                gathered += 1
                record = table.records[record + NEXT]
        else:
            for side in range(BELOW, FREE + 1):
                if nodes[node, side] != NONE:
                    stack[depth] = nodes[node, side]
                    depth += 1
        if node != top:
            free_node(table, node)
    return gathered


@rule
def build(table: Table, top: int, size: int) -> None:
    """Build the part below a node from the first `size` records of `work`."""
    stack = table.stack
    stack[0], stack[1], stack[2] = top, 0, size
    depth = 3
    while depth > 0:
        depth -= 3
        node, begin, end = stack[depth], stack[depth + 1], stack[depth + 2]
        clear_node(table, node)
        table.nodes[node, COUNT] = end - begin
        table.nodes[node, MARKS_BELOW] = marks_among(table, begin, end)
        table.budget[node] = max(end - begin, LEAF_SIZE)
        if (
            end - begin > LEAF_SIZE
            and table.counters[FREE_NODES] >= 4
            and choose_division(table, begin, end)
        ):
            depth = divide(table, node, begin, end, depth)
        else:
            chain(table, node, begin, end)


@inline_rule
def marks_among(table: Table, begin: int, end: int) -> int:
    """The marks of all records of a stretch of `work`."""
    marks = 0
    for i in range(begin, end):
        marks |= table.records[table.work[i] + MARKS]
    return marks


@inline_rule
def chain(table: Table, node: int, begin: int, end: int) -> None:
    """Make a node a leaf of a stretch of `work`."""
    for i in range(begin, end):
        record = table.work[i]
        table.records[record + NEXT] = table.nodes[node, HEAD]
        table.nodes[node, HEAD] = record


@inline_rule
def divide(table: Table, node: int, begin: int, end: int, depth: int) -> int:
    """Sort a stretch of `work` by side and push each part; returns the new depth of the stack."""
    work, spare, stack = table.work, table.spare, table.stack
    dimension, split = table.counters[CHOSEN_DIMENSION], table.counters[CHOSEN_SPLIT]
    table.nodes[node, SPLIT_DIMENSION] = dimension
    table.nodes[node, SPLIT] = split
    for i in range(begin, end):
        spare[i] = work[i]
    at = begin
    for side in range(BELOW, FREE + 1):
        part = at
        for i in range(begin, end):
            if side_of(table, spare[i], dimension, split) == side:
                work[at] = spare[i]
                at += 1
        if at > part:
            child = make_leaf(table)
            table.nodes[node, side] = child
            stack[depth], stack[depth + 1], stack[depth + 2] = child, part, at
            depth += 3
    return depth


@rule
def choose_division(table: Table, begin: int, end: int) -> bool:
    """Whether a stretch of `work` is worth dividing; notes by what."""
    records, counters = table.records, table.counters
    sampled = min(end - begin, SAMPLE)
    best = LEAST_GAIN * sampled
    chosen = False
    for i in range(sampled):
        record = table.work[begin + i * (end - begin) // sampled]
        row = record + RECORD_HEADER
        for _ in range(records[record + LENGTH]):
            for word in range(LOW, HIGH + 1):
                gain = gain_of(table, begin, end, records[row], records[row + word])
                if gain > best:
                    best = gain
                    counters[CHOSEN_DIMENSION] = records[row]
                    counters[CHOSEN_SPLIT] = records[row + word]
                    chosen = True
            row += ROW_WORDS
    return chosen


@inline_rule
def gain_of(table: Table, begin: int, end: int, dimension: int, split: int) -> float:
    """How many of the sampled filters a query need not visit on average, as a guess.

    Queries are taken to lie like the filters themselves: below and above the key, and with the
    dimension or without it (half as often), in proportion.
    """
    sampled = min(end - begin, SAMPLE)
    below = above = across = 0
    for i in range(sampled):
        side = side_of(table, table.work[begin + i * (end - begin) // sampled], dimension, split)
        if side == BELOW:
            below += 1
        elif side == ABOVE:
            above += 1
        elif side == ACROSS:
            across += 1
    constrained = below + above + across
    if max(below, above, across, sampled - constrained) == sampled:
        return 0.0
    lower = (below + 0.5 * across + 1) / (constrained + 2)
    by_value = lower * above + (1 - lower) * below
    by_presence = constrained * (sampled - constrained) / sampled
    return by_value + 0.5 * by_presence
