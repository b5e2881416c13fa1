"""Clients of three NATS servers with JetStream: events are kept at all three, and acknowledged."""

# Installed in an environment of its own only.
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from nats.aio.msg import Msg
from nats.js.api import ConsumerConfig, DeliverPolicy, StorageType, StreamConfig
from nats.js.errors import Error

from bench.stacks.application import Publication, by_peer, run_on_asyncio
from bench.stacks.nats_peers import ALL_PENDING, NatsApplications

STREAM = "events"
REPLICAS = 3
ELECTION_S = 60.0  # until the servers have agreed who leads
LOOK_S = 0.5


class JetStreamApplications(NatsApplications):
    """Clients that publish to a stream, and acknowledge what consumers of their own bring."""

    async def join(self, addresses: Sequence[str]) -> None:
        await super().join(addresses)
        config = StreamConfig(
            name=STREAM,
            subjects=self.topics,
            num_replicas=REPLICAS,
            storage=StorageType.FILE,
        )
        manager = next(iter(self._clients.values())).jetstream()
        deadline = time.monotonic() + ELECTION_S
        while True:
            try:
                await manager.add_stream(config)
            except (Error, TimeoutError):
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(LOOK_S)
            else:
                return

    async def subscribe(self, topics: Sequence[tuple[int, list[str]]]) -> None:
        for number, wanted in topics:
            for topic in wanted:
                await (
                    self._clients[number]
                    .jetstream()
                    .subscribe(
                        topic,
                        cb=self._acknowledging(number),
                        stream=STREAM,
                        durable=f"{topic}-{number}",
                        config=ConsumerConfig(deliver_policy=DeliverPolicy.NEW, max_ack_pending=-1),
                        manual_ack=True,
                        pending_msgs_limit=ALL_PENDING,
                        pending_bytes_limit=ALL_PENDING,
                    )
                )

    async def publish_steadily(self, publications: Sequence[Publication]) -> None:
        async with asyncio.TaskGroup() as group:
            for one in publications:
                await asyncio.sleep(max(0.0, one.due_at - time.time()))
                group.create_task(self.publish_one(one))

    async def publish_at_once(self, publications: Sequence[Publication], window: int) -> None:
        async with asyncio.TaskGroup() as group:
            for share in by_peer(publications).values():
                for begin in range(window):
                    group.create_task(self._publish_in_turn(share[begin::window]))

    async def send(self, publication: Publication) -> None:
        stream = self._clients[publication.peer].jetstream(timeout=ELECTION_S)
        await stream.publish(publication.topic, self.payload(publication))

    async def _publish_in_turn(self, publications: Sequence[Publication]) -> None:
        for one in publications:
            await self.publish_one(one)

    def _acknowledging(self, number: int) -> Callable[[Msg], Awaitable[None]]:
        async def take(message: Msg) -> None:
            self.note(number, message.data)
            await message.ack()

        return take


if __name__ == "__main__":
    run_on_asyncio(JetStreamApplications)
