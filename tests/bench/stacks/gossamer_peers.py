"""Peers of gossamer: a topic is a value of the attribute `symbol`, for which a filter asks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from string import ascii_uppercase
from typing import Any

import trio

from bench.stacks.application import Publication
from bench.stacks.on_trio import TrioApplications
from bench.stacks.peer_process import peer_config, run_peer
from bench.stacks.peer_requests import run_on_trio
from gossamer.node.peer.peer import Peer, Subscription
from gossamer.protocol.content.schema import Schema, StringAttribute
from gossamer.protocol.content.values import Payload

SCHEMA = Schema([StringAttribute("symbol", alphabet=ascii_uppercase)])
ROOM = 1 << 20  # events that may wait in a subscription: all


class GossamerApplications(TrioApplications):
    """Peers that find each other by the first one, over mutual TLS."""

    def __init__(self, nursery: trio.Nursery, opened: AsyncExitStack) -> None:
        super().__init__(nursery, opened)
        self._peers: dict[int, Peer] = {}

    async def open(self, peers: Sequence[int], settings: dict[str, Any]) -> list[str]:
        for number in peers:
            config = peer_config(
                Path(settings["folders"][number]),
                [settings["addresses"][0]],
                settings["round_s"],
                {},
                schema=SCHEMA,
                address=settings["addresses"][number],
            )
            self._peers[number] = await self.nursery.start(run_peer, config)
        return [str(peer.addresses[0]) for peer in self._peers.values()]

    async def join(self, addresses: Sequence[str]) -> None:
        del addresses  # each knows the first peer's
        for peer in self._peers.values():
            await peer.ready()

    async def subscribe(self, topics: Sequence[tuple[int, list[str]]]) -> None:
        for number, wanted in topics:
            for topic in wanted:
                stream = self._peers[number].subscribe(f'symbol == "{topic}"', room=ROOM)
                self.nursery.start_soon(self._take, number, stream)

    async def send(self, publication: Publication) -> None:
        peer, payload = self._peers[publication.peer], Payload(self.payload(publication))
        await peer.publish({"symbol": publication.topic}, payload=payload)

    async def _take(self, number: int, stream: Subscription) -> None:
        async for event in stream:
            assert event.payload is not None
            self.note(number, event.payload.data)


if __name__ == "__main__":
    run_on_trio(GossamerApplications)
