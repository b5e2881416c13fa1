"""The order in which a row takes what is due at one tick, whoever else does what.

First its timers; then what it has let in over its link or served of its input queue; then what
arrives, by (row that sent or returned it, that row's number of it); then records to itself, first
in first out. It depends on no row but sender and taker, so that engines may run rows in any order
they like.

The windows engine takes records in this order. The event queue keeps the order of insertion, in
which the records of one sender lie by their number already; a stable sort by taker and sender makes
it this one.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.records import FROM, KIND, TO, UNREACHABLE, Words
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.sim.engine.event_queue import NEXT, NOW, RECORD, EventQueue, place_of_tick
from gossamer.sim.engine.link_conditions import IN_SERVICE, STOPPED

_SERVED = -1


@inline_rule
def taker_of(words: Words, at: int) -> Any:
    """Who is to take the record at ``words[at:]``: its sender where it comes back."""
    kind = words[at + KIND]
    if kind >= STOPPED or (kind >= UNREACHABLE and kind < IN_SERVICE):
        return words[at + FROM]
    return words[at + TO]


@inline_rule
def giver_of(words: Words, at: int, nobody: int) -> Any:
    """Whose record it is to its taker: `_SERVED`, a row, or ``nobody`` for the taker's own.

    What a partition stops never left its sender.
    """
    kind = words[at + KIND]
    if kind >= STOPPED or words[at + FROM] == words[at + TO]:
        return nobody
    if kind >= IN_SERVICE:
        return _SERVED
    if kind >= UNREACHABLE:
        return words[at + TO]
    return words[at + FROM]


@rule
def sort_tick(queue: EventQueue, rows: int) -> None:
    """Sort what is due now, all of it sent before, to one of ``rows`` rows."""
    place = place_of_tick(queue.marks[NOW])
    if queue.first[place] >= 0:
        merge_sort(queue, place, rows)


@inline_rule
def precedes(words: Words, slot: int, other: int, rows: int) -> Any:
    """Whether the record in ``slot`` is to be taken before that in ``other``, which came later."""
    one, two = slot + RECORD, other + RECORD
    taker, other_taker = taker_of(words, one), taker_of(words, two)
    if taker != other_taker:
        return taker < other_taker
    return giver_of(words, one, rows) <= giver_of(words, two, rows)


@inline_rule
def merge_sort(queue: EventQueue, place: int, rows: int) -> None:
    """Sort a list of slots in place, from runs of one to runs of all; stable."""
    words = queue.words
    run = 1
    while True:
        rest = queue.first[place]
        last = -1
        merges = 0
        while rest >= 0:
            merges += 1
            one, two = rest, rest
            ones = 0
            while ones < run and two >= 0:
                ones += 1
                two = words[two + NEXT]
            twos = run
            while ones > 0 or (twos > 0 and two >= 0):
                if ones > 0 and (twos == 0 or two < 0 or precedes(words, one, two, rows)):
                    slot = one
                    one = words[one + NEXT]
                    ones -= 1
                else:
                    slot = two
                    two = words[two + NEXT]
                    twos -= 1
                if last < 0:
                    queue.first[place] = slot
                else:
                    words[last + NEXT] = slot
                last = slot
            rest = two
        words[last + NEXT] = -1
        queue.last[place] = last
        if merges <= 1:
            return
        run *= 2
