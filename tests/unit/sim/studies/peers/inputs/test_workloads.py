"""Workloads of peers: topics, widths over decades, drifting interests, who publishes, and when."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.protocol.peer.space.ring import RING, RING_MASK
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.peers.inputs.changes import Drift
from gossamer.sim.studies.peers.inputs.drifting import (
    changed_boxes,
    changes_before,
    drifted_values,
    late_changes,
)
from gossamer.sim.studies.peers.inputs.publications import Publishers
from gossamer.sim.studies.peers.inputs.scenario import Events, Subscriptions
from gossamer.sim.studies.peers.inputs.workload import Workload

SEED = 5


def wanted(boxes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """bool[n, S]: which subscriptions match the values."""
    return np.asarray(((boxes[..., 0::2] <= values) & (values <= boxes[..., 1::2])).all(axis=2))


@pytest.mark.parametrize("attributes", [1, 3])
def test_topics_are_the_same_for_all_and_apart_from_each_other(attributes: int) -> None:
    spec = Subscriptions(
        kind="topics", places=30, per_node=4, width=0.2, exponent=1.0, attributes=attributes
    )
    workload = Workload(spec, SEED)
    boxes, constrained = workload.subscriptions(500)
    assert (constrained == (1 << attributes) - 1).all()
    topics = np.unique(boxes.reshape(-1, 2 * attributes), axis=0)
    assert len(topics) == 30
    for own in boxes:
        assert len(np.unique(own, axis=0)) == 4
    for event in workload.events(0, 50):
        of = wanted(topics[:, np.newaxis], event)
        assert of.sum() == 1, event
        expected = (boxes == topics[of.argmax()]).all(axis=2).any(axis=1)
        assert (wanted(boxes, event).any(axis=1) == expected).all()


def test_popular_topics_have_more_subscribers_by_zipfs_law() -> None:
    spec = Subscriptions(kind="topics", places=10, exponent=1.5, per_node=1)
    ranks = Workload(spec, SEED).subscription_rows(np.arange(20_000))[2]
    shares = np.bincount(ranks, minlength=10) / 20_000
    weights = np.arange(1, 11) ** -1.5
    assert np.abs(shares - weights / weights.sum()).max() < 0.01
    everything = Workload(Subscriptions(kind="topics", places=6, per_node=6), SEED)
    drawn = everything.subscription_rows(np.arange(60))[2].reshape(10, 6)
    assert (np.sort(drawn, axis=1) == np.arange(6)).all()


def test_topics_of_a_row_do_not_depend_on_which_rows_are_drawn() -> None:
    workload = Workload(Subscriptions(kind="topics", places=12, per_node=3), SEED)
    together = workload.subscription_rows(np.arange(30_000))
    rows = np.array([29_999, 7, 12_288, 3])
    for all_of_it, some in zip(together, workload.subscription_rows(rows), strict=True):
        assert (all_of_it[rows] == some).all()


def test_widths_spread_evenly_over_their_decades_around_the_mean() -> None:
    spec = Subscriptions(kind="random", width=0.01, width_decades=3.0)
    widths = Workload(spec, SEED)._widths(np.arange(100_000), 0)
    assert widths.mean() == pytest.approx(0.01, rel=0.02)
    decades = np.log10(widths / widths.min())
    assert decades.max() == pytest.approx(3.0, abs=0.01)
    assert np.histogram(decades, 6)[0] / 100_000 == pytest.approx(np.full(6, 1 / 6), abs=0.01)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"places": 9999}, r"subscriptions\.places is 9999, expected at most 4096 topics"),
        ({"places": 3, "per_node": 4}, r"subscriptions\.per_node is 4, expected at most 3"),
        ({"width_decades": 1.0}, r"subscriptions\.width_decades is 1\.0, expected 0, as topics"),
    ],
)
def test_impossible_topics_are_refused(fields: dict[str, float], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        Subscriptions(kind="topics", **fields)  # type: ignore[arg-type]


def test_a_share_of_the_subscribers_replaces_what_it_wants() -> None:
    workload = Workload(Subscriptions(kind="random", per_node=2, subscribers=0.5), SEED)
    drift = Drift(replaced=0.3)
    boxes, constrained = workload.subscriptions(2000)
    nodes, first = changed_boxes(workload, drift, 1, boxes, constrained)
    silent = constrained[:, 0] < 0
    assert len(nodes) / (~silent).sum() == pytest.approx(0.3, abs=0.05)
    assert not silent[nodes].any()
    assert (first != boxes[nodes]).any(axis=2).all()
    again, second = changed_boxes(workload, drift, 2, boxes, constrained)
    assert set(again) != set(nodes)
    both, one, other = np.intersect1d(nodes, again, return_indices=True)
    assert len(both)
    assert (first[one] != second[other]).any(axis=2).all()


def test_shifted_ranges_keep_their_widths_and_stay_in_the_domain() -> None:
    workload = Workload(Subscriptions(kind="random", attributes=2, width=0.2), SEED)
    boxes, constrained = workload.subscriptions(1000)
    nodes, moved = changed_boxes(workload, Drift(shifted=1.0, shift=0.1), 1, boxes, constrained)
    assert (nodes == np.arange(1000)).all()
    low, high = moved[..., 0::2], moved[..., 1::2]
    assert low.min() >= 0
    assert high.max() <= RING_MASK
    assert (high - low == boxes[..., 1::2] - boxes[..., 0::2]).all()
    inner = (low > 0) & (high < RING_MASK)
    assert ((low - boxes[..., 0::2])[inner] / RING).std() == pytest.approx(0.1, rel=0.1)


def test_some_replace_and_others_shift() -> None:
    workload = Workload(Subscriptions(kind="random", width=0.01), SEED)
    boxes, constrained = workload.subscriptions(5000)
    drift = Drift(replaced=0.2, shifted=0.3, shift=0.001)
    nodes, moved = changed_boxes(workload, drift, 1, boxes, constrained)
    far = np.abs(moved - boxes[nodes])[:, 0, 0] > 0.005 * RING
    assert len(nodes) / 5000 == pytest.approx(0.5, abs=0.03)
    assert far.mean() == pytest.approx(0.4, abs=0.03)


def test_changes_come_at_their_times_and_events_move_around_the_domain() -> None:
    drift = Drift(every_s=100.0, event_shift=0.25)
    assert [changes_before(drift, time_s) for time_s in (0, 99.9, 100, 250)] == [0, 0, 1, 2]
    values = np.array([[0, RING // 2], [RING - 1, 5]])
    assert (drifted_values(drift, values, 0.0) == values).all()
    assert (drifted_values(drift, values, 400.0) == values).all()
    assert (drifted_values(drift, values, 200.0) == (values + RING // 2) % RING).all()


def test_more_than_everybody_cannot_change() -> None:
    with pytest.raises(ScenarioError, match=r"drift\.shifted is 0\.5, expected at most 0\.4"):
        Drift(replaced=0.6, shifted=0.5)


def test_all_publish_as_often_unless_asked_for_otherwise() -> None:
    online = np.array([True, False, True, True])
    everybody = Publishers(Events(), 4, SEED)
    assert [everybody.choose(draw, online) for draw in (0.0, 0.34, 0.99)] == [0, 2, 3]
    assert everybody.choose(0.5, np.zeros(4, np.bool_)) is None


def test_a_subset_publishes_and_some_of_it_more() -> None:
    draws = np.random.default_rng(SEED).random(4000)
    online = np.ones(200, np.bool_)
    few = Publishers(Events(publishers=0.05, publisher_exponent=1.0), 200, SEED)
    chosen: list[int] = []
    for draw in draws:
        publisher = few.choose(draw, online)
        assert publisher is not None
        chosen.append(publisher)
    counts = np.sort(np.unique(chosen, return_counts=True)[1])[::-1]
    weights = 1 / np.arange(1, 11)
    assert counts / 4000 == pytest.approx(weights / weights.sum(), abs=0.03)
    first = max(set(chosen), key=chosen.count)
    assert first is not None
    online[first] = False
    assert first not in [few.choose(draw, online) for draw in draws[:200]]


NODES = 4000
WORKLOAD = Workload(Subscriptions(), 7)


def test_a_share_of_the_nodes_subscribes_late_spread_over_the_changes() -> None:
    found = late_changes(WORKLOAD, Drift(late=0.5, late_changes=10), NODES)
    counts = np.bincount(found, minlength=11)
    assert len(counts) == 11
    assert 0.45 < counts[0] / NODES < 0.55
    assert (counts[1:] > NODES * 0.5 / 10 * 0.7).all()
    assert np.array_equal(found, late_changes(WORKLOAD, Drift(late=0.5, late_changes=10), NODES))


def test_nobody_is_late_unless_it_is_asked_for() -> None:
    assert not late_changes(WORKLOAD, Drift(), NODES).any()
