"""Real peers in several processes deliver every match once, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.bench_node import SMALL, measure

pytestmark = pytest.mark.slow


def test_every_match_is_delivered_once_and_nothing_else(tmp_path: Path) -> None:
    measures, unexpected = measure(SMALL, tmp_path)
    assert not unexpected
    assert {one.name for one in measures} >= {"latency, median", "memory of each further peer"}
