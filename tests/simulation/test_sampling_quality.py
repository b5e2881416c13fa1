"""The overlays that the samplers make, against reference values.

Reference: 10^5 nodes, views of 20, 40 cycles from random views; Newscast as PeerSim's
SimpleNewscast, Cyclon with shuffles of 8. Bands: 2 % of clustering and path length, 3 % of the
deviation of in-degrees, over which seeds differ by less than 1.5 %; Cyclon's clustering is that of
a random graph, 2C/n, so only its order is asserted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gossamer.protocol.peer.record_table.records import SAMPLE_TIMER
from gossamer.protocol.peer.sampling import sampler as samplers
from gossamer.protocol.peer.settings.config import SAMPLERS
from gossamer.sim.custom.library import clustering, mean_path_length
from gossamer.sim.engine.cycle_engine import CycleEngine, fill_random_views, join_via, make_network
from gossamer.sim.studies.peers.measuring.overlay_measures import (
    sampled_in_degrees,
    undirected_view_graph,
    view_edges,
)
from support.overlays import descriptors_of
from support.sampler_quality import Overlay


def overlay(name: str, nodes: int, cycles: int, seed: int) -> CycleEngine:
    sampler = samplers.make_sampler(nodes, name, 20, 8, 0, seed)
    network = make_network(nodes)
    fill_random_views(sampler, network.alive, seed, 20)
    engine = CycleEngine(
        sampler, samplers.sample_step, (SAMPLE_TIMER,), network, seed, hint=samplers.sample_hint
    )
    for _ in range(cycles):
        engine.run_cycle()
    return engine


@pytest.mark.campaign
@pytest.mark.parametrize(
    ("name", "clustered", "deviation", "path"),
    [("newscast", 0.294, 8.34, 4.41), ("cyclon", 0.0004, 1.354, 3.52)],
)
def test_a_large_overlay_has_the_reference_values(
    name: str, clustered: float, deviation: float, path: float
) -> None:
    seed = 1
    engine = overlay(name, 100_000, 40, seed)
    alive = engine.network.alive
    graph = undirected_view_graph(engine.state, alive)
    sample = np.arange(0, 100_000, 50)
    found = clustering(graph, sample)
    band: dict[str, Any] = {"abs": 0.0002} if name == "cyclon" else {"rel": 0.02}
    assert found == pytest.approx(clustered, **band), f"seed {seed}"
    degrees = sampled_in_degrees(engine.state, alive)
    assert degrees.mean() == pytest.approx(20, rel=0.0001), f"seed {seed}"
    assert degrees.std() == pytest.approx(deviation, rel=0.03), f"seed {seed}"
    assert mean_path_length(graph, sample[:10]) == pytest.approx(path, rel=0.02), f"seed {seed}"


def test_a_small_newscast_overlay_clusters_alike_and_in_degrees_of_cyclon_stay_close() -> None:
    """Newscast's clustering and in-degrees hardly depend on the number of nodes."""
    seed = 3
    engine = overlay("newscast", 4000, 40, seed)
    alive = engine.network.alive
    graph = undirected_view_graph(engine.state, alive)
    assert clustering(graph) == pytest.approx(0.294, rel=0.04), f"seed {seed}"
    assert sampled_in_degrees(engine.state, alive).std() == pytest.approx(8.34, rel=0.08), (
        f"seed {seed}"
    )
    shuffled, random = (
        sampled_in_degrees(overlay("cyclon", 4000, cycles, seed).state, alive).std()
        for cycles in (40, 0)
    )
    assert random == pytest.approx(np.sqrt(20), rel=0.05)
    assert shuffled < 0.45 * random, f"seed {seed}"


@pytest.mark.parametrize("name", SAMPLERS)
def test_failed_nodes_leave_the_views(name: str) -> None:
    """After half the nodes fail their descriptors go, and the rest stay connected."""
    seed = 5
    engine = overlay(name, 2000, 20, seed)
    engine.network.alive[::2] = False
    for _ in range(40):
        engine.run_cycle()
    survivors = engine.network.alive
    held = engine.state.views[survivors]
    handles = held[held != samplers.EMPTY] & 0xFFFFFFFF
    assert survivors[handles].mean() > 0.99, f"seed {seed}"
    graph = undirected_view_graph(engine.state, survivors)
    assert np.isfinite(mean_path_length(graph, np.array([0]))), f"seed {seed}"


@pytest.mark.parametrize("name", SAMPLERS)
def test_nodes_that_join_through_one_contact_are_mixed_in(name: str) -> None:
    seed = 7
    engine = overlay(name, 1000, 10, seed)
    for p in range(500):
        join_via(engine.state, p, engine.cycle, 999)
    for _ in range(20):
        engine.run_cycle()
    assert sampled_in_degrees(engine.state, engine.network.alive)[:500].min() >= 1, f"seed {seed}"


def test_random_views_are_distinct_others_that_are_up_as_many_as_there_are_and_fit() -> None:
    sampler = samplers.make_sampler(60, "cyclon", 20, 8, 1, seed=1)
    sampler.profile[:, 0] = np.arange(60) * 10
    alive = np.arange(60) % 3 != 0
    fill_random_views(sampler, alive, seed=4, count=12)
    for p in range(60):
        handles = [handle for _, handle in descriptors_of(sampler, p)]
        assert len(set(handles)) == len(handles) == (12 if alive[p] else 0)
        assert p not in handles
        assert alive[handles].all()
        assert list(sampler.view_profile[p, : len(handles), 0]) == [10 * h for h in handles]
    sampler = samplers.make_sampler(6, "newscast", 20, 8, 0, seed=1)
    fill_random_views(sampler, np.arange(6) < 4, seed=4, count=20)
    assert sorted(handle for _, handle in descriptors_of(sampler, 2)) == [0, 1, 3]
    sampler = samplers.make_sampler(6, "newscast", 4, 1, 0, seed=1)
    with pytest.raises(ValueError, match="count is 5, expected 0 to view_size, 4"):
        fill_random_views(sampler, np.ones(6, bool), seed=1, count=5)


def test_measures_of_a_worked_example() -> None:
    """0 holds 1 and 2, 1 holds 2, 2 holds 3, 4 holds 0; 4 is down."""
    sampler = samplers.make_sampler(5, "cyclon", 2, 1, 0, seed=1)
    for p, slot, held in [(0, 0, 1), (0, 1, 2), (1, 0, 2), (2, 0, 3), (4, 0, 0)]:
        sampler.views[p, slot] = held
    alive = np.array([True, True, True, True, False])
    graph = undirected_view_graph(sampler, alive)
    assert [list(ends) for ends in view_edges(sampler, alive)] == [[0, 0, 1, 2], [1, 2, 2, 3]]
    assert list(sampled_in_degrees(sampler, alive)) == [0, 1, 2, 1]
    assert clustering(graph) == pytest.approx((1 + 1 + 1 / 3 + 0) / 4)
    assert clustering(graph, np.array([2])) == pytest.approx(1 / 3)
    assert mean_path_length(graph, np.array([0, 3])) == pytest.approx((1 + 1 + 2 + 1 + 2 + 2) / 6)
    alive[2] = False  # there is no way across the gap
    assert mean_path_length(undirected_view_graph(sampler, alive), np.array([0])) == np.inf


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_broadcast_reaches_nearly_all_nodes_and_fewer_after_failures(name: str) -> None:
    overlay = Overlay(name, 500, seed=1, view_size=20)
    overlay.run(20)
    before = np.mean(overlay.broadcasts(10))
    assert before > 0.9
    overlay.fail(0.6)
    assert 1 / 200 <= overlay.broadcast()[0] <= 1
    overlay.run(30)
    assert np.mean(overlay.broadcasts(10)) > 0.7
    alone = Overlay("cyclon", 10, seed=1, view_size=4)
    alone.fail(0.9)
    assert alone.broadcast() == (1.0, 0)
