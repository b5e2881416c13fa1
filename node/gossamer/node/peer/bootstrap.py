"""Getting into the overlay, and staying in one piece with it.

A peer that knows nobody tries all it has ever heard of until somebody lets it join. One that is in
the overlay now and then calls a peer that it knows and the overlay does not show it: should the
network have been cut in two, that call joins the parts again. So does a call of an address it was
told and never called: peers that start at once may join each other in pairs, none of which knows of
another.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import trio
from attrs import define

from gossamer.node.discovery.sources import STATIC, DiscoveredPeer, Source, discover
from gossamer.node.errors import PeerUnreachable, TransportBroken
from gossamer.node.monitoring.logs import log
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.core import SELF
from gossamer.node.peer.frames.frame_types import FrameService
from gossamer.node.peer.persistence import Keeper
from gossamer.node.peer.runtime import Runtime
from gossamer.node.transport.base import Address, Admitted
from gossamer.node.transport.links import ConnectionPool
from gossamer.node.transport.schema import Frame
from gossamer.protocol.kernel.errors import CapacityError

# Peers tried at once: one that does not answer takes seconds.
AT_ONCE: Final = 8
# Rounds between two calls of a peer that is out of sight, and of addresses never called so far.
CALL_ROUNDS: Final = 20
FIRST_CALL_ROUNDS: Final = 4
# Rounds between two attempts to join: doubled each time, with jitter, up to the last.
FIRST_ROUNDS, LAST_ROUNDS = 1, 32
# Rounds that a peer which was called has for its greeting.
GREETING_ROUNDS: Final = 4

_Unreached = (PeerUnreachable, TransportBroken)


@define(eq=False, slots=False)
class Bootstrap(FrameService):
    """Looks for peers to join through.

    Args:
        limit: addresses kept of which it is not known who listens there.

    Attributes:
        nobody_left: set once everybody known has been tried in vain.
    """

    frames = ("greeting",)

    _runtime: Runtime
    _address_book: AddressBook
    _pool: ConnectionPool
    _keeper: Keeper
    _draws: random.Random
    _round_s: float
    _limit: int = 256

    def __attrs_post_init__(self) -> None:
        self.nobody_left = trio.Event()
        # Whom each of these addresses led to when it was last called.
        self._anonymous: OrderedDict[Address, int | None] = OrderedDict()
        self._uncalled: set[Address] = set()
        self._called: set[int] = set()
        self._changed = trio.Event()

    def add(self, found: DiscoveredPeer) -> None:
        """Somebody may be a peer."""
        addresses = [Address(*address) for address in found.addresses]
        if found.key is None:
            new = [address for address in addresses if address not in self._anonymous]
            self._anonymous.update(dict.fromkeys(new))
            self._uncalled.update(new)
            while len(self._anonymous) > self._limit:
                dropped, _ = self._anonymous.popitem(last=False)
                self._uncalled.discard(dropped)
        elif not set(addresses) <= set(self._address_book.addresses_of(found.key)):
            try:
                self._address_book.learn(found.key, addresses)
            except CapacityError:
                return
            self._pool.try_anew(found.key)
        self._changed.set()

    def look_for(self, addresses: Sequence[tuple[str, int]]) -> None:
        """There may be peers at these addresses."""
        for address in addresses:
            self.add(DiscoveredPeer(None, (address,), STATIC))

    async def search(self, sources: Sequence[Source], own_key: int) -> None:
        """Add whom ``sources`` find, but not this peer itself, until cancelled."""
        async with discover(sources, _note_failed_source) as stream:
            async for found in stream:
                if found.key != own_key:
                    self.add(found)

    async def run(self) -> None:
        """Join, and stay joined, until cancelled."""
        rounds: float = FIRST_ROUNDS
        while True:
            self._changed = trio.Event()
            if self._runtime.core.is_alone:
                await self._try_everybody()
            else:
                rounds = FIRST_ROUNDS
            if self._runtime.core.is_alone:
                self.nobody_left.set()
                with trio.move_on_after(rounds * self._round_s * self._draws.uniform(0.5, 1.0)):
                    await self._changed.wait()
                rounds = min(2 * rounds, LAST_ROUNDS)
            else:
                between = FIRST_CALL_ROUNDS if self._out_of_sight(new=True) else CALL_ROUNDS
                await trio.sleep(between * self._round_s * self._draws.uniform(0.5, 1.0))
                await self._call_somebody_out_of_sight()

    async def wait_until_settled(self) -> None:
        """Wait for an acknowledgement, or until there is nobody to get one from."""
        async with trio.open_nursery() as nursery:

            async def wait_for(event: trio.Event) -> None:
                await event.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(wait_for, self._runtime.heard_back)
            nursery.start_soon(wait_for, self.nobody_left)

    def is_cut_off(self) -> bool:
        """Whether others are known, and none is a neighbour on the ring to hold anything."""
        core = self._runtime.core
        ring = core.neighbours()[: 2 * core.settings.ring_links]
        if len(self._pool) > 0 and max(ring, default=-1) >= 0:
            return False
        return bool(self._anonymous) or any(one.addresses for one in self._address_book)

    def greet(self, key: int) -> None:
        """Introduce this peer to one that is connected."""
        self._pool.try_send(key, self._runtime.greeting())

    def receive(self, sender: int, frame: Frame) -> None:
        """A connected peer introduces itself: it can be joined through."""
        if not self._runtime.take_greeting(sender, frame):
            return
        connection = self._pool.get(sender)
        if connection is not None:
            self._keeper.note_met(connection.identity, self._address_book)
        if sender in self._called or self._runtime.core.is_alone:
            self._called.discard(sender)
            self._runtime.join_through(sender)

    def forget(self, key: int) -> None:
        """A peer is connected no more."""
        self._runtime.forget(key)

    async def _try_everybody(self) -> None:
        """Call all who are known, a few at a time, until somebody lets this peer join."""
        known = sorted(self._address_book, key=lambda entry: entry.heard_at or 0.0, reverse=True)
        keys: list[int | Address] = [entry.key for entry in known if entry.addresses]
        everybody = keys + list(self._anonymous)
        for begin in range(0, len(everybody), AT_ONCE):
            async with trio.open_nursery() as nursery:
                for one in everybody[begin : begin + AT_ONCE]:
                    nursery.start_soon(self._try, one, nursery.cancel_scope)
            if not self._runtime.core.is_alone:
                return

    async def _try(self, who: int | Address, others: trio.CancelScope) -> None:
        """Join through one peer; if that works, stop trying others."""
        if await self._call(who):
            others.cancel()

    async def _call_somebody_out_of_sight(self) -> None:
        hidden = self._out_of_sight(new=True) or self._out_of_sight(new=False)
        if hidden:
            await self._call(self._draws.choice(hidden))

    def _out_of_sight(self, *, new: bool) -> list[int | Address]:
        """Peers known that the overlay does not show, and addresses that may lead to such.

        Only addresses never called if they are to be ``new``.
        """
        core = self._runtime.core
        seen = {SELF, *core.neighbours(), *core.members()}
        shown = {where for one in self._address_book for where in one.addresses}
        hidden: list[int | Address] = [
            where
            for where, key in self._anonymous.items()
            if (where in self._uncalled or not new)
            and where not in shown
            and (key is None or key not in self._address_book)
        ]
        if not new:
            hidden += [
                one.key for one in self._address_book if one.handle not in seen and one.addresses
            ]
        return hidden

    async def _call(self, who: int | Address) -> bool:
        """Connect to a peer and join through it; return whether this peer is in company then."""
        try:
            key = await self._find(who) if isinstance(who, Address) else who
            await self._pool.connect(key)
        except (*_Unreached, CapacityError):
            return False
        self._called.add(key)
        if self._runtime.join_through(key):
            self._called.discard(key)
        else:
            await trio.sleep(GREETING_ROUNDS * self._round_s)
        self._called.discard(key)
        return not self._runtime.core.is_alone

    async def _find(self, address: Address) -> int:
        """Find out who listens at an address that was told, and note it."""
        self._uncalled.discard(address)

        def learn(admitted: Admitted) -> None:
            self._address_book.learn(admitted.identity.key, admitted.hello.addresses or (address,))

        key = (await self._pool.meet([address], learn)).key
        if address in self._anonymous:
            self._anonymous[address] = key
        return key


def _note_failed_source(name: str, error: Exception) -> None:
    log.warning("a source of peers failed", source=name, cause=str(error))
