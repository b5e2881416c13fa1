"""What a page is given of a run is small, and true of the run."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gossamer.sim.results.page.drawn import (
    MOST_LINKS,
    MOST_NODES,
    MOST_POINTS,
    drawn_course,
    drawn_overlay,
)
from support.watched_runs import made_up_course, made_up_overlay


def test_small_overlays_are_drawn_whole() -> None:
    overlay = made_up_overlay(50)
    found = drawn_overlay(overlay, {"place": overlay.nodes["place"]}, 7)
    assert found["nodes"] == overlay.nodes["node"].tolist()
    assert (found["nodes_in_all"], found["links_in_all"], found["round"]) == (50, 400, 7)
    triples = np.array(found["links"]).reshape(-1, 3)
    numbers = np.array(found["nodes"])
    assert np.array_equal(numbers[triples[:, 0]], overlay.links["source"])
    assert np.array_equal(numbers[triples[:, 1]], overlay.links["target"])
    assert np.array_equal(triples[:, 2], overlay.links["kind"])
    assert found["places"]["place"] == pytest.approx(overlay.nodes["place"], abs=1e-4)


def test_of_large_overlays_nodes_are_drawn_with_those_that_they_know() -> None:
    overlay = made_up_overlay(100_000)
    found = drawn_overlay(overlay, {"place": overlay.nodes["place"]}, 7)
    assert MOST_NODES // 2 < len(found["nodes"]) <= MOST_NODES
    triples = np.array(found["links"]).reshape(-1, 3)
    assert len(triples) <= MOST_LINKS
    known = set(
        zip(overlay.links["source"].tolist(), overlay.links["target"].tolist(), strict=True)
    )
    numbers = found["nodes"]
    assert {(numbers[a], numbers[b]) for a, b, _ in triples.tolist()} <= known
    joined = {int(end) for end in triples[:, :2].ravel()}
    assert len(joined) > 0.9 * len(numbers), "most are drawn with a link"
    assert len(json.dumps(found)) < 40_000
    assert found == drawn_overlay(made_up_overlay(100_000), {"place": overlay.nodes["place"]}, 7)


def test_an_overlay_of_nobody_is_drawn_as_nothing() -> None:
    overlay = made_up_overlay(3)
    empty = type(overlay)(
        {name: column[:0] for name, column in overlay.nodes.items()},
        {name: column[:0] for name, column in overlay.links.items()},
        overlay.kinds,
    )
    found = drawn_overlay(empty, {}, 0)
    assert (found["nodes"], found["links"]) == ([], [])


@pytest.mark.parametrize("rounds", [0, 1, 9, 40, MOST_POINTS, MOST_POINTS + 1, 100_000])
def test_courses_have_few_points_however_many_rounds(rounds: int) -> None:
    found = drawn_course(made_up_course(rounds))
    (curve,) = found["curves"]
    size = found["rounds_a_point"]
    points = -(-rounds // size)
    assert points <= MOST_POINTS
    assert len(found["rounds"]) == len(found["time_s"]) == len(curve["values"]) == points
    assert len(found["population"]) == points
    if rounds:
        assert found["rounds"][-1] == rounds
    if 10 <= rounds <= MOST_POINTS:
        assert curve["values"][8] is None
        assert curve["values"][9] == pytest.approx(0.1)
    if size > 9:
        mean = np.mean(1 / np.arange(10, size + 1))
        assert curve["values"][0] == pytest.approx(mean, rel=1e-4)
    json.dumps(found, allow_nan=False)
