"""Topologies made up and read from files, and the workload on them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from gossamer.protocol.dissemination.optimum import lower_bounds
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.dissemination.strategies import COMPARED, Setting, run_strategy
from gossamer.sim.studies.dissemination.topologies import (
    GENERATORS,
    TransitStub,
    barabasi_albert,
    transit_stub,
    transit_stub_of,
    waxman,
)
from gossamer.sim.studies.dissemination.topology_files import read_topology
from gossamer.sim.studies.dissemination.workload import (
    LOCALITIES,
    PUBLISHERS,
    Locality,
    Workload,
    make_workload,
    sampled,
)
from support.checkout import SHARED_DATA
from support.draws import with_campaigns
from support.sim_commands import printed_by
from support.tree_plans import as_networkx


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def gml(*lines: str) -> str:
    return "graph [\n" + "\n".join(lines) + "\n]\n"


def gml_node(number: int, label: str, more: str = "") -> str:
    return f'node [ id {number} label "{label}" {more} ]'


def gml_link(one: int, other: int, more: str = "") -> str:
    return f"edge [ source {one} target {other} {more} ]"


@pytest.mark.parametrize("name", GENERATORS)
@pytest.mark.parametrize("brokers", [40, 125])
def test_a_topology_is_connected_of_its_size_and_made_by_its_seed(name: str, brokers: int) -> None:
    topology, again, other = (GENERATORS[name](brokers, seed) for seed in (1, 1, 2))
    assert topology.graph.nodes == len(topology.names) == len(set(topology.names)) == brokers
    assert nx.is_connected(as_networkx(topology.graph))
    assert topology.graph.ends.tolist() == again.graph.ends.tolist() != other.graph.ends.tolist()


def test_stub_domains_hang_on_one_transit_broker_each_but_for_links_that_are_added() -> None:
    """The structure of GT-ITM's graphs: without its transit brokers a graph falls into stubs."""
    parameters = TransitStub(transit_domains=2, transit_nodes=3, stubs=2, stub_nodes=5)
    topology = transit_stub(parameters, 1)
    graph = as_networkx(topology.graph)
    transit = [node for node, name in enumerate(topology.names) if "." not in name]
    assert len(transit) == 6
    assert nx.is_connected(graph.subgraph(transit))
    graph.remove_nodes_from(transit)
    assert [len(part) for part in nx.connected_components(graph)] == [5] * 12
    few = TransitStub(stub_density=1.0, transit_density=1.0)
    more = TransitStub(stub_density=1.0, transit_density=1.0, stub_stub_links=4)
    without, with_more = transit_stub(few, 1).graph.links, transit_stub(more, 1).graph.links
    assert without < with_more <= without + 4


@pytest.mark.parametrize("brokers", [40, 99, 500, 2000, 5000])
def test_parameters_are_found_for_any_size(brokers: int) -> None:
    assert transit_stub_of(brokers).brokers == brokers


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: transit_stub_of(39), "brokers"),
        (lambda: TransitStub(stub_nodes=0), "stub_nodes"),
        (lambda: TransitStub(stub_density=0.0), "stub_density"),
        (lambda: TransitStub(stubs=0, stub_stub_links=1), "stubs"),
        (lambda: transit_stub(TransitStub(stub_nodes=60, stub_density=1e-6), 1), "density"),
        (lambda: waxman(10, alpha=-1.0, seed=1), "alpha"),
        (lambda: waxman(10, beta=float("nan"), seed=1), "beta"),
        (lambda: barabasi_albert(3, 3, seed=1), "links"),
        (lambda: Locality(neighbourhood=0.0), "neighbourhood"),
        (lambda: Locality(keywords=0), "keywords"),
        (lambda: Locality(subscription="client"), "subscription"),
        (lambda: Locality(publishers="nowhere"), "publishers"),
    ],
)
def test_impossible_parameters_are_named(make: Callable[[], object], field: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        make()
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


def test_attachment_makes_some_brokers_much_better_linked_and_waxman_links_near_ones() -> None:
    graph = as_networkx(barabasi_albert(300, seed=1).graph)
    degrees = sorted(degree for _, degree in graph.degree)
    assert graph.number_of_edges() == 2 + 2 * 297
    assert degrees[-1] > 5 * degrees[150]
    topology = waxman(150, seed=1)
    ends = topology.graph.ends
    linked = np.linalg.norm(topology.positions[ends[:, 0]] - topology.positions[ends[:, 1]], axis=1)
    assert np.median(linked) < 0.3


def test_repeated_links_names_and_missing_places_are_coped_with(tmp_path: Path) -> None:
    text = gml(
        'label "Zoo"',
        gml_node(0, "Here", "Longitude 1.5 Latitude 50"),
        gml_node(3, "None", "Longitude 2.5"),
        gml_node(7, "None"),
        *(gml_link(0, 3, "cost 4"), gml_link(3, 0, "cost 2.5")),
        *(gml_link(3, 7, "cost 1"), gml_link(7, 7, "cost 1")),
    )
    path = write(tmp_path, "zoo.gml", text)
    topology = read_topology(path)
    assert topology.names == ("Here", "None #3", "None #7")
    assert (topology.dropped, topology.graph.costs.tolist()) == (2, [1, 1])
    assert topology.positions[0].tolist() == [1.5, 50]
    assert np.isnan(topology.positions[1:]).all()
    assert read_topology(path, "cost").graph.costs.tolist() == [2.5, 1]


def test_graphml_is_read_too_and_a_missing_file_named(tmp_path: Path) -> None:
    path = tmp_path / "path.graphml"
    nx.write_graphml(nx.path_graph(4), path)
    assert read_topology(path).graph.ends.tolist() == [[0, 1], [1, 2], [2, 3]]
    with pytest.raises(ScenarioError, match=r"nothing\.gml: the graph is No such file"):
        read_topology(tmp_path / "nothing.gml")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("broken.gml", "graph [\n node [ id 0\n", "the graph is unreadable .*, expected GML"),
        ("broken.gml", "", "the graph is unreadable .*, expected GML"),
        ("broken.gml", gml('node [ label "a" ]'), "the graph is unreadable .*, expected GML"),
        ("empty.gml", gml(), "brokers is missing, expected at least one broker"),
        ("broken.graphml", "<graphml", "the graph is unreadable .*, expected GraphML"),
        ("other.txt", "", r"the ending is '.txt', expected .* \.gml or \.graphml"),
        (
            "apart.gml",
            gml(gml_node(0, "Bern (CH)"), gml_node(1, "Rome"), gml_node(2, "Oslo"), gml_link(0, 1)),
            r"the graph is in 2 components \(Bern \(CH\), Rome; Oslo\), expected brokers that all",
        ),
    ],
)
def test_a_file_of_no_graph_is_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    path = write(tmp_path, name, text)
    with pytest.raises(ScenarioError, match=words) as caught:
        read_topology(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("cost", ["cost -1", "cost 0", 'cost "dear"', "", "cost NAN"])
def test_a_cost_that_is_no_number_above_zero_names_its_link(tmp_path: Path, cost: str) -> None:
    text = gml(gml_node(0, "Bern"), gml_node(1, "Rome"), gml_link(0, 1, cost))
    with pytest.raises(ScenarioError, match=r"between Bern and Rome is .*, expected a finite num"):
        read_topology(write(tmp_path, "costs.gml", text), "cost")


@pytest.mark.parametrize("place", ['Longitude "8,5" Latitude 47', "Longitude 8.5 Latitude NAN"])
def test_a_place_that_is_no_number_names_its_broker(tmp_path: Path, place: str) -> None:
    text = gml(gml_node(0, "Bern", place), gml_node(1, "Rome"), gml_link(0, 1))
    with pytest.raises(ScenarioError, match=r"node 0: L\w+ is .*, expected a finite number"):
        read_topology(write(tmp_path, "places.gml", text))


def test_a_cost_that_igraph_writes_is_read_as_meant(tmp_path: Path) -> None:
    """NetworkX alone takes 2e+01 for 2, and 1e-05 for 1."""
    text = gml(gml_node(0, "Bern"), gml_node(1, "Rome"), gml_link(0, 1, "cost 2e+01"))
    topology = read_topology(write(tmp_path, "costs.gml", "\ufeff" + text), "cost")
    assert topology.graph.costs.tolist() == [20]


@pytest.mark.shared_data
@pytest.mark.parametrize(
    ("name", "brokers", "dropped"),
    [
        *(("Abilene", 11, 0), ("AttMpls", 25, 1), ("Geant2012", 40, 0)),
        *(("GtsCe", 149, 0), ("Switch", 74, 0), ("UsCarrier", 158, 0)),
    ],
)
def test_real_networks_are_read(name: str, brokers: int, dropped: int) -> None:
    path = SHARED_DATA / "topologies" / f"{name}.gml"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    topology = read_topology(path)
    assert (topology.graph.nodes, topology.dropped) == (brokers, dropped)


def holders_of(workload: Workload) -> dict[int, list[int]]:
    """The brokers that want each keyword."""
    holders: dict[int, list[int]] = defaultdict(list)
    for place, keywords in zip(workload.places, workload.subscriptions, strict=True):
        for keyword in keywords:
            holders[keyword].append(place)
    return holders


def test_a_keyword_is_wanted_in_its_neighbourhood_only() -> None:
    graph = transit_stub(transit_stub_of(200), 1).graph
    whole = as_networkx(graph)
    spreads = {}
    for name, share in LOCALITIES.items():
        locality = Locality(share, keywords=60, documents=50, subscribers=4)
        holders = holders_of(make_workload(graph, locality, 1))
        assert (len(holders), {len(held) for held in holders.values()}) == (60, {4})
        hops = [nx.shortest_path_length(whole, held[0], held[-1]) for held in holders.values()]
        spreads[name] = np.mean(hops)
    assert spreads["Localized1"] < spreads["Localized2"] < spreads["Uniform"]


def test_documents_are_about_what_somebody_wants_and_sampled_by_their_share() -> None:
    graph = waxman(60, seed=1).graph
    workload = make_workload(graph, Locality(keywords=40, documents=80, document_keywords=3), 1)
    sample = workload.sample(graph)
    assert sample.documents == 80
    assert np.diff(sample.first).min() >= 1
    assert max(map(len, workload.documents)) == 3
    graph = waxman(30, seed=1).graph
    sample = make_workload(graph, Locality(keywords=40, documents=2000), 1).sample(graph)
    assert 160 < sampled(sample, 0.1, 1).documents < 240
    assert sampled(sample, 1.0, 1).documents == 2000
    with pytest.raises(ScenarioError, match="sampling share is 0, expected a share above 0"):
        sampled(sample, 0, 1)


def test_a_broker_may_have_a_subscription_for_each_keyword() -> None:
    graph = waxman(60, seed=1).graph
    whole = make_workload(graph, Locality(keywords=40, documents=80), 1)
    each = make_workload(graph, Locality(keywords=40, documents=80, subscription="keyword"), 1)
    assert each.documents == whole.documents
    pairs = list(zip(each.places, each.subscriptions, strict=True))
    assert ({len(keywords) for _, keywords in pairs}, len(set(pairs))) == ({1}, len(pairs))
    holders = holders_of(whole)
    assert set(pairs) == {(place, (word,)) for word, held in holders.items() for place in held}


def test_documents_may_be_published_near_whoever_wants_them() -> None:
    graph = transit_stub(transit_stub_of(200), 1).graph
    lengths = dict(nx.all_pairs_shortest_path_length(as_networkx(graph)))
    hops = {}
    for publishers in PUBLISHERS:
        workload = make_workload(graph, Locality(keywords=60, publishers=publishers), 1)
        holders = holders_of(workload)
        hops[publishers] = np.mean(
            [
                min(lengths[host][place] for keyword in about for place in holders[keyword])
                for host, about in zip(workload.hosts, workload.documents, strict=True)
            ]
        )
    assert hops["near"] < 0.5 * hops["anywhere"]


def small_comparison() -> str:
    """All strategies on a small graph, as text without times."""
    topology = barabasi_albert(40, seed=1)
    graph = topology.graph
    routed = make_workload(graph, Locality(keywords=30, documents=60), 1).sample(graph)
    setting = Setting(topology, sampled(routed, 0.5, 1), routed, 1)
    bills = {name: run_strategy(name, setting).bill for name in COMPARED}
    parts = [(name, bill.total, int(bill.duplicates.sum())) for name, bill in bills.items()]
    return repr((parts, lower_bounds(setting.plan(), routed).sum()))


@with_campaigns("hash_seed", ["1"], ["0"])
def test_the_hash_seed_changes_nothing(hash_seed: str) -> None:
    here = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})"
    code = f"{here}; import test_topologies as here; print(here.small_comparison())"
    assert printed_by(code, hash_seed) == small_comparison()


def test_no_routing_of_the_documents_costs_less_than_the_lower_bound() -> None:
    topology = waxman(30, seed=1)
    workload = make_workload(topology.graph, Locality(keywords=30, documents=40), 1)
    routed = workload.sample(topology.graph)
    setting = Setting(topology, routed, routed, 1)
    assert 0 < lower_bounds(setting.plan(), routed).sum() <= run_strategy("OPT", setting).bill.total
