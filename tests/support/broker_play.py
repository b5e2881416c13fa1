"""Random plays of every operation on an overlay of brokers, checked against a flat matcher.

What is promised, and asserted here:

- A publication reaches a subscription that was known everywhere before it was published (the
  overlay had settled since) and is not taken back until it arrives: exactly once, whatever other
  subscriptions, advertisements, clients and links do meanwhile.
- One that is concurrent with a subscription, or with all advertisements that allow it, reaches it
  or does not; never twice, and never after it was taken back.
- A client that moves may get at the new broker what it got at the old one.
- Nothing that does not match is ever delivered.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import networkx as nx
from attrs import define, evolve, field

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.broker import NewIndex
from gossamer.protocol.brokers.core.messages import NotAdvertisedError
from gossamer.protocol.brokers.tree import TreeSettings
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter
from support.broker_overlay import Overlay, random_tree
from support.plain_index import PlainIndex

EVERYTHING = filters.parse("present(x) and present(y) and present(s) and present(number)")
RANGES = {"x": 8, "y": 4}
TEXTS = ("a", "b", "ab", "ba", "bab")
Key = tuple[str, str]
"""A client and its label."""


def random_filter_text(draw: random.Random) -> str:
    """A filter over few values, so that many cover each other, some through several others."""
    if draw.random() < 0.4:
        depth = draw.randrange(4)
        return f"x >= {depth} and x < {RANGES['x'] - depth}"
    parts = []
    for name, size in RANGES.items():
        if draw.random() < 0.6:
            begin = draw.randrange(size)
            parts.append(f"{name} >= {begin} and {name} < {draw.randrange(begin, size) + 1}")
    if draw.random() < 0.3 or not parts:
        operator = draw.choice(["startswith", "endswith", "contains", "!=", "=="])
        parts.append(f's {operator} "{draw.choice(TEXTS)}"')
    return " and ".join(parts)


def random_values(draw: random.Random) -> dict[str, object]:
    values: dict[str, object] = {"x": draw.randrange(8) + draw.choice([0, 0.5])}
    if draw.random() < 0.8:
        values["y"] = draw.randrange(4)
    if draw.random() < 0.6:
        values["s"] = draw.choice(TEXTS)
    return values


@define
class Asked:
    filter: Filter
    settled: bool = False


@define
class Play:
    """An overlay of two brokers or more, and the flat matcher beside it."""

    draw: random.Random
    settings: TreeSettings
    size: int
    faults: bool = False  # whether links break, brokers restart, and frames come twice
    # Of which a broker that restarts has any; none: it keeps the one it had.
    coverings: Sequence[str] = ()
    new_index: NewIndex = PlainIndex
    edges: list[tuple[str, str]] = field(init=False)
    overlay: Overlay = field(init=False)
    subscriptions: dict[Key, Asked] = field(factory=dict)
    advertisements: dict[Key, Asked] = field(factory=dict)
    # For each publication that may be under way, the subscriptions that have to get it.
    due: dict[int, set[Key]] = field(factory=dict)
    # Which clients have got which publications, after how many moves.
    got: set[tuple[str, int, int]] = field(factory=set)
    moves: Counter[str] = field(factory=Counter)
    broken: list[tuple[str, str]] = field(factory=list)
    labels: int = 0
    seen: int = 0

    def __attrs_post_init__(self) -> None:
        self.edges = random_tree(self.size, self.draw.randrange(1 << 30))
        seed = self.draw.randrange(1 << 30)
        self.overlay = Overlay(self.edges, self.settings, seed, self.new_index)
        for name in ("c0", "c1", "c2", "p0", "p1"):
            self.overlay.attach(name, self.any_broker())

    def run(self, steps: int) -> None:
        """Play so many operations, publish once more, then take everything back."""
        self.operate(steps)
        self.settle()
        for _ in range(2):
            self.advertise()
        self.settle()
        for _ in range(10):
            self.publish_some()
        self.finish()

    def operate(self, steps: int) -> None:
        kinds = [
            *[self.subscribe] * 6,
            *[self.publish_some] * 5,
            *[self.deliver_some] * 4,
            *[self.unsubscribe] * 2,
            *[self.advertise] * 2,
            *[self.settle] * 2,
            *(self.unadvertise, self.burst, self.come_and_go, self.move),
            *(self.congest, self.overlay.fire_timers, self.reload, self.probe),
        ]
        if self.faults:
            kinds += [self.break_link, self.restart, self.overlay.repeat]
        for operation in (self.advertise, self.advertise, *[self.subscribe] * 6, self.settle):
            operation()
        for _ in range(steps):
            self.draw.choice(kinds)()
            self.check()

    # Operations of clients.

    def subscribe(self) -> None:
        name = self.any_client("cp")
        asked = Asked(filters.parse(random_filter_text(self.draw)))
        label = self.label()
        self.subscriptions[name, label] = asked
        self.overlay.ask(name, messages.Subscribe(label, asked.filter))

    def advertise(self) -> None:
        name = self.any_client("p")
        narrow = filters.parse(f"{random_filter_text(self.draw)} and present(number)")
        asked = Asked(EVERYTHING if self.draw.random() < 0.5 else narrow)
        label = self.label()
        self.advertisements[name, label] = asked
        self.overlay.ask(name, messages.Advertise(label, asked.filter))

    def unsubscribe(self) -> None:
        if self.subscriptions:
            self.take_back(self.draw.choice(sorted(self.subscriptions)))

    def burst(self) -> None:
        """Take back about half of everything, while publications are under way."""
        self.publish_some()
        for key in sorted(self.subscriptions):
            if self.draw.random() < 0.5:
                self.take_back(key)
                self.deliver_some()

    def unadvertise(self) -> None:
        if self.advertisements:
            name, label = self.draw.choice(sorted(self.advertisements))
            del self.advertisements[name, label]
            self.overlay.ask(name, messages.Unadvertise(label))

    def publish_some(self) -> None:
        for _ in range(self.draw.randrange(1, 5)):
            self.publish()
            self.check()

    def publish(self) -> None:
        name, values = self.any_client("p"), random_values(self.draw)
        number = len(self.due)
        values["number"] = number
        allowing = [
            asked.settled
            for key, asked in self.advertisements.items()
            if key[0] == name and filters.conforms(values, asked.filter)
        ]
        self.due[number] = {
            key
            for key, asked in self.subscriptions.items()
            if any(allowing) and asked.settled and asked.filter.matches(values)
        }
        refused = len(self.overlay.refusals)
        self.overlay.ask(name, messages.Publish(values))
        assert (len(self.overlay.refusals) > refused) is (not allowing)
        if not allowing:
            assert isinstance(self.overlay.refusals[-1].error, NotAdvertisedError)

    def probe(self) -> None:
        """False positives: none without pruning, and every one counted where it ends."""
        self.settle()
        begin, counted = len(self.overlay.arrivals), self.overlay.total("false_positives")
        self.publish()
        self.settle()
        ends = [one for one in self.overlay.arrivals[begin:] if not one[3]]
        assert self.overlay.total("false_positives") - counted == len(ends)
        assert len(ends) <= self.wasted(begin)
        if self.wasted(begin):
            brokers = self.overlay.brokers.values()
            assert self.overlay.total("held") or any(broker.aggregates() for broker in brokers)

    def come_and_go(self) -> None:
        name = self.any_client("cp")
        for key in [key for key in self.subscriptions if key[0] == name]:
            self.forget(key)
        for key in [key for key in self.advertisements if key[0] == name]:
            del self.advertisements[key]
        self.overlay.ask(name, messages.Detach())
        self.overlay.attach(name, self.any_broker())
        self.moves[name] += 1

    def move(self) -> None:
        name = self.any_client("cp")
        for key in [key for key in self.subscriptions if key[0] == name]:
            self.subscriptions[key].settled = False
            self.forget(key, for_good=False)
        for key in [key for key in self.advertisements if key[0] == name]:
            self.advertisements[key].settled = False
        self.overlay.ask(name, messages.Move())
        self.moves[name] += 1
        left = self.overlay.moved[name]
        self.overlay.home[name] = self.any_broker()
        self.overlay.ask(name, messages.Attach(left.subscriptions, left.advertisements))

    # What happens to brokers and links.

    def deliver_some(self) -> None:
        for _ in range(self.draw.randrange(1, 8)):
            if self.overlay.waiting():
                self.overlay.step()
                self.check()

    def settle(self) -> None:
        for ends in self.broken:
            self.overlay.restore(*ends)
        self.broken.clear()
        self.check()
        while self.overlay.waiting():
            self.overlay.step()
            self.check()
        for number, keys in self.due.items():
            assert not keys, f"publication {number} was not delivered to {sorted(keys)}"
        for asked in (*self.subscriptions.values(), *self.advertisements.values()):
            asked.settled = True

    def congest(self) -> None:
        queue = self.draw.choice([0, 0, 1000])
        self.overlay.tell(self.any_broker(), None, messages.Congestion(queue))

    def reload(self) -> None:
        name = self.any_broker()
        before = self.overlay.brokers[name].dump()
        self.overlay.reload(name)
        assert self.overlay.brokers[name].dump() == before

    def break_link(self) -> None:
        ends = self.draw.choice(self.edges)
        if ends not in self.broken:
            self.broken.append(ends)
            self.overlay.interrupt(*ends)

    def restart(self) -> None:
        name = self.any_broker()
        self.broken = [ends for ends in self.broken if name not in ends]
        chosen = None
        if self.coverings:
            chosen = evolve(self.settings, covering=self.draw.choice(self.coverings))
        self.overlay.restart(name, chosen)

    # The flat matcher.

    def check(self) -> None:
        for name, publication, labels in self.overlay.deliveries[self.seen :]:
            number = int(publication.values["number"])
            assert (name, self.moves[name], number) not in self.got
            self.got.add((name, self.moves[name], number))
            for label in labels:
                assert self.subscriptions[name, label].filter.matches(publication.values)
                self.due[number].discard((name, label))
        self.seen = len(self.overlay.deliveries)

    def wasted(self, since: int) -> int:
        return sum(
            not self.wanted_ahead(publication.values, one, other)
            for publication, one, other, _ in self.overlay.arrivals[since:]
        )

    def wanted_ahead(self, values: dict[str, object], one: str, other: str) -> bool:
        beyond = nx.Graph(self.edges)
        beyond.remove_node(one)
        ahead = nx.node_connected_component(beyond, other)
        return any(
            self.overlay.home[name] in ahead and asked.filter.matches(values)
            for (name, _), asked in self.subscriptions.items()
        )

    def finish(self) -> None:
        self.settle()
        for name in sorted(self.overlay.brokers):
            self.overlay.tell(name, None, messages.Congestion(0))
        for _ in range(len(self.subscriptions) + self.labels):
            self.overlay.fire_timers()
            self.settle()
        self.subscriptions.clear()
        self.advertisements.clear()
        for name in sorted(self.overlay.home):
            self.overlay.ask(name, messages.Detach())
        self.settle()
        for broker in self.overlay.brokers.values():
            sizes = broker.sizes()
            assert not sizes.subscriptions + sizes.advertisements + sizes.sent, broker.name
            assert not sizes.preserved + sizes.statistics + sizes.clients, broker.name
            assert not broker.aggregates()

    def take_back(self, key: Key) -> None:
        self.forget(key)
        self.overlay.ask(key[0], messages.Unsubscribe(key[1]))

    def forget(self, key: Key, for_good: bool = True) -> None:
        for keys in self.due.values():
            keys.discard(key)
        if for_good:
            del self.subscriptions[key]

    def any_client(self, kinds: str) -> str:
        return self.draw.choice(sorted(name for name in self.overlay.home if name[0] in kinds))

    def any_broker(self) -> str:
        return self.draw.choice(sorted(self.overlay.brokers))

    def label(self) -> str:
        self.labels += 1
        return f"l{self.labels}"
