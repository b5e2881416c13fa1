"""The engines' order of events, timers, commands and ticks, growth, checkpoints and threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gossamer.protocol.kernel.errors import CapacityError
from gossamer.sim.bench.engine_benchmarks import forward_step
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from gossamer.sim.engine.event_engine import EventEngine, draw_phases, make_transitions
from gossamer.sim.engine.latency import (
    constant_latency,
    make_bandwidth,
    make_sizes,
    uniform_latency,
)
from gossamer.sim.engine.link_conditions import LinkConditions, Partition, make_link_conditions
from gossamer.sim.engine.windows.window_engine import WindowEngine, suits_windows
from gossamer.sim.engine.windows.worker_threads import WorkerThreads, pinned, spread_over_cores
from gossamer.sim.errors import ScenarioError
from support import chatter
from support.ping_protocol import PING, SEND, TICK, log_records, make_pings, ping_step, send_command

Make = Callable[[], Any]
NODES = 8
WAY = 10


def constant(ticks: int) -> LinkConditions:
    return make_link_conditions(NODES, latency=constant_latency(ticks))


def engine_of(timers: tuple[int, ...] = (), nodes: int = NODES, **options: Any) -> EventEngine:
    made: dict[str, Any] = {"period": 100, "reserve": 256, "queue_words": 64}
    made |= {"observe": log_records, "collector": np.zeros((400, 5), np.int64)} | options
    return EventEngine(make_pings(nodes), ping_step, timers, make_network(nodes), 3, **made)


def by_sender(latency: int = WAY) -> EventEngine:
    """Pings that take WAY ticks and are taken by sender."""
    ticks = np.full((NODES, 1), 2 * WAY)
    links = constant(latency)
    return engine_of((TICK,), links=links, firing_ticks=lambda _cycle: ticks, by_sender=True)


def log_of(engine: EventEngine | WindowEngine) -> list[list[int]]:
    """(tick, kind, to, from, last word) of all records in the order in which they were taken."""
    rows: list[list[int]] = engine.collector[1 : engine.collector[0, 0] + 1].tolist()
    return rows


def logged(engine: EventEngine, kind: int) -> list[list[int]]:
    return [row[2:] for row in log_of(engine) if row[1] == kind]


def test_messages_arrive_whole_after_the_latency() -> None:
    engine = engine_of(links=constant(7))
    engine.run_until(20)
    engine.inject(send_command(1, 2))
    engine.run_until(27)
    assert engine.state.taken[2] == 0
    engine.run_until(28)
    assert (engine.state.taken[2], engine.pending) == (1, 0)
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
    assert engine.collector[1:7, 1].tolist() == [SEND] * 3 + [PING] * 3
    assert [word for _, _, word in logged(engine, PING)] == [5, 6, 7]


def test_timers_fire_once_a_round_at_its_ticks() -> None:
    engine = engine_of((TICK,))
    engine.run_cycle()
    assert engine.state.fired.tolist() == [1] * NODES
    engine.run_until(1000)
    assert (engine.state.fired.tolist(), engine.cycle) == ([10] * NODES, 10)

    # With ticks that differ from round to round; those of one tick in order of node.
    def firing_ticks(cycle: int) -> Any:
        return np.array([[(30 * p + 10 * cycle) % 90] for p in range(NODES)])

    engine = engine_of((TICK,), firing_ticks=firing_ticks)
    engine.run_until(100 + 41)
    assert [to for to, _, _ in logged(engine, TICK)] == [0, 3, 6, 1, 4, 7, 2, 5, 0, 3, 6, 1, 4, 7]
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
    assert (engine.state.taken[1], engine.tick) == (1, 100)
    assert engine.state.fired.tolist() == [1] * NODES
    assert engine.collector[NODES + 1 : NODES + 3, :2].tolist() == [[1, SEND], [1, PING]]


def test_default_phases_keep_the_order_of_timers_and_impossible_ones_are_named() -> None:
    phases = draw_phases(1000, 3, 10, seed=4)
    assert (np.diff(phases, axis=1) == 1).all()
    assert (phases.min(), phases.max()) == (0, 9)
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
    return [(kind, source, word) for _, kind, to, source, word in log_of(engine) if to == row]


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
    assert (taken_by(engine, 2), engine.pending) == ([(SEND, 2, 9)], 2)
    engine.run_cycle()
    assert taken_by(engine, 2) == [(SEND, 2, 9), (TICK, 2, 2), (PING, 1, 0)]
    assert (taken_by(engine, 4)[-1], engine.pending) == ((PING, 2, 9), 0)
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


# In windows


def ping_engine(**options: Any) -> WindowEngine:
    """Pings that take WAY ticks, with a log of all records."""
    made: dict[str, Any] = {"period": 100, "reserve": 256, "links": constant(WAY)}
    made |= {"observe": log_records, "collector": np.zeros((4000, 5), np.int64)} | options
    return WindowEngine(make_pings(NODES), ping_step, (TICK,), make_network(NODES), 3, **made)


def chatter_engine(**options: Any) -> WindowEngine:
    """Nodes that chat a lot, with everything at its smallest."""
    nodes = 40
    state, timers = chatter.make_chatter(nodes), (chatter.FIRST_TIMER,)
    links = make_link_conditions(nodes, seed=1, latency=uniform_latency(5, 900))
    made: dict[str, Any] = {"period": 100, "shard_rows": 4, "store_words": 1, "links": links}
    made |= {"observe": chatter.listen, "collector": state, "reserve": chatter.RESERVE} | options
    return WindowEngine(state, chatter.chatter_step, timers, make_network(nodes), 3, **made)


def test_commands_far_ahead_are_taken_at_their_tick() -> None:
    """Far beyond the ring of cells, which is dealt out again and again on the way."""
    engine = ping_engine(window=1)
    ticks = [3, 70, 700, 4095, 9999]
    for tick in ticks:
        engine.inject(send_command(0, 1), at=tick)
    for done, tick in enumerate(ticks):
        engine.run_until(tick)
        assert (engine.collector[:, 1] == SEND).sum() == done
        engine.run_until(tick + 1)
        assert (engine.collector[:, 1] == SEND).sum() == done + 1


@pytest.mark.parametrize(
    ("make", "other", "part"),
    [
        (engine_of, lambda: engine_of(nodes=NODES + 1), "queue.marks"),
        (ping_engine, chatter_engine, "calendar.words"),
    ],
)
def test_the_past_and_snapshots_of_others_are_refused(make: Make, other: Make, part: str) -> None:
    engine = make()
    engine.run_until(30)
    with pytest.raises(ValueError, match="tick is 29, expected 30 to"):
        engine.inject(send_command(0, 1), at=29)
    with pytest.raises(ValueError, match="tick is 7, expected 30 to"):
        engine.run_until(7)
    with pytest.raises(ValueError, match="record of 6 words"):
        engine.inject(np.array([5, SEND, 0, 0, 1, 0]))
    assert engine.pending == 0
    with pytest.raises(ValueError, match="is of shape"):
        engine.restore(other().snapshot())
    broken = engine.snapshot()
    del broken[part]
    with pytest.raises(ValueError, match="snapshot of"):
        engine.restore(broken)


def test_impossible_arguments_are_named() -> None:
    late = {"firing_ticks": lambda _cycle: np.full((NODES, 1), 100)}
    wrong = ({"period": 0}, {"window": 0}, {"window": WAY + 1}, {"shard_rows": 12})
    for options in (*wrong, {"shard_rows": 0}, late, {"links": make_link_conditions(NODES)}):
        (name,) = options
        with pytest.raises(ScenarioError, match=f"^{'latency' if name == 'links' else name} is "):
            ping_engine(**options).run_cycle()


def test_windows_suit_links_whose_least_latency_is_a_fiftieth_of_a_round() -> None:
    assert suits_windows(uniform_latency(20, 90), 1000)
    assert not suits_windows(uniform_latency(19, 90), 1000)
    assert not suits_windows(uniform_latency(0, 90), 1)


def test_a_store_or_an_outbox_that_may_not_grow_says_so() -> None:
    engine = chatter_engine(store_words_limit=1 << 17)

    def fill() -> None:
        for number in range(40_000):
            engine.inject(chatter.command(1, 1, number), at=400)

    with pytest.raises(CapacityError, match="store of records is full at 131072 entries"):
        fill()
    with pytest.raises(CapacityError, match="outbox is full at 16 entries; raise reserve"):
        ping_engine(reserve=16).inject(send_command(0, 1, list(range(30))))


def test_a_row_that_takes_a_great_many_takes_them_in_order() -> None:
    """More entries than are sorted as they come, from more senders than one."""
    engine = ping_engine(firing_ticks=lambda _cycle: np.zeros((0, 1), np.int64))
    sources = np.random.default_rng(4).integers(0, NODES, 700)
    for number, source in enumerate(sources.tolist()):
        engine.inject(send_command(source, (source + 1) % NODES, number), at=5)
    for number, source in enumerate(sources.tolist()):
        if source != 3:
            engine.inject(send_command(source, 3, 1000 + number), at=6)
    engine.run_until(50)
    to_three = [row[3:] for row in log_of(engine) if row[2] == 3 and row[4] >= 1000]
    pings = [pair for pair in to_three if pair[0] != 3]
    assert (len(pings), pings) == (int((sources != 3).sum()), sorted(pings))


def test_the_number_of_threads_can_change_on_the_way() -> None:
    steady, changing = chatter_engine(), chatter_engine()
    steady.run_until(3000)
    for part, threads in enumerate((1, 3, 2, 1, 4, 2)):
        changing.use_cores((None,) * threads)
        assert changing.threads == threads
        changing.run_until(500 * (part + 1))
    assert steady.state.chain.tolist() == changing.state.chain.tolist()
    assert steady.counts() == changing.counts()
    assert steady.pending == changing.pending > 0


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="only some systems pin threads")
def test_threads_stay_on_their_cores_and_a_single_one_is_pinned_nowhere() -> None:
    assert (spread_over_cores(1), spread_over_cores(100_000)) == ([None], [None] * 100_000)
    allowed = os.sched_getaffinity(0)
    core = min(allowed)
    seen: dict[int, set[int]] = {}

    def look(number: int) -> None:
        seen[number] = os.sched_getaffinity(0)

    threads = WorkerThreads([None, core])
    with pinned(core):
        assert os.sched_getaffinity(0) == {core}
    threads.run(look)
    assert seen == {0: allowed, 1: {core}}


def test_what_a_thread_raises_is_raised_when_all_have_ended() -> None:
    ended = threading.Event()

    def work(number: int) -> None:
        if number == 0:
            return
        ended.set()
        raise RuntimeError(f"worker {number}")

    with pytest.raises(RuntimeError, match="worker 1"):
        WorkerThreads([None, None]).run(work)
    assert ended.is_set()


def test_nodes_without_timers_only_take_what_they_are_sent_in_cycles() -> None:
    state = make_pings(3)
    engine = CycleEngine(state, ping_step, (), make_network(3), 1)
    engine.run_cycle()
    engine.inject(send_command(0, 2))
    engine.run_cycle()
    assert engine.cycle == 2
    assert (state.fired.tolist(), state.taken.tolist()) == ([0, 0, 0], [0, 0, 1])
