"""Brokers of overlays with cycles as people run them: processes, TLS on, over loopback."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field

from gossamer.node.errors import NodeError
from gossamer.node.local.client import LocalClient, open_client
from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot
from support.broker_processes import (
    POLL_S,
    GraphProcesses,
    Link,
    ScotProcesses,
    Subscriber,
    graph_processes,
    scot_processes,
)
from support.node_processes import PATIENCE_S, Shell
from support.waiting import running

SMALL = Scot(Factor.path("ab"), Factor.complete(2))
EDGES = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")]
LARGE = Scot(Factor.of("abcde", EDGES), Factor.complete(3))
EACH = 20
"""Publications of each of two publishers; the failure comes after a third of them."""
AT_ONCE = 5
DYNAMIC = {"routing": "dynamic", "around_failures": "true"}


@define(eq=False)
class Listener:
    name: str
    got: set[str] = field(factory=set)

    async def listen(
        self,
        scot: ScotProcesses,
        at: BrokerLabel,
        *,
        subscribe: bool = False,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        async def take(client: LocalClient) -> None:
            if subscribe:
                await client.subscribe("all", "present(x)")
            task_status.started()
            async for event in client.events:
                self.got.add(event.id)
                with suppress(NodeError):
                    await client.acknowledge(event)

        await scot.with_client(at, self.name, take)


@define(eq=False)
class Burst:
    scot: ScotProcesses
    subscribers: dict[BrokerLabel, Listener]
    safe: list[str] = field(factory=list)
    refused: int = 0
    begun: int = 0
    fail: trio.Event = field(factory=trio.Event)

    async def publish(self, at: BrokerLabel) -> None:
        await self.scot.with_client(at, f"publisher-{at.region}{at.cluster}", self._publish_all)

    async def _publish_all(self, client: LocalClient) -> None:
        for first in range(0, EACH, AT_ONCE):
            async with trio.open_nursery() as nursery:
                for n in range(first, first + AT_ONCE):
                    nursery.start_soon(self._publish_one, client, n)
            self.begun += AT_ONCE
            if self.begun >= 2 * EACH // 3:
                self.fail.set()

    async def _publish_one(self, client: LocalClient, n: int) -> None:
        try:
            self.safe.append(await client.publish({"x": n}))
        except NodeError:
            self.refused += 1

    async def run(self, failure: BrokerLabel | Link) -> None:
        alive = [one for one in self.scot.scot.brokers if one != failure]
        async with trio.open_nursery() as nursery:
            for at in (alive[0], alive[-1]):
                nursery.start_soon(self.publish, at)
            await self.fail.wait()
            if isinstance(failure, BrokerLabel):
                await trio.to_thread.run_sync(self.scot.kill, failure)
            else:
                self.scot.relays[failure[1], failure[0]].break_now()

    async def arrived(self) -> None:
        with trio.fail_after(PATIENCE_S):
            for one in self.subscribers.values():
                while not one.got.issuperset(self.safe):
                    await trio.sleep(POLL_S)


async def try_one(
    scot: ScotProcesses,
    subscribers: dict[BrokerLabel, Listener],
    failure: BrokerLabel | Link,
    *,
    mends: bool,
) -> None:
    """Let one thing fail, and see what arrives; where others follow, mend it."""
    burst = Burst(scot, subscribers)
    await burst.run(failure)
    print(f"{failure}: {len(burst.safe)} acknowledged, {burst.refused} refused")
    assert burst.refused == 0
    async with trio.open_nursery() as nursery:
        if isinstance(failure, BrokerLabel):
            stand_in = failure._replace(cluster=(failure.cluster + 1) % len(scot.scot.clusters))
            nursery.start_soon(subscribers[failure].listen, scot, stand_in)
        await burst.arrived()
        if not mends:
            nursery.cancel_scope.cancel()
        elif isinstance(failure, BrokerLabel):
            scot.begin(failure)
            await scot.ready(failure)
        else:
            scot.relays[failure[1], failure[0]].cut = False
        await scot.settle()
        # The broker that stood in lets the client go now, which ends its connection.


@pytest.mark.parametrize(
    ("overlay", "failures"),
    [
        (SMALL, [BrokerLabel("b", 1)]),
        pytest.param(LARGE, [*LARGE.brokers, *LARGE.links()], marks=pytest.mark.campaign),
    ],
    ids=["a broker of four", "any broker or link of fifteen"],
)
@pytest.mark.trio
async def test_nothing_acknowledged_is_lost_with_any_broker_or_link(
    tmp_path: Path, overlay: Scot, failures: list[BrokerLabel | Link]
) -> None:
    async with scot_processes(Shell(tmp_path), overlay, **DYNAMIC, take_over="true") as scot:
        subscribers = {at: Listener(f"client-{at.region}{at.cluster}") for at in overlay.brokers}
        async with running() as nursery:
            for at, one in subscribers.items():
                await nursery.start(partial(one.listen, scot, at, subscribe=True))
            for failure in failures:
                await try_one(scot, subscribers, failure, mends=len(failures) > 1)
                if isinstance(failure, BrokerLabel):
                    nursery.start_soon(subscribers[failure].listen, scot, failure)


TOPICS = 3


@define(eq=False)
class Drift:
    brokers: GraphProcesses
    each: int  # of a writer, in a row about one topic
    published: dict[str, int] = field(factory=dict)  # topics by id
    subscribers: dict[int, Subscriber] = field(factory=dict)

    def topics(self, number: int) -> set[int]:
        """What the subscriber at a broker wants: one topic, and one in three all of them."""
        return set(range(TOPICS)) if number % 3 == 0 else {number % TOPICS}

    async def open(self, nursery: trio.Nursery) -> None:
        for number in sorted(self.brokers.running):
            filters = {f"topic {one}": f"topic == {one}" for one in self.topics(number)}
            subscriber = self.subscribers[number] = Subscriber(f"reader {number}", filters)
            await nursery.start(subscriber.run, self.brokers.address(number))
        await self.brokers.until_all(self._is_ready)

    async def publish(self, number: int, topic: int) -> None:
        async with open_client(self.brokers.address(number), f"writer {number}") as client:
            for _ in range(self.each):
                self.published[await client.publish({"topic": topic})] = topic
                await trio.sleep(0.02)

    def wanted(self, number: int) -> set[str]:
        return {id_ for id_, topic in self.published.items() if topic in self.topics(number)}

    async def all_arrived(self) -> None:
        with trio.fail_after(PATIENCE_S):
            for number, subscriber in self.subscribers.items():
                while not self.wanted(number) <= set(subscriber.ids):
                    await trio.sleep(POLL_S)

    def _is_ready(self, told: Mapping[str, Any]) -> bool:
        known = told["sizes"]["brokers"] == len(self.brokers.running) == len(told["reachable"])
        grouped = [row["tree"] for row in told["subscriptions"]]
        return known and len(grouped) == len(self.subscribers) and None not in grouped


@pytest.mark.parametrize(
    ("count", "interval_s", "each"),
    [(3, 0.3, 15), pytest.param(20, 1.0, 120, marks=pytest.mark.campaign)],
)
def test_nothing_is_lost_or_doubled_while_trees_change_and_the_coordinator_dies(
    tmp_path: Path, count: int, interval_s: float, each: int
) -> None:
    with graph_processes(Shell(tmp_path), count, interval_s) as brokers:
        trio.run(drift_with_a_death, brokers, each)


async def drift_with_a_death(brokers: GraphProcesses, each: int) -> None:
    await brokers.learn_keys()
    drift = Drift(brokers, each)
    async with running() as nursery:
        await drift.open(nursery)
        first = await brokers.coordinator()
        assert first is not None
        writers = [number for number in sorted(brokers.running) if number != first][:2]
        await stage(drift, writers, 0)

        brokers.kill(first)
        await stage(drift, writers, 1)
        with trio.fail_after(PATIENCE_S):
            while await brokers.coordinator() in (None, first):
                await trio.sleep(POLL_S)
        await stage(drift, writers, 2)

        brokers.start(first)
        await until_trees_change(drift, writers)
        await drift.all_arrived()
        for number, subscriber in drift.subscribers.items():
            assert sorted(subscriber.ids) == sorted(drift.wanted(number))
        await brokers.until_all(lambda told: told["sizes"]["versions"] <= 2)


async def until_trees_change(drift: Drift, writers: list[int]) -> None:
    with trio.move_on_after(PATIENCE_S):
        for topic in itertools.cycle(range(TOPICS)):
            if await drift.brokers.installed() > 1:
                return
            await stage(drift, writers, topic)
    raise AssertionError(f"no other trees after {len(drift.published)} publications")


async def stage(drift: Drift, writers: list[int], topic: int) -> None:
    async with trio.open_nursery() as nursery:
        for number in writers:
            nursery.start_soon(drift.publish, number, topic)
