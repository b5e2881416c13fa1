"""A protocol that does everything engines allow, and whose state depends on the order of it all."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.protocol.kernel import records
from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.state.state import Int64s
from gossamer.sim.engine.link_conditions import DELAY_BITS, LATER

FIRST_TIMER, SECOND_TIMER = 1, 2
COMMAND, CHAT, NOTE = records.USER, records.USER + 1, records.USER + 2
HOPS, LONGEST_BODY = 3, 9
RESERVE = 256


class Chatter(Struct, shared=("scratch",)):
    """What n nodes have heard.

    Attributes:
        chain: int64[n], depends on every word that a node took, in order.
        taken: int64[n].
        heard: int64[n], as ``chain``, written by the observer.
        scratch: int64[LONGEST_BODY], written before it is read.
    """

    chain: Int64s
    taken: Int64s
    heard: Int64s
    scratch: Int64s


def make_chatter(nodes: int) -> Chatter:
    rows = {name: np.zeros(nodes, np.int64) for name in ("chain", "taken", "heard")}
    return Chatter(**rows, scratch=np.zeros(LONGEST_BODY, np.int64))


def command(row: int, source: int, number: int) -> records.Words:
    return np.array([records.BODY + 2, COMMAND, row, source, HOPS << DELAY_BITS, number], np.int64)


@rule
def chatter_step(
    state: Chatter, p: int, now: int, words: records.Words, at: int, out: records.Outbox
) -> None:
    """Take note of a record; send others, some of them to oneself."""
    state.taken[p] += 1
    chain = mix(state.chain[p], now, state.taken[p])
    for i in range(words[at + records.LENGTH]):
        chain = mix(chain, words[at + i], i)
    state.chain[p] = chain
    kind = words[at + records.KIND]
    hops = 1
    if words[at + records.LENGTH] > records.BODY:
        hops = (words[at + records.BODY] >> DELAY_BITS) - 1
    if hops < 0 or (kind >= records.UNREACHABLE and below(chain, 2) == 0):
        return
    for number in range(below(mix(chain, 1, 0), 3)):
        write(state, p, kind, hops, mix(chain, 2, number), out)


@rule
def write(state: Chatter, p: int, kind: int, hops: int, draw: int, out: records.Outbox) -> None:
    to = below(draw, len(state.taken))
    size = 1 + below(mix(draw, 0, 0), LONGEST_BODY)
    if below(mix(draw, 1, 0), 4) == 0:
        to = p
    for i in range(size):
        state.scratch[i] = mix(draw, 2, i)
    chat = NOTE if kind == CHAT else CHAT
    delay = 0
    if to == p and below(mix(draw, 3, 0), 2) == 0:
        # Of this tick, of the next ones, or of another round.
        delay = below(mix(draw, 4, 0), 5) * below(mix(draw, 5, 0), 90)
        chat = LATER
    record = records.open_record(out, chat, to, p, size)
    if record < 0:
        return
    for i in range(size):
        out.words[record + records.BODY + i] = state.scratch[i]
    out.words[record + records.BODY] = hops << DELAY_BITS | delay
    records.close_record(out, record, size)


@rule
def listen(state: Chatter, _state: Any, words: records.Words, at: int, now: int) -> None:
    """Note a record in the row that takes it; the observer."""
    p = words[at + 2]
    state.heard[p] = mix(state.heard[p], now, words[at + records.KIND])
    for i in range(words[at + records.LENGTH]):
        state.heard[p] = mix(state.heard[p], words[at + i], i)
