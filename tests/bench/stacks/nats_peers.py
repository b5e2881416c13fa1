"""Clients of a NATS server: a topic is a subject."""

# Installed in an environment of its own only.
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import nats
from nats.aio.client import Client
from nats.aio.msg import Msg

from bench.stacks.application import AsyncioApplications, Publication, by_peer, run_on_asyncio

ALL_PENDING = 1 << 30  # messages and bytes that may wait in a subscription


class NatsApplications(AsyncioApplications):
    """Clients of a server, or of several in turn, over mutual TLS."""

    def __init__(self) -> None:
        super().__init__()
        self._clients: dict[int, Client] = {}
        self.topics: list[str] = []

    async def open(self, peers: Sequence[int], settings: dict[str, Any]) -> list[str]:
        self.topics, servers = settings["topics"], settings["servers"]
        tls = ssl.create_default_context(cafile=settings["authority"])
        tls.load_cert_chain(settings["certificate"], settings["key"])
        for number in peers:
            self._clients[number] = await nats.connect(
                servers[number % len(servers)], tls=tls, allow_reconnect=False
            )
        return ["" for _ in peers]

    async def join(self, addresses: Sequence[str]) -> None:
        del addresses  # all are at a server
        for client in self._clients.values():
            await client.flush()

    async def subscribe(self, topics: Sequence[tuple[int, list[str]]]) -> None:
        for number, wanted in topics:
            client = self._clients[number]
            for topic in wanted:
                await client.subscribe(
                    topic,
                    cb=self._taker(number),
                    pending_msgs_limit=ALL_PENDING,
                    pending_bytes_limit=ALL_PENDING,
                )
            await client.flush()

    async def publish_steadily(self, publications: Sequence[Publication]) -> None:
        for one in publications:
            await asyncio.sleep(max(0.0, one.due_at - time.time()))
            await self.publish_one(one)

    async def publish_at_once(self, publications: Sequence[Publication], window: int) -> None:
        shares = by_peer(publications).values()
        await asyncio.gather(*(self._publish_share(share, window) for share in shares))

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()

    async def _publish_share(self, share: Sequence[Publication], window: int) -> None:
        """Publish the events of a peer; after each window wait until the server has read it."""
        for begin in range(0, len(share), window):
            for one in share[begin : begin + window]:
                await self.publish_one(one)
            await self._clients[share[0].peer].flush()

    async def send(self, publication: Publication) -> None:
        client = self._clients[publication.peer]
        await client.publish(publication.topic, self.payload(publication))

    def _taker(self, number: int) -> Callable[[Msg], Awaitable[None]]:
        async def take(message: Msg) -> None:
            self.note(number, message.data)

        return take


if __name__ == "__main__":
    run_on_asyncio(NatsApplications)
