"""What is replayed, in the compiled loop or as a broadcast, is what asking each time gives."""

from __future__ import annotations

import copy
import random

import attrs
import numpy as np
import pytest

from gossamer.protocol.brokers.core.messages import Attach, Hop, Publish
from gossamer.protocol.brokers.scot import Factor, Scot, ScotSettings
from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.kernel.rules import Rule
from gossamer.sim.errors import SimulationError
from gossamer.sim.studies.scot import replay_loop
from gossamer.sim.studies.scot.replay import Publications, Replayed, Subscribers, broadcast, replay
from gossamer.sim.studies.scot.replay_network import Links, ScotNetwork, ServiceTimes, Unobserved
from gossamer.sim.studies.scot.replay_tables import EXPONENTIAL, SPREADS, spread_of
from support.draws import with_campaigns
from support.scenes import Watcher

SETTINGS = {
    "bid": ScotSettings(routing="bid"),
    "static": ScotSettings(routing="static"),
    "dynamic": ScotSettings(routing="dynamic"),
    "spare": ScotSettings(spare_links=True),
    "covering": ScotSettings(covering=True),
    "detours": ScotSettings(cluster_detours=True, threshold=2.0),
    "input queues": ScotSettings(input_queues=True),
    "own threshold": ScotSettings(input_queues=True, own_threshold=True),
}
TOPICS = 4


def random_network(settings: ScotSettings, draw: random.Random, watcher: Watcher) -> ScotNetwork:
    """Subscribers anywhere, and a publisher at every broker.

    For detours they are in one cluster, whose links within are congested and those to others not.
    """
    scot = Scot(Factor.path("abcd"), Factor.complete(draw.randrange(2, 5)))
    links = Links(latency=draw.choice([0, 300]), gap=200, uplink_gap=draw.choice([50, 150]))
    times = ServiceTimes(unevenness=0.5, spread=draw.choice(SPREADS))
    network = ScotNetwork(scot, settings, links, times, watcher)
    names = list(network.brokers)
    hosts = names[:4] if settings.cluster_detours else names
    for i in range(20):
        wanted = parse(f"x >= {draw.randrange(TOPICS)} and x < {draw.randrange(TOPICS) + TOPICS}")
        network.send(0, f"S{i}", draw.choice(hosts), Attach((("s", wanted),)))
    for name in names:
        network.send(0, f"P at {name}", name, Attach())
    network.run_until_idle()
    watcher.windows.clear()
    return network


def random_publications(network: ScotNetwork, draw: random.Random) -> Publications:
    """A burst at one broker, and some at others; many at the same time as another."""
    names = list(network.brokers)
    hrp, start = draw.randrange(4), network.now + 1_000
    rows = [(start + 100 * i, hrp, draw.randrange(2), 1) for i in range(900)]
    rows += [
        (start + 500 * i, draw.randrange(len(names)), draw.randrange(TOPICS), 0) for i in range(60)
    ]
    rows.sort(key=lambda row: row[0])
    columns = np.ascontiguousarray(np.array(rows, np.int64).T)
    return Publications(
        at=columns[0],
        broker=columns[1],
        content=columns[2],
        marked=columns[3],
        contents=[{"x": topic} for topic in range(TOPICS)],
        publishers={name: f"P at {name}" for name in names},
    )


def asked_each_time(
    network: ScotNetwork, publications: Publications
) -> tuple[int, int, int, int, int, dict[int, int]]:
    """Publish in the network; what brokers counted of messages."""
    names = list(network.brokers)
    rows = zip(publications.at, publications.broker, publications.content, strict=True)
    for at, broker, content in rows:
        name, values = names[broker], publications.contents[content]
        network.send(int(at), f"P at {name}", name, Publish(values))
    before = [copy.deepcopy(broker.counters) for broker in network.brokers.values()]
    network.run_until_idle()
    cases: dict[int, int] = {}
    sent = matched = lost = detours = 0
    for broker, counted in zip(network.brokers.values(), before, strict=True):
        now = broker.counters
        sent += sum(now.sent.values()) - sum(counted.sent.values())
        sent -= now.sent.get("InputQueue", 0) - counted.sent.get("InputQueue", 0)
        matched += now.matched - counted.matched
        lost += now.lost - counted.lost
        detours += now.detours - counted.detours
        for case, number in now.cases.items():
            cases[case] = cases.get(case, 0) + number
    return sent, matched, lost, detours, network.now, dict(sorted(cases.items()))


def replayed(settings: ScotSettings, seed: int) -> tuple[Watcher, tuple[object, ...], Replayed]:
    """The same by asking each time, and replayed."""
    draws = random.Random(seed), random.Random(seed)
    watchers = Watcher(), Watcher()
    networks = [
        random_network(settings, draw, watcher)
        for draw, watcher in zip(draws, watchers, strict=True)
    ]
    counted = asked_each_time(networks[0], random_publications(networks[0], draws[0]))
    return watchers[0], counted, replay(networks[1], random_publications(networks[1], draws[1]))


@with_campaigns("seed", [3], [1])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_replay_is_what_asking_each_time_gives(settings: ScotSettings, seed: int) -> None:
    watcher, counted, found = replayed(settings, seed)
    assert list(zip(found.received.tolist(), found.clients.tolist(), strict=True)) == watcher.rows
    assert [tuple(row[:3]) for row in found.windows.tolist()] == watcher.windows
    sent = found.inter + found.intra
    assert (sent, found.matchings, found.lost, found.detours, found.ended, found.cases) == counted
    assert found.decisions < len(found.received)


def test_bursts_replayed_have_detours_and_run_interpreted_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the test above would say little."""
    assert replayed(SETTINGS["own threshold"], 3)[2].cases
    assert replayed(SETTINGS["dynamic"], 3)[2].cases
    assert replayed(SETTINGS["detours"], 3)[2].detours > 0
    compiled = replayed(SETTINGS["dynamic"], 1)[2]
    for rule in (replay_loop.run_events, replay_loop.place_of, replay_loop.enter_keys):
        monkeypatch.setattr(rule, "_dispatcher", rule.interpreted)
        assert isinstance(rule, Rule)
    interpreted = replayed(SETTINGS["dynamic"], 1)[2]
    np.testing.assert_array_equal(compiled.received, interpreted.received)
    np.testing.assert_array_equal(compiled.windows, interpreted.windows)
    assert compiled.cases == interpreted.cases


def test_what_a_broker_refuses_ends_a_replay() -> None:
    watcher = Watcher()
    network = random_network(SETTINGS["static"], random.Random(1), watcher)
    publications = random_publications(network, random.Random(1))
    nobody = dict.fromkeys(publications.publishers, "nobody")
    unknown = attrs.evolve(publications, publishers=nobody)
    with pytest.raises(SimulationError, match="'nobody' is not attached"):
        replay(network, unknown)


@pytest.mark.parametrize(("uplink_gap", "gains"), [(0, True), (100, False)])
def test_detours_gain_where_links_are_scarce_not_senders(uplink_gap: int, gains: bool) -> None:
    """A subscriber at the other end of the publisher's cluster, whose links are overloaded."""
    delays = []
    for detours in (False, True):
        network = ScotNetwork(
            Scot(Factor.path("abcd"), Factor.complete(3)),
            ScotSettings(cluster_detours=detours),
            Links(gap=0 if uplink_gap else 200, uplink_gap=uplink_gap),
            ServiceTimes(matching=20, forwarding=20),
            Unobserved(),
        )
        network.send(0, "S", "B(d,0)", Attach((("s", parse("present(x)")),)))
        network.send(0, "P", "B(a,0)", Attach())
        network.run_until_idle()
        number = 5_000
        at, none = network.now + 80 * np.arange(1, number + 1), np.zeros(number, np.int64)
        columns = {"at": at, "broker": none, "content": none, "marked": none}
        published = Publications(**columns, contents=[{"x": 1}], publishers={"B(a,0)": "P"})
        found = replay(network, published)
        assert len(found.received) == number
        delays.append(found.received.mean())
    assert (delays[1] < delays[0]) == gains


def test_exponential_times_have_the_mean_of_constant_ones_and_spread_as_far() -> None:
    draws = spread_of(EXPONENTIAL)
    assert abs(draws.mean() - 1_000) < 1
    assert 950 < draws.std() < 1_000  # the farthest 1 in 4,096 is left out
    assert abs(np.mean(draws > 1_000) - np.exp(-1)) < 0.01
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 0.05


Row = tuple[Filter, Hop, int]


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
    names = list(network.brokers)
    for place, name in enumerate(subscribers.names):
        home = names[subscribers.broker[place]]
        attach = Attach((("one", subscribers.wanted[place]),))
        network.send(int(subscribers.at[place]), name, home, attach)
    network.run_until_idle()


def rows(network: ScotNetwork) -> dict[str, list[Row]]:
    """All tables; identifiers differ, as probes took some."""
    tables = {name: broker.table() for name, broker in network.brokers.items()}
    return {
        name: sorted(((one.filter, one.hop, one.host.bits) for one in table), key=repr)
        for name, table in tables.items()
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
    names = [sorted(name for _, name in one.deliveries) for one in (plain, fast)]
    assert names[0] == names[1]
    assert len(names[0]) > 60


@pytest.mark.parametrize("settings", [ScotSettings(routing="bid"), ScotSettings(covering=True)])
def test_what_does_not_repeat_itself_is_refused(settings: ScotSettings) -> None:
    network, _ = new_network(settings)
    with pytest.raises(SimulationError, match="only a broadcast in two steps, without covering"):
        broadcast(network, random_subscribers(network, 1))
