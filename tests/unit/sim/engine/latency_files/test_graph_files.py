"""GML and GraphML as other programs write them: read as meant, or refused in a sentence."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from gossamer.sim.engine.latency_files.graph_files import read_graph
from gossamer.sim.engine.latency_files.topologies import RouterTopology, read_topology
from support.refusals import check_cuts, sentence_about

# igraph writes numbers without a point, and yEd its brackets on lines of their own.
IGRAPH = """\
Creator "igraph version 0.10.4 Sun Nov  1 10:00:00 2026"
Version 1
graph
[
  directed 0
  node
  [
    id 0
    name "a # b"
  ]
  node
  [
    id 1
    name "n1e5 ]"
  ]
  node
  [
    id 2
    name "São Paulo"
  ]
  edge
  [
    source 1
    target 0
    latency 1e-05
  ]
  edge
  [
    source 2
    target 1
    latency 2.5E+1
  ]
  edge
  [
    source 2
    target 1
    latency 3e+2
  ]
]
"""
# Gephi and yEd; the second link takes the value that its field has by default.
GRAPHML = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">
<key attr.name="latency" attr.type="double" for="edge" id="d0"><default>25.0</default></key>
<key attr.name="label" attr.type="string" for="node" id="d1"/>
<key for="node" id="d2" yfiles.type="nodegraphics"/>
<key for="port" id="d3" yfiles.type="portgraphics"/>
<graph edgedefault="undirected" id="G">
<node id="n0"><data key="d1">S\u00e3o Paulo</data><port name="p"/></node>
<node id="n1"><data key="d2"><y:ShapeNode><y:NodeLabel>1_0</y:NodeLabel></y:ShapeNode></data></node>
<node id="g" yfiles.foldertype="group"><graph edgedefault="undirected" id="g:">
<node id="g::n0"/>
<edge id="e2" source="g::n0" target="n1"><data key="d0">3e+2</data></edge>
</graph></node>
<edge id="e0" source="n1" target="n0"><data key="d0">1e-05</data></edge>
<edge id="e1" source="g" target="n1"></edge>
</graph>
</graphml>
"""
FORMATS = {"a.gml": IGRAPH, "a.graphml": GRAPHML}


def read_latency(path: Path) -> RouterTopology:
    return read_topology(path, "latency")


def same(one: RouterTopology, other: RouterTopology) -> bool:
    return np.array_equal(one.ends, other.ends) and np.array_equal(one.latency, other.latency)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("locale", ["", "BOM and CRLF"])
def test_graphs_of_other_programs_are_read(name: str, locale: str, tmp_path: Path) -> None:
    path, text = tmp_path / name, FORMATS[name]
    path.write_bytes(("\ufeff" + text.replace("\n", "\r\n") if locale else text).encode())
    topology = read_latency(path)
    assert topology.sites == (3 if name == "a.gml" else 4)
    assert sorted(topology.latency.tolist()) == [1e-05, 1e-05, 25, 25, 300, 300]


@pytest.mark.parametrize("name", FORMATS)
def test_a_graph_that_was_cut_off_is_read_as_the_whole_or_refused(
    name: str, tmp_path: Path
) -> None:
    whole = FORMATS[name].encode()
    refused = check_cuts(tmp_path / name, whole, read_latency, same, range(len(whole)))
    assert refused >= len(whole) - 2


FIRST = '<node id="n0">'
FAULTS = [
    ("a.gml", "latency 1e-05", 'latency "1e-05"', "link 0 to 1: latency is '1e-05', expected a f"),
    ("a.gml", "latency 1e-05", "latency 1 latency 2", "latency is [1, 2], expected a finite numb"),
    ("a.gml", "latency 1e-05", "latency NAN", "latency is nan, expected a finite number"),
    ("a.gml", "latency 1e-05", "latency -1", "latency is -1.0, expected a number from 0"),
    ("a.gml", "latency 1e-05", "latency 0,013", "line 25, column 13: the word is '0,013', expect"),
    ("a.gml", "latency 1e-05", "latency 12ms", "line 25, column 13: the word is '12ms', expected"),
    ("a.gml", "latency 1e-05", "latency 1_0", "line 25, column 13: the word is '1_0', expected a"),
    (
        "a.gml",
        "latency 1e-05",
        "latency [",
        "the graph is unreadable (expected ']', found EOF at (40",
    ),
    ("a.gml", "latency 1e-05", "Latency 1", "network.edge_latency is 'latency', expected one of"),
    ("a.gml", "id 2\n", "id 2 graph [ node [ id 7 ] ]\n", "is read as 3 nodes and 3 links, exp"),
    ("a.graphml", ">1e-05<", ">true<", "the graph is unreadable (could not convert string to flo"),
    ("a.graphml", ">1e-05<", ">1_0<", "edge e0: latency is '1_0', expected a number"),
    ("a.graphml", ">1e-05<", ">nan<", "latency is nan, expected a finite number"),
    ("a.graphml", ">1e-05<", '>1</data><data key="d0">2<', "e0: the field latency is there twice"),
    ("a.graphml", FIRST, '<node id="n0"/>' + FIRST, "read as 4 nodes and 3 links, expected 5 and"),
    ("a.graphml", 'source="n1" target="n0"', 'source="n1" target="n7"', "read as 5 nodes and 3"),
    ("a.graphml", ' yfiles.foldertype="group"', "", "is read as 3 nodes and 2 links, expected 4"),
    ("a.graphml", "</graphml>", "<graph><node id='z'/></graph></graphml>", "expected 5 and 3, as"),
    ("a.graphml", 'attr.type="double"', 'attr.type="boolean"', "the graph is unreadable ("),
]


@pytest.mark.parametrize(("name", "old", "new", "message"), FAULTS)
def test_what_networkx_leaves_out_or_takes_for_something_else_is_refused(
    name: str, old: str, new: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    assert FORMATS[name].count(old) == 1
    path.write_bytes(FORMATS[name].replace(old, new).encode())
    assert message in sentence_about(path, read_latency)


def test_a_number_without_a_type_is_text(tmp_path: Path) -> None:
    path = tmp_path / "a.graphml"
    path.write_text(GRAPHML.replace(' attr.type="double"', ""), encoding="utf-8")
    assert "latency is '1e-05', expected a finite number" in sentence_about(path, read_latency)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ('Longitude "8,5" Latitude 47', "node 0: Longitude is '8,5', expected a finite number"),
        ("Longitude 8.5 Latitude 470", "node 0: Latitude is 470.0, expected -90 to 90 degrees"),
        ("Longitude 8.5", "the place of node 0 is missing, expected Longitude and Latitude, or"),
    ],
)
def test_places_are_numbers_of_degrees(fields: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "zoo.gml"
    path.write_text(
        f"graph [ node [ id 0 {fields} ] node [ id 1 Longitude 8 Latitude 47.5 ]\n"
        "edge [ source 0 target 1 ] ]\n"
    )
    assert message in sentence_about(path, read_topology)


@pytest.mark.parametrize("ending", [".gml", ".graphml"])
def test_what_networkx_writes_is_read_back(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"a{ending}"
    graph = nx.gnp_random_graph(12, 0.4, seed=3, directed=True)
    for number, (_, _, fields) in enumerate(graph.edges(data=True)):
        fields.update(latency=1e-7 * 10.0**number, note='a "quoted" [word] # 1e5')
    (nx.write_gml if ending == ".gml" else nx.write_graphml)(graph, path)
    found = read_graph(path)
    assert found.is_directed()
    latencies = {(int(a), int(b)): fields["latency"] for a, b, fields in found.edges(data=True)}
    assert latencies == {(a, b): f["latency"] for a, b, f in graph.edges(data=True)}
