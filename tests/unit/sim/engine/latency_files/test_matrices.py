"""Matrices of latencies, in every form in which they are published."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.sim.engine.latency_files.matrices import read_matrix
from gossamer.sim.engine.latency_files.shortest_ways import fill_unmeasured
from gossamer.sim.errors import ScenarioError

WHOLE = [[1, 20.5, 300], [20.5, 2, 40], [300, 40, 0]]
FORMS = {
    "triangular": "# three sites\n1\n20.5 2   # the second\n\n300 4e1 0\n",
    "falling": "1,20.5,300\n2,40\n0\n",
    "full": "1 20.5 300\n20.5 2 40\n300 40 0\n",
    "with a heading": "3\n1;20.5;300\n20.5;2;40\n300;40;0\n",
    "triangular with a heading": "3\n1\n20.5 2\n300 40 0\n",
    "pairs": "1 1 1\n1 2 20.5\n3,1,300\n2 2 2\n2 3 40\n3 3 0\n",
    "king": "node 1\nnode 2\nnode 3\n\n1,1 1\n1,2 20.5\n1,3 300\n2,2 2\n2,3 40\n3,3 0\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_told_by_its_lines(form: str, tmp_path: Path) -> None:
    path = tmp_path / "king.txt"
    path.write_text(FORMS[form])
    assert read_matrix(path).tolist() == WHOLE


@given(st.integers(2, 9), st.randoms(use_true_random=False), st.sampled_from(["\t", ",", "; "]))
def test_forms_agree_on_random_matrices(
    tmp_path_factory: pytest.TempPathFactory, sites: int, random: object, between: str
) -> None:
    """A symmetric matrix written in four forms is read back the same from each."""
    draws = np.random.default_rng(random.randrange(1 << 30))  # type: ignore[attr-defined]
    matrix = draws.integers(0, 500, (sites, sites)).astype(float)
    matrix = np.maximum(matrix, matrix.T)
    texts = {
        "full": [between.join(map(str, row)) for row in matrix],
        "triangular": [between.join(map(str, row[: i + 1])) for i, row in enumerate(matrix)],
        "pairs": [
            between.join(map(str, (i + 1, j + 1, matrix[i, j])))
            for i in range(sites)
            for j in range(i + 1)
        ],
    }
    path = tmp_path_factory.mktemp("matrices") / "matrix"
    for form, lines in texts.items():
        path.write_text("\n".join(lines))
        np.testing.assert_array_equal(read_matrix(path, form), matrix, err_msg=form)


def test_a_triangle_without_diagonal_follows_the_number_of_sites(tmp_path: Path) -> None:
    """As PeerSim's parser reads it."""
    path = tmp_path / "peersim"
    path.write_text("4\n5\n6 7\n8 9 10\n")
    found = fill_unmeasured("file", read_matrix(path))[0]
    assert found.tolist() == [[0, 5, 6, 8], [5, 0, 7, 9], [6, 7, 0, 10], [8, 9, 10, 0]]


def test_a_file_of_three_pairs_is_full_unless_it_is_said(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_text("1 2 5\n2 3 6\n3 1 7\n")
    assert read_matrix(path).shape == (3, 3)
    assert read_matrix(path, "pairs")[0, 2] == 7


@pytest.mark.parametrize(
    ("text", "form", "message"),
    [
        ("1\n2 1e300\n", None, "line 2: latency 2 is '1e300', expected a number from 0 to"),
        ("1\n2 y\n", None, "line 2: latency 2 is 'y', expected a number"),
        ("1\n2 -3\n", None, "line 2: latency 2 is '-3', expected"),
        ("1\n2 3\n\n# c\n4\n", None, "line 5: number of latencies is 1, expected 3"),
        ("1 2\n3\n", "full", "line 2: number of latencies is 1, expected 2"),
        ("1 2 3\n1 4\n", "pairs", "line 2: number of words is 2, expected two sites"),
        ("1 2 3\n1 2 4\n", None, "line 2: the pair is '1 2', expected one that is not given"),
        ("# nothing\n", None, "the latency matrix is empty, expected at least one line"),
    ],
)
def test_faults_of_a_matrix_file_are_named(
    tmp_path: Path, text: str, form: str | None, message: str
) -> None:
    path = tmp_path / "king.txt"
    path.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        read_matrix(path, form)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)


def test_a_matrix_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"none\.txt: the latency matrix is No such file"):
        read_matrix(tmp_path / "none.txt")
    path = tmp_path / "binary"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ScenarioError, match="the latency matrix is not UTF-8"):
        read_matrix(path)


@pytest.mark.parametrize("missing", [3, 40])
def test_pairs_that_were_not_measured_take_the_shortest_way(missing: int) -> None:
    """Against Floyd and Warshall's three loops; what was measured stays, detour or not."""
    draws = np.random.default_rng(5)
    matrix = draws.integers(0, 100, (9, 9)).astype(float)
    np.fill_diagonal(matrix, 0)
    places = draws.integers(0, 9, (missing, 2))
    places = places[places[:, 0] != places[:, 1]]
    matrix[places[:, 0], places[:, 1]] = np.nan
    ways = np.where(np.isnan(matrix), np.inf, matrix)
    for k in range(9):
        for i in range(9):
            for j in range(9):
                ways[i, j] = min(ways[i, j], ways[i, k] + ways[k, j])
    full, count = fill_unmeasured("file", matrix)
    assert count == np.isnan(matrix).sum() > 0
    np.testing.assert_allclose(full, np.where(np.isnan(matrix), ways, matrix))


def test_sites_that_nothing_leads_to_are_named() -> None:
    matrix = np.array([[0, 5, np.nan], [5, 0, np.nan], [np.nan, np.nan, 0]])
    with pytest.raises(ScenarioError, match="file: the way from site 1 to site 3 is missing"):
        fill_unmeasured("file", matrix)
