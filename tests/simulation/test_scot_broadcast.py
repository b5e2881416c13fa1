"""A broadcast that is replayed leaves the tables, and takes the time, of one that is not."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gossamer.protocol.brokers.core.effects import Deliver, Effect
from gossamer.protocol.brokers.core.identifiers import Hop, Id
from gossamer.protocol.brokers.core.messages import Attach, Publish
from gossamer.protocol.brokers.scot import Factor, Scot, ScotSettings
from gossamer.protocol.brokers.scot.memory.messages import Message, Subscription
from gossamer.protocol.content.filters import Filter, parse
from gossamer.sim.errors import SimulationError
from gossamer.sim.studies.scot.replay.broadcast import Subscribers, broadcast
from gossamer.sim.studies.scot.replay.network import Links, ScotNetwork, ServiceTimes, Unobserved

Row = tuple[Filter, Hop, int]


class Watcher(Unobserved):
    """Writes down when the last broker had each subscription, and who got what."""

    def __init__(self) -> None:
        self.reached: dict[Id, int] = {}
        self.deliveries: list[str] = []

    def handled(
        self,
        now: int,
        arrived: int,  # noqa: ARG002
        broker: str,  # noqa: ARG002
        source: Hop,  # noqa: ARG002
        message: Message,
        sent: list[Effect],  # noqa: ARG002
    ) -> None:
        if isinstance(message, Subscription):
            self.reached[message.id] = now

    def delivered(self, now: int, effect: Deliver) -> None:  # noqa: ARG002
        self.deliveries.append(effect.client)


def new_network(settings: ScotSettings) -> tuple[ScotNetwork, Watcher]:
    watcher = Watcher()
    scot = Scot(Factor.path("abcde"), Factor.complete(3))
    return ScotNetwork(scot, settings, Links(), ServiceTimes(), watcher), watcher


def random_subscribers(network: ScotNetwork, seed: int) -> Subscribers:
    draw = random.Random(seed)
    number = 60
    return Subscribers(
        at=np.arange(number, dtype=np.int64) * 150,
        broker=np.array([draw.randrange(len(network.brokers)) for _ in range(number)], np.int64),
        names=[f"S{i}" for i in range(number)],
        wanted=[parse(f"x < {draw.randrange(1, 9)}") for _ in range(number)],
    )


def one_by_one(network: ScotNetwork, subscribers: Subscribers) -> None:
    """The same in the network itself."""
    names = list(network.brokers)
    for place, name in enumerate(subscribers.names):
        home = names[subscribers.broker[place]]
        attach = Attach((("one", subscribers.wanted[place]),))
        network.send(int(subscribers.at[place]), name, home, attach)
    network.run_until_idle()


def rows(network: ScotNetwork) -> dict[str, list[Row]]:
    """All tables; identifiers differ, as probes took some."""
    return {
        name: sorted(
            ((entry.filter, entry.hop, entry.host.bits) for entry in broker.table()), key=repr
        )
        for name, broker in network.brokers.items()
    }


@pytest.mark.parametrize("routing", ["static", "dynamic"])
def test_a_replayed_broadcast_is_what_one_by_one_gives(routing: str) -> None:
    settings = ScotSettings(routing=routing)
    plain, watcher = new_network(settings)
    one_by_one(plain, random_subscribers(plain, 1))
    fast, _ = new_network(settings)
    found = broadcast(fast, random_subscribers(fast, 1))
    assert rows(fast) == rows(plain)
    assert fast.catalogue.held == plain.catalogue.held == 60, "one for all brokers"
    assert sorted(found.last.tolist()) == sorted(watcher.reached.values())
    sent = sum(sum(broker.counters.sent.values()) for broker in plain.brokers.values())
    assert found.inter + found.intra == sent == 60 * 14


def test_brokers_route_by_what_was_replayed() -> None:
    networks = [new_network(ScotSettings(routing="dynamic")) for _ in range(2)]
    one_by_one(networks[0][0], random_subscribers(networks[0][0], 2))
    broadcast(networks[1][0], random_subscribers(networks[1][0], 2))
    for network, _ in networks:
        network.send(network.now, "P", "B(c,1)", Attach())
        for value in range(9):
            network.send(network.now, "P", "B(c,1)", Publish({"x": value}))
        network.run_until_idle()
    (_, plain), (_, fast) = networks
    assert sorted(plain.deliveries) == sorted(fast.deliveries)
    assert len(plain.deliveries) > 60


@pytest.mark.parametrize("settings", [ScotSettings(routing="bid"), ScotSettings(covering=True)])
def test_what_does_not_repeat_itself_is_refused(settings: ScotSettings) -> None:
    network, _ = new_network(settings)
    with pytest.raises(SimulationError, match="only a broadcast in two steps, without covering"):
        broadcast(network, random_subscribers(network, 1))
