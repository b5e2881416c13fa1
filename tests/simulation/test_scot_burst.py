"""A burst on the 75 brokers of Fig. 8: by BID, static and dynamic, in simulated time."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from gossamer.protocol.brokers.core.messages import Attach, Id, Publish, Subscribe, Unsubscribe
from gossamer.protocol.brokers.scot import ClusterBitVector, Factor, Scot, ScotSettings
from gossamer.protocol.brokers.scot.table import Catalogue
from gossamer.protocol.content.filters import parse
from gossamer.sim.errors import SimulationError
from gossamer.sim.studies.scot.burst import Burst, BurstResult, run_burst
from gossamer.sim.studies.scot.replay_network import Links, ScotNetwork, ServiceTimes
from gossamer.sim.studies.scot.replay_tables import RememberingCatalogue
from gossamer.sim.studies.scot.workloads import figure_8
from support.scenes import Watcher

SUBSCRIBERS, IN_EACH_CLUSTER = 30, 2
ALL = SUBSCRIBERS + 5 * IN_EACH_CLUSTER


@functools.cache
def burst_by(routing: str) -> BurstResult:
    return run_burst(
        Burst(
            scot=figure_8(),
            settings=ScotSettings(routing=routing),
            subscribers=SUBSCRIBERS,
            publishers=5,
            notifications=5,
            burst_notifications=300,
            burst_subscribers=IN_EACH_CLUSTER,
            seed=1,
        )
    )


def test_figure_8_has_5_clusters_of_15_brokers_and_25_inner_ones() -> None:
    scot = figure_8()
    edge = [broker for broker in scot.brokers if scot.position(broker).is_edge]
    assert (scot.broker_count, len(edge), len(scot.brokers) - len(edge)) == (75, 50, 25)
    inner = {broker.region for broker in scot.brokers} - {broker.region for broker in edge}
    assert inner == {"vi", "vii", "viii", "ix", "x"}
    assert (scot.intra_cluster_count, scot.inter_cluster_count) == (70, 150)


def test_a_broadcast_takes_a_fifth_of_the_messages_of_flooding_on_the_shortest_ways() -> None:
    by_bid, clustered = burst_by("bid"), burst_by("static")
    assert clustered.subscription_messages == ALL * 74
    assert clustered.subscription_duplicates == 0
    # Every broker sends each subscription on all its links but the one where it came from.
    assert by_bid.subscription_messages == ALL * (2 * 220 - 74)
    assert by_bid.subscription_messages - by_bid.subscription_duplicates == ALL * 74
    assert clustered.subscription_hops.mean() <= by_bid.subscription_hops.mean()
    assert clustered.subscription_delays.mean() < by_bid.subscription_delays.mean()


def test_all_ways_of_routing_deliver_the_same_and_by_bid_brokers_match_less_often() -> None:
    bid, *others = (burst_by(routing) for routing in ("bid", "static", "dynamic"))
    times = np.sort(np.repeat(bid.published - bid.started, bid.clients))
    for other in others:
        found = np.repeat(other.published - other.started, other.clients)
        assert np.array_equal(np.sort(found), times)
    for result in (bid, *others):
        assert result.clients[result.burst].sum() == 300 * 5 * IN_EACH_CLUSTER
    assert bid.matchings < others[0].matchings


def test_dynamic_routing_shortens_delays_and_queues_of_a_burst() -> None:
    static, dynamic = burst_by("static"), burst_by("dynamic")
    assert dynamic.mean_delay(burst=True) < static.mean_delay(burst=True)
    assert dynamic.windows[:, 1].max() < static.windows[:, 1].max()
    assert sum(dynamic.cases.values()) > 0
    assert static.cases == {}


def test_remembering_what_matched_changes_no_answer() -> None:
    plain, remembering = Catalogue(), RememberingCatalogue()
    for catalogue in (plain, remembering):
        for number, text in enumerate(("x == 1", "x == 2", "x < 2", "x == 1")):
            catalogue.hold(Id("B", number), parse(text), ClusterBitVector())
    assert sorted(plain.match({"x": 1})) == sorted(remembering.match({"x": 1})) == [0, 2, 3]
    assert sorted(remembering.match({"x": 1})) == [0, 2, 3]
    remembering.release(3)
    assert sorted(remembering.match({"x": 1})) == [0, 2]
    assert remembering.hold(Id("B", 9), parse("x < 9"), ClusterBitVector()) == 3
    assert sorted(remembering.match({"x": 1})) == [0, 2, 3]


def pair(watcher: Watcher, **links: int) -> ScotNetwork:
    """Two brokers of a cluster; S subscribes at the second."""
    network = ScotNetwork(
        Scot(Factor.path("ab"), Factor.complete(1)),
        ScotSettings(routing="static"),
        Links(**{"latency": 7, "gap": 100, "uplink_gap": 0, "bid_gap": 0, **links}),
        ServiceTimes(matching=10, forwarding=0, bid=0, subscription=1),
        watcher,
    )
    network.send(0, "S", "B(b,0)", Attach((("s", parse("present(x)")),)))
    network.send(0, "P", "B(a,0)", Attach())
    network.run_until_idle()
    return network


@pytest.mark.parametrize(("uplink_gap", "second"), [(0, 227), (150, 327)])
def test_messages_wait_for_the_broker_the_link_and_the_uplink(uplink_gap: int, second: int) -> None:
    watcher = Watcher()
    network = pair(watcher, uplink_gap=uplink_gap)
    start = network.now
    network.send(start, "P", "B(a,0)", Publish({"x": 1}))
    network.send(start, "P", "B(a,0)", Publish({"x": 2}))
    network.run_until_idle()
    # Matching 10, then the link 100 or the uplink 150, latency 7, matching 10.
    first = 10 + max(100, uplink_gap) + 7 + 10
    assert watcher.deliveries == [(start + first, "S"), (start + second, "S")]
    assert network.waiting() == 0


def test_a_network_with_nothing_to_do_stops_and_one_that_refuses_something_has_no_result() -> None:
    watcher = Watcher()
    network = pair(watcher)
    before = len(watcher.windows)
    network.send(network.now + 10**9, "P", "B(a,0)", Publish({"x": 1}))
    network.run_until_idle()
    assert len(watcher.deliveries) == 1
    assert before < len(watcher.windows) < before + 4
    network = pair(Watcher())
    network.send(network.now, "S", "B(b,0)", Unsubscribe("none"))
    network.send(network.now, "S", "B(b,0)", Subscribe("other", parse("x == 1")))
    with pytest.raises(SimulationError, match="has no subscription labelled 'none'"):
        network.run_until_idle()
