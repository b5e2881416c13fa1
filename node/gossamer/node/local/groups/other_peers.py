"""The other peers of one queue group: where they are, and what is asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

import trio

from gossamer.node.errors import NoAnswerError, NodeError
from gossamer.node.local.groups import wire
from gossamer.node.local.history import KeptEvent
from gossamer.node.local.peer_like import PeerLike
from gossamer.node.transport.base.base import Address
from gossamer.protocol.patterns.groups import ANSWER_S


class OtherPeers:
    """Talks to the other peers of a group.

    Args:
        peer: this one.
        digest: of the group.
        expression: of the group.
    """

    def __init__(self, peer: PeerLike, digest: bytes, expression: str) -> None:
        self._peer = peer
        self._digest = digest
        self._expression = expression
        self._addresses: dict[int, tuple[Address, ...]] = {}
        self._company: dict[int, float] = {}

    def learn(self, addresses: Mapping[int, tuple[Address, ...]]) -> None:
        """Note where peers are."""
        self._addresses |= addresses

    def with_addresses(self, keys: Iterable[int]) -> dict[int, tuple[Address, ...]]:
        """Peers, this one among them or not, with where they are as far as is known."""
        own = {self._peer.key: tuple(self._peer.messages.addresses)}
        return {key: own.get(key) or self._addresses.get(key, ()) for key in keys}

    def note_company(self, keys: Iterable[int]) -> None:
        """These peers say just now that they are of the group."""
        self._company |= dict.fromkeys(keys, trio.current_time())

    def company_since(self, at: float) -> list[int]:
        """The peers that said so after trio's time ``at``."""
        return [key for key, said_at in self._company.items() if said_at > at]

    async def ask(self, key: int, question: bytes, patience_s: float = ANSWER_S) -> bytes:
        """The answer of a peer.

        Raises:
            NoAnswerError: there was none in time.
        """
        where = self._addresses.get(key, ())
        return await self._peer.messages.ask(key, where, wire.SERVICE, question, patience_s)

    async def greet(self, keys: Iterable[int]) -> dict[int, wire.Greeted]:
        """Say to peers that this one is of the group; return what those said that answered."""
        found: dict[int, wire.Greeted] = {}
        question = wire.hello(self._digest, self._peer.messages.addresses)

        async def greet(key: int) -> None:
            try:
                found[key] = wire.read_hello_answer(await self.ask(key, question))
            except (NoAnswerError, ValueError):
                return

        async with trio.open_nursery() as nursery:
            for key in keys:
                nursery.start_soon(greet, key)
        return found

    async def announce(self) -> None:
        """Say to all who subscribe to the expression that this peer is of the group."""
        body = wire.announcement(self._digest, self._peer.messages.addresses)
        with suppress(NodeError):  # it is not acknowledged, or the peer is about to stop
            await self._peer.announce(self._expression, body)

    async def fetch(self, key: int, event: int) -> KeptEvent | None:
        """An event that another peer keeps; None where it does not answer."""
        question = wire.fetch(self._digest, event)
        try:
            raw = await self.ask(key, question)
            return wire.read_event(raw, event, self._peer.schema)
        except (NoAnswerError, ValueError):
            return None
