"""The papers' broker overlays as data, and the clock that brokers run under."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import networkx as nx
import pytest

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Deliver, Effect, Send, SetTimer
from gossamer.protocol.brokers.core.messages import Hop, Id
from gossamer.protocol.brokers.tree import messages as wire
from gossamer.protocol.brokers.tree.state import Counters, TableSizes
from gossamer.protocol.content.filters import covers, parse
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.tree_brokers import service_times, topology
from gossamer.sim.studies.tree_brokers.covering_workload import CoveringWorkload
from gossamer.sim.studies.tree_brokers.overlay_engine import BrokerNetwork, Links, Observer

TIMES = service_times.FixedTimes(subscription=100, unsubscription=10, publication=30)
EVENT = messages.Publish({"price": 1})


def table_of(subscriptions: int) -> TableSizes:
    return TableSizes(subscriptions, 0, 0, 0, 0, 0)


@attrs.define
class PassOn:
    """A broker that sends each publication on to one neighbour, or hands it to a client."""

    name: str
    onward: str | None
    log: list[tuple[int, wire.Message]] = attrs.field(factory=list)
    sent: int = 0
    counters: Counters = attrs.field(factory=Counters)

    def handle(self, now: int, source: Hop | None, message: wire.Message) -> Iterable[Effect]:
        self.log.append((now, message))
        if source is None:
            return ()
        self.sent += 1
        publication = wire.Publication(Id(self.name, self.sent), Id(self.name, 0), {"price": 1})
        if self.onward is None:
            return (Deliver("reader", publication, ("all",)),)
        return (Send(self.onward, wire.Frame(1, self.sent, publication)),)

    def sizes(self) -> TableSizes:
        return table_of(0)

    def seen(self, kind: type) -> list[int]:
        return [now for now, message in self.log if isinstance(message, kind)]


@attrs.define
class Ledger(Observer):
    deliveries: list[tuple[int, str]] = attrs.field(factory=list)

    def delivered(self, now: int, broker: str, effect: Deliver) -> None:  # noqa: ARG002
        self.deliveries.append((now, broker))


def chain(
    times: service_times.ServiceTimes = TIMES, *, links: Links
) -> tuple[BrokerNetwork, dict[str, PassOn], Ledger]:
    """Brokers A - B - C that pass publications on to a reader at C."""
    brokers = {"A": PassOn("A", "B"), "B": PassOn("B", "C"), "C": PassOn("C", None)}
    graph = nx.Graph([("A", "B"), ("B", "C")])
    ledger = Ledger()
    return BrokerNetwork(graph, brokers, times, links, ledger), brokers, ledger


def test_brokers_learn_of_their_neighbours_first_and_services_and_latencies_add_up() -> None:
    network, brokers, ledger = chain(links=Links(latency=1_000))
    told = [message for _, message in brokers["B"].log]
    assert told == [messages.NeighbourUp("A"), messages.NeighbourUp("C")]
    network.send(5, "writer", "A", EVENT)
    network.run_until_idle()
    assert ledger.deliveries == [(5 + 3 * 30 + 2 * 1_000, "C")]


def test_messages_are_served_in_turn_and_spaced_out_by_links_and_congestion_is_told() -> None:
    network, brokers, ledger = chain(links=Links(latency=1_000))
    for _ in range(4):
        network.send(0, "writer", "A", EVENT)
    network.run(1)
    assert network.queue("A") == 4
    network.run_until_idle()
    assert brokers["A"].seen(messages.Publish) == [0, 30, 60, 90]
    assert [at for at, _ in ledger.deliveries] == [2_090, 2_120, 2_150, 2_180]
    assert (network.handled("B"), network.queue("A")) == (4, 0)
    network, brokers, _ = chain(links=Links(latency=1_000, gap=500))
    for _ in range(3):
        network.send(0, "writer", "A", EVENT)
    network.run_until_idle()
    assert brokers["B"].seen(wire.Frame) == [1_030, 1_530, 2_030]
    network, brokers, _ = chain(links=Links(congested=3))
    for _ in range(6):
        network.send(0, "writer", "A", EVENT)
    network.run_until_idle()
    assert [m.queue for _, m in brokers["A"].log if isinstance(m, messages.Congestion)] == [4, 3]


def test_a_full_queue_drops_what_neighbours_send_and_counts_it() -> None:
    slow = service_times.FixedTimes(subscription=0, unsubscription=0, publication=1_000)
    network, _, _ = chain(slow, links=Links(latency=0, queue=2))
    for at in range(6):
        network.send(at, "writer", "B", EVENT)
    network.run(10)
    assert network.dropped("B") == 0, "what clients send waits"
    for at in range(20, 26):
        network.send(at, "writer", "A", EVENT)
    network.run(100_000)
    assert network.dropped("B") > 0
    assert network.handled("B") + network.dropped("B") == 12


@attrs.define
class Alarm(PassOn):
    """A broker that sets a timer whenever a client speaks."""

    def handle(self, now: int, source: Hop | None, message: wire.Message) -> Iterable[Effect]:
        self.log.append((now, message))
        return () if source is None else (SetTimer("review", 7, now + 500),)


def test_timers_fire_when_they_are_due_even_while_a_broker_is_busy() -> None:
    alarm = Alarm("A", None)
    times = service_times.FixedTimes(subscription=0, unsubscription=0, publication=400)
    graph: nx.Graph[str] = nx.Graph()
    graph.add_node("A")
    network = BrokerNetwork(graph, {"A": alarm}, times, Links(), Ledger())
    for at in (0, 1):
        network.send(at, "writer", "A", EVENT)
    network.run_until_idle()
    fired = [(at, m) for at, m in alarm.log if isinstance(m, messages.TimerFired)]
    assert fired == [(at, messages.TimerFired("review", 7)) for at in (500, 900)]


def test_calls_are_made_at_their_time_and_may_schedule_more() -> None:
    network, _, ledger = chain(links=Links(latency=0))
    network.call(700, lambda: network.send(network.now, "writer", "C", EVENT))
    network.run_until_idle()
    assert ledger.deliveries == [(730, "C")]


def work_of(message: wire.Message, **rest: Any) -> service_times.Work:
    return service_times.Work(message, lambda: table_of(1_000), **rest)


def pack_of(count: int) -> wire.Frame:
    wanted = wire.Subscription(Id("A", 1), parse("price > 1"))
    return wire.Frame(1, 1, wire.Packed((wanted,) * count))


def test_times_are_those_of_packs_of_what_is_examined_of_the_table_or_of_the_code() -> None:
    assert TIMES.of(work_of(pack_of(3))) == 300
    assert attrs.evolve(TIMES, packed=0.5).of(work_of(pack_of(3))) == 150
    assert TIMES.of(work_of(messages.Subscribe("a", parse("price > 1")))) == 100
    assert TIMES.of(work_of(messages.Unsubscribe("a"), examined=7)) == 10
    assert attrs.evolve(TIMES, examined=4).of(work_of(messages.Unsubscribe("a"), examined=7)) == 38
    per_entry = service_times.FixedTimes(subscription=2_000, unsubscription=0, publication=500)
    assert service_times.ProportionalTimes(TIMES, per_entry).of(work_of(EVENT)) == 30 + 500
    assert service_times.MeasuredTimes(2.0).of(work_of(EVENT, wall_s=0.25)) == 500_000


def test_beyond_a_bound_of_waiting_work_queues_drain_at_the_slow_rate() -> None:
    times = service_times.CongestedTimes(TIMES, congested=1_000, bound=50)
    for message, idle in ((EVENT, 30), (pack_of(3), 300), (messages.Attach(), 0)):
        assert times.of(work_of(message, waiting=50)) == idle
        content = 3 if idle == 300 else min(idle, 1)
        assert times.of(work_of(message, waiting=51)) == 1_000 * content
    network, _, ledger = chain(times, links=Links(latency=0))
    for _ in range(4):
        network.send(0, "writer", "C", EVENT)
    network.run_until_idle()
    # The first is served as it comes, when nothing waits yet.
    assert [at for at, _ in ledger.deliveries] == [30, 1_030, 1_060, 1_090]


# The overlays, and the workload of a given covering degree


def test_the_papers_overlays_have_their_brokers() -> None:
    overlay = topology.controlled_55()
    assert (len(overlay.graph), overlay.core) == (55, ("A", "B", "C", "D", "E"))
    assert len(overlay.core) + len(overlay.with_role("inner")) == 23
    assert len(overlay.with_role("edge")) == 32
    assert sorted(set(overlay.graph["E"]) - {"D"}) == sorted(overlay.publisher_hosts)
    assert set(overlay.subscriber_hosts).isdisjoint(overlay.publisher_hosts)
    assert len(topology.controlled_49().graph) == 49
    assert (len(topology.controlled_49().publisher_hosts), len(topology.star_17().graph)) == (3, 17)
    assert (topology.star_17().graph.degree("hub"), len(topology.workflow_40().graph)) == (16, 40)
    regions = topology.workflow_40().regions()
    assert {region: len(found) for region, found in regions.items()} == {1: 6, 2: 6, 3: 6, 4: 6}


@pytest.mark.parametrize("name", sorted(topology.OVERLAYS))
def test_every_overlay_is_a_tree_whose_hosts_are_in_it(name: str) -> None:
    overlay = topology.OVERLAYS[name]()
    assert nx.is_tree(overlay.graph)
    assert overlay.name == name
    assert set(overlay.publisher_hosts) | set(overlay.subscriber_hosts) <= set(overlay.graph)


def test_a_cycle_and_a_gap_are_refused_with_the_brokers_named() -> None:
    with pytest.raises(ScenarioError, match="links is A - B - C - A, expected an overlay without"):
        topology.check_acyclic(nx.Graph([("A", "B"), ("B", "C"), ("C", "A")]))
    with pytest.raises(ScenarioError, match="apart between A and C, expected brokers that all"):
        topology.check_acyclic(nx.Graph([("A", "B"), ("C", "D")]))


def test_every_root_has_the_covering_degree_that_was_asked_for() -> None:
    wanted = list(CoveringWorkload(roots=6, degree=4).subscriptions())
    assert len(wanted) == 30
    for one in wanted:
        above = {two.label for two in wanted if two != one and covers(two.filter, one.filter)}
        assert above == (set() if one.is_root else {str(one.root)}), one.label


def test_a_publication_reaches_as_many_roots_as_asked_for() -> None:
    workload = CoveringWorkload(roots=40, degree=5)
    roots = [one.filter for one in workload.subscriptions() if one.is_root]
    for reach in (1, 3, 10):
        found = [
            sum(root.matches(workload.publication(number, reach)) for root in roots)
            for number in range(200)
        ]
        inside = [count for count in found if count >= reach - 1]
        assert min(found) >= 1
        assert max(found) <= reach + 1
        assert len(inside) >= 0.7 * len(found)


def test_workloads_are_made_by_their_seed_and_refused_where_impossible() -> None:
    def text(seed: int) -> list[str]:
        workload = CoveringWorkload(roots=10, degree=3, seed=seed)
        labels = [one.label for one in workload.subscriptions()]
        return [*labels, *(str(workload.publication(number, 2)) for number in range(10))]

    assert text(1) == text(1)
    assert text(1) != text(2)
    with pytest.raises(ScenarioError, match=r"workload\.roots is 0, expected at least 1"):
        CoveringWorkload(roots=0, degree=1)
    with pytest.raises(ScenarioError, match=r"workload\.degree is -1, expected 0 or more"):
        CoveringWorkload(roots=1, degree=-1)
