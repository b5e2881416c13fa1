"""A cluster and a region are added to a running SCOT while publishers go on: nothing is lost."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from attrs import define, field

from gossamer.protocol.brokers.core.effects import Deliver
from gossamer.protocol.brokers.core.messages import Attach, Publish, Subscribe
from gossamer.protocol.brokers.scot import Factor, Scot, ScotBroker, ScotSettings
from gossamer.protocol.brokers.scot.memory.messages import OverlayGrown
from gossamer.protocol.brokers.scot.overlay.errors import ShrunkOverlayError
from gossamer.protocol.content.filters import parse
from gossamer.sim.errors import SimulationError
from gossamer.sim.studies.scot.replay.network import Links, ScotNetwork, ServiceTimes, Unobserved

SECOND = 1_000_000


@define
class Got(Unobserved):
    often: Counter[tuple[str, int]] = field(factory=Counter)

    def delivered(self, now: int, effect: Deliver) -> None:  # noqa: ARG002
        number = effect.publication.values["number"]
        assert isinstance(number, int)
        self.often[effect.client, number] += 1


@define
class Run:
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


@pytest.mark.parametrize(
    ("seed", "publishers"),
    [(0, 20), *(pytest.param(seed, 500, marks=pytest.mark.campaign) for seed in range(3))],
)
def test_a_cluster_and_a_region_are_added_while_publishers_go_on(
    seed: int, publishers: int
) -> None:
    draw = random.Random(seed)
    regions = Factor.path("abc")
    run = Run(draw, Scot(regions, Factor.complete(5)))
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
    assert isinstance(effect.error, ShrunkOverlayError)  # type: ignore[union-attr]
    assert reason in str(effect.error)  # type: ignore[union-attr]
    assert broker.position == before
