"""Bandwidth: links up and down as queues, against a slow oracle; and latency models."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.engine import latency as latencies
from gossamer.sim.engine.bandwidth import make_bandwidth, make_sizes, ticks_through
from gossamer.sim.engine.cycle_engine import make_network
from gossamer.sim.engine.event_engine import EventEngine
from gossamer.sim.engine.link_conditions import LossPeriod, make_link_conditions
from gossamer.sim.errors import ScenarioError
from support.ping_protocol import PING, log_records, make_pings, ping_step, send_command

NODES = 4
# A ping is 100 bytes.
SIZES = make_sizes([-1] * PING + [100], [0] * PING + [1])


def run_pings(commands: list[tuple[int, int, int]], until: int = 10_000, **how: Any) -> EventEngine:
    """Send pings (tick, from, to) over links with these rates, and run."""
    conditions = {"latency": how.pop("latency", latencies.constant_latency(0))}
    conditions |= {name: how.pop(name) for name in ("loss_periods",) if name in how}
    engine = EventEngine(
        make_pings(NODES),
        ping_step,
        (),
        make_network(NODES),
        1,
        period=100,
        links=make_link_conditions(
            NODES, bandwidth=make_bandwidth(NODES, SIZES, **how), **conditions
        ),
        observe=log_records,
        collector=np.zeros((5000, 5), np.int64),
        reserve=64,
        queue_words=64,
    )
    for number, (tick, source, to) in enumerate(commands):
        engine.inject(send_command(source, to, number), at=tick)
    engine.run_until(until)
    return engine


def taken_by(engine: EventEngine, row: int) -> int:
    return int(engine.state.taken[row])


@pytest.mark.parametrize("way", ["up", "down"])
def test_messages_pass_a_link_one_after_another(way: str) -> None:
    """100 bytes at 1000 a second: at 100, 200 and 300 ticks."""
    commands = [(0, 0, 1)] * 3 if way == "up" else [(0, 0, 1), (0, 2, 1), (0, 3, 1)]
    taken = [
        taken_by(run_pings(commands, tick + 1, **{way: 1000}), 1)
        for tick in (99, 100, 199, 200, 299, 300)
    ]
    assert taken == [0, 1, 1, 2, 2, 3]


def test_up_latency_and_down_add_up() -> None:
    how: dict[str, Any] = {"up": 1000, "down": 500, "latency": latencies.constant_latency(30)}
    assert taken_by(run_pings([(0, 0, 1)], 330, **how), 1) == 0
    assert taken_by(run_pings([(0, 0, 1)], 331, **how), 1) == 1


def test_other_nodes_are_not_held_up() -> None:
    engine = run_pings([(0, 0, 1)] * 9 + [(0, 2, 3)], 102, up=1000, down=100_000)
    assert taken_by(engine, 3) == 1


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_full_queue_loses_and_counts(way: str) -> None:
    """One under way and one that waits fit 250 bytes; ten at once lose eight."""
    engine = run_pings([(0, 0, 1)] * 10, **{way: 1000, f"{way}_queue": 250})
    assert taken_by(engine, 1) == 2
    assert engine.counts()[f"{way}_overflowed"] == 8
    assert engine.state.returned[0] == 0


def test_a_message_larger_than_the_queue_passes_an_idle_link() -> None:
    assert taken_by(run_pings([(0, 0, 1), (500, 0, 1)], up=1000, up_queue=10), 1) == 2


def test_losses_come_and_go() -> None:
    periods = [LossPeriod(100, 200, 1.0), LossPeriod(150, 160, 0.0)]
    commands = [(tick, 0, 1) for tick in (99, 100, 149, 150, 159, 160, 199, 200)]
    engine = run_pings(commands, loss_periods=periods)
    assert taken_by(engine, 1) == 4
    assert engine.counts()["lost"] == 4


@given(
    st.integers(1, 10**7),
    st.sampled_from([-1, 0, 50, 5000, 10**9]),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3000)), max_size=25),
)
def test_a_link_does_what_exact_arithmetic_says(
    rate: int, bound: int, sent: list[tuple[int, int]]
) -> None:
    """Messages (ticks later, bytes); each costs whole microseconds, rounded up."""
    rates, free = np.array([rate]), np.zeros(1, np.int64)
    oracle, tick = Fraction(0), 0
    for pause, size in sent:
        tick += pause
        now = Fraction(tick, 1000)
        waiting = math.floor(max(oracle - now, Fraction(0)) * rate)
        found = int(ticks_through(rates, free, bound, 0, tick, size))
        if bound >= 0 and oracle > now and waiting + size > bound:
            assert found == -1
            continue
        micros = math.ceil(Fraction(size * 10**6, rate))
        oracle = max(oracle, now) + Fraction(micros, 10**6)
        assert found == math.ceil(oracle * 1000) - tick


def test_compiled_links_do_the_same() -> None:
    rates, tick = np.array([7777]), 0
    free = {compiled: np.zeros(1, np.int64) for compiled in (False, True)}
    for size in (0, 1, 100, 7777, 3):
        tick += 2
        found = []
        for compiled, own in free.items():
            with use_compiled(compiled):
                found.append(int(ticks_through(rates, own, 9000, 0, tick, size)))
        assert found[0] == found[1]


@pytest.mark.parametrize(
    ("field", "how"),
    [
        ("up rate", {"up": 0}),
        ("down rate", {"down": [5, 5, 5, 10**13]}),
        ("up queue", {"up": 5, "up_queue": -1}),
        ("down queue", {"down": 5, "down_queue": 1 << 50}),
    ],
)
def test_impossible_links_are_named(field: str, how: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match=f"^{field} is "):
        make_bandwidth(NODES, SIZES, **how)


@pytest.mark.parametrize("compiled", [False, True])
def test_uniform_latencies_fill_their_interval_evenly(compiled: bool) -> None:
    latency = latencies.uniform_latency(5, 14)
    with use_compiled(compiled):
        drawn = [int(latencies.trip_ticks(latency, 1, 2, 7, counter)) for counter in range(2000)]
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == list(range(5, 15))
    assert counts.min() > 140, counts


def test_compiled_and_interpreted_draws_are_the_same() -> None:
    latency = latencies.uniform_latency(0, 1 << 30)
    interpreted = [int(latencies.trip_ticks(latency, 3, 4, 9, counter)) for counter in range(50)]
    with use_compiled():
        assert [
            int(latencies.trip_ticks(latency, 3, 4, 9, counter)) for counter in range(50)
        ] == interpreted


@pytest.mark.parametrize("matrix", [np.zeros((2, 3), int), np.zeros((0, 0), int), [[-1]]])
def test_impossible_matrices_are_named(matrix: object) -> None:
    with pytest.raises(ScenarioError, match="latency matrix is"):
        latencies.matrix_latency(np.array(matrix), 4, 1)


@pytest.mark.parametrize(("shortest", "longest"), [(-1, 5), (6, 5), (0, 1 << 31)])
def test_impossible_intervals_are_named(shortest: int, longest: int) -> None:
    with pytest.raises(ScenarioError, match=r"^latency is "):
        latencies.uniform_latency(shortest, longest)
    with pytest.raises(ScenarioError, match=r"^latency is "):
        latencies.constant_latency(-1)


@pytest.mark.parametrize("compiled", [False, True])
def test_coordinates_give_the_distance_to_the_nearest_tick(compiled: bool) -> None:
    """Against a slow oracle, in one to five dimensions."""
    draws = np.random.default_rng(3)
    for dimensions in range(1, 6):
        places = draws.random((9, dimensions)) * 300
        latency = latencies.coordinate_latency(places, 7, 30, seed=4)
        assert latencies.least_ticks(latency) == 7
        with use_compiled(compiled):
            for _ in range(30):
                one, other = (int(row) for row in draws.integers(0, 30, 2))
                apart = np.linalg.norm(places[latency.site[one]] - places[latency.site[other]])
                assert int(latencies.trip_ticks(latency, one, other, 1, 2)) == 7 + int(apart + 0.5)


@pytest.mark.parametrize(
    ("places", "shortest"),
    [(np.zeros((0, 2)), 0), (np.array([[0.0], [1e10]]), 0), (np.array([[np.nan]]), 0)],
)
def test_impossible_coordinates_are_named(places: Any, shortest: int) -> None:
    with pytest.raises(ScenarioError, match="of the coordinates is"):
        latencies.coordinate_latency(places, shortest, 4, 1)


def test_sites_of_the_first_nodes_stay_when_others_join() -> None:
    few, many = (
        latencies.matrix_latency(np.ones((5, 5), int), nodes, 3).site for nodes in (10, 90)
    )
    np.testing.assert_array_equal(few, many[:10])
    assert set(many) == set(range(5))
