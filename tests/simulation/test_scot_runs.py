"""Runs of a SCOT, with links and brokers that fail, and while the overlay grows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from gossamer.protocol.brokers.core.effects import Deliver
from gossamer.protocol.brokers.core.messages import Attach, Publish, Subscribe
from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot, ScotBroker, ScotSettings
from gossamer.protocol.brokers.scot.messages import OverlayGrown
from gossamer.protocol.content.filters import parse
from gossamer.protocol.kernel.errors import LocalProtocolError
from gossamer.sim.errors import SimulationError
from gossamer.sim.results.results import write_results
from gossamer.sim.studies.scot import study
from gossamer.sim.studies.scot.records import ScotRunRecord, summarise_routing
from gossamer.sim.studies.scot.replay_network import Links, ScotNetwork, ServiceTimes, Unobserved
from gossamer.sim.studies.scot.scenario import HighRate, Overlay, ScotScenario, Workload
from gossamer.sim.studies.scot.workloads import figure_2
from gossamer.sim.study.contract import Execution
from gossamer.sim.study.plot import PlotOptions, plots_as
from support.draws import with_campaigns
from support.scenes import Watcher

SCENARIO = """
kind = "scot"
name = "small"
routings = ["static", "dynamic"]
[overlay]
name = "figure_2"
[workload]
kind = "quotes"
quotes = 50
subscribers = 20
publishers = 3
notifications = 5
[burst]
notifications = 400
"""


def scenario(
    seed: int = 3, routings: tuple[str, ...] = ("bid", "static", "dynamic")
) -> ScotScenario:
    return ScotScenario(
        name="small",
        seed=seed,
        routings=routings,
        overlay=Overlay(name="figure_2"),
        workload=Workload(kind="quotes", quotes=50, subscribers=20, publishers=3, notifications=5),
        burst=HighRate(notifications=400),
    )


@pytest.fixture(scope="module")
def finished() -> ScotRunRecord:
    return study.SCOT.run(scenario(), "", Execution(workers=1))


def test_all_ways_of_routing_deliver_the_same_number_and_tables_hold_what_the_summary_says(
    finished: ScotRunRecord,
) -> None:
    found = {name: summarise_routing(record) for name, record in finished.systems.items()}
    assert len({one["deliveries"] for one in found.values()}) == 1
    assert found["bid"]["subscription_duplicates"] > 0
    assert found["static"]["subscription_duplicates"] == 0
    assert found["dynamic"]["rerouted"] > 0 == found["static"]["rerouted"]
    assert found["dynamic"]["burst_delay_mean_s"] < found["static"]["burst_delay_mean_s"]
    for one in found.values():
        assert one["publications"] == 3 * 5 + 400
        assert one["notification_messages"] == one["inter_messages"] + one["intra_messages"]
    for record in finished.systems.values():
        tables, found = dict(record.tables()), summarise_routing(record)
        deliveries = tables["deliveries"]
        assert deliveries["clients"].sum() == found["deliveries"]
        assert deliveries["delay_s"].max() == found["delay_max_s"]
        assert tables["queues"]["longest"].max() == found["output_queue_max"]
        assert len(tables["subscriptions"]["delay_s"]) == 20 + 3 * 2


def test_runs_without_a_burst_or_subscribers_or_links_leave_results_too(tmp_path: Path) -> None:
    single = Overlay(name="factors", regions=["a"], clusters=[0])
    quiet = HighRate(notifications=0)
    for place, (overlay, subscribers, deliveries) in enumerate(
        [(Overlay(name="figure_2"), 0, 0), (single, 5, 5 * 4)]
    ):
        made = ScotScenario(
            overlay=overlay,
            burst=quiet,
            workload=Workload(topics=1, subscribers=subscribers, publishers=2, notifications=2),
        )
        with plots_as(PlotOptions(("svg",))):
            summary = write_results(
                study.SCOT.run(made, "", Execution(workers=1)), tmp_path / str(place)
            )
        for found in summary["systems"].values():
            assert (found["deliveries"], found["settled_s"]) == (deliveries, None)
            assert (found["other_delay_mean_s"] is None) == (deliveries == 0)


# A link or broker fails while notifications are under way: what is lost is what it held


PUBLISHER = "B(c,1)"
NUMBER, EVERY = 60, 300
"""Notifications, and microseconds between two: more than the broker's uplink takes."""
NARROW = Links(latency=500, gap=200, uplink_gap=150)
FAILURE = NUMBER * EVERY // 2
SCOT = figure_2()
BROKERS = [str(broker) for broker in SCOT.brokers if str(broker) != PUBLISHER]
BROKER_LINKS = [tuple(map(str, link)) for link in SCOT.links()]


def some_of(name: str, failures: Sequence[Any], step: int) -> pytest.MarkDecorator:
    """Every so many of the failures, and as a campaign all others."""
    others = [one for number, one in enumerate(failures) if number % step]
    return with_campaigns(name, failures[::step], others)


def missing_and_dropped(
    around: bool, *, link: tuple[str, str] | None = None, broker: str = ""
) -> tuple[int, int]:
    """Publish to a subscriber at every broker; a link or broker fails half way.

    Returns how many notifications are missing at subscribers whose broker lives, and how many
    messages were dropped.
    """
    watcher = Watcher()
    settings = ScotSettings(routing="dynamic", around_failures=around)
    network = ScotNetwork(SCOT, settings, NARROW, ServiceTimes(), watcher)
    for name in network.brokers:
        network.send(0, name, name, Attach((("s", parse("present(x)")),)))
    network.send(0, "P", PUBLISHER, Attach())
    network.run_until_idle()
    start = network.now
    for i in range(NUMBER):
        network.send(start + i * EVERY, "P", PUBLISHER, Publish({"x": i}))
    if link:
        network.call(start + FAILURE, lambda: network.break_link(*link))
    if broker:
        network.call(start + FAILURE, lambda: network.stop_broker(broker))
    network.run_until_idle()
    assert max(watcher.got.values()) == 1
    alive = [name for name in network.brokers if name != broker]
    received = sum(number for (client, _), number in watcher.got.items() if client in alive)
    return len(alive) * NUMBER - received, network.dropped


@some_of("link", BROKER_LINKS, 6)
def test_around_any_link_nothing_is_missing_but_what_it_held(link: tuple[str, str]) -> None:
    missing, dropped = missing_and_dropped(around=True, link=link)
    # A message that is dropped is missed by all who are behind it, at most a whole cluster.
    assert missing <= dropped * len(SCOT.regions) * len(SCOT.clusters)
    assert missing < missing_and_dropped(around=False, link=link)[0] or missing == 0


@some_of("broker", BROKERS, 6)
def test_around_any_broker_nothing_is_missing_but_what_it_held(broker: str) -> None:
    missing, dropped = missing_and_dropped(around=True, broker=broker)
    assert missing <= dropped * len(SCOT.regions) * len(SCOT.clusters)
    if not SCOT.position(BrokerLabel.parse(broker)).is_edge:
        assert missing < missing_and_dropped(around=False, broker=broker)[0]


def test_nothing_is_missing_unfailed_but_what_clients_of_a_stopped_broker_publish() -> None:
    assert missing_and_dropped(around=True) == (0, 0)
    missing, dropped = missing_and_dropped(around=True, broker=PUBLISHER)
    assert dropped >= NUMBER // 2
    assert missing >= 17 * NUMBER // 2


# A cluster and a region are added while publishers go on: nothing is lost


SECOND = 1_000_000


@define
class Got(Unobserved):
    often: Counter[tuple[str, int]] = field(factory=Counter)

    def delivered(self, now: int, effect: Deliver) -> None:  # noqa: ARG002
        number = effect.publication.values["number"]
        assert isinstance(number, int)
        self.often[effect.client, number] += 1


@define
class Growing:
    """A SCOT of three regions in a row with subscribers and publishers anywhere.

    Attributes:
        asked: least value that each client wants, and from when on its subscription is everywhere.
        published: when each publication comes, and its value.
    """

    draw: random.Random
    scot: Scot
    got: Got = field(factory=Got)
    asked: dict[str, tuple[int, int]] = field(factory=dict)
    published: list[tuple[int, int]] = field(factory=list)
    network: ScotNetwork = field(init=False)

    def __attrs_post_init__(self) -> None:
        times = ServiceTimes(matching=20, subscription=10)
        links = Links(gap=20, uplink_gap=10)
        self.network = ScotNetwork(self.scot, ScotSettings(), links, times, self.got)

    def subscribe(self, at: int, brokers: list[str], number: int) -> None:
        """New clients at random ones of these brokers; a second later everybody knows them."""
        for _ in range(number):
            name, least = f"S{len(self.asked)}", self.draw.randrange(10)
            broker = self.draw.choice(brokers)
            self.network.send(at, name, broker, Attach())
            self.network.send(at, name, broker, Subscribe("s", parse(f"x >= {least}")))
            self.asked[name] = least, at + SECOND

    def publish(self, begin: int, end: int, brokers: list[str], publishers: int) -> None:
        """Publishers at random ones of these brokers, which publish once a second each."""
        for number in range(publishers):
            name, broker = f"P{begin}.{number}", self.draw.choice(brokers)
            self.network.send(begin, name, broker, Attach())
            for at in range(begin + 1 + self.draw.randrange(SECOND), end, SECOND):
                x = self.draw.randrange(10)
                values = {"x": x, "number": len(self.published)}
                self.network.send(at, name, broker, Publish(values))
                self.published.append((at, x))

    def check(self) -> None:
        """Nobody got anything twice, or missed what was due."""
        assert max(self.got.often.values()) == 1
        for name, (least, since) in self.asked.items():
            missed = [
                number
                for number, (at, x) in enumerate(self.published)
                if at >= since and x >= least and not self.got.often[name, number]
            ]
            assert not missed, f"{name} misses {len(missed)} publications, first {missed[0]}"
        lost = sum(broker.counters.lost for broker in self.network.brokers.values())
        assert lost == self.network.dropped == 0


@with_campaigns("seed, publishers", [(0, 20)], [(0, 500), (1, 500), (2, 500)])
def test_a_cluster_and_a_region_are_added_while_publishers_go_on(
    seed: int, publishers: int
) -> None:
    draw = random.Random(seed)
    regions = Factor.path("abc")
    run = Growing(draw, Scot(regions, Factor.complete(5)))
    network, old = run.network, list(run.network.brokers)
    run.subscribe(0, old, 20)
    run.publish(2 * SECOND, 8 * SECOND, old, publishers)
    network.call(3 * SECOND + 71, lambda: network.grow(Scot(regions, Factor.complete(6))))
    sixth = [f"B({region},5)" for region in "abc"]
    wider = Scot(Factor.path("abcd"), Factor.complete(6))
    network.call(5 * SECOND + 43, lambda: network.grow(wider))
    fourth = [f"B(d,{cluster})" for cluster in range(6)]

    def come(brokers: list[str], at: int) -> None:
        run.subscribe(at, [*old, *brokers], 10)
        run.publish(at + SECOND, 8 * SECOND, brokers, 10)

    network.call(4 * SECOND, lambda: come(sixth, 4 * SECOND))
    network.call(6 * SECOND, lambda: come(fourth, 6 * SECOND))
    network.run_until_idle()
    run.check()
    assert len(network.brokers) == 24
    sizes = {broker.table_size for broker in network.brokers.values()}
    assert sizes == {len(run.asked)}, "every broker knows every subscription"


def test_an_overlay_that_would_lose_something_is_refused() -> None:
    scot = Scot(Factor.path("abc"), Factor.complete(3))
    network = ScotNetwork(scot, ScotSettings(), Links(), ServiceTimes(), Got())
    for regions, clusters in (("abc", 2), ("ab", 3), ("acb", 3)):
        with pytest.raises(SimulationError, match="the larger overlay lacks"):
            network.grow(Scot(Factor.path(regions), Factor.complete(clusters)))


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        (OverlayGrown(2, ("b",)), "clusters is 2, expected a number from 3 to 62"),
        (OverlayGrown(63, ("b",)), "clusters is 63, expected a number from 3 to 62"),
        (OverlayGrown(3, ()), "primary is [], expected b and perhaps other regions"),
        (OverlayGrown(3, ("a", "b")), "expected b and perhaps other regions"),
    ],
)
def test_a_broker_refuses_to_lose_neighbours(told: OverlayGrown, reason: str) -> None:
    scot = Scot(Factor.path("abc"), Factor.complete(3))
    broker = ScotBroker("B", scot.position(scot.brokers[0]), ScotSettings())
    before = broker.position
    (effect,) = broker.handle(0, None, told)
    assert isinstance(effect.error, LocalProtocolError)  # type: ignore[union-attr]
    assert reason in str(effect.error)  # type: ignore[union-attr]
    assert broker.position == before
