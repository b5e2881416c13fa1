"""Brokers of a graph as people run them: processes, TLS, clients that come and go, one killed.

There are few of them here; GOSSAMER_GRAPH_BROKERS=20 runs as many as that.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, field

from gossamer.node.local.client import open_client
from support.checkout import ROOT
from support.graph_processes import POLL_S, GraphProcesses, Subscriber, graph_processes
from support.node_processes import PATIENCE_S, Shell, end, free_ports

pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "examples/trees/node"
BROKERS = int(os.environ.get("GOSSAMER_GRAPH_BROKERS", "4"))
TOPICS = 3
A_STAGE = 2.5
"""Seconds for which publications are about one topic: longer than from one plan to the next."""


@define(eq=False)
class Drift:
    """Publications about one topic after the other, each wanted by some of the brokers.

    Attributes:
        published: by id, the topic.
        subscribers: by broker.
    """

    brokers: GraphProcesses
    published: dict[str, int] = field(factory=dict)
    subscribers: dict[int, Subscriber] = field(factory=dict)

    def topics(self, number: int) -> set[int]:
        """What the subscriber at a broker wants: one topic, and one in three all of them."""
        return set(range(TOPICS)) if number % 3 == 0 else {number % TOPICS}

    async def open(self, nursery: trio.Nursery) -> None:
        """Let clients subscribe at all brokers, and wait until all brokers know where to."""
        for number in sorted(self.brokers.running):
            filters = {f"topic {one}": f"topic == {one}" for one in self.topics(number)}
            subscriber = self.subscribers[number] = Subscriber(f"reader {number}", filters)
            await nursery.start(subscriber.run, self.brokers.address(number))
        await self.brokers.until_all(self._is_ready)

    async def publish(self, number: int, topic: int) -> None:
        """Publish about a topic at a broker for some time."""
        async with open_client(self.brokers.address(number), f"writer {number}") as client:
            until = trio.current_time() + A_STAGE
            while trio.current_time() < until:
                self.published[await client.publish({"topic": topic})] = topic
                await trio.sleep(0.02)

    def wanted(self, number: int) -> set[str]:
        """The publications that a broker's subscriber is to get."""
        return {id_ for id_, topic in self.published.items() if topic in self.topics(number)}

    async def all_arrived(self) -> None:
        """Wait until every subscriber has everything."""
        with trio.fail_after(PATIENCE_S):
            for number, subscriber in self.subscribers.items():
                while not self.wanted(number) <= set(subscriber.ids):
                    await trio.sleep(POLL_S)

    def _is_ready(self, told: Mapping[str, Any]) -> bool:
        known = told["sizes"]["brokers"] == len(self.brokers.running) == len(told["reachable"])
        grouped = [row["tree"] for row in told["subscriptions"]]
        return known and len(grouped) == len(self.subscribers) and None not in grouped


def test_nothing_is_lost_or_doubled_while_trees_change_and_the_coordinator_dies(
    tmp_path: Path,
) -> None:
    with graph_processes(Shell(tmp_path), BROKERS) as brokers:
        trio.run(drift_with_a_death, brokers)


async def drift_with_a_death(brokers: GraphProcesses) -> None:
    await brokers.learn_keys()
    drift = Drift(brokers)
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
        await drift.all_arrived()
        for number, subscriber in drift.subscribers.items():
            twice = [id_ for id_, count in Counter(subscriber.ids).items() if count > 1]
            assert twice == []
            assert set(subscriber.ids) == drift.wanted(number)
        await brokers.until_all(lambda told: told["sizes"]["versions"] <= 2)
        switches = await brokers.installed()
        nursery.cancel_scope.cancel()
    assert switches > 1
    print(f"{len(drift.published)} publications at {BROKERS} brokers, {switches} times other trees")


async def stage(drift: Drift, writers: list[int], topic: int) -> None:
    """Two brokers publish at once about a topic."""
    async with trio.open_nursery() as nursery:
        for number in writers:
            nursery.start_soon(drift.publish, number, topic)


def test_the_example_prints_what_its_readme_says(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    example = [sys.executable, str(EXAMPLE / "ring.py"), "market"]
    process = shell.start(command=["env", f"FIRST_PORT={free_ports(4)}", *example])
    code, out, err = end(process)
    assert code == 0, err
    said = (EXAMPLE / "README.md").read_text(encoding="utf-8")
    assert all(f"\n    {line}\n" in said for line in out.splitlines()), out
    assert len(out.splitlines()) == 6
