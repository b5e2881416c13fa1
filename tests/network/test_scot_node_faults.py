"""Nodes that are brokers of a SCOT, in memory: any of them fails, or any link.

What is published during a burst is compared with what arrives. One broker and one link fail of an
overlay of nine; as a campaign, each broker and each of the 27 links of one of fifteen.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import attrs
import pytest
import trio

from gossamer.protocol.brokers.core.errors import UnsafeError
from gossamer.protocol.brokers.scot import BrokerLabel, Factor, Scot, ScotSettings
from support.memory_brokers import MemoryClient, MemoryScot, all_got, memory_scot
from support.memory_transport import Faults, MemoryNetwork
from support.transport_peers import on_jumping_clock

SMALL = Scot(Factor.path("abc"), Factor.complete(3))
EDGES = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")]
LARGE = Scot(Factor.of("abcde", EDGES), Factor.complete(3))
EACH = {SMALL: 6, LARGE: 24}
"""Publications of each publisher; the failure comes after a third of them."""
LONGEST_S = 0.2
"""Nine hops of 20 ms."""
AROUND = ScotSettings(around_failures=True)
Link = tuple[BrokerLabel, BrokerLabel]


def publishers(scot: Scot) -> list[BrokerLabel]:
    """A broker at one end, and one of another cluster at the other end."""
    return [BrokerLabel(scot.regions[0], 0), BrokerLabel(scot.regions[-1], 1)]


def cases(small: BrokerLabel | Link, large: Iterable[BrokerLabel | Link]) -> pytest.MarkDecorator:
    """What fails of the small overlay, and, as a campaign, of the large one."""
    campaign = [pytest.param(LARGE, one, marks=pytest.mark.campaign) for one in large]
    return pytest.mark.parametrize(("overlay", "failure"), [(SMALL, small), *campaign], ids=_name)


def _name(value: object) -> str:
    return f"{value.broker_count} brokers" if isinstance(value, Scot) else str(value)


ANY_BROKER = cases(
    BrokerLabel("b", 0), [one for one in LARGE.brokers if one not in publishers(LARGE)]
)
ANY_LINK = cases(next(iter(SMALL.links())), LARGE.links())


@attrs.define
class Burst:
    """Subscribers everywhere, and publishers that publish as fast as they are acknowledged."""

    scot: MemoryScot
    clients: dict[int, MemoryClient] = attrs.field(factory=dict)
    safe: list[str] = attrs.field(factory=list)
    at: dict[str, float] = attrs.field(factory=dict)
    failed_at: float = 0.0
    unsafe: int = 0
    fail: trio.Event = attrs.field(factory=trio.Event)

    @property
    def each(self) -> int:
        return EACH[self.scot.scot]

    async def publish(self, place: BrokerLabel) -> None:
        node = self.scot.at(*place)
        publisher = await MemoryClient.attach(node, f"publisher at {place}")
        for n in range(self.each):
            if n == self.each // 3:
                self.fail.set()
            try:
                self.safe.append(await publisher.publish({"x": n}))
                self.at[self.safe[-1]] = trio.current_time()
            except UnsafeError:
                self.unsafe += 1
            await trio.sleep(0.005)

    async def run(self, failure: BrokerLabel | Link) -> None:
        self.clients = await self.scot.subscribers(all="present(x)")
        async with trio.open_nursery() as nursery:
            for place in publishers(self.scot.scot):
                nursery.start_soon(self.publish, place)
            await self.fail.wait()
            self.failed_at = trio.current_time()
            if isinstance(failure, BrokerLabel):
                await self.scot.crash(self.scot.number(*failure))
            else:
                self.scot.network.cut(*(self.scot.number(*end) for end in failure))
        await trio.sleep(120)


def slow_network() -> MemoryNetwork:
    return MemoryNetwork(1, Faults(latency_s=(0.001, 0.02)))


@ANY_BROKER
@on_jumping_clock
async def test_nothing_acknowledged_is_lost_with_a_broker(
    tmp_path: Path, overlay: Scot, failure: BrokerLabel
) -> None:
    async with memory_scot(tmp_path, slow_network(), overlay) as scot:
        burst = Burst(scot)
        await burst.run(failure)
        assert burst.unsafe == 0
        assert len(burst.safe) == 2 * burst.each
        # Who asks meanwhile is known everywhere, behind the dead broker as well.
        late = {}
        for place in sorted({BrokerLabel(overlay.regions[-1], 2), BrokerLabel("c", 0)} - {failure}):
            late[place] = await MemoryClient.attach(scot.at(*place), f"late at {place}")
            await late[place].subscribe("all", "present(x)")
        for place in publishers(overlay):
            publisher = await MemoryClient.attach(scot.at(*place), "later")
            burst.safe.append(await publisher.publish({"x": 0}))
        await all_got(late, burst.safe[-2:])
        number = scot.number(*failure)
        stand_in = scot.number(failure.region, (failure.cluster + 1) % 3)
        client = burst.clients[number]
        await client.return_to(scot.nodes[stand_in])
        await all_got(burst.clients, burst.safe)
        # It comes back with what it had stored, and its client to it.
        scot.nodes[stand_in].members.leave(client.member)
        await scot.start(number)
        await scot.settle()
        await client.return_to(scot.nodes[number])
        publisher = await MemoryClient.attach(scot.at(*publishers(overlay)[0]), "publisher")
        burst.safe += [await publisher.publish({"x": n}) for n in range(3)]
        await all_got(burst.clients, burst.safe)


@ANY_LINK
@on_jumping_clock
async def test_nothing_is_lost_with_a_link(tmp_path: Path, overlay: Scot, failure: Link) -> None:
    async with memory_scot(tmp_path, slow_network(), overlay) as scot:
        burst = Burst(scot)
        await burst.run(failure)
        assert burst.unsafe == 0
        assert len(burst.safe) == 2 * burst.each
        await all_got(burst.clients, burst.safe)


@cases(BrokerLabel("b", 0), [BrokerLabel("b", 0), next(iter(LARGE.links()))])
@on_jumping_clock
async def test_without_taking_over_only_what_was_under_way_is_lost(
    tmp_path: Path, overlay: Scot, failure: BrokerLabel | Link
) -> None:
    async with memory_scot(tmp_path, slow_network(), overlay, settings=AROUND) as scot:
        burst = Burst(scot)
        await burst.run(failure)
        if isinstance(failure, BrokerLabel):
            del burst.clients[scot.number(*failure)]
        for client in burst.clients.values():
            await client.fetch()
            assert not client.twice
        missing = [
            id_ for one in burst.clients.values() for id_ in burst.safe if id_ not in one.got
        ]
        print(f"{len(missing)} deliveries of {len(set(missing))} publications are missing")
        # What is acknowledged is stored at the publisher's broker, and no more: it may have been on
        # its way for as long as the longest way takes, before or after the failure.
        assert all(abs(burst.at[id_] - burst.failed_at) < LONGEST_S for id_ in missing)
        assert not any(node.engine.broker.counters.lost for node in scot.nodes.values())
