"""Messages of SCOT brokers survive being plain data, and hostile data is refused, nothing else."""

from __future__ import annotations

import json
import random
from typing import Any, get_args

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.brokers.core import messages as plain
from gossamer.protocol.brokers.core.effects import Refuse
from gossamer.protocol.brokers.core.messages import DumpError, Id, client, neighbour
from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot, ScotBroker, ScotSettings
from gossamer.protocol.brokers.scot import messages as m
from gossamer.protocol.brokers.scot.codec import BETWEEN_BROKERS, CODEC
from gossamer.protocol.brokers.scot.topology import MAX_CLUSTERS, ClusterBitVector
from gossamer.protocol.content.filters import Filter, parse
from support.broker_messages import asked, ids, names, numbers, values
from support.filter_strategies import filters
from support.plain_index import PlainIndex

SCOT = Scot(Factor.path("ab"), Factor.complete(3))
SETTINGS = {
    "taking over": ScotSettings(around_failures=True, take_over=True),
    "static": ScotSettings(routing="static"),
    "bid": ScotSettings(routing="bid"),
}
clusters = st.integers(0, MAX_CLUSTERS - 1)
vectors = st.builds(ClusterBitVector, st.integers(0, (1 << MAX_CLUSTERS) - 1))
places = st.builds(BrokerLabel, names, clusters)
labels, some_ids = (st.lists(one, max_size=3).map(tuple) for one in (names, ids))
safe = st.booleans()
wanted = filters(most=3)
subscription = st.builds(m.Subscription, ids, wanted, vectors)
ends = st.builds(m.Unsubscription, ids)
notification = st.builds(m.Notification, ids, values, vectors)
promised = st.builds(m.Promised, names, names, ids, wanted)
unacknowledged = st.builds(m.UnacknowledgedDelivery, names, notification, labels)
all_promised = st.lists(promised, max_size=2).map(tuple)
all_owed = st.lists(unacknowledged, max_size=2).map(tuple)
tracked = st.one_of(
    subscription,
    ends,
    notification,
    st.builds(m.Detour, notification, clusters),
    st.builds(m.Bypass, notification, clusters, names, names),
    st.builds(m.Relay, subscription | ends, places, st.lists(places, max_size=3).map(tuple)),
    st.builds(m.ProxyNotification, notification, clusters),
    promised,
    st.builds(m.TakenBack, names, names),
    unacknowledged,
    st.builds(m.Taken, names, some_ids),
    st.builds(m.ClientLeft, names),
    st.builds(m.HandBack, names, some_ids, all_promised, all_owed),
)
between_brokers = st.one_of(
    tracked,
    st.builds(m.Synchronise, st.lists(subscription, max_size=3).map(tuple), safe, safe),
    st.builds(m.Numbered, numbers, tracked),
    st.builds(m.Acknowledge, numbers, st.booleans()),
    st.builds(m.Replica, all_promised, all_owed),
    st.just(m.NoBackup()),
    st.builds(m.InputQueue, numbers, numbers, numbers),
    st.builds(m.BidSubscription, ids, wanted),
    st.builds(m.BidUnsubscription, ids),
    st.builds(m.BidNotification, ids, values, labels),
)
waiting = st.builds(m.InputQueue, numbers, numbers, numbers)
queue = st.builds(m.QueueReport, names, numbers, numbers, numbers)
messages = st.one_of(
    between_brokers,
    st.builds(plain.Attach, asked, asked),
    st.just(plain.Detach()),
    st.builds(plain.Subscribe, names, wanted),
    st.builds(plain.Publish, values),
    st.builds(plain.ClientAcknowledge, some_ids),
    st.builds(m.NeighbourUp, names, places, st.booleans()),
    st.builds(m.NeighbourAnnounced, names, places, st.booleans(), st.booleans()),
    st.builds(plain.NeighbourDown, names),
    st.just(m.WaitedEnough()),
    st.builds(m.OverlayGrown, numbers, st.lists(names, max_size=3).map(tuple)),
    st.builds(plain.NeighbourGone, names),
    st.just(plain.Restarted()),
    st.builds(m.WindowEnded, st.lists(queue, max_size=3).map(tuple), st.none() | waiting),
)
VALUES = m.Notification(Id("B1", 3), {"x": 5}, ClusterBitVector.of(0, 2))
EMPTY = m.Notification(Id("B1", 3), {})
GOLDEN = [
    (VALUES, ["notification", ["B1", 3], {"x": 5}, 5]),
    (
        m.Numbered(7, m.Subscription(Id("B1", 3), parse("x > 5"), ClusterBitVector.of(1))),
        ["numbered", 7, ["subscription", ["B1", 3], "x > 5", 2]],
    ),
    (
        m.Numbered(8, m.Bypass(EMPTY, 2, "a", "b")),
        ["numbered", 8, ["bypass", ["notification", ["B1", 3], {}, 0], 2, "a", "b"]],
    ),
    (
        m.Replica(
            (m.Promised("ada", "s", Id("B1", 3), parse("x > 5")),),
            (m.UnacknowledgedDelivery("ada", EMPTY, ("s",)),),
        ),
        [
            "replica",
            [["promised", "ada", "s", ["B1", 3], "x > 5"]],
            [["unacknowledged", "ada", ["notification", ["B1", 3], {}, 0], ["s"]]],
        ],
    ),
    (m.Acknowledge(8, True), ["acknowledge", 8, True]),
    (
        m.BidNotification(Id("B1", 3), {"x": 5}, ("B2", "B3")),
        ["bid notification", ["B1", 3], {"x": 5}, ["B2", "B3"]],
    ),
]


@pytest.mark.parametrize(("message", "data"), GOLDEN)
def test_messages_look_as_in_version_1(message: m.BetweenBrokers, data: list[object]) -> None:
    assert (CODEC.plain_between(message), CODEC.read_between(data)) == (data, message)


def test_every_message_has_a_shape() -> None:
    assert {one.kind for one in BETWEEN_BROKERS.values()} == set(get_args(m.BetweenBrokers))
    assert {one.kind for one in CODEC.shapes.values()} == set(get_args(m.Message))


@pytest.mark.parametrize("chosen", SETTINGS)
@given(seed=st.integers(0, 1 << 32), told=st.lists(between_brokers, min_size=1, max_size=6))
def test_a_broker_survives_anything(chosen: str, seed: int, told: list[m.BetweenBrokers]) -> None:
    draw = random.Random(seed)
    broker, beside = a_broker(SETTINGS[chosen])
    broker.handle(0, client("ada"), plain.Attach((("s", parse("present(x)")),)))
    for message in (about_few(one, draw) for one in told):
        before = broker.dump()
        effects = broker.handle(0, neighbour(draw.choice(beside)), message)
        if any(isinstance(effect, Refuse) for effect in effects):
            assert {**broker.dump(), "counters": 0} == {**before, "counters": 0}
    broker.handle(0, client("ada"), plain.Publish({"x": 1}))
    dump = json.loads(json.dumps(broker.dump()))
    again = ScotBroker.load(dump, broker.position, SETTINGS[chosen], new_index=PlainIndex)
    assert again.dump() == broker.dump()


def about_few(one: Any, draw: random.Random) -> Any:
    """A message about the few brokers, clients and subscriptions that there are."""
    if isinstance(one, Id):
        return Id(draw.choice(["B(a,0)", "B(b,0)", "B(a,1)"]), draw.randrange(4))
    if isinstance(one, BrokerLabel):
        return BrokerLabel(draw.choice(["a", "b"]), draw.randrange(4))
    if isinstance(one, ClusterBitVector):
        return ClusterBitVector(draw.choice([0, 1, 2, 4, 6]))
    if isinstance(one, tuple):
        return tuple(about_few(each, draw) for each in one)
    if not attrs.has(type(one)) or isinstance(one, Filter):
        return one
    regions = ["a", "b"]
    few: dict[str, list[Any]] = {"client": ["ada", "bob"], "region": regions, "past": regions}
    few |= {"number": [1, 2, 3], "cluster": [0, 1, 2, 3]}
    changes = {
        name: draw.choice(few[name]) if name in few else about_few(getattr(one, name), draw)
        for name in (field.name for field in attrs.fields(type(one)))
    }
    return attrs.evolve(one, **changes)


def test_a_dump_of_another_place_is_no_dump_of_this() -> None:
    broker, _ = a_broker(SETTINGS["static"])
    broker.handle(0, client("ada"), plain.Attach())
    broker.handle(0, client("ada"), plain.Subscribe("s", parse("x > 1")))
    elsewhere = SCOT.position(BrokerLabel("b", 2))
    with pytest.raises(DumpError, match=r"it is of B\(a,0\), expected B\(b,2\)"):
        ScotBroker.load(broker.dump(), elsewhere, SETTINGS["static"])
    with pytest.raises(DumpError, match="KeyError"):
        ScotBroker.load({"format": 2}, elsewhere, SETTINGS["static"])
    with pytest.raises(DumpError, match="its format is 1, expected 2"):
        ScotBroker.load({"format": 1}, elsewhere, SETTINGS["static"])


def a_broker(chosen: ScotSettings) -> tuple[ScotBroker, list[str]]:
    place = BrokerLabel("a", 0)
    broker = ScotBroker("B(a,0)", SCOT.position(place), chosen, new_index=PlainIndex)
    beside = [*SCOT.primary_neighbours(place), *SCOT.secondary_neighbours(place)]
    for label in beside:
        broker.handle(0, None, m.NeighbourUp(str(label), label))
    return broker, [str(label) for label in beside]
