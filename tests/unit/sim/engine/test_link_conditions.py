"""What links and input queues do to messages under the event engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.sim.engine.cycle_engine import make_network
from gossamer.sim.engine.event_engine import EventEngine, make_transitions
from gossamer.sim.engine.latency import constant_latency, matrix_latency, uniform_latency
from gossamer.sim.engine.link_conditions import Partition, make_link_conditions
from gossamer.sim.errors import ScenarioError
from support.ping_protocol import PING, log_records, make_pings, ping_step, send_command

NODES = 6


def run_pings(
    commands: list[tuple[int, int, int]],
    until: int = 10_000,
    network: dict[str, Any] | None = None,
    transitions: Any = None,
    **conditions: Any,
) -> EventEngine:
    """Send pings (tick, from, to) whose body is their place in the list, and run."""
    engine = EventEngine(
        make_pings(NODES),
        ping_step,
        (),
        make_network(NODES, **(network or {})),
        1,
        period=100,
        links=make_link_conditions(NODES, **conditions),
        transitions=transitions,
        observe=log_records,
        collector=np.zeros((5000, 5), np.int64),
        reserve=64,
        queue_words=64,
    )
    for number, (tick, source, to) in enumerate(commands):
        engine.inject(send_command(source, to, number), at=tick)
    engine.run_until(until)
    return engine


def arrivals(engine: EventEngine) -> list[int]:
    log = engine.collector[1 : engine.collector[0, 0] + 1]
    return [int(row[4]) for row in log if row[1] == PING]


def test_latency_drawn_by_message_reorders_messages() -> None:
    engine = run_pings([(0, 0, 1)] * 300, latency=uniform_latency(10, 60), seed=5)
    assert sorted(arrivals(engine)) == list(range(300))
    assert arrivals(engine) != list(range(300))


def test_draws_of_a_message_depend_on_nothing_but_its_sender() -> None:
    """Other traffic changes neither which messages get lost nor the order of the rest."""
    rough: dict[str, Any] = {
        "latency": uniform_latency(1, 500),
        "loss": 0.3,
        "duplication": 0.2,
        "seed": 9,
    }
    alone = run_pings([(k, 0, 1) for k in range(200)], **rough)
    others = [(k % 97, 2 + k % 3, 1 + k % 2) for k in range(500)]
    amid = run_pings([(k, 0, 1) for k in range(200)] + others, **rough)
    assert 100 < len(arrivals(alone)) < 300
    assert [number for number in arrivals(amid) if number < 200] == arrivals(alone)


def test_losses_and_duplicates_come_at_their_rates() -> None:
    messages = [(k, 0, 1) for k in range(4000)]
    counts = run_pings(messages, loss=0.25, duplication=0.5, seed=3).counts()
    assert abs(counts["lost"] - 1000) < 4 * np.sqrt(4000 * 0.25 * 0.75)
    assert abs(counts["duplicated"] - 1500) < 4 * np.sqrt(3000 * 0.25)
    assert counts["passed"] == 4000 + (4000 - counts["lost"]) + counts["duplicated"]


def test_a_message_to_oneself_passes_no_link() -> None:
    engine = run_pings([(0, 1, 1)], until=1, loss=1.0, latency=constant_latency(50))
    assert engine.state.taken[1] == 1


@pytest.mark.parametrize(("reports", "returned"), [(True, 1), (False, 0)])
def test_a_dead_node_is_reported_after_the_way_there_and_back(reports: bool, returned: int) -> None:
    down = make_transitions([0], [1], [False])
    network = {"reports_unreachable": reports}
    latency = constant_latency(30)
    early = run_pings([(0, 0, 1)], 60, network, down, latency=latency)
    late = run_pings([(0, 0, 1)], 61, network, down, latency=latency)
    assert early.state.returned[0] == 0
    assert late.state.returned[0] == returned
    assert late.counts()["to_dead_nodes"] == 1
    assert late.pending == 0


def test_a_report_to_a_sender_that_has_died_is_lost() -> None:
    down = make_transitions([0, 45], [1, 0], [False, False])
    engine = run_pings([(0, 0, 1)], transitions=down, latency=constant_latency(30))
    assert engine.state.returned.sum() == 0
    assert engine.pending == 0


@pytest.mark.parametrize("reports", [True, False])
def test_a_partition_stops_what_is_sent_across_while_it_lasts(reports: bool) -> None:
    partition = Partition(100, 200, np.array([0, 0, 0, 1, 1, 1]))
    commands = [(99, 0, 3), (100, 0, 3), (150, 0, 1), (150, 3, 4), (199, 5, 2), (200, 5, 2)]
    engine = run_pings(
        commands,
        network={"reports_unreachable": reports},
        partitions=[partition],
        latency=constant_latency(20),
    )
    assert sorted(arrivals(engine)) == [0, 2, 3, 5]
    assert engine.state.returned.tolist() == ([1, 0, 0, 0, 0, 1] if reports else [0] * NODES)
    assert engine.counts()["parted"] == 2


def test_a_node_serves_one_message_at_a_time() -> None:
    """Three messages at tick 0, served at 10, 20 and 30; other nodes are not held up."""
    commands = [(0, 0, 1), (0, 2, 1), (0, 3, 1), (0, 0, 2)]
    taken = [run_pings(commands, tick + 1, service_ticks=10).state.taken for tick in (9, 10, 29)]
    assert [row[1] for row in taken] == [0, 1, 2]
    last = run_pings(commands, 31, service_ticks=10)
    assert last.state.taken[1:3].tolist() == [3, 1]
    assert last.links.longest.tolist() == [0, 3, 1, 0, 0, 0]
    assert last.links.waiting.sum() == 0


def test_an_input_queue_drops_and_counts_what_it_cannot_hold() -> None:
    engine = run_pings([(k, 0, 1) for k in range(10)], service_ticks=100, queue_limit=4)
    assert arrivals(engine) == [0, 1, 2, 3]
    assert engine.counts()["queue_overflowed"] == 6
    assert engine.links.longest[1] == 4


def test_service_times_may_differ_by_node() -> None:
    service = np.array([0, 50, 0, 0, 0, 0])
    engine = run_pings([(0, 0, 1), (0, 0, 2)], 50, service_ticks=service)
    assert engine.state.taken.tolist() == [0, 0, 1, 0, 0, 0]


def test_messages_in_the_queue_of_a_node_that_dies_count_as_sent_to_a_dead_node() -> None:
    down = make_transitions([15], [1], [False])
    engine = run_pings([(0, 0, 1)] * 3, transitions=down, service_ticks=10)
    assert engine.state.taken[1] == 1
    assert engine.state.returned[0] == 2
    assert engine.counts()["to_dead_nodes"] == 2


def test_a_round_admits_so_many_records_of_the_limited_kind() -> None:
    network = {"limited_kind": PING, "capacity": 2}
    commands = [(tick, 0, 1) for tick in (10, 20, 30, 99, 100, 110, 120)]
    engine = run_pings(commands, network=network)
    assert arrivals(engine) == [0, 1, 4, 5]
    assert engine.counts()["beyond_capacity"] == 3


def test_a_matrix_gives_the_latency_between_sites() -> None:
    ticks = np.array([[3, 40, 500], [41, 4, 600], [501, 601, 5]])
    latency = matrix_latency(ticks, NODES, seed=2)
    assert set(latency.site) == {0, 1, 2}
    for to in range(1, NODES):
        expected = ticks[latency.site[0], latency.site[to]]
        for until, taken in ((expected, 0), (expected + 1, 1)):
            engine = run_pings([(0, 0, to)], until, latency=latency)
            assert engine.state.taken[to] == taken


@pytest.mark.parametrize(
    ("field", "conditions"),
    [
        ("loss", {"loss": 1.5}),
        ("duplication", {"duplication": float("nan")}),
        ("queue_limit", {"queue_limit": 0}),
        ("service_ticks", {"service_ticks": -1}),
        ("partition", {"partitions": [Partition(5, 5, np.zeros(NODES, int))]}),
        ("groups", {"partitions": [Partition(0, 5, np.zeros(3, int))]}),
    ],
)
def test_impossible_conditions_are_named(field: str, conditions: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match=f"^{field} is "):
        make_link_conditions(NODES, **conditions)
