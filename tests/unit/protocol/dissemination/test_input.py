"""Graphs and samples that cannot be are refused, each in one clear sentence."""

from __future__ import annotations

import pytest

from gossamer.protocol.dissemination.graphs.errors import (
    DisconnectedError,
    LinkError,
    SubscriptionError,
    TreesError,
    UnknownHostError,
    WeightError,
)
from gossamer.protocol.dissemination.graphs.graph import make_graph
from gossamer.protocol.dissemination.sample import make_sample


def test_a_disconnected_graph_names_its_components() -> None:
    with pytest.raises(DisconnectedError) as caught:
        make_graph(6, [(0, 1), (4, 5), (1, 2)])
    assert caught.value.components == [[0, 1, 2], [4, 5], [3]]
    assert str(caught.value) == (
        "the graph is in 3 components (0, 1, 2; 4, 5; 3), "
        "expected brokers that all reach each other"
    )


def test_many_components_are_named_in_brief() -> None:
    with pytest.raises(DisconnectedError, match=r"\(0, 1, 2, 3 and 3 more; 7; 8; 9; and 2 more\)"):
        make_graph(12, [(i, i + 1) for i in range(6)])


@pytest.mark.parametrize("cost", [0, -2, float("nan"), float("inf"), float("-inf")])
def test_a_cost_is_a_number_above_zero(cost: float) -> None:
    with pytest.raises(WeightError, match=r"cost of link 1 between 1 and 2 is .*, expected a fin"):
        make_graph(3, [(0, 1), (1, 2)], [1, cost])


@pytest.mark.parametrize("costs", [[1, "dear"], [1, None], [1, 2, 3]])
def test_costs_are_numbers_one_for_each_link(costs: list[object]) -> None:
    with pytest.raises(WeightError, match="expected a finite number above 0"):
        make_graph(3, [(0, 1), (1, 2)], costs)  # type: ignore[arg-type]


@pytest.mark.parametrize("end", [-1, 3])
def test_a_link_ends_at_a_broker(end: int) -> None:
    with pytest.raises(UnknownHostError, match=f"end of link 1 is {end}, expected .* 0 to 2"):
        make_graph(3, [(0, 1), (2, end)])


def test_a_link_joins_two_brokers_that_are_not_joined_yet() -> None:
    with pytest.raises(LinkError, match="link 1 between 1 and 1 joins a broker to itself"):
        make_graph(2, [(0, 1), (1, 1)])
    with pytest.raises(LinkError, match="link 2 between 1 and 0 is a second one"):
        make_graph(3, [(0, 1), (1, 2), (1, 0)])


def test_documents_and_subscriptions_are_at_known_brokers() -> None:
    with pytest.raises(UnknownHostError, match=r"host of document 1 is 5, expected .* 0 to 4"):
        make_sample(5, [0, 5], [[0], [0]], [0])
    with pytest.raises(UnknownHostError, match="host of subscription 0 is -1"):
        make_sample(5, [0], [[0]], [-1])


def test_documents_match_known_subscriptions() -> None:
    with pytest.raises(SubscriptionError, match=r"document 1 matches subscription 2, .* 0 to 1"):
        make_sample(5, [0, 1], [[0], [1, 2]], [0, 3])


@pytest.mark.parametrize("size", [0, -1, float("nan"), "large"])
def test_a_size_is_a_number_above_zero(size: object) -> None:
    with pytest.raises(WeightError, match="size of document"):
        make_sample(2, [0, 1], [[], []], [0], [1, size])  # type: ignore[arg-type]


def test_every_document_says_what_it_matches() -> None:
    with pytest.raises(ValueError, match="matches are given for 1 documents, expected 2"):
        make_sample(2, [0, 1], [[]], [0])


def test_all_refusals_are_of_one_kind() -> None:
    for kind in (DisconnectedError, LinkError, SubscriptionError, UnknownHostError, WeightError):
        assert issubclass(kind, TreesError)
