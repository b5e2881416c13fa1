"""A link or broker that fails while notifications are under way: what is lost is what it held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from gossamer.protocol.brokers.core.messages import Attach, Publish
from gossamer.protocol.brokers.scot import BrokerLabel, ScotSettings
from gossamer.protocol.content.filters import parse
from gossamer.sim.studies.scot.overlays import figure_2
from gossamer.sim.studies.scot.replay.network import Links, ScotNetwork, ServiceTimes
from support.scot_watcher import Watcher

PUBLISHER = "B(c,1)"
NUMBER, EVERY = 60, 300
"""Notifications, and microseconds between two: more than the broker's uplink takes."""
LINKS = Links(latency=500, gap=200, uplink_gap=150)
FAILURE = NUMBER * EVERY // 2
SCOT = figure_2()
BROKERS = [str(broker) for broker in SCOT.brokers if str(broker) != PUBLISHER]
BROKER_LINKS = [tuple(map(str, link)) for link in SCOT.links()]


def some_of(failures: Sequence[Any], step: int) -> list[Any]:
    """Every so many of the failures, and as a campaign all others."""
    return [
        one if number % step == 0 else pytest.param(one, marks=pytest.mark.campaign)
        for number, one in enumerate(failures)
    ]


def run(
    around: bool, *, link: tuple[str, str] | None = None, broker: str = "", take_over: bool = False
) -> tuple[int, int]:
    """Publish to a subscriber at every broker; a link or broker fails half way.

    Returns how many notifications are missing at subscribers whose broker lives, and how many
    messages were dropped.
    """
    watcher = Watcher()
    settings = ScotSettings(routing="dynamic", around_failures=around, take_over=take_over)
    network = ScotNetwork(SCOT, settings, LINKS, ServiceTimes(), watcher)
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


@pytest.mark.parametrize("link", some_of(BROKER_LINKS, 6))
def test_around_any_link_nothing_is_missing_but_what_it_held(link: tuple[str, str]) -> None:
    missing, dropped = run(around=True, link=link)
    # A message that is dropped is missed by all who are behind it, at most a whole cluster.
    assert missing <= dropped * len(SCOT.regions) * len(SCOT.clusters)
    assert missing < run(around=False, link=link)[0] or missing == 0


@pytest.mark.parametrize("broker", some_of(BROKERS, 6))
def test_around_any_broker_nothing_is_missing_but_what_it_held(broker: str) -> None:
    missing, dropped = run(around=True, broker=broker)
    assert missing <= dropped * len(SCOT.regions) * len(SCOT.clusters)
    if not SCOT.position(BrokerLabel.parse(broker)).is_edge:
        assert missing < run(around=False, broker=broker)[0]


@pytest.mark.parametrize("broker", some_of(BROKERS, 6))
def test_with_taking_over_nothing_is_missing_at_brokers_that_live(broker: str) -> None:
    missing, dropped = run(around=True, broker=broker, take_over=True)
    assert missing == 0
    assert dropped > 0


@pytest.mark.parametrize("link", some_of(BROKER_LINKS, 9))
def test_with_taking_over_nothing_is_missing_with_any_link(link: tuple[str, str]) -> None:
    assert run(around=True, link=link, take_over=True)[0] == 0


def test_nothing_is_missing_unfailed_but_what_clients_of_a_stopped_broker_publish() -> None:
    assert run(around=True) == (0, 0)
    missing, dropped = run(around=True, broker=PUBLISHER)
    assert dropped >= NUMBER // 2
    assert missing >= 17 * NUMBER // 2
