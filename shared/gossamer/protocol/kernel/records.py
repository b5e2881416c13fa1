"""Messages: records of 64-bit words, and the outbox that rules write them to.

Everything that reaches a peer (timers, commands of its application, messages of other peers) and
everything that leaves it (messages, deliveries) is one record, so that hosts need a single queue
and `peer.step` is a single dispatch:

    word 0   LENGTH  of the record in words, these four included
    word 1   KIND    what it says; the protocol numbers its kinds
    word 2   TO      handle of the peer that is to take the record
    word 3   FROM    handle of the peer that wrote it
    word 4.. BODY    by kind

Handles are rows in the simulator and address-book entries in a node; rules compare them for
equality and nothing else. A host that learns that TO cannot be reached hands the record back to
FROM with UNREACHABLE added to its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.rules import Rule, inline_rule

Words = npt.NDArray[np.int64]

LENGTH = 0
KIND = 1
TO = 2
FROM = 3
BODY = 4

# Kinds from here on are the user's own.
USER = 128

# Added to the kind of a record that comes back because its addressee cannot be reached.
UNREACHABLE = 1 << 20

HEAD, TAIL, REFUSED, OPEN, CURSORS = 0, 1, 2, 3, 4

# In place of an open record: one was opened or closed while another was open, or closed with a body
# of less than no words.
OUT_OF_ORDER = -1


class Outbox(NamedTuple):
    """Where rules append records.

    Attributes:
        words: int64[capacity], the records one after another.
        cursor: int64[CURSORS]: first word not yet taken, first word not yet written, how many
            records found no room (a host raises `CapacityError` when that is not zero), and the
            offset of the record that is open plus 1, 0 for none (or OUT_OF_ORDER; a host that
            finds it other than 0 when a step has ended, has met a wrong rule).
    """

    words: Words
    cursor: Words


def make_outbox(capacity: int) -> Outbox:
    """An empty outbox of ``capacity`` words."""
    return Outbox(np.zeros(capacity, np.int64), np.zeros(CURSORS, np.int64))


class _OutboxRule(Rule):
    """A rule of outboxes; one that checks what is done with it brings a form of its own."""

    def __call__(self, out: Any, *args: Any) -> Any:
        if isinstance(out, Outbox):
            return super().__call__(out, *args)
        return getattr(out, self.source.__name__)(*args)


def _outbox_rule(function: Callable[..., Any]) -> Rule:
    return _OutboxRule(function, function, inline=True)


@_outbox_rule
def open_record(out: Outbox, kind: int, to: int, source: int, body_words: int) -> Any:
    """Begin a record of at most ``body_words`` body words.

    Returns the offset of its header, or -1 where there is no room (counted as refused). The
    record exists only after `close_record`, which comes (or `drop_record`) before the next is
    begun and before the step ends.
    """
    at = out.cursor[TAIL]
    if at + BODY + body_words > len(out.words):
        out.cursor[REFUSED] += 1
        return -1
    out.cursor[OPEN] = at + 1 if out.cursor[OPEN] == 0 else OUT_OF_ORDER
    out.words[at + KIND] = kind
    out.words[at + TO] = to
    out.words[at + FROM] = source
    return at


@_outbox_rule
def close_record(out: Outbox, at: int, body_words: int) -> None:
    """Finish the record opened at ``at`` with the body words really written."""
    in_order = out.cursor[OPEN] == at + 1 and body_words >= 0
    out.cursor[OPEN] = 0 if in_order else OUT_OF_ORDER
    out.words[at + LENGTH] = BODY + body_words
    out.cursor[TAIL] = at + BODY + body_words


@_outbox_rule
def drop_record(out: Outbox, at: int) -> None:
    """Give up the record opened at ``at``: it will not exist."""
    out.cursor[OPEN] = 0 if out.cursor[OPEN] == at + 1 else OUT_OF_ORDER


# Dispatch: from the kind of a record to the rule that takes it, by one table in both forms.
#
# Interpreters look a kind up. The compiler knows no table of rules, so for it the table becomes a
# chain of comparisons in the table's order, each link placed into the one before; it makes one jump
# of it.


def dispatch(table: Mapping[int, Rule]) -> Rule:
    """A rule that hands a record to the rule of its kind and says whether there is one.

    It is called with the kind and then as the rules of the table are, with the state, the row, the
    time, the words, the offset of the record and the outbox.

    Args:
        table: rules by kind, those that are called most first.
    """
    chain = _take_nothing
    for kind, handle in reversed(tuple(table.items())):
        chain = _link(kind, handle, chain)
    # As a function of its own the chain costs a tenth of a gossip round.
    return Rule(_look_up(dict(table)), chain.source, inline=True)


def _look_up(rules: dict[int, Rule]) -> Any:
    def take(kind: int, s: Any, p: int, now: int, words: Any, at: int, out: Outbox) -> bool:
        handle = rules.get(kind)
        if handle is None:
            return False
        handle(s, p, now, words, at, out)
        return True

    return take


def _link(own: int, handle: Rule, others: Rule) -> Rule:
    @inline_rule
    def take(kind: int, s: Any, p: int, now: int, words: Any, at: int, out: Outbox) -> Any:
        if kind == own:
            handle(s, p, now, words, at, out)
            return True
        return others(kind, s, p, now, words, at, out)

    return take


@inline_rule
def _take_nothing(
    _kind: int, _s: Any, _p: int, _now: int, _words: Any, _at: int, _out: Outbox
) -> bool:
    return False
