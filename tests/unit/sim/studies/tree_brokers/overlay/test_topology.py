"""The papers' broker overlays as data, and the workload of a given covering degree."""

from __future__ import annotations

import networkx as nx
import pytest

from gossamer.protocol.content.filters import covers
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.tree_brokers.covering_workload import CoveringWorkload
from gossamer.sim.studies.tree_brokers.overlay import topology


def test_the_papers_overlays_have_their_brokers() -> None:
    overlay = topology.controlled_55()
    assert len(overlay.graph) == 55
    assert overlay.core == ("A", "B", "C", "D", "E")
    assert len(overlay.core) + len(overlay.with_role("inner")) == 23
    assert len(overlay.with_role("edge")) == 32
    assert sorted(set(overlay.graph["E"]) - {"D"}) == sorted(overlay.publisher_hosts)
    assert set(overlay.subscriber_hosts).isdisjoint(overlay.publisher_hosts)
    assert len(topology.controlled_49().graph) == 49
    assert len(topology.controlled_49().publisher_hosts) == 3
    assert len(topology.star_17().graph) == 17
    assert topology.star_17().graph.degree("hub") == 16
    assert len(topology.workflow_40().graph) == 40
    regions = topology.workflow_40().regions()
    assert {region: len(found) for region, found in regions.items()} == {1: 6, 2: 6, 3: 6, 4: 6}


@pytest.mark.parametrize("name", sorted(topology.OVERLAYS))
def test_every_overlay_is_a_tree_whose_hosts_are_in_it(name: str) -> None:
    overlay = topology.OVERLAYS[name]()
    assert nx.is_tree(overlay.graph)
    assert overlay.name == name
    assert set(overlay.publisher_hosts) | set(overlay.subscriber_hosts) <= set(overlay.graph)


@pytest.mark.parametrize("name", ["controlled_55", "controlled_49"])
def test_regions_are_few_brokers_next_to_each_other(name: str) -> None:
    overlay = topology.OVERLAYS[name]()
    for region, hosts in overlay.regions().items():
        region_of = overlay.graph.nodes(data="region")
        inner = [one for one in overlay.with_role("inner") if region_of[one] == region]
        assert 2 <= len(hosts) + len(inner) <= 4
        assert nx.is_connected(overlay.graph.subgraph([*hosts, *inner]))


def test_a_cycle_and_a_gap_are_refused_with_the_brokers_named() -> None:
    with pytest.raises(ScenarioError, match="links is A - B - C - A, expected an overlay without"):
        topology.check_acyclic(nx.Graph([("A", "B"), ("B", "C"), ("C", "A")]))
    with pytest.raises(ScenarioError, match="apart between A and C, expected brokers that all"):
        topology.check_acyclic(nx.Graph([("A", "B"), ("C", "D")]))


def test_every_root_has_the_covering_degree_that_was_asked_for() -> None:
    wanted = list(CoveringWorkload(roots=6, degree=4).subscriptions())
    assert len(wanted) == 30
    for one in wanted:
        above = {two.label for two in wanted if two != one and covers(two.filter, one.filter)}
        assert above == (set() if one.is_root else {str(one.root)}), one.label


def test_a_publication_reaches_as_many_roots_as_asked_for() -> None:
    workload = CoveringWorkload(roots=40, degree=5)
    roots = [one.filter for one in workload.subscriptions() if one.is_root]
    for reach in (1, 3, 10):
        found = [
            sum(root.matches(workload.publication(number, reach)) for root in roots)
            for number in range(200)
        ]
        inside = [count for count in found if count >= reach - 1]
        assert min(found) >= 1
        assert max(found) <= reach + 1
        assert len(inside) >= 0.7 * len(found)


def test_workloads_are_made_by_their_seed_and_refused_where_impossible() -> None:
    def text(seed: int) -> list[str]:
        workload = CoveringWorkload(roots=10, degree=3, seed=seed)
        labels = [one.label for one in workload.subscriptions()]
        return [*labels, *(str(workload.publication(number, 2)) for number in range(10))]

    assert text(1) == text(1)
    assert text(1) != text(2)
    with pytest.raises(ScenarioError, match=r"workload\.roots is 0, expected at least 1"):
        CoveringWorkload(roots=0, degree=1)
    with pytest.raises(ScenarioError, match=r"workload\.degree is -1, expected 0 or more"):
        CoveringWorkload(roots=1, degree=-1)
