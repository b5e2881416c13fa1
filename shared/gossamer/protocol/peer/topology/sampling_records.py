"""Which rule takes which record of peer sampling, and when a sampler has its turn."""

from __future__ import annotations

from typing import Final

from gossamer.protocol.kernel.records import Outbox, Words
from gossamer.protocol.kernel.rules import Rule, rule
from gossamer.protocol.peer.record_table.records import SAMPLE_TIMER
from gossamer.protocol.peer.sampling.sampler import RULES, sample_rest
from gossamer.protocol.peer.state.resting import is_turn
from gossamer.protocol.peer.state.state import State


def _in_sampler(take: Rule) -> Rule:
    """Hands a record to a rule of the sampler."""

    @rule
    def on_sample_record(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
        take(s.sampler, p, now, words, at, out)

    return on_sample_record


_take_turn_in_sampler = _in_sampler(RULES[SAMPLE_TIMER])


@rule
def on_sample_timer(s: State, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
    """Let the sampler have its turn in the round that begins, or let its view grow older."""
    if is_turn(s, p, s.round[p] + 1):
        _take_turn_in_sampler(s, p, now, words, at, out)
    else:
        sample_rest(s.sampler, p, now, words, at, out)


SAMPLING: Final = {
    **{kind: _in_sampler(take) for kind, take in RULES.items()},
    SAMPLE_TIMER: on_sample_timer,
}
