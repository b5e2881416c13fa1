"""Worlds: the engines' links, attributes of nodes, and what a world comes to in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.sim.engine import latency as engine_latency
from gossamer.sim.engine.latency import make_sizes
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.worlds.attributes import Attribute
from gossamer.sim.studies.worlds.network import Link, bandwidth, loss_periods, partitions
from gossamer.sim.studies.worlds.sessions import latency_words, network_words

NODES = 20_000


def test_shares_make_groups_and_the_rest_is_one_more_drawn_apart_in_each_partition() -> None:
    link = Link(partition=[{"begin_s": 1, "end_s": 2.5, "shares": [0.2, 0.5]}])  # type: ignore[arg-type]
    (found,) = partitions(link, NODES, 1, {})
    assert found[:2] == (1000, 2500)
    np.testing.assert_allclose(np.bincount(found.groups) / NODES, [0.2, 0.5, 0.3], atol=0.02)
    (more,) = partitions(link, NODES + 99, 1, {})
    np.testing.assert_array_equal(more.groups[:NODES], found.groups)
    part = {"begin_s": 0, "end_s": 1, "shares": [0.5]}
    one, other = partitions(Link(partition=[part, part]), NODES, 1, {})  # type: ignore[arg-type]
    assert 0.45 < (one.groups == other.groups).mean() < 0.55


def test_the_values_of_an_attribute_are_groups_and_times_become_ticks() -> None:
    link = Link(partition=[{"begin_s": 0, "end_s": 1, "by": "region"}])  # type: ignore[arg-type]
    (found,) = partitions(link, 4, 1, {"region": np.array([7.5, 2, 7.5, 9])})
    assert found.groups.tolist() == [1, 0, 1, 2]
    with pytest.raises(ScenarioError, match=r"^network.partition.by is no attribute \(region\)"):
        partitions(link, 4, 1, {})
    lossy = Link(loss_period=[{"begin_s": 0.5, "end_s": 60, "loss": 0.25}])  # type: ignore[arg-type]
    assert loss_periods(lossy) == [(500, 60_000, 0.25)]


def test_rates_are_numbers_draws_or_attributes() -> None:
    link = Link(up_rate=[100, 900], down_rate="speed", up_queue=7)
    found = bandwidth(link, 4000, 1, make_sizes(), {"speed": np.arange(1, 4001) + 0.5})
    assert set(found.up) == {100, 900}
    assert 0.45 < (found.up == 100).mean() < 0.55
    assert (found.down[:3].tolist(), found.up_queue, found.down_queue) == ([1, 2, 3], 7, -1)
    with pytest.raises(ScenarioError, match=r"^network.down_rate, speed is an attribute with"):
        bandwidth(link, 2, 1, make_sizes(), {"speed": np.array([5, 0])})


TIMES = {"begin_s": 0, "end_s": 1}
WRONG = {
    "up_rate": 0.5,
    "down_rate": True,
    "up_queue": 5,
    "matrix_form": "pairs",
    "unit_s": 0,
    "edge_latency": "delay",
    "coordinates": "x.csv",
    "access_s": -1,
    "partition": 3,
}


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        *((f"network.{name}", {name: wrong}) for name, wrong in WRONG.items()),
        ("network.up_rate", {"up_rate": []}),
        ("network.down_queue", {"down_rate": 5, "down_queue": 2.5}),
        ("network.topology", {"latency": "topology"}),
        (r"\[network.partition\]", {"partition": [3]}),
        ("network.partition.shares", {"partition": [TIMES]}),
        ("network.partition.shares", {"partition": [TIMES | {"shares": [2]}]}),
        ("network.partition.end_s", {"partition": [TIMES | {"begin_s": 2, "shares": [0.5]}]}),
        ("network.partition.begin_s", {"partition": [{"end_s": 1, "shares": [0.5]}]}),
        ("network.partition.share", {"partition": [{"share": 1}]}),
        ("network.loss_period.loss", {"loss_period": [TIMES | {"loss": 2}]}),
    ],
)
def test_impossible_networks_are_named(field: str, fields: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match=f"^{field} is "):
        Link(**fields)


MANY = 40_000
DRAWN = engine_latency.drawn_sites(2, 50, 1)
SITES = engine_latency.matrix_latency(np.array([[1, 2000], [2000, 1]]), DRAWN)
PLACES = engine_latency.coordinate_latency(np.array([[0.0], [30.0]]), 4, DRAWN)


def drawn(given: Any, nodes: int = MANY, seed: int = 1) -> Any:
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


def test_attributes_are_drawn_apart_or_the_same_for_all() -> None:
    assert (drawn(7, 3).tolist(), drawn(True, 2).dtype) == ([7, 7, 7], np.bool_)
    one, other = (Attribute(name, {"uniform": [0, 1]}).of_nodes(MANY, 1) for name in ("a", "b"))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.02


@given(
    st.sampled_from([{"uniform": [0, 1]}, {"normal": [0, 1]}, [1, 2, 3]]),
    st.integers(1, 50),
    st.integers(0, 2**62 - 1),
)
def test_the_first_nodes_stay_what_they_are_if_more_join(given: Any, nodes: int, seed: int) -> None:
    np.testing.assert_array_equal(drawn(given, nodes, seed), drawn(given, nodes + 33, seed)[:nodes])


def test_a_file_has_a_row_a_node(tmp_path: Path) -> None:
    file = tmp_path / "hosts.csv"
    file.write_text("host,speed\n1,5.5\n2,6.5\n3,7.5\n")
    assert drawn({"file": str(file), "column": "speed"}, 3).tolist() == [5.5, 6.5, 7.5]
    assert drawn({"file": file, "column": "host"}, 2).dtype == np.int64
    many = drawn({"file": file, "column": "speed", "placing": "drawn"})
    assert np.bincount(many.astype(int))[5:].min() > MANY / 3.2
    file.write_bytes('\ufeff;"speed; up";name\r\n0;1,5;"a#b"\r\n1;2,5;"c;d"\r\n'.encode())
    assert drawn({"file": str(file), "column": "speed; up"}, 2).tolist() == [1.5, 2.5]
    file.write_text("# no names\n4 8\n5 9\n")
    assert drawn({"file": file, "column": 2}, 2).tolist() == [8, 9]


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("a\n1\n", {"column": "b"}, "the column is 'b', expected one of a"),
        ("a\n1\n", {"column": "a"}, "number of rows is 1, expected 2, one a node, or placing"),
        ("a\n1\nx\n", {"column": "a"}, "line 3, column 1: a is 'x', expected a finite number"),
        ("1 2\n3\n", {"column": 2}, "line 2: number of columns is 1, expected 2"),
        ("1\n3\n", {"column": 2}, "line 1: number of columns is 1, expected at least 2"),
        ("a b\n1 5 6\n", {"column": "a"}, "line 2: number of columns is 3, expected 2"),
        ("a;a\n1;2\n", {"column": "a"}, "the column is 'a', expected a name of one only"),
        ("a;b\n1;\n", {"column": "b"}, "line 2, column 2: b is '', expected a finite number"),
        ("0,1\n5,6\n7,8\n", {"column": 1}, "line 1: the line is '0 1', expected numbers such"),
        ("a,b\n1,5\n2,6", {"column": "b"}, "line 3: the last line is '2,6', expected one with"),
        ("", {"column": 1}, "the file of attributes is empty"),
    ],
)
def test_file_faults_are_shown(
    text: str, given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    file = tmp_path / "hosts.csv"
    file.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        drawn({"file": str(file), **given}, 2)
    assert str(caught.value).startswith(str(file))
    assert message in str(caught.value)


@pytest.mark.parametrize("given", ["fast", [], ["a"], {}, {"gauss": [1, 2]}])
def test_impossible_attributes_are_named(given: Any) -> None:
    with pytest.raises(ScenarioError, match=r"^attributes\.speed is "):
        Attribute("speed", given)


@pytest.mark.parametrize(
    "given",
    [
        *({"uniform": wrong} for wrong in ([2, 1], [1])),
        *({"whole": [0.5, 2]}, {"normal": [1, -1]}, {"pareto": [0, 1]}, {"values": []}),
        *({"exponential": float("inf")}, {"values": [1], "weights": [0]}, {"file": 3}),
        *({"file": "x", "column": 0}, {"file": "x", "placing": "there"}, {"file": "x", "colum": 1}),
    ],
)
def test_impossible_parts_of_attributes_are_named(given: dict[str, Any]) -> None:
    """The last of each."""
    with pytest.raises(ScenarioError, match=rf"^attributes\.speed\.{list(given)[-1]} is "):
        Attribute("speed", given)


@pytest.mark.parametrize(
    ("latency", "words"),
    [
        (engine_latency.constant_latency(5), "5 ms"),
        (engine_latency.uniform_latency(5, 1500), "5 to 1,500 ms"),
        (
            engine_latency.lognormal_latency(100, 0.5),
            "16 to 626 ms, half of the messages up to 100 ms",
        ),
        (SITES, "2 sites, 1 to 2,000 ms, half of the pairs up to"),
        (PLACES, "2 sites, 4 to 34 ms, half of the pairs up to"),
    ],
)
def test_a_wrong_unit_is_seen_at_a_glance(latency: engine_latency.Latency, words: str) -> None:
    assert latency_words(latency, 50, 1).startswith(words)


def test_what_links_do_is_told() -> None:
    link = Link(
        loss=0.01,
        up_rate=[1000, 20_000],
        up_queue=5000,
        partition=[{"begin_s": 1, "end_s": 2, "shares": [0.5]}],  # type: ignore[arg-type]
        loss_period=[{"begin_s": 3, "end_s": 4, "loss": 0.5}],  # type: ignore[arg-type]
    )
    assert network_words(link) == (
        "loss 0.01, up rate 1,000 or 20,000, up queue 5,000, loss 0.5 from 3 to 4 s, "
        "parted from 1 to 2 s"
    )
    assert network_words(Link()) == "nothing is lost"
