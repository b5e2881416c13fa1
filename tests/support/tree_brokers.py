"""Brokers of a general graph in memory: first-in first-out links, served in a drawn order."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterable
from typing import Final

import cbor2
import networkx as nx
from attrs import define, field, frozen

from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.effects import Deliver, Effect, SetTimer
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.brokers.graph import messages as m
from gossamer.protocol.brokers.graph.broker import GraphBroker
from gossamer.protocol.brokers.graph.codec import CODEC
from gossamer.protocol.brokers.graph.coordinator import MakePlan
from gossamer.protocol.brokers.graph.planning import solve
from gossamer.protocol.brokers.graph.settings import STRATEGIES, GraphSettings
from gossamer.protocol.content.filters import parse
from support.broker_overlay import ClientNetwork
from support.plain_index import PlainIndex

TICK = 1_000_000
SETTINGS = GraphSettings(probability=1.0, interval=5 * TICK, threshold=0.0)

Link = tuple[str, str]


@frozen
class Delivery:
    client: str
    id: Id
    values: dict[str, object]
    labels: tuple[str, ...]


class TreeOverlay(ClientNetwork[GraphBroker]):
    """All brokers of a graph, with clients at any of them; every message goes through the codec.

    Attributes:
        links: those included that do not work now.
        dead: what brokers remember that died.
        published: where each document was published, and what it says.
        sent: messages between brokers by kind.
        plan_chance: that a plan is ready before the next message arrives.
    """

    def __init__(
        self, links: Iterable[Link], settings: GraphSettings = SETTINGS, seed: int = 0
    ) -> None:
        super().__init__(random.Random(seed))
        self.deliveries: list[Delivery] = []
        self.published: dict[Id, tuple[str, dict[str, object]]] = {}
        self.sent: Counter[str] = Counter()
        self.plan_chance = 0.02
        self.dead: dict[str, dict[str, object]] = {}
        self.links = sorted({(min(pair), max(pair)) for pair in links})
        self._settings = settings
        self._up: set[Link] = set()
        self._plans: list[tuple[str, MakePlan]] = []
        self._timers: dict[str, SetTimer] = {}
        for name in sorted({end for pair in self.links for end in pair}):
            self.brokers[name] = GraphBroker(name, settings, new_index=PlainIndex)
            self.tell(name, None, messages.Restarted())
        for one, other in self.links:
            self.mend_link(one, other)

    # What happens from outside.

    def publish(self, broker: str, **values: object) -> Id:
        id_ = super().publish(broker, **values)
        self.published[id_] = broker, values
        return id_

    def break_link(self, one: str, other: str) -> None:
        self._up.discard((min(one, other), max(one, other)))
        for name, end in ((one, other), (other, one)):
            self.queues.pop((name, end), None)
            if name in self.brokers:
                self.tell(name, None, messages.NeighbourDown(end))

    def mend_link(self, one: str, other: str) -> None:
        self._up.add((min(one, other), max(one, other)))
        for name, end in ((one, other), (other, one)):
            self.queues[name, end] = deque()
        for name, end in ((one, other), (other, one)):
            self.tell(name, None, m.NeighbourUp(end))

    def works(self, link: Link) -> bool:
        return link in self._up

    def can_mend(self, link: Link) -> bool:
        return link not in self._up and set(link) <= self.brokers.keys()

    def kill(self, name: str) -> None:
        self.dead[name] = cbor2.loads(cbor2.dumps(self.brokers.pop(name).dump()))
        self._timers.pop(name, None)
        self._plans = [(planner, asked) for planner, asked in self._plans if planner != name]
        for one, other in sorted(self._up):
            if name in (one, other):
                self.break_link(one, other)

    def revive(self, name: str, *, remembers: bool = True) -> None:
        data = self.dead.pop(name)
        if remembers:
            self.brokers[name] = GraphBroker.load(data, self._settings, new_index=PlainIndex)
        else:
            self.home = {one: home for one, home in self.home.items() if home != name}
            self.brokers[name] = GraphBroker(
                name, self._settings, incarnation=1 + self.now // TICK, new_index=PlainIndex
            )
        self.tell(name, None, messages.Restarted())
        for one, other in self.links:
            if name in (one, other) and {one, other} <= self.brokers.keys():
                self.mend_link(one, other)

    def swap(self, name: str) -> None:
        data = cbor2.loads(cbor2.dumps(self.brokers[name].dump()))
        self.brokers[name] = GraphBroker.load(data, self._settings, new_index=PlainIndex)

    def tick(self, ticks: int = 1) -> None:
        """Let time pass until all brokers have looked at what there is to do, so many times."""
        for _ in range(ticks):
            self.now += TICK
            for name in sorted(self._timers):
                timer = self._timers[name]
                self.tell(name, None, messages.TimerFired(timer.timer, timer.token))

    # What happens inside.

    def step(self) -> bool:
        """Deliver one message of a link that is drawn, or one plan; False if there is nothing."""
        if self._plans and (not self.waiting() or self.draw.random() < self.plan_chance):
            name, asked = self._plans.pop(0)
            self.tell(name, None, solve(asked.number, asked.problem))
            return True
        return super().step()

    def deliver(self, one: str, other: str, message: bytes) -> None:
        super().deliver(one, other, CODEC.read_between(cbor2.loads(message)))

    def come_to_rest(self, ticks: int = 8) -> None:
        for _ in range(ticks):
            self.settle()
            self.tick()
        self.settle()

    # What can be seen.

    def coordinator(self) -> str:
        (found,) = [name for name, one in self.brokers.items() if one.phase is not None]
        return found

    def samples_at(self, coordinator: str) -> list[m.Sampled]:
        coordination = self.brokers[coordinator]._state.coordination
        assert coordination is not None
        return list(coordination.samples.values())

    def graph(self) -> nx.Graph:
        found = nx.Graph()
        found.add_nodes_from(self.brokers)
        found.add_edges_from(self._up)
        return found

    def got(self, id_: Id) -> list[str]:
        return sorted(one.client for one in self.deliveries if one.id == id_)

    def carry_out(self, broker: str, effect: Effect) -> None:
        super().carry_out(broker, effect)
        match effect:
            case Deliver(to, found, labels):
                self.deliveries.append(Delivery(to, found.id, dict(found.values), labels))
            case SetTimer():
                self._timers[broker] = effect
            case MakePlan():
                self._plans.append((broker, effect))

    def send(self, one: str, other: str, message: m.BetweenBrokers) -> None:
        self.sent[type(message).__name__] += 1
        if (one, other) in self.queues:
            super().send(one, other, cbor2.dumps(CODEC.plain_message(message)))


def random_links(brokers: int, more: int, draw: random.Random) -> list[Link]:
    names = [f"b{number:02}" for number in range(brokers)]
    draw.shuffle(names)
    links = {(names[draw.randrange(at)], names[at]) for at in range(1, brokers)}
    for _ in range(more):
        one, other = draw.sample(names, 2) if brokers > 1 else (names[0], names[0])
        if (other, one) not in links and one != other:
            links.add((one, other))
    return sorted(links)


NOTHING, KILL, REVIVE, FORGET, CUT, SPLIT = "nothing", "kill", "revive", "forget", "cut", "split"
FAILURES: Final = (NOTHING, KILL, REVIVE, FORGET, CUT, SPLIT)
TEXTS: Final = ("a == true", "b == true", "n > 3", "n < 7", "n > 2 and a == true")
STEPS: Final = 160
AWAY: Final = 25
"""Steps that a broker or link is away, where it comes back."""


@define(eq=False)
class TreePlay:
    """A random overlay with clients, in which one thing fails at a drawn moment.

    The clients that are there from the beginning ask for ``texts``; ``failed`` has the brokers that
    died, whether they came back or not.
    """

    failure: str
    draw: random.Random
    overlay: TreeOverlay
    texts: dict[str, str] = field(factory=dict)
    failed: set[str] = field(factory=set)
    _cut: list[tuple[str, str]] = field(factory=list)

    @classmethod
    def drawn(cls, failure: str, seed: int) -> TreePlay:
        """A play that has not begun, with clients whose subscriptions stand."""
        draw = random.Random(seed)
        settings = GraphSettings(
            probability=1.0,
            interval=draw.choice([1, 3]) * TICK,
            threshold=draw.choice([0.0, 0.1]),
            strategy=draw.choice(STRATEGIES),
        )
        links = random_links(draw.randrange(2, 9), draw.randrange(0, 6), draw)
        play = cls(failure, draw, TreeOverlay(links, settings, seed))
        for number in range(draw.randrange(1, 8)):
            name, text = f"client {number}", draw.choice(TEXTS)
            play.texts[name] = text
            play.overlay.subscribe(name, draw.choice(sorted(play.overlay.brokers)), text)
            if draw.random() < 0.3:
                play.overlay.subscribe(name, play.overlay.home[name], "a == true and n < 2")
                play.texts[name] = f"{text} or a == true and n < 2"
        play.overlay.come_to_rest(4)
        return play

    def run(self) -> None:
        moment = self.draw.randrange(STEPS - AWAY)
        for step in range(STEPS):
            self._do_something(step)
            if step == moment:
                self._fail()
            if step == moment + AWAY:
                self._mend()
        self.overlay.come_to_rest(12)

    def run_wildly(self) -> None:
        """Let any number of brokers and links fail and come back, in the end all of them."""
        draw, overlay = self.draw, self.overlay
        for step in range(STEPS):
            self._do_something(step)
            broken = [one for one in overlay.links if overlay.can_mend(one)]
            working = [one for one in overlay.links if overlay.works(one)]
            chance = draw.random()
            if chance < 0.03 and len(overlay.brokers) > 1:
                overlay.kill(draw.choice(sorted(overlay.brokers)))
            elif chance < 0.07 and overlay.dead:
                overlay.revive(draw.choice(sorted(overlay.dead)))
            elif chance < 0.10 and working:
                overlay.break_link(*draw.choice(working))
            elif chance < 0.14 and broken:
                overlay.mend_link(*draw.choice(broken))
        for broker in sorted(overlay.dead):
            overlay.revive(broker)
        for link in filter(overlay.can_mend, overlay.links):
            overlay.mend_link(*link)
        overlay.come_to_rest(14)

    def _do_something(self, step: int) -> None:
        draw, overlay = self.draw, self.overlay
        chance = draw.random()
        broker = draw.choice(sorted(overlay.brokers))
        if chance < 0.25:
            flags = draw.random() < 0.3, draw.random() < 0.5
            overlay.publish(broker, n=draw.randrange(10), a=flags[0], b=flags[1])
        elif chance < 0.30:
            overlay.tick()
        elif chance < 0.32:
            overlay.subscribe(f"late {step}", broker, draw.choice(TEXTS))
        else:
            for _ in range(draw.randrange(1, 6)):
                overlay.step()

    def _fail(self) -> None:
        draw, overlay = self.draw, self.overlay
        if self.failure == CUT:
            self._cut = [draw.choice(overlay.links)]
        elif self.failure == SPLIT:
            side = set(draw.sample(sorted(overlay.brokers), len(overlay.brokers) // 2))
            self._cut = [link for link in overlay.links if len(side.intersection(link)) == 1]
        elif self.failure != NOTHING:
            leading = [name for name, one in overlay.brokers.items() if one.phase is not None]
            anybody = sorted(overlay.brokers)
            broker = draw.choice(leading if leading and draw.random() < 0.7 else anybody)
            overlay.kill(broker)
            self.failed.add(broker)
        for link in self._cut:
            overlay.break_link(*link)

    def _mend(self) -> None:
        if self.failure in (REVIVE, FORGET):
            for broker in self.failed:
                self.overlay.revive(broker, remembers=self.failure == REVIVE)
        elif self.failure == SPLIT or self.draw.random() < 0.5:
            for link in self._cut:
                self.overlay.mend_link(*link)

    # What has to be true.

    def wrong(self) -> list[tuple[str, object]]:
        return [*self.twice(), *self.missed(), *self.unwanted()]

    def twice(self) -> list[tuple[str, object]]:
        found = Counter((one.client, one.id) for one in self.overlay.deliveries)
        return [key for key, count in found.items() if count > 1]

    def missed(self) -> list[tuple[str, object]]:
        """Documents that a client should have got, and did not: none while brokers are in parts.

        Brokers that died for good, or lost their memory, promise nothing to clients and publishers.
        """
        overlay = self.overlay
        if not nx.is_connected(overlay.graph()):
            return []
        silent = self.failed if self.failure != REVIVE else set()
        got = {(one.client, one.id) for one in overlay.deliveries}
        return [
            (name, id_)
            for id_, (publisher, values) in overlay.published.items()
            for name in self.texts
            if self.wants(name, values)
            and overlay.home.get(name, "") in overlay.brokers.keys() - silent
            and publisher not in silent
            and (name, id_) not in got
        ]

    def unwanted(self) -> list[tuple[str, object]]:
        overlay = self.overlay
        return [
            (one.client, one.id)
            for one in overlay.deliveries
            if one.client in self.texts and not self.wants(one.client, one.values)
        ]

    def wants(self, name: str, values: dict[str, object]) -> bool:
        return any(parse(text).matches(values) for text in self.texts[name].split(" or "))
