"""Peers of py-libp2p with gossipsub, whose topics these are."""

# Installed in an environment of its own only.
# mypy: disable-error-code="import-not-found"

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any

import trio
from libp2p import new_host
from libp2p.abc import IHost, ISubscriptionAPI
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.peer.peerinfo import info_from_p2p_addr
from libp2p.pubsub.gossipsub import PROTOCOL_ID_V11, GossipSub
from libp2p.pubsub.pubsub import Pubsub
from libp2p.tools.anyio_service import background_trio_service
from multiaddr import Multiaddr

from bench.stacks.application import Publication
from bench.stacks.on_trio import TrioApplications
from bench.stacks.peer_requests import run_on_trio

# As in go-libp2p-pubsub; defaults of py-libp2p would repair meshes every two minutes.
DEGREE, LEAST_DEGREE, MOST_DEGREE, HEARTBEAT_S = 6, 5, 12, 1


class Libp2pApplications(TrioApplications):
    """Hosts that connect to all others, over Noise, as is the default."""

    def __init__(self, nursery: trio.Nursery, opened: AsyncExitStack) -> None:
        super().__init__(nursery, opened)
        self._hosts: dict[int, IHost] = {}
        self._topics: dict[int, Pubsub] = {}

    async def open(self, peers: Sequence[int], settings: dict[str, Any]) -> list[str]:
        for number in peers:
            address = Multiaddr(settings["addresses"][number])
            host = new_host(key_pair=create_new_key_pair(), listen_addrs=[address])
            router = GossipSub(
                protocols=[PROTOCOL_ID_V11],
                degree=DEGREE,
                degree_low=LEAST_DEGREE,
                degree_high=MOST_DEGREE,
                heartbeat_interval=HEARTBEAT_S,
                # It would stretch the heartbeat to at least half a minute.
                adaptive_gossip_enabled=False,
                # It would drop what a neighbour brings of a topic beyond ten events a second.
                spam_protection_enabled=False,
                # It would keep what others publish for every peer that did not subscribe to it, and
                # go through all of that for each event.
                pending_messages_ttl=0.0,
            )
            topics = Pubsub(host, router)
            await self.opened.enter_async_context(host.run(listen_addrs=[address]))
            await self.opened.enter_async_context(background_trio_service(topics))
            await self.opened.enter_async_context(background_trio_service(router))
            await topics.wait_until_ready()
            self._hosts[number], self._topics[number] = host, topics
        return [
            f"{settings['addresses'][number]}/p2p/{self._hosts[number].get_id()}"
            for number in peers
        ]

    async def join(self, addresses: Sequence[str]) -> None:
        for number, host in self._hosts.items():
            for address in addresses[:number]:
                await host.connect(info_from_p2p_addr(Multiaddr(address)))

    async def subscribe(self, topics: Sequence[tuple[int, list[str]]]) -> None:
        for number, wanted in topics:
            for topic in wanted:
                subscription = await self._topics[number].subscribe(topic)
                self.nursery.start_soon(self._take, number, subscription)

    async def send(self, publication: Publication) -> None:
        topics = self._topics[publication.peer]
        await topics.publish(publication.topic, self.payload(publication))

    async def _take(self, number: int, subscription: ISubscriptionAPI) -> None:
        while True:
            self.note(number, (await subscription.get()).data)


if __name__ == "__main__":
    run_on_trio(Libp2pApplications)
