"""Latency models and the triangular matrix file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.engine.latency import (
    constant_latency,
    matrix_latency,
    read_latency_matrix,
    trip_ticks,
    uniform_latency,
)
from gossamer.sim.errors import ScenarioError

MATRIX = """\
# three sites, milliseconds
1
20.5 2   # the second

300 4e1 0
"""


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


def test_a_triangular_matrix_is_read_as_a_symmetric_one(tmp_path: Path) -> None:
    path = tmp_path / "king.txt"
    path.write_text(MATRIX)
    expected = [[1, 20.5, 300], [20.5, 2, 40], [300, 40, 0]]
    assert read_latency_matrix(path).tolist() == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "1\n2 1e300\n",
            "line 2: latency 2 is '1e300', expected a number of",
        ),
        ("1\n2 x\n", "line 2: latency 2 is 'x', expected a number of milliseconds from 0 to"),
        ("1\n2 -3\n", "line 2: latency 2 is '-3', expected"),
        ("nan\n", "line 1: latency 1 is 'nan', expected"),
        ("1\n\n# c\n2\n", "line 4: number of latencies is 1, expected 2"),
        ("# nothing\n", "the latency matrix is empty, expected at least one line"),
    ],
)
def test_faults_of_a_matrix_file_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "king.txt"
    path.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        read_latency_matrix(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_a_matrix_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"none\.txt: the latency matrix is No such file"):
        read_latency_matrix(tmp_path / "none.txt")
    path = tmp_path / "binary"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="the latency matrix is not UTF-8"):
        read_latency_matrix(path)


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
