"""Clients of a tree of brokers: they subscribe, publish at a steady rate, and take much back."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import trio
from attrs import define, field, frozen

from gossamer.node.local.client import LocalClient, open_client
from support.broker_processes import BrokerTree, read_numbers
from support.overlapping_interests import OFFER, Interest, Ledger

# Of each subscribers' client: a connection waits for the answer to one request before the next.
CONNECTIONS = 8
BATCH = 50  # publications in a request, where the rate does not matter
ACKNOWLEDGED = 16  # deliveries at a time
LOOK_S = 0.5  # between two looks at the brokers
ARRIVAL_S = 60.0  # without any delivery, after which no more are waited for
CARRIED = ("Advertisement", "Subscription", "Unsubscription", "Packed")


@frozen
class Look:
    """What all brokers say of themselves at about one time, by broker and metric."""

    at: float
    brokers: Mapping[str, Mapping[str, float]]

    def total(self, metric: str) -> float:
        return sum(numbers.get(metric, 0.0) for numbers in self.brokers.values())

    def by_kind(self, metric: str) -> Counter[str]:
        found: Counter[str] = Counter()
        for numbers in self.brokers.values():
            for name, number in numbers.items():
                if name.startswith(metric + "{"):
                    found[name.split('"')[1]] += int(number)
        return found

    @property
    def under_way(self) -> int:
        """Subscriptions and unsubscriptions that were sent and not taken yet."""
        sent, received = self.by_kind("sent_total"), self.by_kind("received_total")
        return sum(abs(sent[kind] - received[kind]) for kind in CARRIED)

    @property
    def longest_queue(self) -> int:
        queues = ("input_queue", "output_queue")
        return int(max(one[queue] for one in self.brokers.values() for queue in queues))


@define(eq=False)
class Clients:
    tree: BrokerTree
    ledger: Ledger
    lines: Mapping[str, Sequence[LocalClient]]
    publishers: Sequence[LocalClient]
    observers: Mapping[str, LocalClient]
    longest_queue: int = 0
    _publishing: trio.CancelScope = field(factory=trio.CancelScope)

    async def advertise(self) -> None:
        for client in self.publishers:
            await client.advertise("everything", OFFER)
        await self.until_quiet()

    async def subscribe(self, wanted: Iterable[Interest]) -> None:
        async def go_on(client: LocalClient, rest: Iterable[Interest]) -> None:
            for one in rest:
                await client.subscribe(one.label, one.expression)

        await self._at_homes(wanted, go_on)

    async def take_back(self, unwanted: Iterable[Interest]) -> None:
        async def go_on(client: LocalClient, rest: Iterable[Interest]) -> None:
            for one in rest:
                self.ledger.asked[one.label] = trio.current_time()
                await client.unsubscribe(one.label)
                self.ledger.answered[one.label] = trio.current_time()

        await self._at_homes(unwanted, go_on)

    async def _at_homes(
        self,
        interests: Iterable[Interest],
        work: Callable[[LocalClient, Iterable[Interest]], Awaitable[None]],
    ) -> None:
        by_host: dict[str, list[Interest]] = {host: [] for host in self.lines}
        for one in interests:
            by_host[self.ledger.homes[one.label]].append(one)
        async with trio.open_nursery() as nursery:
            for host, clients in self.lines.items():
                rest = iter(by_host[host])
                for client in clients:
                    nursery.start_soon(work, client, rest)

    async def publish_all(self, places: Sequence[tuple[int, int]]) -> None:
        for publisher, first in zip(
            itertools.cycle(self.publishers), range(0, len(places), BATCH), strict=False
        ):
            now = trio.current_time()
            batch = [self.ledger.publish(x, y, now) for x, y in places[first : first + BATCH]]
            await publisher.publish_many(batch)
        await self.until_delivered()
        self.ledger.settled = len(self.ledger.published)

    async def publish_steadily(
        self, places: Iterable[tuple[int, int]], rate: float, *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Publish so many a second, by turns and whatever becomes of them, until stopped."""
        begin = trio.current_time()
        task_status.started()
        async with trio.open_nursery() as answers:
            with self._publishing:
                for number, (x, y) in enumerate(places):
                    due = begin + number / rate
                    await trio.sleep_until(due)
                    publisher = self.publishers[number % len(self.publishers)]
                    answers.start_soon(publisher.publish, self.ledger.publish(x, y, due))

    def stop_publishing(self) -> None:
        self._publishing.cancel()

    async def until_delivered(self) -> None:
        """Wait until every due delivery was made, or none for long."""
        missing = self.ledger.missing()
        self.ledger.latest = trio.current_time()
        while missing and trio.current_time() < self.ledger.latest + ARRIVAL_S:
            await trio.sleep(LOOK_S)
            missing = self.ledger.missing()

    async def look(self) -> Look:
        """Ask all brokers for their numbers; raises `RuntimeError` if a broker or a link is
        down, and the numbers would never be even."""
        for name in self.tree.overlay.brokers:
            self.tree.check(name)
        found: dict[str, dict[str, float]] = {}

        async def ask(name: str, client: LocalClient) -> None:
            found[name] = await read_numbers(client)

        async with trio.open_nursery() as nursery:
            for name, client in self.observers.items():
                nursery.start_soon(ask, name, client)
        look = Look(trio.current_time(), found)
        self.longest_queue = max(self.longest_queue, look.longest_queue)
        return look

    async def watch(self) -> None:
        while True:
            await self.look()
            await trio.sleep(LOOK_S)

    async def until_quiet(self) -> float:
        """Wait until no broker has subscriptions to take, or to take back; returns when that was
        seen first."""
        expected = Counter(
            host for label, host in self.ledger.homes.items() if label not in self.ledger.asked
        )
        before, since = Counter[str](), math.inf
        while True:
            look = await self.look()
            taken = look.by_kind("received_total")
            carried = Counter({kind: taken[kind] for kind in CARRIED})
            held_back = any(
                look.brokers[host]["table_subscriptions"] > count
                for host, count in expected.items()
            )
            if look.under_way or held_back:
                since = math.inf
            elif since < math.inf and carried == before:
                return since
            else:
                since = look.at
            before = carried
            await trio.sleep(LOOK_S)


@asynccontextmanager
async def open_clients(tree: BrokerTree, ledger: Ledger) -> AsyncIterator[Clients]:
    async with trio.open_nursery() as nursery:
        async with AsyncExitStack() as stack:

            def opened(
                at: str, name: str | None = None, *, aside: bool = False
            ) -> Awaitable[LocalClient]:
                client = open_client(tree.address(at), name, aside=aside, patience_s=0)
                return stack.enter_async_context(client)

            lines = {}

            for host in tree.overlay.subscribers:
                await nursery.start(_take, tree, ledger, host)
                lines[host] = [
                    await opened(host, _name(host), aside=True) for _ in range(CONNECTIONS)
                ]
            publishers = [await opened(host, _name(host)) for host in tree.overlay.publishers]
            observers = {name: await opened(name) for name in tree.overlay.brokers}
            yield Clients(tree, ledger, lines, publishers, observers)
        nursery.cancel_scope.cancel()


def _name(host: str) -> str:
    return f"client of {host}"


async def _take(
    tree: BrokerTree, ledger: Ledger, host: str, *, task_status: trio.TaskStatus[None]
) -> None:
    async with open_client(tree.address(host), _name(host), patience_s=0) as client:
        task_status.started()
        for count in itertools.count(1):
            try:
                event = await client.events.receive()
            except anyio.EndOfStream:
                raise RuntimeError(f"broker {host} left its client: {client.farewell}") from None
            number = int(event.values["number"])
            ledger.deliver(host, number, event.subscriptions, trio.current_time())
            if count % ACKNOWLEDGED == 0:
                await client.acknowledge(event)
