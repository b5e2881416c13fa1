"""Brokers of a graph and their coordinator, one rule at a time."""

from __future__ import annotations

import attrs
import pytest

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Moved
from gossamer.protocol.brokers.core.messages import Id, client, neighbour
from gossamer.protocol.brokers.graph import codec
from gossamer.protocol.brokers.graph import messages as keywords
from gossamer.protocol.brokers.graph.broker import GraphBroker
from gossamer.protocol.brokers.graph.coordinator import MakePlan
from gossamer.protocol.brokers.graph.messages import Directive, Plan, Term, Version
from gossamer.protocol.brokers.graph.network_view import TopologyMap
from gossamer.protocol.brokers.graph.planning import least_added, solve
from gossamer.protocol.brokers.graph.settings import GraphSettings, Problem
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import parse
from gossamer.protocol.kernel.errors import ConfigError
from support.tree_brokers import SETTINGS, TICK, TreeOverlay

RING = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]


def ring(*wanted: str, **changes: object) -> TreeOverlay:
    overlay = TreeOverlay(RING, attrs.evolve(SETTINGS, **changes))  # type: ignore[arg-type]
    overlay.come_to_rest(4)
    for text in wanted:
        overlay.subscribe("reader", "c", text)
    overlay.come_to_rest(1 if wanted else 0)
    return overlay


def way_around(skipped: str) -> Plan:
    """One tree: the ring without the link from a broker to the next."""
    start, above = "abcd".index(skipped) + 1, [-1] * 4
    for step in range(3):
        above[(start + step + 1) % 4] = (start + step) % 4
    return Plan(Version(1, "a", start), tuple("abcd"), (tuple(above),), {})


def test_a_new_subscription_gets_the_tree_on_which_it_costs_least_more() -> None:
    # Two trees of the ring, one without the link from b to c, one without that from d to a.
    trees = (way_around("b").trees[0], way_around("d").trees[0])
    plan = Plan(Version(1, "a", 1), tuple("abcd"), trees, {})
    new, old, far = Id("c", 1), Id("b", 1), Id("d", 1)
    # From b the first tree leads to c the long way around, the second leads there at once.
    assert least_added(plan, {}, {}, new, [("b", [new])]) == 1
    # Where the document goes the long way anyhow, c is on its way.
    documents = [("b", [new, far])]
    assert least_added(plan, {}, {far: 0}, new, documents) == 0
    assert least_added(plan, {}, {far: 1}, new, documents) == 1
    assert least_added(plan, {}, {old: 0}, new, []) == 0
    # Costs of links count.
    assert least_added(plan, {("b", "c"): 9.0, ("c", "b"): 9.0}, {}, new, [("b", [new])]) == 0


def problem(**changes: object) -> Problem:
    """Documents from b for c, on a ring."""
    made = Problem(
        version=Version(2, "a", 9),
        strategy="mult",
        brokers=tuple("abcd"),
        links=((0, 1, 1.0), (0, 3, 1.0), (1, 2, 1.0), (2, 3, 1.0)),
        absent={},
        interests=((Id("c", 1), 2),),
        documents=((1, (0,)),) * 5,
        present=attrs.evolve(way_around("b"), groups={Id("c", 1): 0}),
    )
    return attrs.evolve(made, **changes)  # type: ignore[arg-type]


def test_new_trees_are_compared_with_the_present_ones_by_the_sample() -> None:
    planned = solve(7, problem())
    assert (planned.number, planned.before, planned.cost) == (7, 15.0, 5.0)
    assert planned.plan.version == Version(2, "a", 9)
    # Brokers that are away hang at ends.
    planned = solve(7, problem(absent={"x": "c", "y": "x"}, present=None))
    assert planned.plan.brokers == ("a", "b", "c", "d", "x", "y")
    assert all(tree[4:] == (2, 4) for tree in planned.plan.trees)
    assert codec.CODEC.read_message(codec.CODEC.plain_message(planned)) == planned
    assert planned.before == 0
    # There are trees where nothing is published or wanted.
    for changes in ({"documents": ()}, {"documents": (), "interests": ()}):
        planned = solve(1, problem(**changes))
        assert (len(planned.plan.trees), planned.cost) == (1, 0)
    alone = problem(brokers=("a",), links=(), interests=(), documents=(), present=None)
    assert solve(1, alone).plan.trees == ((-1,),)


def test_directives_of_an_earlier_term_and_answers_nobody_waits_for_change_nothing() -> None:
    overlay = ring()
    overlay.kill("a")
    overlay.come_to_rest(2)
    assert {broker.term for broker in overlay.brokers.values()} == {Term(2, "b")}
    broker = overlay.brokers["c"]
    before = broker.present
    late = Directive(Term(1, "a"), 99, Version(1, "a", 99), Version(1, "a", 99))
    assert broker.handle(overlay.now, neighbour("b"), late) == []
    assert (broker.term, broker.present) == (Term(2, "b"), before)
    overlay = ring()
    version = overlay.brokers["a"].present
    overlay.tell("a", None, solve(99, problem()))
    overlay.settle()
    assert overlay.brokers["a"].present is version
    assert not any(isinstance(one, MakePlan) for one in overlay.refusals)


@pytest.mark.parametrize(("threshold", "installed"), [(0.0, True), (0.99, False)])
def test_trees_that_save_too_little_are_not_installed(threshold: float, installed: bool) -> None:
    overlay = ring("x == 1", threshold=threshold)
    first = overlay.brokers["b"].present
    for _ in range(8):
        overlay.publish("d", x=1)
    overlay.come_to_rest(12)
    assert overlay.brokers["a"].counters.plans > 1
    # The trees made before anything was published happen to go the long way to c.
    used = overlay.brokers["b"].present
    assert first is not None
    assert used is not None
    assert (used.plan.version > first.plan.version) is installed


def sampled(overlay: TreeOverlay, *numbers: int) -> int:
    """How many documents the coordinator has as its sample, once c has published these as well."""
    for number in numbers:
        overlay.publish("c", x=number)
    overlay.settle()
    overlay.tick()
    overlay.settle()
    return len(overlay.samples_at("a"))


@pytest.mark.parametrize(
    ("probability", "least", "most"), [(0.0, 0, 0), (0.25, 60, 140), (1.0, 400, 400)]
)
def test_documents_are_sampled_as_often_as_set(probability: float, least: int, most: int) -> None:
    overlay = ring(probability=probability, samples=1000, kept=1000)
    assert least <= sampled(overlay, *range(400)) <= most


def test_samples_are_bounded_grow_old_and_are_sent_to_the_next_coordinator() -> None:
    overlay = ring(samples=10, kept=5, window=6 * TICK)
    assert sampled(overlay, *range(40)) == 5
    assert [sampled(overlay, *[number] * 4) for number in range(4)][-1] == 10
    overlay.come_to_rest(14)
    assert overlay.samples_at("a") == []
    overlay = ring()
    sampled(overlay, *range(12))
    overlay.kill("a")
    overlay.come_to_rest(3)
    assert [one.values["x"] for one in overlay.samples_at("b")] == list(range(12))


def test_what_is_published_before_there_are_trees_arrives_later_or_at_once_at_its_broker() -> None:
    overlay = TreeOverlay(RING, SETTINGS)
    overlay.subscribe("reader", "c", "x == 1")
    overlay.settle()
    early = overlay.publish("a", x=1)
    overlay.settle()
    assert overlay.got(early) == []
    overlay.come_to_rest(3)
    assert overlay.got(early) == ["reader"]
    broker = GraphBroker("a", SETTINGS)
    for message in (messages.Attach(), messages.Subscribe("l", parse("x == 1"))):
        assert broker.handle(0, client("c"), message) == []
    (delivered,) = broker.handle(0, client("c"), messages.Publish({"x": 1}))
    assert (delivered.client, delivered.labels) == ("c", ("l",))  # type: ignore[union-attr]
    assert broker.sizes().parked == broker.sizes().in_flight == 0


def test_keywords_and_attributes_go_together_and_all_labels_that_match_are_told() -> None:
    nokia = filters.to_text(keywords.keyword_filter("nokia"))
    cheap = "motorola == true and price < 100"
    overlay = ring(nokia, cheap, "price == 50")
    ids = [
        overlay.publish("a", **keywords.by_keywords(words, price=price))
        for words, price in ((["nokia"], 500), (["motorola"], 50), (["motorola"], 500), ([], 5))
    ]
    overlay.settle()
    assert [overlay.got(id_) for id_ in ids] == [["reader"], ["reader"], [], []]
    labels = {one.id: one.labels for one in overlay.deliveries}
    assert labels == {ids[0]: (nokia,), ids[1]: (cheap, "price == 50")}


def test_documents_are_given_up_for_who_stays_away_and_the_oldest_make_room() -> None:
    overlay = ring("x == 1", absence=6 * TICK)
    overlay.kill("c")
    overlay.publish("a", x=1)
    for rounds, lost in ((3, 0), (6, 1)):
        overlay.come_to_rest(rounds)
        assert overlay.total("lost") == lost
    assert all(broker.sizes().parked == 0 for broker in overlay.brokers.values())
    overlay = ring("present(x)", waiting=3)
    overlay.kill("c")
    ids = [overlay.publish("a", x=number) for number in range(5)]
    overlay.settle()
    overlay.revive("c")
    overlay.come_to_rest(3)
    assert [bool(overlay.got(id_)) for id_ in ids] == [False, False, True, True, True]
    assert overlay.total("lost") == 2


def test_a_client_moves_with_its_filters_and_an_unsubscription_is_known_everywhere() -> None:
    overlay = ring("x == 1")
    effects = overlay.brokers["c"].handle(overlay.now, client("reader"), messages.Move())
    (moved,) = [one for one in effects if isinstance(one, Moved)]
    assert moved.subscriptions == (("x == 1", parse("x == 1")),)
    overlay = ring("x == 1")
    overlay.unsubscribe("reader", "x == 1")
    overlay.settle()
    assert all(len(broker.interests()) == 0 for broker in overlay.brokers.values())
    overlay.tell("c", "reader", messages.Detach())
    id_ = overlay.publish("a", x=1)
    overlay.settle()
    assert (overlay.got(id_), overlay.sent["Document"]) == ([], 0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"probability": 1.5}, "probability is 1.5, expected a number from 0 to 1"),
        ({"threshold": 1.0}, "threshold is 1.0, expected a number from 0 to less than 1"),
        ({"strategy": "opt"}, "strategy is 'opt', expected one of single, mult, mult2, hybrid"),
        ({"interval": 0}, "interval is 0, expected a whole number of at least 1"),
        ({"absence": -1}, "absence is -1, expected a number of microseconds from 0 on"),
    ],
)
def test_settings_that_cannot_be_are_refused(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        GraphSettings(**changes)  # type: ignore[arg-type]


# What a broker makes of what others say of their links.


def chart_of(**links: str) -> TopologyMap:
    """What broker "a" has heard: of each broker, the letters of those that it names."""
    topology = TopologyMap("a")
    for broker, named in links.items():
        topology.set_links(broker, dict.fromkeys(named, 1.0), 0)
    return topology


def test_a_link_works_where_both_ends_say_so_and_who_is_missed_hangs_where_one_is_named() -> None:
    topology = chart_of(a="b", b="ac", c="d", d="c")
    assert topology.reachable == {"a", "b"}
    assert topology.cost("c", "b") is None
    # At the end of a link that it names; else of one that others name; else at the one that asks.
    assert chart_of(a="b", b="a", c="bd", d="c").anchors("cd") == {"c": "b", "d": "c"}
    assert chart_of(a="bc", b="a", c="d", d="").anchors("cd") == {"c": "a", "d": "c"}
    nobody_names = chart_of(a="b", b="a", c="d", d="c", e="")
    assert nobody_names.anchors("cde") == {"c": "a", "d": "a", "e": "a"}
    assert chart_of(a="b", b="ac", c="b").anchors("bc") == {}
    assert chart_of(a="b", b="a").anchors([]) == {}
    topology = chart_of(a="b", b="a", c="")
    topology.miss("abc", 5)
    topology.miss("abc", 9)
    assert topology.lost == {"c": 5}
    topology.set_links("c", {"b": 1.0}, 10)
    topology.set_links("b", {"a": 1.0, "c": 1.0}, 10)
    assert topology.lost == {}
