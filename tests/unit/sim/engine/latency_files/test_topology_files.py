"""Files of BRITE, GT-ITM, GML and GraphML: read as their programs write them, or refused."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from gossamer.sim.engine.latency_files.graph_files import read_graph
from gossamer.sim.engine.latency_files.topologies import RouterTopology, read_topology
from support.refusals import check_cuts, sentence_about

# Six routers in a ring with a chord; the Java and the C++ program write numbers differently.
LINKS = [
    (0, 1, 2.5),
    (1, 2, 31.25),
    (2, 3, 4.75),
    (3, 4, 15.5),
    (4, 5, 6.25),
    (5, 0, 7.5),
    (1, 4, 9),
]
BRITE = "\n".join(
    [
        "Topology: ( 6 Nodes, 7 Edges )",
        "Model (4 - ASBarabasi):  6 1000 100 1  2  1 10.0 1024.0 ",
        "",
        "Nodes: ( 6 )",
        *(f"{i}\t{i + 10}\t{i * 3}\t2\t2\t{i}\tAS_NODE" for i in range(6)),
        "",
        "",
        "Edges: ( 7 )",
        *(
            f"{i}\t{a}\t{b}\t1.2E-4\t{d}\t10.0\t{a}\t{b}\tE_AS\tU"
            for i, (a, b, d) in enumerate(LINKS)
        ),
        "",
    ]
)
OF_C = BRITE.replace("\t", " ").replace(" U\n", " \n").replace("Edges: ( 7 )", "Edges: (7):")
ALT = "\n".join(
    [
        "GRAPH (#nodes #edges id uu vv ww xx yy zz):",
        "6 14 transtub(0,{1,2,0,0},{1,2,3,0.5,0,0}) 0 ",
        "",
        "VERTICES (index name u v w x y z):",
        *(f"{i} {'T' if i < 2 else 'S'}:{i}.0/0 {i} 5 " for i in range(6)),
        "",
        "EDGES (from-node to-node length a b):",
        *(f"{min(a, b)} {max(a, b)} {int(d * 4)} 10 " for a, b, d in LINKS),
        "",
    ]
)
BOTH_WAYS = ALT + "".join(f"{max(a, b)} {min(a, b)} {int(d * 4)} 10 \n" for a, b, d in LINKS)


def graph_base() -> str:
    """As `itm` writes it: four vertices and arcs up to a multiple of 102 are there to spare."""
    first, arcs = ["0"] * 6, []
    for one, other, delay in LINKS:
        for here, there in ((one, other), (other, one)):
            arcs.append(f"V{there},{first[here]},{int(delay * 4)},10")
            first[here] = f"A{len(arcs) - 1}"
    return "\n".join(
        [
            "* GraphBase graph (util_types ZZZIIZIZZZZZZZ,10V,102A)",
            '"transtub(0,{1,2,0,0},{1,2,3,0.500,0.000,0.000},{1,2,3,0.420,0.000,0.0\\',
            '00})",6,14',
            "* Vertices",
            *(f'"{"T" if i < 2 else "S"}:{i}.0/0",{first[i]},7,8' for i in range(5)),
            f'"S:5.0/0",{first[5]},7,',
            "8",
            *['"",0,0,0'] * 4,
            "* Arcs",
            *arcs,
            *["0,0,0,0"] * (102 - len(arcs)),
            "* Checksum 718281828",
            "",
        ]
    )


def block(kind: str, **fields: object) -> str:
    """As igraph writes it, with brackets on lines of their own as yEd."""
    lines = "".join(f"    {name} {value}\n" for name, value in fields.items())
    return f"  {kind}\n  [\n{lines}  ]\n"


IGRAPH = (
    'Creator "igraph version 0.10.4 Sun Nov  1 10:00:00 2026"\nVersion 1\ngraph\n[\n  directed 0\n'
    + block("node", id=0, name='"a # b"')
    + block("node", id=1, name='"n1e5 ]"')
    + block("node", id=2, name='"São Paulo"')
    + block("edge", source=1, target=0, latency="1e-05")
    + block("edge", source=2, target=1, latency="2.5E+1")
    + block("edge", source=2, target=1, latency="3e+2")
    + "]\n"
)
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
GRAPHS = {"a.gml": IGRAPH, "a.graphml": GRAPHML}
ROUTERS = {"a.brite": BRITE, "c.brite": OF_C, "a.alt": ALT, "both.alt": BOTH_WAYS}
ROUTERS["a.gb"] = graph_base()
FORMATS = ROUTERS | GRAPHS


def read(path: Path) -> RouterTopology:
    return read_topology(path, "latency") if path.name in GRAPHS else read_topology(path)


def ways(topology: RouterTopology) -> set[tuple[int, int, float]]:
    ends = map(tuple, topology.ends.tolist())
    return {(*pair, ms) for pair, ms in zip(ends, topology.latency.tolist(), strict=True)}


def same(one: RouterTopology, other: RouterTopology) -> bool:
    alike = one.sites == other.sites and np.array_equal(one.stands, other.stands)
    return alike and ways(one) == ways(other)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("locale", ["", "BOM and CRLF"])
def test_files_of_other_programs_are_read(name: str, locale: str, tmp_path: Path) -> None:
    path, text = tmp_path / name, FORMATS[name]
    path.write_bytes(("\ufeff" + text.replace("\n", "\r\n") if locale else text).encode())
    topology = read(path)
    if name in GRAPHS:
        assert topology.sites == (3 if name == "a.gml" else 4)
        assert sorted(topology.latency.tolist()) == [1e-05, 1e-05, 25, 25, 300, 300]
        return
    unit = 1 if name.endswith("brite") else 4
    expected = {(a, b, d * unit) for a, b, d in LINKS} | {(b, a, d * unit) for a, b, d in LINKS}
    assert (ways(topology), topology.sites) == (expected, 6)
    assert topology.stands.tolist() == list(range(0 if unit == 1 else 2, 6))


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_was_cut_off_is_read_as_the_whole_or_refused(name: str, tmp_path: Path) -> None:
    whole = FORMATS[name].encode()
    ends = range(0, len(whole), 1 if len(whole) < 1000 or name in GRAPHS else 3)
    refused = check_cuts(tmp_path / name, whole, read, same, ends)
    assert refused >= len(ends) - (2 if name in GRAPHS else 8)


LAST = "6\t1\t4\t1.2E-4\t9\t10.0\t1\t4\tE_AS\tU\n"
FIRST = '<node id="n0">'
FAULTS = [
    ("a.brite", LAST, "", "line 13: number of lines below Edges is 6, expected 7, as the file sa"),
    ("a.brite", LAST, LAST + LAST, "line 13: number of lines below Edges is 8, expected 7, as the"),
    ("a.brite", LAST, LAST[:-3] + "\n", "line 20: number of columns is 9, expected 10"),
    ("a.brite", "5\t15\t15\t2\t2\t5\tAS_NODE\n", "", "number of lines below Nodes is 5, expected"),
    ("a.brite", "6 Nodes", "5 Nodes", "line 1: the topology is 'Topology: ( 5 Nodes, 7 Edges )'"),
    ("a.brite", "Edges: ( 7 )", "Edges: ( 7", "line 13: the heading is 'Edges: ( 7', expected Ed"),
    ("a.brite", "Edges: ( 7 )", "Edges:", "line 13: the heading is 'Edges:', expected Edges: ( N"),
    ("a.brite", "\t9\t10", "\t9,5\t10", "line 20, column 5: the delay is '9,5', expected a number"),
    ("a.brite", "\t9\t10", "\tNaN\t10", "line 20, column 5: the delay is 'NaN', expected a number"),
    ("a.brite", "\t9\t10", "\t1_0\t10", "line 20, column 5: the delay is '1_0', expected a number"),
    ("a.brite", "\t9\t10", "\t9e999\t10", "line 20, column 5: the latency of a link is inf, expe"),
    ("a.brite", "\t9\t10", "\t-1.0\t10", "line 20, column 5: the latency of a link is -1.0, expe"),
    ("a.brite", "6\t1\t4\t", "6\t1\t4.0\t", "line 20, column 3: the node is '4.0', expected a wh"),
    ("a.brite", "6\t1\t4\t", "6\t1\t8\t", "line 20, column 3: the end of a link is '8', expected"),
    ("a.brite", "\n5\t15", "\n4\t15", "line 10, column 1: the node is '4', expected one that no"),
    ("a.alt", "1 4 36 10 \n", "", "line 12: number of lines below EDGES is 6, expected 14 or 7,"),
    ("a.alt", "1 4 36 10 \n", "1 4 36 \n", "line 19: number of columns is 3, expected 4"),
    ("a.alt", "1 4 36", "1 4 3,6", "line 19, column 3: the length is '3,6', expected a number"),
    ("a.alt", "6 14", "7 14", "line 4: number of lines below VERTICES is 6, expected 7, as the f"),
    ("a.alt", "6 14", "6 fourteen", "what is before the vertices is incomplete, expected GRAPH"),
    ("a.alt", "\n4 S:4.0/0 4 5 \n", "\n4 S:4.0/0 4 \n", "line 9: number of columns is 3, expecte"),
    ("both.alt", "4 1 36 10 \n", "", "number of lines below EDGES is 13, expected 14, as the file"),
    ("a.gb", "10V", "11V", "line 4: number of records below is 10, expected 11, as the first lin"),
    ("a.gb", "102A", "103A", "line 16: number of records below is 102, expected 103, as the first"),
    ("a.gb", ",6,14", ",6,15", "line 2, column 3: number of arcs is '15', expected 14, as many as"),
    ("a.gb", ",6,14", ",12,14", "line 2, column 2: number of vertices is '12', expected a number"),
    ("a.gb", "V1,0,10,10", "V1,A900,10,10", "line 17, column 2: the next arc is 'A900', expected"),
    ("a.gb", "V1,0,10,10", "V1,A0,10,10", "line 17, column 2: the next arc is 'A0', expected 0,"),
    (
        "a.gb",
        "V1,0,10,10",
        "V1,A,10,10",
        "line 17, column 2: the next arc is 'A', expected 0, or one",
    ),
    ("a.gb", '"S:4.0/0"', '"S:4.0/0', "line 9: the record is '\"S:4.0/0,A13,7,8', expected cells"),
    ("a.gb", "V1,0,10,10", "V8,0,10,10", "line 17, column 1: the end of an arc is 'V8', expected"),
    ("a.gb", "V1,0,10,10", "V1,0,1.5,10", "line 17, column 3: the length of an arc is '1.5', exp"),
    ("a.gb", "V1,0,10,10", "V1,0,10", "line 18: number of cells is 4, expected 3"),
    ("a.gb", "* Checksum 718281828\n", "", "the topology is without one, expected a line that be"),
    ("a.gb", "ZZZIIZIZZZZZZZ", "ZZZ", "line 1: the line is '* GraphBase graph (util_types ZZZ,10V"),
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
    ("a.graphml", ' attr.type="double"', "", "latency is '1e-05', expected a finite number"),
]


@pytest.mark.parametrize(("name", "old", "new", "said"), FAULTS)
def test_what_does_not_mean_what_it_says_is_refused(
    name: str, old: str, new: str, said: str, tmp_path: Path
) -> None:
    """Also what NetworkX would leave out or take for something else."""
    path = tmp_path / name
    assert FORMATS[name].count(old) == 1
    path.write_bytes(FORMATS[name].replace(old, new).encode())
    assert said in sentence_about(path, read)


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
    assert message in sentence_about(path, read)


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
