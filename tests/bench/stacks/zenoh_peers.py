"""Peers of Zenoh: sessions in peer mode, a topic is a key expression."""

# Installed in an environment of its own only.
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import zenoh

from bench.stacks.application import AsyncioApplications, Publication, run_on_asyncio

LOOK_S = 0.1
WAITS = zenoh.CongestionControl.BLOCK


class ZenohApplications(AsyncioApplications):
    """Sessions that are told where all others listen, over mutual TLS.

    Applications take events on threads of Zenoh, and one more thread publishes.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sessions: dict[int, zenoh.Session] = {}
        self._publishers: dict[tuple[int, str], Any] = {}
        self._subscribers: list[Any] = []

    def publisher(self, number: int, topic: str) -> Any:
        """What a session publishes to a topic with."""
        return self.sessions[number].declare_publisher(topic, congestion_control=WAITS)

    def subscriber(self, number: int, topic: str) -> Any:
        """What hands the events of a topic to `note`."""
        return self.sessions[number].declare_subscriber(topic, self.taker(number))

    async def open(self, peers: Sequence[int], settings: dict[str, Any]) -> list[str]:
        addresses = settings["addresses"]
        for number in peers:
            config = zenoh.Config()
            told = {
                "mode": "peer",
                "listen/endpoints": [addresses[number]],
                "connect/endpoints": addresses[:number],
                "scouting/multicast/enabled": False,
                "scouting/gossip/enabled": False,
                "transport/link/tls": settings["tls"],
            }
            for key, value in told.items():
                config.insert_json5(key, json.dumps(value))
            self.sessions[number] = await asyncio.to_thread(zenoh.open, config)
            for topic in settings["topics"]:
                self._publishers[number, topic] = self.publisher(number, topic)
        return [addresses[number] for number in peers]

    async def join(self, addresses: Sequence[str]) -> None:
        for session in self.sessions.values():
            while len(session.info.peers_zid()) < len(addresses) - 1:
                await asyncio.sleep(LOOK_S)

    async def subscribe(self, topics: Sequence[tuple[int, list[str]]]) -> None:
        for number, wanted in topics:
            for topic in wanted:
                self._subscribers.append(self.subscriber(number, topic))

    async def publish_steadily(self, publications: Sequence[Publication]) -> None:
        await asyncio.to_thread(self._publish, publications)

    async def publish_at_once(self, publications: Sequence[Publication], window: int) -> None:
        del window  # a link whose queue is full holds up the publisher
        await asyncio.to_thread(self._publish, publications)

    async def close(self) -> None:
        for session in self.sessions.values():
            await asyncio.to_thread(session.close)

    def _publish(self, publications: Sequence[Publication]) -> None:
        for one in publications:
            time.sleep(max(0.0, one.due_at - time.time()))
            try:
                self._publishers[one.peer, one.topic].put(self.payload(one))
            except zenoh.ZError as error:
                self.refuse(error)
            else:
                self.published += 1

    def taker(self, number: int) -> Callable[[zenoh.Sample], None]:
        def take(sample: zenoh.Sample) -> None:
            self.note(number, sample.payload.to_bytes())

        return take


if __name__ == "__main__":
    run_on_asyncio(ZenohApplications)
