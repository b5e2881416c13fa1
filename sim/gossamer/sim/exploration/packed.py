"""A state of an exploration as packed words, and what rules do with it.

    word 0   LENGTH   of the state in words, this one included
    word 1   BUDGETS  what may still go wrong, 8 bits each
    word 2   STATUS   of the nodes, 2 bits each: not up yet, up, down
    word 3.. COLUMNS  of all nodes: int64 and float64 as they are, a bool a word
    then     the messages in flight, as records in ascending order

Two states are the same where these words are. What nodes have drawn is none of it: see `model`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    KIND,
    LENGTH,
    TAIL,
    TO,
    UNREACHABLE,
    Outbox,
    Words,
)
from gossamer.protocol.kernel.rules import inline_rule, rule, rule_with_interpreted_form
from gossamer.protocol.kernel.struct import Struct
from gossamer.sim.custom.language.context import LOGGED, handle_of
from gossamer.sim.engine.link_conditions import LATER

BUDGETS, STATUS, COLUMNS = 1, 2, 3
# What the budgets are of, in their order.
LOSSES, DUPLICATES, CRASHES, LEAVES, RESTARTS, ROUNDS = 0, 1, 2, 3, 4, 5
BUDGET_NAMES: Final = ("losses", "duplicates", "crashes", "leaves", "restarts", "rounds")
BUDGET_BITS, MOST_BUDGET = 8, 255
STATUS_BITS, MOST_NODES = 2, 31
NEVER, UP, DOWN = 0, 1, 2

Prints = npt.NDArray[np.uint64]
_MASK: Final = (1 << 64) - 1
# Odd constants of SplitMix64 and MurmurHash3, by which the two halves of a fingerprint differ.
_FACTORS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_FINAL: Final = (0xBF58476D1CE4E5B9, 0xFF51AFD7ED558CCD)


class Workspace(Struct, shared=True):
    """Where actions happen: the columns of one state, and scratch space.

    Attributes:
        nodes, width, choices, in_flight, rounds, round_ticks: numbers, see `model.Model`; width is
            the words of COLUMNS, of which ``whole`` are no bools.
        reports: whether a message to a node that is down comes back.
        columns, flags: int64[whole], bool[width - whole]; the memory of the protocol's state.
        draws: int64[parts, nodes], how often each node has drawn; memory of the state.
        positions: int64[parts, nodes, choices], what that is before a step.
        life, handles: arrays of the state.
        alive: bool[nodes].
        timers: int64[timers], kinds.
        out: what a step writes.
        own: int64[], the record that is taken.
        pool, order: the records of a new state, and where they begin, in ascending order.
        offsets: where the records of the present state begin.
        counts: int64[3], how many records and words are in the pool; whether the step drew.
        made, other: int64[], the new state, and the same with other names of the nodes.
        digest: uint64[2], its fingerprint.
        moved: int64[namings, width], where a column of the state is when nodes have changed places;
            renamed: int64[namings, nodes], the name of each node then.
        refers: bool[width], which columns hold nodes; fields: int64[], kinds of messages, each
            followed by what its fields are, see `symmetry`.
    """

    nodes: int
    width: int
    whole: int
    choices: int
    in_flight: int
    rounds: int
    round_ticks: int
    reports: bool
    columns: Words
    flags: Any
    draws: Words
    positions: Words
    life: Words
    handles: Words
    alive: Any
    timers: Words
    out: Outbox
    own: Words
    pool: Words
    order: Words
    offsets: Words
    counts: Words
    made: Words
    other: Words
    digest: Prints
    moved: Words
    renamed: Words
    refers: Any
    fields: Words


RECORDS, POOLED, DREW = 0, 1, 2


@inline_rule
def status_of(status: int, p: int) -> Any:
    """Whether node p has never been up, is up or down."""
    return (status >> (STATUS_BITS * p)) & 3


@inline_rule
def with_status(status: int, p: int, value: int) -> Any:
    """The word of all nodes in which node p is so."""
    return (status & ~(3 << (STATUS_BITS * p))) | (value << (STATUS_BITS * p))


@inline_rule
def left(budgets: int, which: int) -> Any:
    """How often something may still go wrong."""
    return (budgets >> (BUDGET_BITS * which)) & MOST_BUDGET


@inline_rule
def spent(budgets: int, which: int) -> Any:
    """The budgets when it has once more."""
    return budgets - (1 << (BUDGET_BITS * which))


@inline_rule
def taker_of(words: Words, at: int) -> Any:
    """Who takes a record: its sender where it came back."""
    return words[at + FROM] if words[at + KIND] >= UNREACHABLE else words[at + TO]


@inline_rule
def crosses_link(words: Words, at: int) -> Any:
    """Whether a record is a message to another node, on its way there."""
    return words[at + KIND] < UNREACHABLE and words[at + TO] != words[at + FROM]


@inline_rule
def are_equal(words: Words, first: int, second: int) -> Any:
    """Whether two records are the same."""
    length = words[first + LENGTH]
    for i in range(length):
        if words[first + i] != words[second + i]:
            return False
    return True


@rule
def load(w: Workspace, words: Words, at: int) -> None:
    """Let the columns be those of a state, and know who is up."""
    for i in range(w.whole):
        w.columns[i] = words[at + COLUMNS + i]
    for i in range(w.width - w.whole):
        w.flags[i] = words[at + COLUMNS + w.whole + i] != 0
    for p in range(w.nodes):
        w.alive[p] = status_of(words[at + STATUS], p) == UP


@rule
def find_records(w: Workspace, words: Words, at: int) -> Any:
    """Note where the records of a state begin; returns how many there are."""
    count, offset = 0, at + COLUMNS + w.width
    while offset < at + words[at + LENGTH]:
        w.offsets[count] = offset
        count += 1
        offset += words[offset + LENGTH]
    return count


@rule
def keep(w: Workspace, words: Words, at: int, status: int, budgets: int, arrived: bool) -> Any:
    """Put a record into the pool, unless nobody will take it; returns whether there was room.

    Args:
        w: the workspace.
        words, at: the record.
        status, budgets: of the new state.
        arrived: whether it has reached a node that was down.
    """
    kind = words[at + KIND]
    if kind == LOGGED:
        return True
    taker, back = taker_of(words, at), 0
    its = status_of(status, taker)
    if its != UP:
        if kind >= UNREACHABLE or kind == LATER:
            return True
        if arrived or (its == DOWN and left(budgets, RESTARTS) == 0):
            if not w.reports or status_of(status, words[at + FROM]) != UP:
                return True
            back = UNREACHABLE
    if kind == LATER:
        handle = handle_of(words, at)
        if handle != 0 and w.handles[taker, handle % w.handles.shape[1]] != handle:
            return True
    count, begin, length = w.counts[RECORDS], w.counts[POOLED], words[at + LENGTH]
    if count == len(w.order) or begin + length > len(w.pool):
        return False
    for i in range(length):
        w.pool[begin + i] = words[at + i]
    w.pool[begin + KIND] += back
    if kind == LATER:
        w.pool[begin + BODY] = 0  # its delay, as time is abstract
    w.order[count] = begin
    w.counts[RECORDS], w.counts[POOLED] = count + 1, begin + length
    return True


@inline_rule
def comes_before(words: Words, first: int, second: int) -> Any:
    """Whether a record comes before another in the order in which states have them."""
    for i in range(min(words[first + LENGTH], words[second + LENGTH])):
        if words[first + i] != words[second + i]:
            return words[first + i] < words[second + i]
    return False


@rule
def sort_records(w: Workspace) -> None:
    """Bring the records of the pool into their order; few are out of it."""
    for i in range(1, w.counts[RECORDS]):
        one, place = w.order[i], i
        while place > 0 and comes_before(w.pool, one, w.order[place - 1]):
            w.order[place] = w.order[place - 1]
            place -= 1
        w.order[place] = one


@rule
def write_state(w: Workspace, made: Words, status: int, budgets: int) -> None:
    """Write the columns and the sorted records of the pool as a state."""
    made[BUDGETS], made[STATUS] = budgets, status
    for i in range(w.whole):
        made[COLUMNS + i] = w.columns[i]
    for i in range(w.width - w.whole):
        made[COLUMNS + w.whole + i] = w.flags[i]
    end = COLUMNS + w.width
    for i in range(w.counts[RECORDS]):
        begin = w.order[i]
        for j in range(w.pool[begin + LENGTH]):
            made[end] = w.pool[begin + j]
            end += 1
    made[LENGTH] = end


@rule
def assemble(
    w: Workspace, words: Words, at: int, cut: int, arrived: bool, status: int, budgets: int
) -> Any:
    """Make the new state of the old one's records, but for that at ``cut``, and of the outbox.

    ``arrived`` is whether the record that is cut has reached a node that is down. Returns whether
    there was room for all records.
    """
    w.counts[RECORDS], w.counts[POOLED] = 0, 0
    offset, fits = at + COLUMNS + w.width, True
    while offset < at + words[at + LENGTH]:
        if offset != cut:
            fits = keep(w, words, offset, status, budgets, False) and fits
        elif arrived:
            fits = keep(w, words, offset, status, budgets, True) and fits
        offset += words[offset + LENGTH]
    offset = 0
    while offset < w.out.cursor[TAIL]:
        fits = keep(w, w.out.words, offset, status, budgets, False) and fits
        offset += w.out.words[offset + LENGTH]
    for p in range(w.nodes):
        w.alive[p] = status_of(status, p) == UP
    sort_records(w)
    if fits:
        write_state(w, w.made, status, budgets)
    return fits


def _fingerprint_interpreted(words: Words, length: int, into: Prints) -> None:
    for half in range(2):
        factor, final, h = _FACTORS[half], _FINAL[half], int(length) * _FACTORS[half] & _MASK
        for i in range(1, length):
            h = ((h ^ (int(words[i]) & _MASK)) * factor) & _MASK
            h ^= h >> 29
        h = ((h ^ (h >> 32)) * final) & _MASK
        into[half] = (h ^ (h >> 31)) | (half == 0)


@rule_with_interpreted_form(_fingerprint_interpreted)
def fingerprint(words: Words, length: int, into: Prints) -> None:
    """128 bits of a state, all but its length; the first half is never 0."""
    first, second = np.uint64(_FACTORS[0]), np.uint64(_FACTORS[1])
    h, k = np.uint64(length) * first, np.uint64(length) * second
    for i in range(1, length):
        h = (h ^ np.uint64(words[i])) * first
        k = (k ^ np.uint64(words[i])) * second
        h ^= h >> np.uint64(29)
        k ^= k >> np.uint64(29)
    h = (h ^ (h >> np.uint64(32))) * np.uint64(_FINAL[0])
    k = (k ^ (k >> np.uint64(32))) * np.uint64(_FINAL[1])
    into[0] = (h ^ (h >> np.uint64(31))) | np.uint64(1)
    into[1] = k ^ (k >> np.uint64(31))


def _slot_interpreted(high: int, size: int) -> int:
    return (int(high) >> 1) & (size - 1)


@rule_with_interpreted_form(_slot_interpreted)
def slot_of(high: int, size: int) -> Any:
    """Where the search for a fingerprint begins in a table, whose size is a power of two."""
    return np.int64((high >> np.uint64(1)) & np.uint64(size - 1))


@rule
def insert(table: Prints, first: int, second: int) -> Any:
    """Put a fingerprint into an open-addressed table, uint64[size, 2]; whether it is new there."""
    slot = slot_of(first, len(table))
    while table[slot, 0] != 0:
        if table[slot, 0] == first and table[slot, 1] == second:
            return False
        slot = (slot + 1) & (len(table) - 1)
    table[slot, 0], table[slot, 1] = first, second
    return True


@rule
def insert_all(table: Prints, prints: Prints) -> Any:
    """Put fingerprints into a table; returns how many were new."""
    count = 0
    for i in range(len(prints)):
        if prints[i, 0] != 0 and insert(table, prints[i, 0], prints[i, 1]):
            count += 1
    return count
