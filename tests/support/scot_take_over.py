"""SCOT brokers that take over each other's clients: any of them dies, any link breaks, at any step.

Links are first in, first out. What a dead broker had sent still arrives up to a drawn message; what
was on its way to it is gone. Neighbours hear of it when the last that arrives has arrived.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable

from attrs import define, field

from gossamer.protocol.brokers.core import effects as e
from gossamer.protocol.brokers.core import messages
from gossamer.protocol.brokers.core.messages import Hop, Id, client
from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot, ScotBroker, ScotSettings
from gossamer.protocol.brokers.scot import messages as m
from gossamer.protocol.content.filters import Filter, covers, parse
from support.broker_overlay import BrokerNetwork
from support.plain_index import PlainIndex
from support.scot_overlay import new_broker, random_tree

TEXTS = ("present(x)", "x > 5", "x < 3")
"""What subscribers ask for."""

Queued = m.BetweenBrokers | messages.NeighbourDown | m.NeighbourUp


@define(eq=False)
class Published:
    """A publication: what it is called, whether it was acknowledged, and as safe, and the
    clients that want it and whose subscription was safe when it was published."""

    broker: str
    id: Id
    values: dict[str, object]
    due: frozenset[str] = frozenset()
    safe: bool | None = None


@define(eq=False)
class Subscriber:
    """A client that asks for something, and whether that was acknowledged as safe."""

    name: str
    wanted: Filter
    at: list[str]  # the brokers that it was attached at, the last one last
    # Notifications that it has not taken, by broker.
    waiting: dict[str, list[Id]] = field(factory=dict)
    # How often it got each notification, by broker.
    got: Counter[tuple[str, Id]] = field(factory=Counter)
    safe: bool | None = None

    @property
    def ids(self) -> set[Id]:
        return {id_ for _, id_ in self.got}


class TakeOverPlay(BrokerNetwork[ScotBroker]):
    """All brokers of a SCOT, named by their labels.

    Attributes:
        broken: directions of links over which nothing goes.
        covers: whether brokers keep subscriptions back that others cover, or did.
    """

    def __init__(
        self,
        draw: random.Random,
        *,
        scot: Scot | None = None,
        clusters: int = 0,
        backups: int = 0,
        covering: bool = False,
        settings: ScotSettings | None = None,
    ) -> None:
        super().__init__(draw)
        count = clusters or draw.randrange(2, 5)
        drawn = Scot(random_tree(draw.randrange(2, 6), draw), Factor.complete(count))
        self.scot = scot or drawn
        self.settings = settings or ScotSettings(
            routing=draw.choice(["static", "dynamic"]),
            spare_links=draw.random() < 0.5,
            around_failures=True,
            take_over=True,
            backups=backups or draw.choice([1, 2]),
            covering=covering,
        )
        self.covers = self.settings.covering
        self.brokers |= {str(label): self._new(str(label)) for label in self.scot.brokers}
        self.subscribers: dict[str, Subscriber] = {}
        self.published: list[Published] = []
        self.dead: dict[str, dict[str, object]] = {}
        self.broken: set[tuple[str, str]] = set()
        self._tickets: dict[tuple[str, int], Published | Subscriber] = {}
        for near, far in self.scot.links():
            self.queues |= {(str(near), str(far)): deque(), (str(far), str(near)): deque()}
        for one, other in self.queues:
            self.tell(one, None, self._up(other))

    # What clients do

    def subscribe(self, name: str, broker: str, text: str) -> Subscriber:
        made = self.subscribers[name] = Subscriber(name, parse(text), [broker])
        self.tell(broker, name, messages.Attach())
        self._note(broker, self.tell(broker, name, messages.Subscribe("s", made.wanted)), made)
        return made

    def unsubscribe(self, one: Subscriber) -> None:
        self.tell(one.at[-1], one.name, messages.Unsubscribe("s"))
        del self.subscribers[one.name]

    def publish(self, broker: str, **values: object) -> Published:
        if not any(one.name == "publisher" for one in self.brokers[broker].clients()):
            self.tell(broker, "publisher", messages.Attach())
        asked = self.subscribers.values()
        due = frozenset(one.name for one in asked if one.safe and one.wanted.matches(values))
        made = Published(broker, self.brokers[broker].next_id, values, due)
        self.published.append(made)
        self._note(broker, self.tell(broker, "publisher", messages.Publish(values)), made)
        return made

    def take(self, one: Subscriber) -> None:
        waiting = one.waiting.get(one.at[-1], [])
        if one.at[-1] not in self.dead and waiting:
            count = self.draw.randrange(1, len(waiting) + 1)
            taken = tuple(waiting[:count])
            del waiting[:count]
            self.tell(one.at[-1], one.name, messages.ClientAcknowledge(taken))

    def move(self, one: Subscriber, broker: str) -> None:
        """Let a client whose broker is dead come to another, which may not know that yet."""
        effects = self.brokers[broker].handle(0, client(one.name), messages.Attach())
        if not any(isinstance(effect, e.Refuse) for effect in effects):
            one.at.append(broker)
            for effect in effects:
                self.carry_out(broker, effect)

    def subscribe_some(self, count: int) -> None:
        self.settle()
        for number in range(count):
            broker = self.draw.choice(sorted(self.brokers))
            self.subscribe(f"S{number}", broker, self.draw.choice(TEXTS))
        self.settle()

    def publish_some(self, count: int) -> None:
        for _ in range(count):
            self.publish(self.draw.choice(self.alive), x=self.draw.randrange(10))
            self.step_some()
            if self.draw.random() < 0.3:
                self.take(self.subscribers[self.draw.choice(sorted(self.subscribers))])

    def publish_and_settle(self, count: int) -> None:
        self.publish_some(count)
        self.settle()

    def come_and_go(self, count: int, but: str = "") -> None:
        """Clients of living brokers but one subscribe and unsubscribe, while things happen."""
        for _ in range(count):
            alive = [name for name in self.alive if name != but]
            here = [one for one in self.subscribers.values() if one.at[-1] in alive]
            if here and self.draw.random() < 0.4:
                self.unsubscribe(self.draw.choice(here))
            else:
                name, broker = f"C{self.draw.getrandbits(40)}", self.draw.choice(alive)
                self.subscribe(name, broker, self.draw.choice(TEXTS))
            self.step_some()

    def move_clients_of_the_dead(self) -> None:
        """Clients go to the first backup of their broker that lives."""
        for one in self.subscribers.values():
            if one.at[-1] in self.dead:
                label, count = BrokerLabel.parse(one.at[-1]), len(self.scot.clusters)
                clusters = ((label.cluster + i) % count for i in range(1, count))
                others = [str(label._replace(cluster=cluster)) for cluster in clusters]
                self.move(one, next(other for other in others if other not in self.dead))

    def _note(self, broker: str, effects: list[e.Effect], what: Published | Subscriber) -> None:
        (ticket,) = (effect.ticket for effect in effects if isinstance(effect, e.Awaits))
        self._tickets[broker, ticket] = what
        for effect in effects:
            if isinstance(effect, e.Settled) and effect.ticket == ticket:
                what.safe = effect.safe

    # What happens to brokers and links

    def kill(self, broker: str) -> set[tuple[str, Id]]:
        self.dead[broker] = self.brokers[broker].dump()
        for one in self.subscribers.values():
            for id_ in one.waiting.get(broker, ()):
                del one.got[broker, id_]
        for other in self._around(broker):
            self._break(broker, other)
            self.queues[other, broker].clear()
            self.broken.add((other, broker))
        subscribers = self.subscribers.values()
        return {(one.name, id_) for one in subscribers for at, id_ in one.got if at == broker}

    def cut(self, one: str, other: str) -> None:
        self._break(one, other)
        self._break(other, one)

    def _break(self, one: str, other: str) -> None:
        queue = self.queues[one, other]
        arrives = self.draw.choice([0, self.draw.randrange(len(queue) + 1), len(queue)])
        while len(queue) > arrives:
            queue.pop()
        queue.append(messages.NeighbourDown(one))
        self.broken.add((one, other))

    def mend(self, one: str, other: str) -> None:
        first, then = self.draw.sample((one, other), 2)
        self.broken -= {(one, other), (other, one)}
        self.tell(first, None, self._up(then))
        if self.draw.random() < 0.5:
            self.tell(then, None, self._up(first))
        else:
            self.queues[first, then].appendleft(self._up(first))

    def _new(self, broker: str, incarnation: int = 0) -> ScotBroker:
        label = BrokerLabel.parse(broker)
        return new_broker(label, self.scot, self.settings, incarnation=incarnation, mixed=True)

    def _up(self, broker: str) -> m.NeighbourUp:
        made = self.brokers[broker]
        return m.NeighbourAnnounced(broker, made.position.label, True, made.settings.take_over)

    def revive(
        self, broker: str, *, memory: bool, meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        """Start a dead broker again, with what it remembered when it died or with nothing. Its
        links come up one by one, and `meanwhile` happens before the first and after each."""
        position, dump = self.brokers[broker].position, self.dead.pop(broker)
        if memory:
            made = ScotBroker.load(dump, position, self.settings, new_index=PlainIndex, mixed=True)
            assert made.dump() == dump or made.settings != self.brokers[broker].settings
            for one in self.subscribers.values():
                one.got.update((broker, id_) for id_ in one.waiting.get(broker, ()))
        else:
            for one in self.subscribers.values():
                one.waiting.pop(broker, None)
            made = self._new(broker, incarnation=1)
        self.brokers[broker] = made
        self.tell(broker, None, messages.Restarted())
        meanwhile()
        for other in self.draw.sample(self._around(broker), len(self._around(broker))):
            self.mend(broker, other)
            for _ in range(self.draw.randrange(5)):
                self.step()
            meanwhile()

    def congest(self) -> None:
        for one, other in self.queues:
            if one not in self.dead:
                length = self.draw.choice([0, 50])
                told = self.settings.input_queues
                waiting = m.InputQueue(self.draw.choice([0, 50]), 5, 5) if told else None
                self.tell(one, None, m.WindowEnded((m.QueueReport(other, length, 5, 5),), waiting))

    def _around(self, broker: str) -> list[str]:
        return [other for one, other in self.queues if one == broker]

    # How it goes on

    def step(self) -> bool:
        """Let one thing happen; returns whether anything was left to happen."""
        busy = [ends for ends, queue in self.queues.items() if queue and ends[1] not in self.dead]
        if not busy:
            return False
        one, other = self.draw.choice(busy)
        message = self.queues[one, other].popleft()
        by_host = isinstance(message, messages.NeighbourDown | m.NeighbourUp)
        self.tell(other, None if by_host else one, message)
        return True

    def step_some(self, most: int = 12) -> None:
        for _ in range(self.draw.randrange(most)):
            self.step()

    def notice(self) -> None:
        down = messages.NeighbourDown
        while any(isinstance(one, down) for queue in self.queues.values() for one in queue):
            self.step()

    def send(self, one: str, other: str, message: Queued) -> None:
        if (one, other) not in self.broken:
            super().send(one, other, message)

    def carry_out(self, broker: str, effect: e.Effect) -> None:
        super().carry_out(broker, effect)
        match effect:
            case e.Deliver(to, notification):
                if to in self.subscribers:
                    one = self.subscribers[to]
                    one.got[broker, notification.id] += 1
                    one.waiting.setdefault(broker, []).append(notification.id)
            case e.Withdrawn(to, ids):
                one = self.subscribers[to]
                one.waiting[broker] = [i for i in one.waiting.get(broker, []) if i not in ids]
                for id_ in ids:
                    one.got.pop((broker, id_), None)
            case e.Dismissed(to):
                one = self.subscribers[to]
                one.at.append(one.at[0])
                for id_ in one.waiting.pop(broker, ()):
                    del one.got[broker, id_]
            case e.Settled(ticket, safe):
                what = self._tickets.get((broker, ticket))
                if what is not None:
                    what.safe = safe

    # What is to hold

    def victim(self) -> str:
        homes = [one.at[-1] for one in self.subscribers.values()]
        some = homes if homes and self.draw.random() < 0.7 else sorted(self.brokers)
        return self.draw.choice(some)

    @property
    def alive(self) -> list[str]:
        return sorted(self.brokers.keys() - self.dead.keys())

    def tables(self) -> dict[str, object]:
        return {name: one.table() for name, one in self.brokers.items() if name not in self.dead}

    def check_tables(self) -> None:
        """Every broker knows every subscription, from where it would come without failures; with
        covering it may know another in its place, from the same direction."""
        tables = {name: broker.table() for name, broker in self.brokers.items()}
        wanted = {one.id: one for table in tables.values() for one in table if one.hop.is_client}
        asked = Counter(one.at[0] for one in self.subscribers.values())
        assert Counter(id_.broker for id_ in wanted) == asked
        for name, table in tables.items():
            for entry in table:
                assert self._comes_from(name, entry.hop, entry.id), f"{entry} at {name}"
            known = {entry.id for entry in table}
            assert known <= wanted.keys(), f"{name} knows {known - wanted.keys()} still"
            for id_ in wanted.keys() - known:
                assert self.covers, f"{name} misses {id_}"
                assert any(
                    self._comes_from(name, other.hop, id_)
                    and covers(other.filter, wanted[id_].filter)
                    for other in table
                ), f"{name} misses {id_}, which nothing covers"

    def _comes_from(self, name: str, hop: Hop, id_: Id) -> bool:
        """Whether a subscription comes to a broker from there, while nothing fails."""
        here = BrokerLabel.parse(name)
        host = BrokerLabel.parse(id_.broker)
        if host == here or hop.is_client:
            return host == here and hop.is_client
        if host.cluster != here.cluster:
            return hop.name == str(host._replace(region=here.region))
        before = BrokerLabel.parse(hop.name)
        near, far = self.scot.distance(before, host), self.scot.distance(here, host)
        return before.cluster == host.cluster and near < far

    def check_due(self) -> None:
        for made in self.published:
            for name in made.due & self.subscribers.keys() if made.safe else ():
                assert made.id in self.subscribers[name].ids, f"{name} misses {made}"

    def check_once(self, since: list[Published], taken: set[tuple[str, Id]]) -> None:
        """Nobody got anything twice from one broker, but what was taken there just before it
        died; nor at all what was published lately."""
        for one in self.subscribers.values():
            for (at, id_), count in one.got.items():
                assert count == 1 or (one.name, id_) in taken, f"{one.name} got {id_} twice at {at}"
            often = Counter(id_ for _, id_ in one.got)
            for made in since:
                assert often[made.id] <= 1, f"{one.name} got {made} from two brokers"

    def check_arrived(self) -> None:
        assert self.refusals == []
        for one in self.subscribers.values():
            safe = (made for made in self.published if made.safe)
            due = {made.id for made in safe if one.wanted.matches(made.values)}
            assert due <= one.ids, f"{one.name} at {one.at} misses {sorted(due - one.ids)}"
            assert max(one.got.values(), default=1) == 1, f"{one.name} got something twice"

    def check(self) -> None:
        self.check_arrived()
        for made in self.published:
            if made.broker not in self.dead:
                assert made.safe, f"{made} is not safe"
        for name in self.alive:
            memory = self.brokers[name].take_over_memory
            assert memory is not None
            assert not memory.copies

    def check_empty(self) -> None:
        for one in list(self.subscribers.values()):
            self.unsubscribe(one)
        self.settle()
        assert not any(self.tables().values())
