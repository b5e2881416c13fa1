"""What applications of all kinds do in a campaign of faults, and the accounts of what they got."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, Protocol, TypeVar

import anyio
import attrs
import trio

from gossamer.client.errors import (
    NodeError,
    NoReplyError,
    PublicationUncertainError,
    UnacknowledgedError,
)
from gossamer.client.link import LocalAddress
from gossamer.client.results import LastMark, Payload, ReceivedEvent
from gossamer.node.local.client import open_client

SYMBOLS = ["HPQ", "IBM", "SAP", "XYZ"]
# Requests are the events from this price on.
REQUESTS_FROM = 900
GROUP = 'symbol in ["IBM", "SAP"] and price < 900'
ALL = f"price < {REQUESTS_FROM}"
# Longer than any node is away.
FOREVER_S = 1e6
REQUEST_S = 30.0
# From when on what a worker has acknowledged is known to others, and after how long a peer that was
# away or cut off counts as one of the group again.
TOLD_S, REJOINED_S = 3.0, 30.0


class Nodes(Protocol):
    """Nodes that applications use, by their peers' keys."""

    @property
    def members(self) -> Collection[int]:
        """Keys of all, those that are away included."""

    def address(self, key: int) -> LocalAddress:
        """Where the applications of a node find it."""


NodesT = TypeVar("NodesT", bound=Nodes)


@attrs.frozen
class Published:
    price: int
    symbol: str
    publisher: str  # key of the peer that published it, as text
    at: float  # when it was acknowledged, of trio's clock
    is_last: bool  # whether it is kept as the last value of its symbol

    @property
    def is_of_group(self) -> bool:
        return self.symbol in ("IBM", "SAP")


@attrs.frozen
class Dealing:
    at: int  # key of the worker's peer
    # got, done: when, of trio's clock.
    got: float
    done: float


@attrs.define
class Fault:
    key: int
    # began, ended: of trio's clock; infinite while it lasts.
    began: float
    ended: float = float("inf")


@attrs.define(eq=False)
class Reader:
    """An application that takes all events but requests."""

    key: int
    name: str = ""
    ordered: bool = False
    got: list[ReceivedEvent] = attrs.field(factory=list)
    ids: set[str] = attrs.field(factory=set)

    @property
    def label(self) -> str:
        return f"{self.name or 'unnamed'}{' in order' if self.ordered else ''}"

    async def run(self, crowd: Nodes, *, task_status: trio.TaskStatus[None]) -> None:
        opened = open_client(
            crowd.address(self.key), self.name or None, ordered=self.ordered, patience_s=FOREVER_S
        )
        async with opened as client:
            await client.subscribe("all", ALL)
            task_status.started()
            async for event in client.events:
                self.got.append(event)
                self.ids.add(event.id)
                if self.name and self.ordered:
                    await client.settle(event)
                elif self.name:
                    await client.acknowledge(event)

    def repeated(self) -> list[str]:
        return [event for event, times in Counter(one.id for one in self.got).items() if times > 1]

    def out_of_order(self) -> list[str]:
        """What came after a later event of its publisher without being called late."""
        found, newest = [], dict[str, float]()
        for event in self.got:
            if event.late:
                continue
            if event.published_at <= newest.get(event.publisher, 0.0):
                found.append(event.id)
            newest[event.publisher] = max(event.published_at, newest.get(event.publisher, 0.0))
        return found


@attrs.define(eq=False)
class Asked:
    price: int
    began: float
    repliers: list[str] | None = None  # keys of the peers whose replies came, as text


@attrs.define(eq=False)
class Campaign(Generic[NodesT]):
    crowd: NodesT
    draws: random.Random
    published: dict[str, Published] = attrs.field(factory=dict)  # by id, what was acknowledged
    unknown: int = 0  # how many events were not acknowledged, or nobody knows
    readers: list[Reader] = attrs.field(factory=list)
    dealt: dict[str, list[Dealing]] = attrs.field(factory=dict)  # by event, what workers did
    # By the key of a replier's peer, how often it got the request of each price.
    taken: dict[int, Counter[float]] = attrs.field(factory=dict)
    asked: list[Asked] = attrs.field(factory=list)  # the requests whose time is over
    faults: list[Fault] = attrs.field(factory=list)
    quit: int = 0
    request_s: float = REQUEST_S
    stopping: bool = False
    _due: tuple[float, set[str], set[str]] = (-math.inf, set(), set())
    _missed: tuple[str, str] = ("", "")

    # Applications

    async def publish(self, key: int, pause_s: float) -> None:
        draws = random.Random(self.draws.random())
        async with open_client(self.crowd.address(key), patience_s=FOREVER_S) as client:
            while not self.stopping:
                price, symbol = draws.randrange(REQUESTS_FROM), draws.choice(SYMBOLS)
                is_last = draws.random() < 0.2
                mark = LastMark("symbol") if is_last else None
                try:
                    event = await client.publish({"price": price, "symbol": symbol}, last=mark)
                except (UnacknowledgedError, PublicationUncertainError):
                    self.unknown += 1
                else:
                    at = trio.current_time()
                    self.published[event] = Published(price, symbol, client.peer, at, is_last)
                await trio.sleep(draws.uniform(0, 2 * pause_s))

    async def work(self, key: int, *, task_status: trio.TaskStatus[None]) -> None:
        draws = random.Random(self.draws.random())
        async with open_client(self.crowd.address(key), patience_s=FOREVER_S) as client:
            await client.join("work", GROUP, "workers")
            task_status.started()
            async for event in client.events:
                got = trio.current_time()
                await trio.sleep(draws.uniform(0, 0.3))
                dealings = self.dealt.setdefault(event.id, [])
                dealings.append(Dealing(key, got, trio.current_time()))
                await client.settle(event)

    async def quit_work(self, keys: list[int]) -> None:
        """Now and then a worker takes an event and leaves without a word about it."""
        draws = random.Random(self.draws.random())
        while not self.stopping:
            await trio.sleep(draws.uniform(2, 20))
            with suppress(NodeError, anyio.EndOfStream), trio.move_on_after(10):
                address = self.crowd.address(draws.choice(keys))
                async with open_client(address, patience_s=0) as client:
                    await client.join("work", GROUP, "workers")
                    await client.events.receive()
                    self.quit += 1

    async def reply(self, key: int, *, task_status: trio.TaskStatus[None]) -> None:
        taken = self.taken.setdefault(key, Counter())
        address = self.crowd.address(key)
        async with open_client(address, f"replier {key}", patience_s=FOREVER_S) as client:
            await client.subscribe("requests", f"price >= {REQUESTS_FROM}")
            task_status.started()
            async for event in client.events:
                price = float(event.values["price"])
                taken[price] += 1
                with suppress(NodeError):  # nobody waits any more, or the node goes down
                    await client.reply(event.request, Payload(str(price).encode()))
                await client.acknowledge(event)

    async def request(self, key: int) -> None:
        """Request until `stopping`, waiting for more replies than can come."""
        async with open_client(self.crowd.address(key), patience_s=FOREVER_S) as client:
            for number in itertools.count():
                if self.stopping:
                    return
                price = REQUESTS_FROM + number % 100
                asked = Asked(price, trio.current_time())
                try:
                    replies = await client.request(
                        {"price": price, "symbol": "IBM"},
                        timeout_s=self.request_s,
                        replies=len(self.taken) + 1,
                    )
                    assert {one.payload.data for one in replies} == {str(float(price)).encode()}
                    asked.repliers = [one.replier for one in replies]
                except NoReplyError:
                    asked.repliers = []
                except (UnacknowledgedError, PublicationUncertainError):
                    pass
                self.asked.append(asked)

    async def begin(
        self,
        nursery: trio.Nursery,
        readers: list[Reader],
        workers: Iterable[int],
        repliers: Iterable[int],
    ) -> None:
        self.readers = readers
        for reader in readers:
            await nursery.start(reader.run, self.crowd)
        for key in workers:
            await nursery.start(self.work, key)
        for key in repliers:
            await nursery.start(self.reply, key)

    @contextmanager
    def failing(self, *keys: int) -> Iterator[None]:
        faults = [Fault(key, trio.current_time()) for key in keys]
        self.faults += faults
        yield
        for one in faults:
            one.ended = trio.current_time()

    # Accounts

    def check(self, title: object = "") -> None:
        """What holds whatever has failed: once, in order, each by one, from whom it says."""
        for reader in self.readers:
            assert reader.repeated() == [], f"{title}: {reader.label} got some twice"
            late = reader.out_of_order() if reader.ordered else []
            assert late == [], f"{title}: {reader.label} got some out of order"
        assert self.dealt_twice() == {}, str(title)
        assert self.forged_names() == []

    def missing(self, before: float) -> dict[str, set[str]]:
        """By reader, or the group, what was acknowledged until then and has not come."""
        due, of_group = self._due_until(before)
        lacking = {one.label: due - one.ids for one in self.readers}
        lacking["workers"] = of_group - self.dealt.keys()
        return {name: events for name, events in lacking.items() if events}

    def is_missing_some(self, before: float) -> bool:
        name, event = self._missed
        reader = next((one for one in self.readers if one.label == name), None)
        if reader is not None and event not in reader.ids and event in self._due_until(before)[0]:
            return True  # what had not come has still not
        lacking = self.missing(before)
        if lacking:
            name = next(iter(lacking))
            self._missed = name, next(iter(lacking[name]))
        return bool(lacking)

    def _due_until(self, before: float) -> tuple[set[str], set[str]]:
        """What was acknowledged until then, and what of that is the group's."""
        if before == self._due[0]:
            return self._due[1:]
        due = {event for event, one in self.published.items() if one.at <= before}
        of_group = {event for event in due if self.published[event].is_of_group}
        if before < trio.current_time():
            # Nothing is acknowledged in the past: who asks again gets the same.
            self._due = before, due, of_group
        return due, of_group

    def is_quiet(self, keys: Iterable[int], begins: float, ends: float) -> bool:
        chosen = set(keys)
        return not any(
            one.key in chosen and one.began <= ends and begins <= one.ended + REJOINED_S
            for one in self.faults
        )

    def dealt_twice(self) -> dict[str, list[Dealing]]:
        """What was dealt with more than once, and not because a worker's peer failed."""
        found = {}
        for event, dealings in self.dealt.items():
            good = [one for one in dealings if self.is_quiet([one.at], one.got, one.done + TOLD_S)]
            if len(good) > 1:
                found[event] = dealings
        return found

    def wrong_replies(self) -> list[Asked]:
        """Requests that somebody replied to twice, or not though nothing was in its way."""
        expected = sorted(f"{key:016x}" for key in self.taken)
        return [
            one
            for one in self.asked
            if one.repliers is not None
            and (
                len(set(one.repliers)) < len(one.repliers)
                or (
                    self.is_quiet(self.crowd.members, one.began, one.began + self.request_s)
                    and sorted(one.repliers) != expected
                )
            )
        ]

    def forged_names(self) -> list[str]:
        return [
            event.id
            for reader in self.readers
            for event in reader.got
            if event.id in self.published and self.published[event.id].publisher != event.publisher
        ]

    def outdated(self, values: dict[str, str]) -> dict[str, str]:
        """Of the last values by symbol, given by their ids, those that are not the newest."""
        times = {event.id: event.published_at for one in self.readers for event in one.got}
        found = {}
        for event, one in self.published.items():
            if one.is_last and times[event] > times.get(values.get(one.symbol, ""), 0.0):
                found[one.symbol] = event
        return found

    def summary(self) -> str:
        again = sum(len(dealings) - 1 for dealings in self.dealt.values())
        late = sum(event.late for one in self.readers for event in one.got)
        return (
            f"{len(self.published)} events acknowledged, {self.unknown} not; "
            f"{len(self.dealt)} dealt with by workers, {again} of them again; "
            f"{self.quit} workers quit; {len(self.asked)} requests; {late} events late; "
            f"{len(self.faults)} failures of peers"
        )
