"""What links and input queues do to messages under the event engine; models of latency.

Links up and down are queues, held against a slow oracle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.engine import latency as models
from gossamer.sim.engine.cycle_engine import make_network
from gossamer.sim.engine.event_engine import EventEngine, make_transitions
from gossamer.sim.engine.latency import (
    constant_latency,
    make_bandwidth,
    make_sizes,
    matrix_latency,
    ticks_through,
    trip_ticks,
)
from gossamer.sim.engine.link_conditions import LossPeriod, Partition, make_link_conditions
from gossamer.sim.errors import ScenarioError
from support.ping_protocol import PING, log_records, make_pings, ping_step, send_command

NODES = 6
FOUR = np.zeros(4, np.int64)
# A ping is 100 bytes.
SIZES = make_sizes([-1] * PING + [100], [0] * PING + [1])


Commands = list[tuple[int, int, int]]


def run_pings(
    commands: Commands, until: int = 10_000, network: Any = None, rates: Any = None, **more: Any
) -> EventEngine:
    """Send pings (tick, from, to) whose body is their place in the list, and run."""
    if rates is not None:
        more["bandwidth"] = make_bandwidth(NODES, SIZES, **rates)
    engine = EventEngine(
        *(make_pings(NODES), ping_step, (), make_network(NODES, **(network or {})), 1),
        period=100,
        reserve=64,
        queue_words=64,
        transitions=more.pop("down", None),
        links=make_link_conditions(NODES, **more),
        observe=log_records,
        collector=np.zeros((5000, 5), np.int64),
    )
    for number, (tick, source, to) in enumerate(commands):
        engine.inject(send_command(source, to, number), at=tick)
    engine.run_until(until)
    return engine


def arrivals(engine: EventEngine) -> list[int]:
    log = engine.collector[1 : engine.collector[0, 0] + 1].tolist()
    return [row[4] for row in log if row[1] == PING]


def test_latency_loss_and_duplication_are_drawn_by_message() -> None:
    engine = run_pings([(0, 0, 1)] * 300, latency=models.uniform_latency(10, 60), seed=5)
    assert sorted(arrivals(engine)) == list(range(300))
    assert arrivals(engine) != list(range(300))
    messages = [(k, 0, 1) for k in range(4000)]
    counts = run_pings(messages, loss=0.25, duplication=0.5, seed=3).counts()
    assert abs(counts["lost"] - 1000) < 4 * np.sqrt(4000 * 0.25 * 0.75)
    assert abs(counts["duplicated"] - 1500) < 4 * np.sqrt(3000 * 0.25)
    assert counts["passed"] == 4000 + (4000 - counts["lost"]) + counts["duplicated"]
    engine = run_pings([(0, 1, 1)], until=1, loss=1.0, latency=constant_latency(50))
    assert engine.state.taken[1] == 1


def test_draws_of_a_message_depend_on_nothing_but_its_sender() -> None:
    """Other traffic changes neither which messages get lost nor the order of the rest."""
    rough: dict[str, Any] = {"loss": 0.3, "duplication": 0.2, "seed": 9}
    rough["latency"] = models.uniform_latency(1, 500)
    alone = run_pings([(k, 0, 1) for k in range(200)], **rough)
    others = [(k % 97, 2 + k % 3, 1 + k % 2) for k in range(500)]
    amid = run_pings([(k, 0, 1) for k in range(200)] + others, **rough)
    assert 100 < len(arrivals(alone)) < 300
    assert [number for number in arrivals(amid) if number < 200] == arrivals(alone)


@pytest.mark.parametrize(("reports", "returned"), [(True, 1), (False, 0)])
def test_a_dead_node_is_reported_after_the_way_to_it_and_back(reports: bool, returned: int) -> None:
    down = make_transitions([0], [1], [False])
    network = {"reports_unreachable": reports}
    latency = constant_latency(30)
    early, late = (
        run_pings([(0, 0, 1)], until, network, down=down, latency=latency) for until in (60, 61)
    )
    assert (early.state.returned[0], late.state.returned[0]) == (0, returned)
    assert (late.counts()["to_dead_nodes"], late.pending) == (1, 0)
    down = make_transitions([0, 45], [1, 0], [False, False])
    sender_died = run_pings([(0, 0, 1)], down=down, latency=latency)
    assert sender_died.state.returned.sum() == sender_died.pending == 0


@pytest.mark.parametrize("reports", [True, False])
def test_a_partition_stops_what_is_sent_across_while_it_lasts(reports: bool) -> None:
    engine = run_pings(
        [(99, 0, 3), (100, 0, 3), (150, 0, 1), (150, 3, 4), (199, 5, 2), (200, 5, 2)],
        network={"reports_unreachable": reports},
        partitions=[Partition(100, 200, np.array([0, 0, 0, 1, 1, 1]))],
        latency=constant_latency(20),
    )
    assert sorted(arrivals(engine)) == [0, 2, 3, 5]
    assert engine.state.returned.tolist() == ([1, 0, 0, 0, 0, 1] if reports else [0] * NODES)
    assert engine.counts()["parted"] == 2


def test_a_node_serves_one_message_at_a_time() -> None:
    commands = [(0, 0, 1), (0, 2, 1), (0, 3, 1), (0, 0, 2)]
    taken = [run_pings(commands, tick + 1, service_ticks=10).state.taken for tick in (9, 10, 29)]
    assert [row[1] for row in taken] == [0, 1, 2]
    last = run_pings(commands, 31, service_ticks=10)
    assert last.state.taken[1:3].tolist() == [3, 1]
    assert (last.links.longest.tolist(), last.links.waiting.sum()) == ([0, 3, 1, 0, 0, 0], 0)
    by_node = run_pings([(0, 0, 1), (0, 0, 2)], 50, service_ticks=np.array([0, 50, 0, 0, 0, 0]))
    assert by_node.state.taken.tolist() == [0, 0, 1, 0, 0, 0]


def test_an_input_queue_drops_what_it_cannot_hold_and_what_is_of_a_node_that_dies() -> None:
    engine = run_pings([(k, 0, 1) for k in range(10)], service_ticks=100, queue_limit=4)
    assert (arrivals(engine), engine.counts()["queue_overflowed"]) == ([0, 1, 2, 3], 6)
    assert engine.links.longest[1] == 4
    down = make_transitions([15], [1], [False])
    engine = run_pings([(0, 0, 1)] * 3, down=down, service_ticks=10)
    assert (engine.state.taken[1], engine.state.returned[0]) == (1, 2)
    assert engine.counts()["to_dead_nodes"] == 2


def test_a_round_admits_so_many_records_of_the_limited_kind() -> None:
    network = {"limited_kind": PING, "capacity": 2}
    engine = run_pings([(tick, 0, 1) for tick in (10, 20, 30, 99, 100, 110, 120)], network=network)
    assert (arrivals(engine), engine.counts()["beyond_capacity"]) == ([0, 1, 4, 5], 3)


def test_a_matrix_gives_the_latency_between_sites() -> None:
    ticks = np.array([[3, 40, 500], [41, 4, 600], [501, 601, 5]])
    latency = matrix_latency(ticks, models.drawn_sites(len(ticks), NODES, 2))
    assert set(latency.site) == {0, 1, 2}
    for to in range(1, NODES):
        expected = ticks[latency.site[0], latency.site[to]]
        for until, taken in ((expected, 0), (expected + 1, 1)):
            assert run_pings([(0, 0, to)], until, latency=latency).state.taken[to] == taken


links_of = partial(make_link_conditions, NODES)
widths_of = partial(make_bandwidth, NODES, SIZES)
IMPOSSIBLE: list[tuple[str, Callable[[], object]]] = [
    ("loss", lambda: links_of(loss=1.5)),
    ("duplication", lambda: links_of(duplication=float("nan"))),
    ("queue_limit", lambda: links_of(queue_limit=0)),
    ("service_ticks", lambda: links_of(service_ticks=-1)),
    ("partition", lambda: links_of(partitions=[Partition(5, 5, np.zeros(NODES, int))])),
    ("groups", lambda: links_of(partitions=[Partition(0, 5, np.zeros(3, int))])),
    ("up rate", lambda: widths_of(up=0)),
    ("down rate", lambda: widths_of(down=[5, 5, 5, 5, 5, 10**13])),
    ("up queue", lambda: widths_of(up=5, up_queue=-1)),
    ("down queue", lambda: widths_of(down=5, down_queue=1 << 50)),
    ("latency matrix", lambda: matrix_latency(np.zeros((2, 3), int), FOUR)),
    ("latency matrix", lambda: matrix_latency(np.zeros((0, 0), int), FOUR)),
    ("latency matrix", lambda: matrix_latency(np.array([[-1]]), FOUR)),
    *(
        ("latency", partial(models.uniform_latency, *ends))
        for ends in ((-1, 5), (6, 5), (0, 1 << 31))
    ),
    ("latency", lambda: constant_latency(-1)),
    ("latency", lambda: models.lognormal_latency(1 << 30, 2.0)),
    ("shape of the coordinates", lambda: models.coordinate_latency(np.zeros((0, 2)), 0, FOUR)),
    (
        "reach of the coordinates",
        lambda: models.coordinate_latency(np.array([[0.0], [1e10]]), 0, FOUR),
    ),
    ("reach of the coordinates", lambda: models.coordinate_latency(np.array([[np.nan]]), 0, FOUR)),
]


@pytest.mark.parametrize(("what", "make"), IMPOSSIBLE)
def test_what_is_impossible_is_named(what: str, make: Callable[[], object]) -> None:
    with pytest.raises(ScenarioError, match=f"{what} is .*, expected "):
        make()


# Bandwidth


@pytest.mark.parametrize("way", ["up", "down"])
def test_messages_pass_a_link_one_after_another(way: str) -> None:
    """100 bytes at 1000 a second: at 100, 200 and 300 ticks."""
    commands = [(0, 0, 1)] * 3 if way == "up" else [(0, 0, 1), (0, 2, 1), (0, 3, 1)]
    ticks = (99, 100, 199, 200, 299, 300)
    ends = [run_pings(commands, tick + 1, rates={way: 1000}).state.taken[1] for tick in ticks]
    assert ends == [0, 1, 1, 2, 2, 3]


def test_up_latency_and_down_add_up_and_other_nodes_are_not_held_up() -> None:
    rates, latency = {"up": 1000, "down": 500}, constant_latency(30)
    for until, taken in ((330, 0), (331, 1)):
        assert run_pings([(0, 0, 1)], until, rates=rates, latency=latency).state.taken[1] == taken
    busy = run_pings([(0, 0, 1)] * 9 + [(0, 2, 3)], 102, rates={"up": 1000, "down": 100_000})
    assert busy.state.taken[3] == 1


@pytest.mark.parametrize("way", ["up", "down"])
def test_a_full_queue_loses_and_counts(way: str) -> None:
    """One under way and one that waits fit 250 bytes; ten at once lose eight."""
    engine = run_pings([(0, 0, 1)] * 10, rates={way: 1000, f"{way}_queue": 250})
    assert (engine.state.taken[1], engine.counts()[f"{way}_overflowed"]) == (2, 8)
    assert engine.state.returned[0] == 0


def test_losses_come_and_go() -> None:
    periods = [LossPeriod(100, 200, 1.0), LossPeriod(150, 160, 0.0)]
    commands = [(tick, 0, 1) for tick in (99, 100, 149, 150, 159, 160, 199, 200)]
    engine = run_pings(commands, loss_periods=periods)
    assert (engine.state.taken[1], engine.counts()["lost"]) == (4, 4)


@given(
    st.integers(1, 10**7),
    st.sampled_from([-1, 0, 50, 5000, 10**9]),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3000)), max_size=25),
)
def test_a_link_agrees_with_an_oracle(rate: int, bound: int, sent: list[tuple[int, int]]) -> None:
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
        oracle = max(oracle, now) + Fraction(math.ceil(Fraction(size * 10**6, rate)), 10**6)
        assert found == math.ceil(oracle * 1000) - tick


def test_compiled_links_and_draws_are_the_same() -> None:
    rates, tick = np.array([7777]), 0
    free = {compiled: np.zeros(1, np.int64) for compiled in (False, True)}
    for size in (0, 1, 100, 7777, 3):
        tick += 2
        found = []
        for compiled, own in free.items():
            with use_compiled(compiled):
                found.append(int(ticks_through(rates, own, 9000, 0, tick, size)))
        assert found[0] == found[1]
    latency = models.uniform_latency(0, 1 << 30)
    interpreted = [int(trip_ticks(latency, 3, 4, 9, counter)) for counter in range(50)]
    with use_compiled():
        assert [int(trip_ticks(latency, 3, 4, 9, counter)) for counter in range(50)] == interpreted


# Models of latency


@pytest.mark.parametrize("compiled", [False, True])
def test_uniform_latencies_fill_their_interval_evenly(compiled: bool) -> None:
    latency = models.uniform_latency(5, 14)
    with use_compiled(compiled):
        drawn = [int(trip_ticks(latency, 1, 2, 7, counter)) for counter in range(2000)]
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == list(range(5, 15))
    assert counts.min() > 140, counts


@pytest.mark.parametrize("compiled", [False, True])
def test_lognormal_latencies_have_their_median_and_deviation(compiled: bool) -> None:
    latency = models.lognormal_latency(100_000, 0.5)
    with use_compiled(compiled):
        drawn = [int(trip_ticks(latency, 1, 2, 7, counter)) for counter in range(2000)]
    logarithms = np.log(drawn)
    assert np.median(logarithms) == pytest.approx(np.log(100_000), abs=0.05)
    assert logarithms.std() == pytest.approx(0.5, abs=0.03)
    assert models.least_ticks(latency) <= min(drawn)
    still = models.lognormal_latency(50, 0.0)
    assert {int(trip_ticks(still, 1, 2, 7, counter)) for counter in range(9)} == {50}


@pytest.mark.parametrize("compiled", [False, True])
def test_coordinates_give_the_distance_to_the_nearest_tick(compiled: bool) -> None:
    """Against a slow oracle, in one to five dimensions."""
    draws = np.random.default_rng(3)
    for dimensions in range(1, 6):
        places = draws.random((9, dimensions)) * 300
        latency = models.coordinate_latency(places, 7, models.drawn_sites(len(places), 30, 4))
        assert models.least_ticks(latency) == 7
        with use_compiled(compiled):
            for _ in range(30):
                one, other = (int(row) for row in draws.integers(0, 30, 2))
                apart = np.linalg.norm(places[latency.site[one]] - places[latency.site[other]])
                assert int(trip_ticks(latency, one, other, 1, 2)) == 7 + int(apart + 0.5)


def test_sites_of_the_first_nodes_stay_when_others_join() -> None:
    few, many = (models.drawn_sites(5, nodes, 3) for nodes in (10, 90))
    np.testing.assert_array_equal(few, many[:10])
    assert set(many) == set(range(5))
