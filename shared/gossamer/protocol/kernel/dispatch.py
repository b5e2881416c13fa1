"""Dispatch: from the kind of a record to the rule that takes it, by one table in both forms.

Interpreters look a kind up. The compiler knows no table of rules, so for it the table becomes a
chain of comparisons in the table's order, each link placed into the one before; it makes one jump
of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gossamer.protocol.kernel.records import Outbox
from gossamer.protocol.kernel.rules import Rule, inline_rule


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
