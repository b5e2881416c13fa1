"""Dispatch: from the kind of a record to the rule that takes it, by one table in both forms.

Interpreters look a kind up. The compiler knows no table of rules, so for it the table becomes a
chain of comparisons in the table's order, each link placed into the one before; it makes one jump
of it. A link has four comparisons, as each takes the compiler a while of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gossamer.protocol.kernel.records import Outbox
from gossamer.protocol.kernel.rules import Rule, inline_rule

# Comparisons in a link.
_LINK = 4


def dispatch(table: Mapping[int, Rule]) -> Rule:
    """A rule that hands a record to the rule of its kind and says whether there is one.

    It is called with the kind and then as the rules of the table are, with the state, the row, the
    time, the words, the offset of the record and the outbox.

    Args:
        table: rules by kind, those that are called most first.
    """
    entries = list(table.items())
    chain = _take_nothing
    while entries:
        begin = (len(entries) - 1) // _LINK * _LINK
        chain = _link(entries[begin:], chain)
        del entries[begin:]
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


def _link(entries: list[tuple[int, Rule]], others: Rule) -> Rule:
    """The rule that hands on records of four kinds at most, and all others to the next one."""
    # Nothing comes to a comparison that is there twice.
    again = [entries[-1]] * (_LINK - len(entries))
    (a, take_a), (b, take_b), (c, take_c), (d, take_d) = [*entries, *again]

    @inline_rule
    def take(kind: int, s: Any, p: int, now: int, words: Any, at: int, out: Outbox) -> Any:
        if kind == a:
            take_a(s, p, now, words, at, out)
        elif kind == b:
            take_b(s, p, now, words, at, out)
        elif kind == c:
            take_c(s, p, now, words, at, out)
        elif kind == d:
            take_d(s, p, now, words, at, out)
        else:
            return others(kind, s, p, now, words, at, out)
        return True

    return take


@inline_rule
def _take_nothing(
    _kind: int, _s: Any, _p: int, _now: int, _words: Any, _at: int, _out: Outbox
) -> bool:
    return False
