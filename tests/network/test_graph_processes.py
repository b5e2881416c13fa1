"""Brokers of a graph as people run them: processes, TLS, clients that come and go, one killed.

There are three of them; as a campaign, twenty.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field

from gossamer.node.local.client import open_client
from support.broker_processes import POLL_S, GraphProcesses, Subscriber, graph_processes
from support.node_processes import PATIENCE_S, Shell

TOPICS = 3


@define(eq=False)
class Drift:
    """Publications about one topic after the other, each wanted by some of the brokers.

    Of each writer ``each`` in a row are about one topic; ``published`` has the topics by id.
    """

    brokers: GraphProcesses
    each: int
    published: dict[str, int] = field(factory=dict)
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
    async with trio.open_nursery() as nursery:
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
        nursery.cancel_scope.cancel()


async def until_trees_change(drift: Drift, writers: list[int]) -> None:
    with trio.move_on_after(PATIENCE_S):
        for topic in itertools.cycle(range(TOPICS)):
            if await drift.brokers.installed() > 1:
                return
            await stage(drift, writers, topic)
    raise AssertionError(f"no other trees after {len(drift.published)} publications")


async def stage(drift: Drift, writers: list[int], topic: int) -> None:
    """Two brokers publish at once about a topic."""
    async with trio.open_nursery() as nursery:
        for number in writers:
            nursery.start_soon(drift.publish, number, topic)
