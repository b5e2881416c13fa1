"""The event engine's order of events, timers, commands and ticks, growth and checkpoints."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.protocol.kernel.errors import CapacityError
from gossamer.sim.bench.ping_protocol import forward_step
from gossamer.sim.engine.bandwidth import make_bandwidth, make_sizes
from gossamer.sim.engine.cycle_engine import make_network
from gossamer.sim.engine.event_engine import EventEngine, draw_phases, make_transitions
from gossamer.sim.engine.latency import constant_latency, uniform_latency
from gossamer.sim.engine.link_conditions import LinkConditions, Partition, make_link_conditions
from gossamer.sim.errors import ScenarioError
from support.ping_protocol import PING, SEND, TICK, log_records, make_pings, ping_step, send_command

NODES = 8
WAY = 10


def constant(ticks: int) -> LinkConditions:
    return make_link_conditions(NODES, latency=constant_latency(ticks))


def engine_of(timers: tuple[int, ...] = (), nodes: int = NODES, **options: Any) -> EventEngine:
    """A small engine of pings that logs its records."""
    made: dict[str, Any] = {
        "observe": log_records,
        "collector": np.zeros((400, 5), np.int64),
        "reserve": 256,
        "queue_words": 64,
        "period": 100,
    }
    state, network = make_pings(nodes), make_network(nodes)
    return EventEngine(state, ping_step, timers, network, 3, **(made | options))


def by_sender(latency: int = WAY) -> EventEngine:
    """Pings that take WAY ticks and are taken by sender."""
    ticks = np.full((NODES, 1), 2 * WAY)
    links = constant(latency)
    return engine_of((TICK,), links=links, firing_ticks=lambda _cycle: ticks, by_sender=True)


def logged(engine: EventEngine, kind: int) -> list[list[int]]:
    """(to, from, last word) of the records of a kind in the order in which they were taken."""
    log = engine.collector
    rows = log[1 : log[0, 0] + 1]
    return [row[2:].tolist() for row in rows if row[1] == kind]


def test_messages_arrive_whole_after_the_latency() -> None:
    engine = engine_of(links=constant(7))
    engine.run_until(20)
    engine.inject(send_command(1, 2))
    engine.run_until(27)
    assert engine.state.taken[2] == 0
    engine.run_until(28)
    assert engine.state.taken[2] == 1
    assert engine.pending == 0
    engine = engine_of(queue_words=1)
    bodies = {to: list(range(1000 * to, 1000 * to + 3 * to)) for to in range(1, NODES)}
    for to, body in bodies.items():
        engine.inject(send_command(0, to, body), at=10 * to)
    engine.run_cycle()
    assert engine.state.last_word[1:].tolist() == [body[-1] for body in bodies.values()]


def test_records_of_one_tick_are_taken_in_order_of_insertion() -> None:
    """Commands given earlier come first; what they cause at once comes after all of them."""
    engine = engine_of()
    for body in (5, 6, 7):
        engine.inject(send_command(0, 1, body), at=50)
    engine.run_until(51)
    kinds = engine.collector[1:7, 1].tolist()
    assert kinds == [SEND] * 3 + [PING] * 3
    assert [word for _, _, word in logged(engine, PING)] == [5, 6, 7]


def test_timers_fire_once_a_round_at_its_ticks() -> None:
    engine = engine_of((TICK,))
    engine.run_cycle()
    assert engine.state.fired.tolist() == [1] * NODES
    engine.run_until(1000)
    assert engine.state.fired.tolist() == [10] * NODES
    assert engine.cycle == 10

    # With ticks that differ from round to round; those of one tick in order of node.
    def firing_ticks(cycle: int) -> Any:
        return np.array([[(30 * p + 10 * cycle) % 90] for p in range(NODES)])

    engine = engine_of((TICK,), firing_ticks=firing_ticks)
    engine.run_until(100 + 41)
    order = [to for to, _, _ in logged(engine, TICK)]
    assert order == [0, 3, 6, 1, 4, 7, 2, 5, 0, 3, 6, 1, 4, 7]
    assert engine.collector[1:15, 0].tolist() == [0] * 8 + [1] * 6


def test_nodes_that_are_down_do_nothing() -> None:
    transitions = make_transitions([250, 150, 350], [2, 2, 5], [True, False, False])
    engine = engine_of(
        (TICK,), transitions=transitions, firing_ticks=lambda _cycle: np.full((NODES, 1), 50)
    )
    engine.run_until(400)
    assert engine.state.fired.tolist() == [4, 4, 3, 4, 4, 3, 4, 4]
    assert engine.network.alive.tolist() == [True] * 5 + [False] + [True] * 2


def test_a_command_is_taken_at_once_and_before_the_timers_of_its_tick() -> None:
    engine = engine_of((TICK,), firing_ticks=lambda _cycle: np.zeros((NODES, 1), np.int64))
    engine.run_cycle()
    engine.inject(send_command(0, 1))
    assert engine.state.taken[1] == 1
    assert engine.tick == 100
    assert engine.state.fired.tolist() == [1] * NODES
    assert engine.collector[NODES + 1 : NODES + 3, :2].tolist() == [[1, SEND], [1, PING]]


def test_the_past_and_snapshots_of_other_engines_are_refused() -> None:
    engine = engine_of()
    engine.run_until(30)
    with pytest.raises(ValueError, match="tick is 29, expected 30 to"):
        engine.inject(send_command(0, 1), at=29)
    with pytest.raises(ValueError, match="tick is 7, expected 30 to"):
        engine.run_until(7)
    with pytest.raises(ValueError, match="record of 6 words"):
        engine.inject(np.array([5, SEND, 0, 0, 1, 0]))
    assert engine.pending == 0
    with pytest.raises(ValueError, match="is of shape"):
        engine.restore(engine_of(nodes=NODES + 1).snapshot())
    broken = engine.snapshot()
    del broken["queue.marks"]
    with pytest.raises(ValueError, match="snapshot of"):
        engine.restore(broken)


def test_default_phases_keep_the_order_of_timers_and_impossible_ones_are_named() -> None:
    phases = draw_phases(1000, 3, 10, seed=4)
    assert (np.diff(phases, axis=1) == 1).all()
    assert phases.min() == 0
    assert phases.max() == 9
    twice_at_once = {"firing_ticks": lambda _cycle: np.full((NODES, 2), 100)}
    for field, options in (("period", {"period": 1}), ("firing_ticks", twice_at_once)):
        with pytest.raises(ScenarioError, match=f"^{field} is "):
            engine_of((TICK, TICK + 1), **options).run_cycle()


def test_a_queue_that_may_not_grow_says_so_and_continues_when_it_may() -> None:
    """Nothing is lost: what was due is still waiting."""
    engine = engine_of(links=constant(50), queue_words=2048, queue_words_limit=2048)
    for number in range(200):
        engine.inject(send_command(0, 1, number), at=20)
    with pytest.raises(CapacityError, match="event queue is full at 2048 entries"):
        engine.run_cycle()
    assert engine.pending == 200
    roomy = engine_of(links=constant(50))
    roomy.restore(engine.snapshot())
    roomy.run_cycle()
    assert roomy.state.taken[1] == 200
    with pytest.raises(CapacityError, match="outbox is full at 16 entries; raise reserve"):
        engine_of(reserve=16).inject(send_command(0, 1, list(range(30))))


def rough_engine(queue_words: int) -> EventEngine:
    """Everything at once: latency, loss, duplicates, a partition, queues, churn."""
    nodes = 50
    sizes = make_sizes([-1] * PING + [20], [0] * PING + [0])
    links = make_link_conditions(
        nodes,
        seed=8,
        latency=uniform_latency(0, 9000),
        loss=0.02,
        duplication=0.02,
        partitions=[Partition(2000, 3000, np.arange(nodes) % 2)],
        bandwidth=make_bandwidth(nodes, sizes, up=30, down=100, up_queue=0, down_queue=0),
        service_ticks=1500,
        queue_limit=2,
    )
    draws = np.random.default_rng(11)
    transitions = make_transitions(
        draws.integers(0, 9000, 60), draws.integers(0, nodes, 60), draws.random(60) < 0.7
    )
    return EventEngine(
        *(make_pings(nodes), forward_step, (TICK,), make_network(nodes), 3),
        links=links,
        transitions=transitions,
        observe=log_records,
        collector=np.zeros((100_000, 5), np.int64),
        reserve=64,
        queue_words=queue_words,
    )


def test_a_restored_engine_continues_as_the_first_would() -> None:
    first = rough_engine(1)
    first.run_until(5_300)
    middle = first.snapshot()
    taken, log = first.state.taken.copy(), first.collector.copy()
    first.run_until(10_000)

    second = rough_engine(1 << 16)
    second.restore(middle)
    second.state.taken[:] = taken
    second.collector[:] = log
    second.run_until(10_000)
    assert first.collector[0, 0] > 500
    assert np.array_equal(first.collector, second.collector)
    assert first.counts() == second.counts()
    assert min(value for name, value in first.counts().items() if name != "beyond_capacity") > 0
    ends = first.snapshot(), second.snapshot()
    assert all(np.array_equal(ends[0][name], ends[1][name]) for name in ends[0])


def test_the_size_of_steps_in_time_changes_nothing() -> None:
    whole, pieces = rough_engine(1), rough_engine(1)
    whole.run_until(4000)
    for tick in range(0, 4001, 37):
        pieces.run_until(tick)
    pieces.run_until(4000)
    assert np.array_equal(whole.collector, pieces.collector)


# The order in which a row takes what is due at one tick


def taken_by(engine: EventEngine, row: int) -> list[tuple[int, int, int]]:
    """(kind, from, last word) of what a row took, in order."""
    log = engine.collector[1 : engine.collector[0, 0] + 1].tolist()
    return [(kind, source, word) for _, kind, to, source, word in log if to == row]


def test_a_row_takes_timers_then_arrivals_by_sender_then_its_own() -> None:
    engine = by_sender()
    for number, source in enumerate((5, 3, 7, 3, 5, 1)):
        engine.inject(send_command(source, 2, number), at=WAY)
    engine.inject(send_command(2, 4, 9), at=2 * WAY)
    engine.run_until(3 * WAY)
    pings = [(PING, source, number) for source, number in ((1, 5), (3, 1), (3, 3), (5, 0), (5, 4))]
    assert taken_by(engine, 2) == [(TICK, 2, 2), *pings, (PING, 7, 2), (SEND, 2, 9)]


def test_a_command_without_a_tick_is_taken_ahead_of_what_is_due_and_links_need_latency() -> None:
    engine = by_sender()
    engine.inject(send_command(1, 2, 0), at=WAY)
    engine.run_until(2 * WAY)
    engine.inject(send_command(2, 4, 9))
    assert taken_by(engine, 2) == [(SEND, 2, 9)]
    assert engine.pending == 2
    engine.run_cycle()
    assert taken_by(engine, 2) == [(SEND, 2, 9), (TICK, 2, 2), (PING, 1, 0)]
    assert taken_by(engine, 4)[-1] == (PING, 2, 9)
    assert engine.pending == 0
    with pytest.raises(ScenarioError, match="latency is 0, expected at least 1 tick"):
        by_sender(latency=0)


def test_a_tick_of_many_records_is_sorted() -> None:
    for count in (1, 2, 3, 5, 64, 97):
        engine = by_sender()
        draws = np.random.default_rng(count)
        sent = [(int(draws.integers(3, NODES)), number) for number in range(count)]
        for source, number in sent:
            engine.inject(send_command(source, 2, number), at=WAY)
        engine.run_until(2 * WAY + 1)
        expected = [(PING, source, number) for source, number in sorted(sent)]
        assert taken_by(engine, 2)[1:] == expected
