"""Attributes of nodes: drawn from distributions, or read from files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.worlds.attributes import Attribute

MANY = 40_000


def drawn(given: Any, nodes: int = MANY, seed: int = 1) -> Any:
    """An attribute of nodes."""
    return Attribute("speed", given).of_nodes(nodes, seed)


@pytest.mark.parametrize(
    ("given", "mean", "deviation"),
    [
        ({"uniform": [2, 4]}, 3, 2 / 12**0.5),
        ({"whole": [1, 6]}, 3.5, (35 / 12) ** 0.5),
        ({"normal": [10, 2]}, 10, 2),
        ({"exponential": 5}, 5, 5),
        ({"lognormal": [1, 0.5]}, np.exp(0.125), (np.exp(0.5) - np.exp(0.25)) ** 0.5),
        ({"pareto": [2, 5]}, 2.5, (25 / 16 / 15 * 4) ** 0.5),
        ([1, 2, 6], 3, (14 / 3) ** 0.5),
        ({"values": [0, 10], "weights": [3, 1]}, 2.5, 75**0.5 / 2),
    ],
)
def test_distributions_have_their_moments(given: Any, mean: float, deviation: float) -> None:
    values = drawn(given)
    assert abs(values.mean() - mean) < 5 * deviation / MANY**0.5
    assert abs(values.std() / deviation - 1) < 0.1


def test_what_all_have_is_what_is_given() -> None:
    assert drawn(7, 3).tolist() == [7, 7, 7]
    assert drawn(True, 2).dtype == np.bool_


@given(
    st.sampled_from([{"uniform": [0, 1]}, {"normal": [0, 1]}, [1, 2, 3]]),
    st.integers(1, 50),
    st.integers(0, 2**62 - 1),
)
def test_the_first_nodes_stay_what_they_are_when_others_join(
    given: Any, nodes: int, seed: int
) -> None:
    np.testing.assert_array_equal(drawn(given, nodes, seed), drawn(given, nodes + 33, seed)[:nodes])


def test_attributes_are_drawn_apart() -> None:
    one, other = (Attribute(name, {"uniform": [0, 1]}).of_nodes(MANY, 1) for name in ("a", "b"))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.02


def test_a_file_has_a_row_a_node(tmp_path: Path) -> None:
    file = tmp_path / "hosts.csv"
    file.write_text("host,speed\n1,5.5\n2,6.5\n3,7.5\n")
    assert drawn({"file": str(file), "column": "speed"}, 3).tolist() == [5.5, 6.5, 7.5]
    assert drawn({"file": file, "column": "host"}, 2).dtype == np.int64
    many = drawn({"file": file, "column": "speed", "placing": "drawn"})
    assert np.bincount(many.astype(int))[5:].min() > MANY / 3.2
    file.write_text("# no names\n4 8\n5 9\n")
    assert drawn({"file": file, "column": 2}, 2).tolist() == [8, 9]


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("a\n1\n", {"column": "b"}, "the column is 'b', expected one of a"),
        ("a\n1\n", {"column": "a"}, "number of rows is 1, expected 2, one a node, or placing"),
        ("a\n1\nx\n", {"column": "a"}, "line 3: column 1 is 'x', expected a finite number"),
        ("1 2\n3\n", {"column": 2}, "line 2: number of columns is 1, expected at least 2"),
        ("", {"column": 1}, "the file of attributes is empty"),
    ],
)
def test_faults_of_a_file_are_named(
    text: str, given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "hosts.csv"
    file.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        drawn({"file": str(file), **given}, 2)
    assert str(caught.value).startswith(str(file))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ("fast", ""),
        ([], ""),
        (["a"], ""),
        ({}, ""),
        ({"gauss": [1, 2]}, ""),
        ({"uniform": [2, 1]}, ".uniform"),
        ({"uniform": [1]}, ".uniform"),
        ({"whole": [0.5, 2]}, ".whole"),
        ({"normal": [1, -1]}, ".normal"),
        ({"pareto": [0, 1]}, ".pareto"),
        ({"exponential": float("inf")}, ".exponential"),
        ({"values": []}, ".values"),
        ({"values": [1], "weights": [0]}, ".weights"),
        ({"file": 3}, ".file"),
        ({"file": "x", "column": 0}, ".column"),
        ({"file": "x", "placing": "there"}, ".placing"),
        ({"file": "x", "colum": 1}, ".colum"),
    ],
)
def test_impossible_attributes_are_named(given: Any, field: str) -> None:
    with pytest.raises(ScenarioError, match=rf"^attributes\.speed{field} is "):
        Attribute("speed", given)
