"""Whether what a step has written can be passed on, and what is wrong with it where it cannot.

Engines look at every record once, when the step that wrote it has ended: they index by its words,
so a wrong one would write into foreign memory.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.errors import RecordError
from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    KIND,
    LENGTH,
    OPEN,
    TAIL,
    TO,
    UNREACHABLE,
    Outbox,
    Words,
)
from gossamer.protocol.kernel.rules import inline_rule


@inline_rule
def is_sound(words: Words, at: int, end: int, population: int) -> Any:
    """Whether the record at ``words[at:end]``, or more records from there, begins as one should."""
    length, kind = words[at + LENGTH], words[at + KIND]
    to, source = words[at + TO], words[at + FROM]
    return (
        length >= BODY
        and length <= end - at
        and kind > 0
        and kind < UNREACHABLE
        and to >= 0
        and to < population
        and source >= 0
        and source < population
    )


@inline_rule
def all_closed(out: Outbox, first: int) -> Any:
    """Whether a step that began to write at ``first`` has finished every record it opened."""
    tail = out.cursor[TAIL]
    return out.cursor[OPEN] == 0 and first <= tail and tail <= len(out.words)


@inline_rule
def find_fault(out: Outbox, first: int, population: int) -> Any:
    """Where the first wrong record from offset ``first`` on begins, -1 where there is none."""
    if not all_closed(out, first):
        return first
    at = first
    while at < out.cursor[TAIL]:
        if not is_sound(out.words, at, out.cursor[TAIL], population):
            return at
        at += out.words[at + LENGTH]
    return -1


def fault_at(out: Outbox, at: int, population: int) -> RecordError:
    """The error that says what is wrong with the record that begins at offset ``at``."""
    opened = int(out.cursor[OPEN])
    if opened > 0:
        at = opened - 1
    at = min(max(at, 0), len(out.words) - BODY)
    header = [int(word) for word in out.words[at : at + BODY]]
    if opened > 0:
        fault = "it was opened and never closed, expected close_record before the step ends"
    elif opened < 0:
        fault = (
            "records were opened and closed in turns or closed with less than a header, "
            "expected each closed with its body words before the next is opened"
        )
    else:
        fault = _fault_of(header, int(out.cursor[TAIL]) - at, population)
    return RecordError(header[KIND], header[FROM], header[TO], population, fault)


def _fault_of(header: list[int], room: int, population: int) -> str:
    highest = population - 1
    if not 0 <= header[TO] <= highest:
        return f"TO is {header[TO]}, expected a peer from 0 to {highest}"
    if not 0 <= header[FROM] <= highest:
        return f"FROM is {header[FROM]}, expected a peer from 0 to {highest}"
    if not 0 < header[KIND] < UNREACHABLE:
        return f"KIND is {header[KIND]}, expected 1 to {UNREACHABLE - 1}"
    return f"LENGTH is {header[LENGTH]}, expected {BODY} to {max(room, BODY)}"


def check_command(record: Words, population: int) -> None:
    """Refuse a record that a host hands in, before anything happens.

    Raises:
        ValueError: it is not as long as it says.
        RecordError: it is to or from a peer that there is not.
    """
    if len(record) < BODY or record[LENGTH] != len(record):
        raise ValueError(f"record of {len(record)} words, expected as many as it says")
    header = [int(word) for word in record[:BODY]]
    if not (0 <= header[TO] < population and 0 <= header[FROM] < population):
        fault = _fault_of(header, len(record), population)
        raise RecordError(header[KIND], header[FROM], header[TO], population, fault)
