"""Whom the cycle engine tells a protocol of, so that it brings their memory near."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.protocol.kernel.records import (
    FROM,
    KIND,
    USER,
    Outbox,
    Words,
    close_record,
    open_record,
)
from gossamer.protocol.kernel.rules import rule, use_compiled
from gossamer.protocol.kernel.struct import Struct
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network

TURN, ASK, ANSWER = USER, USER + 1, USER + 2
PEERS = 8
TURNS_OF = 0


class Asked(Struct):
    """How many others peer 0 asks in its turn; nobody else asks.

    Attributes:
        others: int64[1].
        approached: int64[100, 2], the rows and kinds that were told of, in order.
        told: int64[1], how many.
    """

    others: Words
    approached: Words
    told: Words


@rule
def step(state: Asked, p: int, _now: int, words: Any, at: int, out: Outbox) -> None:
    """Ask the others, who answer."""
    if words[at + KIND] == TURN and p == TURNS_OF:
        for other in range(1, 1 + state.others[0]):
            close_record(out, open_record(out, ASK, other, p, 0), 0)
    elif words[at + KIND] == ASK:
        close_record(out, open_record(out, ANSWER, words[at + FROM], p, 0), 0)


@rule
def approach(state: Asked, row: int, kind: int) -> None:
    """Note who is told of."""
    state.approached[state.told[0], 0] = row
    state.approached[state.told[0], 1] = kind
    state.told[0] += 1


def told_of(others: int) -> list[tuple[int, int]]:
    """The rows and kinds of which a protocol is told in a cycle."""
    state = Asked(
        others=np.array([others]),
        approached=np.zeros((100, 2), np.int64),
        told=np.zeros(1, np.int64),
    )
    engine = CycleEngine(state, step, (TURN,), make_network(PEERS), 1, approach=approach)
    with use_compiled(False):
        engine.run_cycle()
    return [(row, kind) for row, kind in state.approached[: state.told[0]].tolist()]


def test_each_other_row_that_takes_a_record_is_told_of_once() -> None:
    for others in range(PEERS):
        assert told_of(others) == [(row, ASK) for row in range(1, 1 + others)]
