"""The simplest protocol there is, to measure what an engine itself costs."""

from __future__ import annotations

import numpy as np

from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.kernel.records import BODY, USER, Outbox, Words, close_record, open_record
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.state.state import Int64s

START = 1
PING = USER


class PingCounts(Struct):
    """What n nodes have seen: int64[n], pings taken."""

    taken: Int64s


def make_ping_counts(nodes: int) -> PingCounts:
    """Rows that have seen nothing."""
    return PingCounts(taken=np.zeros(nodes, np.int64))


@rule
def forward_step(
    state: PingCounts,
    p: int,
    now: int,  # noqa: ARG001  (as every step)
    words: Words,  # noqa: ARG001
    at: int,  # noqa: ARG001
    out: Outbox,
) -> None:
    """Whatever comes, send a ping to a random node: as many go on for ever as were started."""
    state.taken[p] += 1
    other = below(mix(1, p, state.taken[p]), len(state.taken))
    ping = open_record(out, PING, other, p, 1)
    out.words[ping + BODY] = state.taken[p]
    close_record(out, ping, 1)
