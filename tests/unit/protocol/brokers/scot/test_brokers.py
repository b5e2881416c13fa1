"""SCOT brokers one at a time: what they refuse, what clients ask, loads of links, and tables."""

from __future__ import annotations

import random

import attrs
import numpy as np
import pytest

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Deliver, Effect, Moved, Refuse, Send
from gossamer.protocol.brokers.core.messages import Hop, Id, client, neighbour
from gossamer.protocol.brokers.scot import (
    BrokerLabel,
    ClusterBitVector,
    ScotBroker,
    ScotSettings,
    state,
)
from gossamer.protocol.brokers.scot import messages as m
from gossamer.protocol.brokers.scot.detours import Targets
from gossamer.protocol.brokers.scot.routing import Case, plan
from gossamer.protocol.brokers.scot.state import WrongNeighbourError
from gossamer.protocol.brokers.scot.table import Catalogue, Entry, RoutingTable
from gossamer.protocol.content.filters import parse
from gossamer.protocol.kernel.errors import RemoteProtocolError
from gossamer.sim.studies.scot.workloads import figure_2
from support.plain_index import PlainIndex
from support.scot_overlay import ScotOverlay

ANY = parse("present(x)")
C1 = client("c1")
NOTE = m.Notification(Id("X", 1), {})
BESIDE = ("B(a,0)", "B(c,0)", "B(b,1)", "B(b,2)")
PRIMARY, SECONDARY = neighbour("B(a,0)"), neighbour("B(b,2)")


def broker(routing: str = "dynamic") -> ScotBroker:
    """B(b,0) of Fig. 3, all links up, with an attached client."""
    made = ScotBroker(
        "B(b,0)",
        figure_2().position(BrokerLabel("b", 0)),
        ScotSettings(routing=routing),
        new_index=PlainIndex,
    )
    for name in BESIDE:
        made.handle(0, None, m.NeighbourUp(name, BrokerLabel.parse(name)))
    made.handle(0, C1, messages.Attach())
    return made


def refusal(effects: list[Effect]) -> Exception:
    (effect,) = effects
    assert isinstance(effect, Refuse)
    return effect.error


NO_NEIGHBOUR = (
    "is no neighbour of B(b,0), expected cluster 0 and a region of a, c, or region b and "
    "another cluster from 0 to 2"
)


@pytest.mark.parametrize(
    ("name", "label", "reason"),
    [
        ("far", "B(d,0)", NO_NEIGHBOUR),
        ("other", "B(a,1)", NO_NEIGHBOUR),
        ("beyond", "B(b,3)", NO_NEIGHBOUR),
        ("second", "B(a,0)", "finds broker 'B(a,0)' at its place"),
        ("B(a,0)", "B(c,0)", "was at B(a,0) before"),
    ],
)
def test_a_neighbour_from_elsewhere_is_refused(name: str, label: str, reason: str) -> None:
    error = refusal(broker().handle(0, None, m.NeighbourUp(name, BrokerLabel.parse(label))))
    assert isinstance(error, WrongNeighbourError)
    assert str(error) == f"broker {name!r} at {label} {reason}"


def carried(*clusters: int) -> m.Notification:
    return m.Notification(Id("X", 1), {}, ClusterBitVector.of(*clusters))


def subscribed(*clusters: int) -> m.Subscription:
    return m.Subscription(Id("X", 1), ANY, ClusterBitVector.of(*clusters))


@pytest.mark.parametrize(
    ("source", "message", "clusters", "expected"),
    [
        (SECONDARY, subscribed(1), "1", "only its own, 2"),
        (PRIMARY, subscribed(0, 1), "0, 1", "only its own, 0"),
        (PRIMARY, subscribed(), "none", "only its own, 0"),
        (PRIMARY, carried(1, 3), "1, 3", "no others than 1, 2"),
        (PRIMARY, m.Detour(NOTE, 0), "0", "one from 0 to 2 but its receiver's"),
        (PRIMARY, m.Bypass(NOTE, 3, "b", "a"), "3", "one from 0 to 2"),
        (SECONDARY, carried(2), "2", "no others than 1"),
        (SECONDARY, carried(0), "0", "no others than 1"),
    ],
)
def test_clusters_that_a_link_cannot_carry_are_refused(
    source: Hop, message: m.Message, clusters: str, expected: str
) -> None:
    made = broker()
    error = refusal(made.handle(0, source, message))
    assert isinstance(error, RemoteProtocolError)
    kind = type(message).__name__
    assert str(error) == (
        f"{kind} from broker '{source.name}' names clusters {clusters}, expected {expected}"
    )
    assert made.table() == ()


def test_a_region_that_is_not_beside_this_one_is_refused() -> None:
    error = refusal(broker().handle(0, SECONDARY, m.Bypass(NOTE, 2, "f", "e")))
    assert isinstance(error, RemoteProtocolError)
    assert str(error) == (
        "Bypass from broker 'B(b,2)' is to go to region 'f', expected its receiver's or one "
        "beside that"
    )


def test_links_come_up_again_and_fail_without_fault_and_what_none_can_take_is_lost() -> None:
    made = broker()
    assert made.handle(0, None, m.NeighbourUp("B(a,0)", BrokerLabel("a", 0))) == []
    for name in BESIDE:
        assert made.handle(0, None, messages.NeighbourDown(name)) == []
    assert made.handle(0, SECONDARY, m.Detour(NOTE, 1)) == []
    assert made.handle(0, SECONDARY, m.Bypass(NOTE, 2, "a", "b")) == []
    assert made.counters.lost == 2


def test_static_routing_sends_on_what_a_neighbour_with_dynamic_routing_had_it_carry() -> None:
    effects = broker("static").handle(0, PRIMARY, carried(1, 2))
    assert effects == [Send("B(b,1)", NOTE), Send("B(b,2)", NOTE)]
    error = refusal(broker("static").handle(0, PRIMARY, carried(0)))
    assert str(error).endswith("names clusters 0, expected no others than 1, 2")


@pytest.mark.parametrize(
    ("routing", "message"),
    [
        ("bid", subscribed(0)),
        ("static", m.BidSubscription(Id("X", 1), ANY)),
        ("dynamic", m.BidSubscription(Id("X", 1), ANY)),
    ],
)
def test_a_neighbour_that_routes_otherwise_is_refused(routing: str, message: m.Message) -> None:
    error = refusal(broker(routing).handle(0, PRIMARY, message))
    assert isinstance(error, RemoteProtocolError)
    assert f"has no place in {routing} routing" in str(error)


def test_a_client_gets_a_notification_once_and_moves_with_all_that_it_asks_for() -> None:
    made = broker()
    for label, wanted in (("s", ANY), ("t", parse("x > 1"))):
        assert len(made.handle(0, C1, messages.Subscribe(label, wanted))) == 4
    (effect,) = made.handle(0, C1, messages.Publish({"x": 2}))
    assert isinstance(effect, Deliver)
    assert (effect.client, effect.labels) == ("c1", ("s", "t"))
    assert len(made.handle(0, C1, messages.Unsubscribe("t"))) == 4
    made.handle(0, C1, messages.Advertise("a", ANY))
    moved, *sent = made.handle(0, C1, messages.Move())
    assert moved == Moved("c1", (("s", ANY),), (("a", ANY),))
    assert all(isinstance(effect, Send) for effect in sent)
    assert made.table() == ()


@pytest.mark.parametrize("routing", ["bid", "static"])
def test_a_link_that_comes_up_late_is_told_what_stands(routing: str) -> None:
    overlay = ScotOverlay(figure_2(), routing)
    overlay.subscribe_and_settle("S1", "B(c,0)")
    assert all(broker.table() for broker in overlay.brokers.values())
    late = overlay.brokers["B(b,0)"]
    told = late.handle(0, None, m.NeighbourUp("B(a,0)", BrokerLabel("a", 0)))
    assert [effect.neighbour for effect in told if isinstance(effect, Send)] == ["B(a,0)"]
    back = late.handle(0, None, m.NeighbourUp("B(c,0)", BrokerLabel("c", 0)))
    assert back == [], "where the subscription came from knows it"
    overlay.unsubscribe("S1", "present(x)")
    overlay.settle()
    assert not any(broker.table() for broker in overlay.brokers.values())


def queues(**lengths: int) -> list[m.QueueReport]:
    """Output queues of these lengths, where as much left as entered."""
    return [m.QueueReport(name, length, 5, 5) for name, length in lengths.items()]


def test_load_is_length_times_growth_and_overloads_a_link_until_the_next_window() -> None:
    assert (state.LinkStatus().load, state.LinkStatus().congestion_element) == (0, 1)
    assert state.LinkStatus(20, entered=9, left=9).load == 20
    assert state.LinkStatus(20, entered=19, left=9).congestion_element == 2
    assert state.LinkStatus(20, entered=9, left=19).load == 10
    links = state.LinkStatusTable(threshold=10)
    for lengths, overloaded in (({}, False), ({"n": 11, "m": 10}, True), ({"n": 10}, False)):
        links.update(queues(**lengths))
        assert (links.overloaded("n"), links.overloaded("m")) == (overloaded, False)


def test_what_waits_at_the_other_end_counts_where_it_is_asked_for() -> None:
    links = state.LinkStatusTable(10, inputs=True)
    links.update(queues(n=6, m=6))
    assert not links.any_overloaded
    links.note_input("n", m.InputQueue(5, 5, 5))
    assert (links.overloaded("n"), links.overloaded("m")) == (True, False)
    assert (links.load_of("n"), links.load_of("m")) == (11, 6)
    assert links.least_loaded(["n", "m"]) == "m"
    links.note_input("n", m.InputQueue(0, 0, 5))
    assert not links.any_overloaded
    plain = state.LinkStatusTable(10)
    plain.note_input("n", m.InputQueue(50, 5, 5))
    assert not plain.any_overloaded


def test_its_own_threshold_is_what_waiting_elsewhere_takes() -> None:
    assert state.own_threshold([]) == state.own_threshold([0.0, 9.0]) == 2
    assert state.own_threshold([7.0, 9.0]) == 9
    links = state.LinkStatusTable(10, inputs=True, own=True)
    links.update(queues(n=3, m=1))
    assert (links.overloaded("n"), links.overloaded("m")) == (True, False)
    for name in ("n", "m"):
        links.note_input(name, m.InputQueue(4, 5, 5))
    assert (links.overloaded("n"), links.overloaded("m")) == (True, False)
    links.note_input("m", m.InputQueue(40, 5, 5))
    assert (links.overloaded("n"), links.overloaded("m")) == (True, True)
    assert links.least_loaded(["n", "m"]) == "n"


def test_what_a_neighbour_told_of_its_input_queue_is_forgotten_when_its_link_comes_up() -> None:
    links = state.LinkStatusTable(10, inputs=True)
    links.note_input("n", m.InputQueue(30, 5, 5))
    assert links.overloaded("n")
    links.forget_input("m")
    assert links.overloaded("n")
    links.forget_input("n")
    assert (links.overloaded("n"), links.load_of("n")) == (False, 0)


@pytest.mark.parametrize("told", [True, False])
def test_brokers_tell_their_neighbours_how_long_their_input_queues_are(told: bool) -> None:
    overlay = ScotOverlay(figure_2(), ScotSettings(input_queues=told))
    waiting = m.InputQueue(30, 9, 4)
    effects = overlay.brokers["B(b,0)"].handle(0, None, m.WindowEnded((), waiting))
    assert effects == ([Send(other, waiting) for other in sorted(BESIDE)] if told else [])


@pytest.mark.parametrize(
    ("loads", "case", "carriers"),
    [
        ({}, Case.NONE_OVERLOADED, {}),
        ({"i0": 90, "a": 90, "b": 90}, Case.SOME_INTER_FREE, {"i2": "001"}),
        ({"i0": 90, "i1": 80, "i2": 70}, Case.SOME_INTRA_FREE, {"a": "111"}),
        ({"i0": 90, "i1": 80, "i2": 70, "a": 50, "b": 9}, Case.SOME_INTRA_FREE, {"b": "111"}),
        ({"i0": 90, "i1": 70, "i2": 80, "a": 50, "b": 60}, Case.NONE_FREE, {"i1": "101"}),
    ],
)
def test_algorithm_4_has_one_carrier_on_the_least_loaded_link(
    loads: dict[str, int], case: Case, carriers: dict[str, str]
) -> None:
    links = state.LinkStatusTable(threshold=10)
    links.update(queues(**{"i1": 9, **loads}))
    chosen = plan(Targets((), ("a", "b"), {0: "i0", 1: "i1", 2: "i2"}), links)
    assert chosen.case is case
    assert {name: named.text(3) for name, named in chosen.copies.items() if named} == carriers
    overloaded = [name for name in ("i0", "i1", "i2") if links.overloaded(name)]
    assert sum(name in chosen.copies for name in overloaded) == (case is Case.NONE_FREE)
    assert {"a", "b"} <= chosen.copies.keys()


# Routing tables that share a catalogue: each knows its own, and the last lets it forget.


HOPS = (client("S"), client("T"), neighbour("B"), neighbour("C"))


def entry(number: int, hop: Hop, text: str = "x < 3") -> Entry:
    label = "mine" if hop.is_client else ""
    return Entry(Id("A", number), parse(text), hop, ClusterBitVector.of(1), label)


def test_a_table_is_its_entries_whatever_others_hold() -> None:
    """Against dictionaries, over random changes of three tables that share a catalogue."""
    draw = random.Random(1)
    catalogue = Catalogue(PlainIndex)
    tables = [RoutingTable(catalogue) for _ in range(3)]
    plain: list[dict[Id, Entry]] = [{} for _ in tables]
    known = [entry(i, HOPS[0], f"x < {draw.randrange(1, 5)}") for i in range(8)]
    for _ in range(600):
        place, chosen = draw.randrange(3), draw.choice(known)
        table, oracle = tables[place], plain[place]
        if chosen.id in oracle:
            table.remove(chosen.id)
            del oracle[chosen.id]
        else:
            hop = draw.choice(HOPS)
            held = attrs.evolve(chosen, hop=hop, label="mine" if hop.is_client else "")
            table.add(held)
            oracle[chosen.id] = held
        value = {"x": draw.randrange(5)}
        matching = [one for one in oracle.values() if one.filter.matches(value)]
        assert len(table) == len(oracle)
        assert list(table) == [oracle[id_] for id_ in sorted(oracle)]
        assert sorted(table.match(value), key=lambda one: one.id) == sorted(
            matching, key=lambda one: one.id
        )
        found = table.directions(value)
        assert set(found.own) == {one for one in matching if one.hop.is_client}
        assert found.neighbours == {one.hop.name for one in matching if not one.hop.is_client}
        assert catalogue.held == len({id_ for one in plain for id_ in one})


def test_what_covers_an_entry_is_looked_for_in_its_direction() -> None:
    catalogue = Catalogue(PlainIndex)
    table = RoutingTable(catalogue)
    for number, (hop, text) in enumerate(
        [(HOPS[0], "x < 9"), (HOPS[1], "x < 5"), (HOPS[2], "x < 9"), (HOPS[2], "x < 2")]
    ):
        table.add(entry(number, hop, text))
    numbers = [one.id.number for one in table.covering(table[Id("A", 1)])]
    assert numbers == [0], "clients are one direction, a neighbour is another"
    assert [one.id.number for one in table.covered_by(table[Id("A", 2)])] == [3]
    assert table.covering(table[Id("A", 2)]) == []
    # What is held elsewhere only is not found.
    other = RoutingTable(catalogue)
    assert other.get(Id("A", 1)) is None
    for id_ in (Id("A", 1), Id("A", 9)):
        with pytest.raises(KeyError):
            other.remove(id_)
        with pytest.raises(KeyError):
            other[id_]
    assert table[Id("A", 1)] == entry(1, HOPS[1], "x < 5")


def test_tables_hold_two_bytes_a_subscription() -> None:
    catalogue = Catalogue(PlainIndex)
    home, away = RoutingTable(catalogue), RoutingTable(catalogue)
    numbers = []
    for number in range(1_000):
        home.add(entry(number, HOPS[0]))
        numbers.append(catalogue.number_of(Id("A", number)))
    away.add_all(np.array(numbers, np.intp), "B")
    assert (len(away), away[Id("A", 7)].hop) == (1_000, neighbour("B"))
    assert away._codes.nbytes < 3 * 1_024
