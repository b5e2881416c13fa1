"""Latency models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.engine.latency import (
    constant_latency,
    coordinate_latency,
    least_ticks,
    matrix_latency,
    trip_ticks,
    uniform_latency,
)
from gossamer.sim.errors import ScenarioError


@pytest.mark.parametrize("compiled", [False, True])
def test_uniform_latencies_fill_their_interval_evenly(compiled: bool) -> None:
    latency = uniform_latency(5, 14)
    with use_compiled(compiled):
        drawn = [int(trip_ticks(latency, 1, 2, 7, counter)) for counter in range(2000)]
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == list(range(5, 15))
    assert counts.min() > 140, counts


def test_compiled_and_interpreted_draws_are_the_same() -> None:
    latency = uniform_latency(0, 1 << 30)
    interpreted = [int(trip_ticks(latency, 3, 4, 9, counter)) for counter in range(50)]
    with use_compiled():
        assert [int(trip_ticks(latency, 3, 4, 9, counter)) for counter in range(50)] == interpreted


@pytest.mark.parametrize("matrix", [np.zeros((2, 3), int), np.zeros((0, 0), int), [[-1]]])
def test_impossible_matrices_are_named(matrix: object) -> None:
    with pytest.raises(ScenarioError, match="latency matrix is"):
        matrix_latency(np.array(matrix), 4, 1)


@pytest.mark.parametrize(("shortest", "longest"), [(-1, 5), (6, 5), (0, 1 << 31)])
def test_impossible_intervals_are_named(shortest: int, longest: int) -> None:
    with pytest.raises(ScenarioError, match=r"^latency is "):
        uniform_latency(shortest, longest)
    with pytest.raises(ScenarioError, match=r"^latency is "):
        constant_latency(-1)


@pytest.mark.parametrize("compiled", [False, True])
def test_coordinates_give_the_distance_to_the_nearest_tick(compiled: bool) -> None:
    """Against a slow oracle, in one to five dimensions."""
    draws = np.random.default_rng(3)
    for dimensions in range(1, 6):
        places = draws.random((9, dimensions)) * 300
        latency = coordinate_latency(places, 7, 30, seed=4)
        assert least_ticks(latency) == 7
        with use_compiled(compiled):
            for _ in range(30):
                one, other = (int(row) for row in draws.integers(0, 30, 2))
                apart = np.linalg.norm(places[latency.site[one]] - places[latency.site[other]])
                assert int(trip_ticks(latency, one, other, 1, 2)) == 7 + int(apart + 0.5)


@pytest.mark.parametrize(
    ("places", "shortest"),
    [(np.zeros((0, 2)), 0), (np.array([[0.0], [1e10]]), 0), (np.array([[np.nan]]), 0)],
)
def test_impossible_coordinates_are_named(places: Any, shortest: int) -> None:
    with pytest.raises(ScenarioError, match="of the coordinates is"):
        coordinate_latency(places, shortest, 4, 1)


def test_sites_of_the_first_nodes_stay_when_others_join() -> None:
    few, many = (matrix_latency(np.ones((5, 5), int), nodes, 3).site for nodes in (10, 90))
    np.testing.assert_array_equal(few, many[:10])
    assert set(many) == set(range(5))
