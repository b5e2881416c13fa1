"""The engines' links, from the table [network] of a scenario."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.sim.engine.bandwidth import make_sizes
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.worlds.links import bandwidth, loss_periods, partitions
from gossamer.sim.studies.worlds.network import Link

NODES = 20_000


def test_shares_make_groups_and_the_rest_is_one_more() -> None:
    link = Link(partition=[{"begin_s": 1, "end_s": 2.5, "shares": [0.2, 0.5]}])  # type: ignore[arg-type]
    (found,) = partitions(link, NODES, 1, {})
    assert found[:2] == (1000, 2500)
    counts = np.bincount(found.groups) / NODES
    np.testing.assert_allclose(counts, [0.2, 0.5, 0.3], atol=0.02)
    (more,) = partitions(link, NODES + 99, 1, {})
    np.testing.assert_array_equal(more.groups[:NODES], found.groups)


def test_partitions_of_one_scenario_are_drawn_apart() -> None:
    part = {"begin_s": 0, "end_s": 1, "shares": [0.5]}
    one, other = partitions(Link(partition=[part, part]), NODES, 1, {})  # type: ignore[arg-type]
    assert 0.45 < (one.groups == other.groups).mean() < 0.55


def test_the_values_of_an_attribute_are_groups() -> None:
    link = Link(partition=[{"begin_s": 0, "end_s": 1, "by": "region"}])  # type: ignore[arg-type]
    region = np.array([7.5, 2, 7.5, 9])
    (found,) = partitions(link, 4, 1, {"region": region})
    assert found.groups.tolist() == [1, 0, 1, 2]
    with pytest.raises(ScenarioError, match=r"^network.partition.by is no attribute \(region\)"):
        partitions(link, 4, 1, {})


def test_times_become_ticks() -> None:
    link = Link(loss_period=[{"begin_s": 0.5, "end_s": 60, "loss": 0.25}])  # type: ignore[arg-type]
    assert loss_periods(link) == [(500, 60_000, 0.25)]


def test_rates_are_numbers_draws_or_attributes() -> None:
    link = Link(up_rate=[100, 900], down_rate="speed", up_queue=7)
    found = bandwidth(link, 4000, 1, make_sizes(), {"speed": np.arange(1, 4001) + 0.5})
    assert set(found.up) == {100, 900}
    assert 0.45 < (found.up == 100).mean() < 0.55
    assert found.down[:3].tolist() == [1, 2, 3]
    assert (found.up_queue, found.down_queue) == (7, -1)
    with pytest.raises(ScenarioError, match=r"^network.down_rate, speed is an attribute with"):
        bandwidth(link, 2, 1, make_sizes(), {"speed": np.array([5, 0])})


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("network.up_rate", {"up_rate": 0.5}),
        ("network.up_rate", {"up_rate": []}),
        ("network.down_rate", {"down_rate": True}),
        ("network.up_queue", {"up_queue": 5}),
        ("network.down_queue", {"down_rate": 5, "down_queue": 2.5}),
        ("network.matrix_form", {"matrix_form": "pairs"}),
        ("network.edge_latency", {"edge_latency": "delay"}),
        ("network.topology", {"latency": "topology"}),
        ("network.coordinates", {"coordinates": "x.csv"}),
        ("network.unit_s", {"unit_s": 0}),
        ("network.access_s", {"access_s": -1}),
        ("network.partition", {"partition": 3}),
        (r"\[network.partition\]", {"partition": [3]}),
        ("network.partition.shares", {"partition": [{"begin_s": 0, "end_s": 1}]}),
        ("network.partition.shares", {"partition": [{"begin_s": 0, "end_s": 1, "shares": [2]}]}),
        ("network.partition.end_s", {"partition": [{"begin_s": 2, "end_s": 1, "shares": [0.5]}]}),
        ("network.partition.begin_s", {"partition": [{"end_s": 1, "shares": [0.5]}]}),
        ("network.partition.share", {"partition": [{"share": 1}]}),
        ("network.loss_period.loss", {"loss_period": [{"begin_s": 0, "end_s": 1, "loss": 2}]}),
    ],
)
def test_impossible_networks_are_named(field: str, fields: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError, match=f"^{field} is "):
        Link(**fields)
