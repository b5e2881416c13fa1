"""Real peers in several processes deliver every match once, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.bench_node import SMALL, measure


@pytest.mark.campaign
def test_every_match_is_delivered_once_and_nothing_else(tmp_path: Path) -> None:
    measures, unexpected = measure(SMALL, tmp_path)
    assert not unexpected
    found = {one.name: one.value for one in measures}
    assert found.keys() >= {"latency, median", "memory of each further peer"}
    assert 0 < found["hops of a delivery, mean"] <= 2 * SMALL.peers
    assert 0 <= found["traffic overhead"] < 100
