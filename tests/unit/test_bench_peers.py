"""What `tests/bench/bench_peers.py` gives all stacks to do, and how deliveries are counted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from attrs import evolve

from bench.stacks.results import Run, medians, phase_of
from bench.stacks.workload import Workload

PHASE = phase_of({(0, 1), (2, 1)}, [(0, 1, 10.0, 10.5), (2, 1, 10.0, 12.0)], {}, 0.5)
RUN = Run(1.0, 2.0, 0.1, 50.0, 40.0, PHASE, PHASE)


def test_subscribers_and_peers_are_shared_out_and_publishers_meet_every_topic() -> None:
    workload = Workload(peers=11, processes=3, topics=7, matches=4)
    wanted = Counter(topic for peer in range(11) for topic in workload.wanted(peer))
    assert wanted == dict.fromkeys(workload.names, 4)
    shares = workload.shares()
    assert [peer for share in shares for peer in share] == list(range(11))
    assert {len(share) for share in shares} <= {3, 4}
    workload = Workload(peers=6, processes=2, topics=4, matches=2)
    pairs = {(number % 6, workload.topic_of(number)) for number in range(6 * 4)}
    assert len(pairs) == 6 * 4


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("matches", 41, "41 matches"),
        ("processes", 41, "do not fill"),
        ("peers", 1, "at least 2"),
        ("rate", 0.0, "above 0"),
        ("rate", float("inf"), "above 0"),
        ("seconds", 0.001, "none"),
        ("bytes_each", 8, "at least"),
    ],
)
def test_impossible_workloads_are_refused_in_a_sentence(name: str, value: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Workload(**{name: value})


def test_deliveries_are_counted_once_and_others_told() -> None:
    receipts = [
        (0, 1, 10.0, 10.1),
        (0, 1, 10.0, 10.2),  # doubled
        (5, 1, 10.0, 10.1),  # nobody there wanted it
        (2, 3, 10.5, 10.6),
    ]
    phase = phase_of({(0, 1), (2, 1), (2, 3)}, receipts, {"too fast": 1}, 0.5)
    assert (phase.due, phase.lost, phase.doubled, phase.false) == (3, 1, 1, 1)
    assert phase.deliveries_per_cpu_s == pytest.approx(4)
    assert phase.deliveries_per_s == pytest.approx(2 / 0.6)
    assert phase.latency_ms == pytest.approx(100)
    phase = phase_of({(0, 1)}, [], {}, 0.0)
    assert phase.lost == 1
    assert phase.latency_ms is phase.slow_ms is phase.deliveries_per_cpu_s is None


def test_medians_of_figures_and_sums_of_counts() -> None:
    def changed(cpu: float, **of_phase: Any) -> Run:
        return evolve(RUN, resting_cpu=cpu, steady=evolve(PHASE, **of_phase))

    told = medians([changed(0.1), changed(0.4, lost=2, refused={"no": 1}), changed(0.2, lost=1)])
    assert told["resting_cpu"] == 0.2
    assert told["steady"]["lost"] == 3
    assert told["steady"]["refused"] == {"no": 1}
    assert told["burst"]["due"] == 6
    assert medians([RUN, evolve(RUN, settled_s=None)])["settled_s"] is None
