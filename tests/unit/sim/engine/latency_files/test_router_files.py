"""Files of BRITE and GT-ITM: read as these programs write them, checked against what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

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
            *(f'"{"T" if i < 2 else "S"}:{i}.0/0",{first[i]},7,8' for i in range(6)),
            *['"",0,0,0'] * 4,
            "* Arcs",
            *arcs,
            *["0,0,0,0"] * (102 - len(arcs)),
            "* Checksum 718281828",
            "",
        ]
    )


GB = graph_base()
FORMATS = {"a.brite": BRITE, "c.brite": OF_C, "a.alt": ALT, "both.alt": BOTH_WAYS, "a.gb": GB}


def ways(topology: RouterTopology) -> set[tuple[int, int, float]]:
    ends = map(tuple, topology.ends.tolist())
    return {(*pair, delay) for pair, delay in zip(ends, topology.latency.tolist(), strict=True)}


def same(one: RouterTopology, other: RouterTopology) -> bool:
    alike = one.sites == other.sites and np.array_equal(one.stands, other.stands)
    return alike and ways(one) == ways(other)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("locale", ["", "BOM and CRLF"])
def test_files_of_generators_are_read(name: str, locale: str, tmp_path: Path) -> None:
    path, text = tmp_path / name, FORMATS[name]
    path.write_bytes(("\ufeff" + text.replace("\n", "\r\n") if locale else text).encode())
    topology = read_topology(path)
    unit = 1 if name.endswith("brite") else 4
    expected = {(a, b, d * unit) for a, b, d in LINKS} | {(b, a, d * unit) for a, b, d in LINKS}
    assert ways(topology) == expected
    assert topology.sites == 6
    assert topology.stands.tolist() == list(range(0 if unit == 1 else 2, 6))


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_was_cut_off_is_read_as_the_whole_or_refused(name: str, tmp_path: Path) -> None:
    whole = FORMATS[name].encode()
    ends = range(0, len(whole), 1 if len(whole) < 1000 else 3)
    refused = check_cuts(tmp_path / name, whole, read_topology, same, ends)
    assert refused >= len(ends) - 8


LAST = "6\t1\t4\t1.2E-4\t9\t10.0\t1\t4\tE_AS\tU\n"
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
    ("a.gb", "102A", "103A", "line 15: number of records below is 102, expected 103, as the first"),
    ("a.gb", ",6,14", ",6,15", "line 2, column 3: number of arcs is '15', expected 14, as many as"),
    ("a.gb", ",6,14", ",12,14", "line 2, column 2: number of vertices is '12', expected a number"),
    ("a.gb", "V1,0,10,10", "V1,A900,10,10", "line 16, column 2: the next arc is 'A900', expected"),
    ("a.gb", "V1,0,10,10", "V1,A0,10,10", "line 16, column 2: the next arc is 'A0', expected 0,"),
    (
        "a.gb",
        "V1,0,10,10",
        "V1,A,10,10",
        "line 16, column 2: the next arc is 'A', expected 0, or one",
    ),
    ("a.gb", '"S:4.0/0"', '"S:4.0/0', "line 9: the record is '\"S:4.0/0,A13,7,8', expected cells"),
    ("a.gb", "V1,0,10,10", "V8,0,10,10", "line 16, column 1: the end of an arc is 'V8', expected"),
    ("a.gb", "V1,0,10,10", "V1,0,1.5,10", "line 16, column 3: the length of an arc is '1.5', exp"),
    ("a.gb", "V1,0,10,10", "V1,0,10", "line 17: number of cells is 4, expected 3"),
    ("a.gb", "* Checksum 718281828\n", "", "the topology is without one, expected a line that be"),
    ("a.gb", "ZZZIIZIZZZZZZZ", "ZZZ", "line 1: the line is '* GraphBase graph (util_types ZZZ,10V"),
]


@pytest.mark.parametrize(("name", "old", "new", "message"), FAULTS)
def test_a_file_that_is_not_what_it_says_is_refused(
    name: str, old: str, new: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    assert FORMATS[name].count(old) == 1
    path.write_text(FORMATS[name].replace(old, new))
    assert message in sentence_about(path, read_topology)
