"""A simple protocol and collectors, for tests of the engines, and the windows engine for others."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.protocol.kernel import records
from gossamer.protocol.kernel.draws import mix
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.protocol.peer.state.state import Int64s
from gossamer.sim.engine.cycle_engine import Network
from gossamer.sim.engine.latency import constant_latency
from gossamer.sim.engine.link_conditions import make_link_conditions
from gossamer.sim.engine.windows.window_engine import WindowEngine

TICK = 1
SEND = 9
PING = records.USER


class Pings(Struct):
    """What n nodes have seen: timers, pings, pings that came back, the last word of a ping."""

    fired: Int64s
    taken: Int64s
    returned: Int64s
    last_word: Int64s


def make_pings(nodes: int) -> Pings:
    return Pings(**{name: np.zeros(nodes, np.int64) for name in Pings.__annotations__})


def send_command(source: int, to: int, body: int | list[int] = 0) -> records.Words:
    """The command that makes ``source`` send ``to`` a ping with this body."""
    words = [body] if isinstance(body, int) else body
    return np.array([records.BODY + 1 + len(words), SEND, source, source, to, *words], np.int64)


@rule
def ping_step(
    state: Pings, p: int, _now: int, words: records.Words, at: int, out: records.Outbox
) -> None:
    """Send pings on command; count everything."""
    kind = words[at + records.KIND]
    if kind == TICK:
        state.fired[p] += 1
    elif kind == SEND:
        count = words[at + records.LENGTH] - records.BODY - 1
        ping = records.open_record(out, PING, words[at + records.BODY], p, count)
        if ping >= 0:
            for i in range(count):
                out.words[ping + records.BODY + i] = words[at + records.BODY + 1 + i]
            records.close_record(out, ping, count)
    elif kind == PING:
        state.taken[p] += 1
        state.last_word[p] = words[at + words[at + records.LENGTH] - 1]
    elif kind == PING + records.UNREACHABLE:
        state.returned[p] += 1


@rule
def log_records(log: records.Words, _state: Any, words: records.Words, at: int, now: int) -> None:
    """Write down (now, kind, to, from, last word) of every record; log[0, 0] counts them.

    ``log`` is int64[m, 5]; what it has no room for is counted only.
    """
    log[0, 0] += 1
    row = log[0, 0]
    if row < len(log):
        log[row, 0] = now
        log[row, 1] = words[at + records.KIND]
        log[row, 2] = words[at + records.TO]
        log[row, 3] = words[at + records.FROM]
        log[row, 4] = words[at + words[at + records.LENGTH] - 1]


@rule
def chain_records(
    chain: records.Words, _state: Any, words: records.Words, at: int, now: int
) -> None:
    """Let chain[0] depend on every word of every record and on their order; chain[1] counts."""
    chain[1] += 1
    chain[0] = mix(chain[0], now, words[at + records.LENGTH])
    for i in range(words[at + records.LENGTH]):
        chain[0] = mix(chain[0], words[at + i], i)


def make_window_engine(
    state: Any, step: Any, timers: Any, network: Network, seed: int, **options: Any
) -> WindowEngine:
    """A windows engine; by default links are perfect but take a tick, and shards are small."""
    links = make_link_conditions(len(network.alive), latency=constant_latency(1))
    made: dict[str, Any] = {"links": links, "shard_rows": 2} | options
    return WindowEngine(state, step, timers, network, seed, **made)
