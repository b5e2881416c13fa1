"""Row by row in windows, on any number of threads: the same to the bit as tick by tick.

Of random scenarios, some each time, and 20 of them, or as many as `--draws` says, as a campaign.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import attrs
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
from gossamer.sim.engine import latency as latencies
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from gossamer.sim.engine.event_engine import EventEngine, make_transitions
from gossamer.sim.engine.latency import make_bandwidth, make_sizes
from gossamer.sim.engine.link_conditions import LossPeriod, Partition, make_link_conditions
from gossamer.sim.engine.windows.window_engine import WindowEngine
from support import chatter
from support.draws import Draws, few_or_many

SCENARIOS: Final = 20
PERIOD: Final = 200
ROUNDS: Final = 6
THREADS: Final = (1, 2, 3, 8)
# Every record but timers is a message; one kind is of 20 bytes and 8 for each word but the first.
SIZES: Final = make_sizes([-1] * chatter.COMMAND + [40, 20, 60], [0] * chatter.COMMAND + [0, 1, 2])


@attrs.frozen
class Case:
    """A random scenario: how to make an engine for it, and what to do with that."""

    seed: int
    nodes: int
    least: int
    options: Callable[[], dict[str, Any]]
    steps: list[tuple[int, int | None, int, int]]
    """(tick to run to, tick of a command or None for at once, row, source)"""


def random_case(seed: int) -> Case:
    """A scenario with everything in it that a coin says."""
    draws = np.random.default_rng([seed, 20])
    nodes = int(draws.integers(2, 90))
    least = int(draws.integers(1, 120))
    kind = draws.integers(3)
    if kind == 0:
        latency = latencies.constant_latency(least)
    elif kind == 1:
        spread = int(draws.choice([1, 50, 70 * least]))
        latency = latencies.uniform_latency(least, least + spread)
    elif draws.integers(2):
        ticks = draws.integers(least, 3 * least + 1, (5, 5))
        ticks[0, 0] = least
        latency = latencies.matrix_latency(ticks, latencies.drawn_sites(len(ticks), nodes, seed))
    else:
        site = latencies.drawn_sites(7, nodes, seed)
        latency = latencies.coordinate_latency(draws.random((7, 3)) * 90, least, site)
    loss, duplication = draws.choice([0.0, 0.1], 2)
    parts = [
        Partition(int(begin), int(begin) + 150, draws.integers(0, 2, nodes))
        for begin in draws.integers(0, ROUNDS * PERIOD, int(draws.integers(3)))
    ]
    periods = [
        LossPeriod(int(begin), int(begin) + 200, float(draws.choice([0.0, 0.3])))
        for begin in draws.integers(0, ROUNDS * PERIOD, int(draws.integers(3)))
    ]
    rates = random_rates(draws, nodes)
    service: Any = draws.integers(0, 40, nodes) if draws.integers(2) else 0
    limit = int(draws.choice([1, 3, 1 << 30]))
    changes = int(draws.choice([0, 40]))
    transitions = make_transitions(
        draws.integers(0, ROUNDS * PERIOD, changes),
        draws.integers(0, nodes, changes),
        draws.random(changes) < 0.6,
    )
    fires = draws.integers(0, PERIOD, (ROUNDS + 1, nodes, 2)) if draws.integers(2) else None
    limited = chatter.CHAT if draws.integers(2) else 0
    reports = bool(draws.integers(2))
    tells_ticks = bool(draws.integers(2))

    def options() -> dict[str, Any]:
        return {
            "network": make_network(
                nodes, reports_unreachable=reports, limited_kind=limited, capacity=3
            ),
            "links": make_link_conditions(
                nodes,
                seed=seed,
                latency=latency,
                loss=float(loss),
                duplication=float(duplication),
                loss_periods=periods,
                partitions=parts,
                bandwidth=make_bandwidth(nodes, SIZES, **rates),
                service_ticks=service,
                queue_limit=limit,
            ),
            "transitions": transitions,
            "tells_ticks": tells_ticks,
            "firing_ticks": None if fires is None else lambda cycle: fires[cycle],
        }

    ticks = np.sort(draws.integers(0, ROUNDS * PERIOD, 8)).tolist()
    steps = [
        (
            tick,
            None if draws.integers(2) else tick + int(draws.integers(0, 90 * least)),
            int(draws.integers(nodes)),
            int(draws.integers(nodes)),
        )
        for tick in [*ticks, ticks[-1]]
    ]
    steps = [(*step[:3], step[2] if draws.integers(4) else step[3]) for step in steps]
    return Case(seed, nodes, least, options, steps)


def random_rates(draws: np.random.Generator, nodes: int) -> dict[str, Any]:
    """Bandwidths: of each way none, plenty (several messages a tick), or scarce."""
    rates: dict[str, Any] = {}
    for way in ("up", "down"):
        fastest = int(draws.choice([0, 2_000, 400_000]))
        if fastest:
            rates[way] = draws.integers(fastest // 10, fastest, nodes)
            rates[f"{way}_queue"] = [None, 100, 2000][draws.integers(3)]
    return rates


def make_engine(case: Case, engine: Any, **how: Any) -> Any:
    state, timers = chatter.make_chatter(case.nodes), (chatter.FIRST_TIMER, chatter.SECOND_TIMER)
    return engine(
        *(state, chatter.chatter_step, timers),
        seed=case.seed,
        period=PERIOD,
        observe=chatter.listen,
        collector=state,
        reserve=chatter.RESERVE,
        **case.options(),
        **how,
    )


def run(engine: Any, case: Case, first: int = 0, last: int | None = None) -> None:
    """Do some of a case's steps, and with the last of them the rest."""
    for number, (tick, at, row, source) in list(enumerate(case.steps))[first:last]:
        engine.run_until(tick)
        engine.inject(chatter.command(row, source, number), at=at)
    if last is None:
        engine.run_until(ROUNDS * PERIOD)


def outcome(engine: Any) -> dict[str, Any]:
    """All that two engines can have in common."""
    state: chatter.Chatter = engine.state
    links, network = engine.links, engine.network
    return {
        "chain": state.chain,
        "taken": state.taken,
        "heard": state.heard,
        "counts": engine.counts(),
        "pending": engine.pending,
        "tick": engine.tick,
        **{name: getattr(links, name) for name in ("sent", "free_at", "waiting", "longest")},
        **{name: getattr(links.bandwidth, name) for name in ("up_free", "down_free")},
        **{name: getattr(network, name) for name in ("alive", "taken")},
    }


def assert_same(one: dict[str, Any], other: dict[str, Any], told: str) -> None:
    for name, value in one.items():
        np.testing.assert_equal(other[name], value, err_msg=f"{name}, {told}")


@few_or_many(6, SCENARIOS)
def test_windows_on_any_threads_equal_the_wheel(count: int, draws: Draws) -> None:
    """1, 2, 3 and 8 threads, with shards and windows of other sizes each."""
    for seed in draws.numbers(count):
        case = random_case(seed)
        wheel = make_engine(case, EventEngine, by_sender=True, queue_words=1)
        run(wheel, case)
        expected = outcome(wheel)
        drawn = np.random.default_rng([seed, 21])
        for threads in THREADS:
            how = {
                "window": int(drawn.integers(1, case.least + 1)) if threads > 1 else None,
                "shard_rows": 1 << int(drawn.integers(0, 7)),
                "store_words": int(drawn.choice([1, 1 << 18])),
                "cores": (None,) * threads,
            }
            windows = make_engine(case, WindowEngine, **how)
            run(windows, case)
            assert_same(expected, outcome(windows), f"seed {seed}, {how}")


@few_or_many(6, SCENARIOS)
def test_a_restored_run_goes_on_as_it_would_have(count: int, draws: Draws) -> None:
    """With another number of threads, other shards and other windows than before."""
    for seed in draws.numbers(count)[::2]:
        case = random_case(seed)
        whole = make_engine(case, WindowEngine, cores=(None,) * 2, shard_rows=4)
        run(whole, case)

        first = make_engine(case, WindowEngine, cores=(None,) * 3, shard_rows=8)
        run(first, case, last=5)
        kept = first.snapshot()
        second = make_engine(case, WindowEngine, window=1 + case.least // 2)
        second.restore(kept)
        assert_same(kept, second.snapshot(), f"snapshot, seed {seed}")
        for name in ("chain", "taken", "heard"):
            getattr(second.state, name)[:] = getattr(first.state, name)
        run(second, case, first=5)
        assert_same(outcome(whole), outcome(second), f"seed {seed}")
        assert_same(whole.snapshot(), second.snapshot(), f"last snapshot, seed {seed}")


def test_the_scenarios_have_everything_in_them() -> None:
    """Every way that a record can go was gone, in the scenarios that always run."""
    total: dict[str, int] = {}
    for seed in range(SCENARIOS):
        case = random_case(seed)
        engine = make_engine(case, WindowEngine)
        run(engine, case)
        for name, count in engine.counts().items():
            total[name] = total.get(name, 0) + count
    assert min(total.values()) > 20, total
    assert total["passed"] > 10_000


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
    if words[at + KIND] == TURN and p == TURNS_OF:
        for other in range(1, 1 + state.others[0]):
            close_record(out, open_record(out, ASK, other, p, 0), 0)
    elif words[at + KIND] == ASK:
        close_record(out, open_record(out, ANSWER, words[at + FROM], p, 0), 0)


@rule
def approach(state: Asked, row: int, kind: int) -> None:
    state.approached[state.told[0], 0] = row
    state.approached[state.told[0], 1] = kind
    state.told[0] += 1


def told_of(others: int) -> list[tuple[int, int]]:
    approached, told = np.zeros((100, 2), np.int64), np.zeros(1, np.int64)
    state = Asked(others=np.array([others]), approached=approached, told=told)
    engine = CycleEngine(state, step, (TURN,), make_network(PEERS), 1, approach=approach)
    with use_compiled(False):
        engine.run_cycle()
    return [(row, kind) for row, kind in state.approached[: state.told[0]].tolist()]


def test_each_other_row_that_takes_a_record_is_told_of_once() -> None:
    for others in range(PEERS):
        assert told_of(others) == [(row, ASK) for row in range(1, 1 + others)]
