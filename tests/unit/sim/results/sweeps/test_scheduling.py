"""Points are begun as there is room for them, in processes and in memory."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from gossamer.sim.results.sweeps.plan import Point
from gossamer.sim.results.sweeps.scheduling import PointRunner

GIB = 2**30


class Nothing(PointRunner):
    """Runs nothing."""

    def run_point(self, point: Point, folder: Path, sweep: Path) -> Path:
        """Never called."""
        raise NotImplementedError

    def stop(self) -> None:
        """Nothing goes on."""


def points(number: int, memory_bytes: int) -> list[Point]:
    """Points that are never run."""
    return [
        Point(name=f"p{i}", values={"seed": i}, text="", memory_bytes=memory_bytes)
        for i in range(number)
    ]


def test_points_that_share_a_memory_wait_for_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        available = 4 * GIB

    monkeypatch.setattr(psutil, "virtual_memory", Memory)
    here, small, large = Nothing(8, shares_memory=True), points(9, GIB), points(2, 9 * GIB)
    assert len(here.next_points(small, [], 0)) == 1
    assert len(here.next_points(small, [], 1)) == 3
    assert len(here.next_points(large, [], 1)) == 1
    assert here.next_points(large, small[:1], 1) == []


def test_elsewhere_only_their_number_counts() -> None:
    assert len(Nothing(8, shares_memory=False).next_points(points(9, 9 * GIB), [], 0)) == 8
