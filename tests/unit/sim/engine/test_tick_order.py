"""The order in which a row takes what is due at one tick, where records are taken by sender."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.sim.engine.cycle_engine import make_network
from gossamer.sim.engine.event_engine import EventEngine
from gossamer.sim.engine.latency import constant_latency
from gossamer.sim.engine.link_conditions import make_link_conditions
from gossamer.sim.errors import ScenarioError
from support.ping_protocol import PING, SEND, TICK, log_records, make_pings, ping_step, send_command

NODES = 8
WAY = 10


def engine_of(latency: int = WAY, **options: Any) -> EventEngine:
    """Pings that take WAY ticks and are taken by sender, with a log of all records."""
    return EventEngine(
        make_pings(NODES),
        ping_step,
        (TICK,),
        make_network(NODES),
        3,
        period=100,
        links=make_link_conditions(NODES, latency=constant_latency(latency)),
        firing_ticks=lambda _cycle: np.full((NODES, 1), 2 * WAY),
        observe=log_records,
        collector=np.zeros((400, 5), np.int64),
        reserve=256,
        queue_words=64,
        **{"by_sender": True} | options,
    )


def taken_by(engine: EventEngine, row: int) -> list[tuple[int, int, int]]:
    """(kind, from, last word) of what a row took, in order."""
    log = engine.collector[1 : engine.collector[0, 0] + 1].tolist()
    return [(kind, source, word) for _, kind, to, source, word in log if to == row]


def test_a_row_takes_timers_then_arrivals_by_sender_then_its_own() -> None:
    engine = engine_of()
    for number, source in enumerate((5, 3, 7, 3, 5, 1)):
        engine.inject(send_command(source, 2, number), at=WAY)
    engine.inject(send_command(2, 4, 9), at=2 * WAY)
    engine.run_until(3 * WAY)
    pings = [(PING, source, number) for source, number in ((1, 5), (3, 1), (3, 3), (5, 0), (5, 4))]
    assert taken_by(engine, 2) == [(TICK, 2, 2), *pings, (PING, 7, 2), (SEND, 2, 9)]


def test_a_command_without_a_tick_is_taken_ahead_of_what_is_due() -> None:
    engine = engine_of()
    engine.inject(send_command(1, 2, 0), at=WAY)
    engine.run_until(2 * WAY)
    engine.inject(send_command(2, 4, 9))
    assert taken_by(engine, 2) == [(SEND, 2, 9)]
    assert engine.pending == 2
    engine.run_cycle()
    assert taken_by(engine, 2) == [(SEND, 2, 9), (TICK, 2, 2), (PING, 1, 0)]
    assert taken_by(engine, 4)[-1] == (PING, 2, 9)
    assert engine.pending == 0


def test_a_tick_of_many_records_is_sorted() -> None:
    """Lists longer than a few runs, of lengths that are no powers of two."""
    for count in (1, 2, 3, 5, 64, 97):
        engine = engine_of()
        draws = np.random.default_rng(count)
        sent = [(int(draws.integers(3, NODES)), number) for number in range(count)]
        for source, number in sent:
            engine.inject(send_command(source, 2, number), at=WAY)
        engine.run_until(2 * WAY + 1)
        expected = [(PING, source, number) for source, number in sorted(sent)]
        assert taken_by(engine, 2)[1:] == expected


def test_without_latency_nothing_can_be_taken_by_sender() -> None:
    with pytest.raises(ScenarioError, match="latency is 0, expected at least 1 tick"):
        engine_of(latency=0)
