"""The windows engine at work on little: arguments, commands, growth, snapshots and threads."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
import pytest

from gossamer.protocol.kernel.errors import CapacityError
from gossamer.sim.engine.cycle_engine import make_network
from gossamer.sim.engine.latency import constant_latency, uniform_latency
from gossamer.sim.engine.link_conditions import make_link_conditions
from gossamer.sim.engine.windows.window_engine import WindowEngine, suits_windows
from gossamer.sim.engine.windows.worker_threads import WorkerThreads, pinned, spread_over_cores
from gossamer.sim.errors import ScenarioError
from support import chatter
from support.ping_protocol import SEND, TICK, log_records, make_pings, ping_step, send_command

NODES = 8
WAY = 10


def ping_engine(**options: Any) -> WindowEngine:
    """Pings that take WAY ticks, with a log of all records."""
    made: dict[str, Any] = {
        "period": 100,
        "links": make_link_conditions(NODES, latency=constant_latency(WAY)),
        "observe": log_records,
        "collector": np.zeros((4000, 5), np.int64),
        "reserve": 256,
    }
    state, network = make_pings(NODES), make_network(NODES)
    return WindowEngine(state, ping_step, (TICK,), network, 3, **(made | options))


def chatter_engine(**options: Any) -> WindowEngine:
    """Nodes that chat a lot, with everything at its smallest."""
    nodes = 40
    state = chatter.make_chatter(nodes)
    made: dict[str, Any] = {
        "period": 100,
        "links": make_link_conditions(nodes, seed=1, latency=uniform_latency(5, 900)),
        "observe": chatter.listen,
        "collector": state,
        "reserve": chatter.RESERVE,
        "shard_rows": 4,
        "store_words": 1,
    }
    timers, network = (chatter.FIRST_TIMER,), make_network(nodes)
    return WindowEngine(state, chatter.chatter_step, timers, network, 3, **(made | options))


def test_commands_far_ahead_are_taken_at_their_tick() -> None:
    """Far beyond the ring of cells, which is dealt out again and again on the way."""
    engine = ping_engine(window=1)
    ticks = [3, 70, 700, 4095, 9999]
    for tick in ticks:
        engine.inject(send_command(0, 1), at=tick)
    taken = []
    for tick in ticks:
        engine.run_until(tick)
        before = (engine.collector[:, 1] == SEND).sum()
        engine.run_until(tick + 1)
        taken.append(int((engine.collector[:, 1] == SEND).sum() - before))
    assert taken == [1] * len(ticks)


def test_the_past_and_snapshots_of_other_engines_are_refused() -> None:
    engine = ping_engine()
    engine.run_until(30)
    with pytest.raises(ValueError, match="tick is 29, expected 30 to"):
        engine.inject(send_command(0, 1), at=29)
    with pytest.raises(ValueError, match="tick is 7, expected 30 to"):
        engine.run_until(7)
    assert engine.pending == 0
    engine, other = ping_engine(), chatter_engine()
    with pytest.raises(ValueError, match="is of shape"):
        engine.restore(other.snapshot())
    broken = engine.snapshot()
    del broken["calendar.words"]
    with pytest.raises(ValueError, match="snapshot of"):
        engine.restore(broken)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"period": 0}, "period"),
        ({"window": 0}, "window"),
        ({"window": WAY + 1}, "window"),
        ({"shard_rows": 12}, "shard_rows"),
        ({"shard_rows": 0}, "shard_rows"),
        ({"links": make_link_conditions(NODES)}, "latency"),
        ({"firing_ticks": lambda _cycle: np.full((NODES, 1), 100)}, "firing_ticks"),
    ],
)
def test_impossible_arguments_are_named(options: dict[str, Any], field: str) -> None:
    with pytest.raises(ScenarioError, match=f"^{field} is "):
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
    draws = np.random.default_rng(4)
    sources = draws.integers(0, NODES, 700)
    for number, source in enumerate(sources.tolist()):
        engine.inject(send_command(source, (source + 1) % NODES, number), at=5)
    for number, source in enumerate(sources.tolist()):
        if source != 3:
            engine.inject(send_command(source, 3, 1000 + number), at=6)
    engine.run_until(50)
    log = engine.collector[1 : engine.collector[0, 0] + 1]
    to_three = [(int(row[3]), int(row[4])) for row in log if row[2] == 3 and row[4] >= 1000]
    pings = [pair for pair in to_three if pair[0] != 3]
    assert len(pings) == int((sources != 3).sum())
    assert pings == sorted(pings)


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
    assert spread_over_cores(1) == [None]
    assert spread_over_cores(100_000) == [None] * 100_000
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
