"""Clients of a broker: attached for a connection, or under a name of their own for longer.

What the broker delivers to a client with a name is on the disk before it is sent, and stays there
until the client acknowledges it. A client without one is attached while it is connected.

unknown  -- connects with its name ---------------->  present
present  -- its connection ends ------------------->  absent, or unknown if it asked for nothing
absent   -- connects again ------------------------>  present
absent   -- longer than the retention time -------->  unknown
present  -- `forget` ------------------------------>  unknown
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

import trio
from attrs import define, field

from gossamer.node.broker.deliveries import ClientComposites, delivery_bytes, id_of
from gossamer.node.broker.engine import Engine, Outcome
from gossamer.node.broker.host import ClientFilters, ForComposites, Match
from gossamer.node.errors import RequestError, StoreError
from gossamer.node.monitoring.logs import log
from gossamer.node.store import Store
from gossamer.node.store.broker import QueuedDelivery
from gossamer.node.store.writer import StoreWriter
from gossamer.protocol.brokers.core.effects import Adopted, Deliver, Dismissed
from gossamer.protocol.brokers.core.messages import (
    NAMELESS,
    Advertise,
    Attach,
    ClientAcknowledge,
    Detach,
    FromClient,
    Id,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    client,
)
from gossamer.protocol.content.filters import Filter

# A client of a broker.


@define(eq=False)
class Member:
    """A client.

    Attributes:
        name: at the broker.
        present: whether it is connected.
        ended: set when its connection ends.
        asides: connections that ask for it besides.
        absent_since: trio's time when its connection ended, or when the node started.
        subscriptions, advertisements: what it asks for and announces, by its labels, and by those
            of the parts of its composite subscriptions.
        composites: these.
        deliveries: that wait for it on the disk.
        grown: set when there are more.
        taker: takes deliveries at once, for a client without a name.
        home: where the broker is that it is a client of, while that is dead.
        dismiss: tells its connection, if there is one, why it is no client any more.
    """

    name: str
    absent_since: float
    present: bool = False
    ended: trio.Event = field(factory=trio.Event)
    asides: int = 0
    subscriptions: dict[str, Filter] = field(factory=dict)
    advertisements: dict[str, Filter] = field(factory=dict)
    composites: ClientComposites = field(factory=ClientComposites)
    deliveries: int = 0
    grown: trio.Event = field(factory=trio.Event)
    taker: Callable[[bytes], None] | None = None
    home: str = ""
    dismiss: Callable[[str], None] = lambda _: None

    def forget(self) -> None:
        """It asks for nothing and announces nothing any more."""
        self.subscriptions.clear()
        self.advertisements.clear()
        self.composites = ClientComposites()

    @property
    def nameless(self) -> bool:
        """Whether nothing is kept for it."""
        return self.name.startswith(NAMELESS)


Labelled = Subscribe | Unsubscribe | Advertise | Unadvertise


def noted(held: dict[str, Filter], message: Labelled) -> Callable[[], None]:
    """Notes in ``held`` what a client has, once the broker has taken its message."""

    def note() -> None:
        if isinstance(message, Subscribe | Advertise):
            held[message.label] = message.filter
        else:
            held.pop(message.label, None)

    return note


# Deliveries kept for one client; the oldest make room.
MOST_DELIVERIES: Final = 100_000
# How long a connection is waited for that a client has closed just before it connects again.
ENDING_S: Final = 1.0
# How often clients are looked for that have been away for too long.
PRUNE_S: Final = 60.0


class Members:
    """All clients; `run` forgets those that stay away."""

    def __init__(
        self,
        writer: StoreWriter,
        engine: Callable[[], Engine],
        retention_s: float,
        *,
        keeps: bool = False,
    ) -> None:
        """No clients so far.

        Args:
            writer: of deliveries.
            engine: of the broker.
            retention_s: how long a client with a name may be away.
            keeps: whether the broker is told what they have taken.
        """
        self._writer = writer
        self._engine = engine
        self._retention_s = retention_s
        self._keeps = keeps
        self._members: dict[str, Member] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def get(self, name: str) -> Member | None:
        """The client of that name."""
        return self._members.get(name)

    @property
    def deliveries(self) -> int:
        """Deliveries that wait, for all of them."""
        return sum(member.deliveries for member in self._members.values())

    def restore(self, clients: Iterable[ClientFilters], deliveries: Mapping[str, int]) -> list[str]:
        """Take up the clients that a broker remembers; returns those that are to be detached."""
        gone = []
        for one in clients:
            if one.client.startswith(NAMELESS):
                gone.append(one.client)
                continue
            member = self._members[one.client] = Member(one.client, trio.current_time())
            member.deliveries = deliveries.get(one.client, 0)
            member.subscriptions = dict(one.subscriptions)
            member.advertisements = dict(one.advertisements)
            member.home = one.home
        return gone

    async def attach(
        self, name: str | None, taker: Callable[[bytes], None], *, aside: bool = False
    ) -> Member:
        """Let a client in, or somebody who asks for it and leaves its deliveries to it.

        Raises:
            RequestError: one of that name is connected, or the name is none.
        """
        if name is None:
            name = NAMELESS + secrets.token_hex(8)
        else:
            _check_name(name)
        if not aside:
            await self._wait_for_end(name)
        member = self._members.get(name)
        if member is not None and member.present and not aside:
            reason = f"client {name!r} is connected already, expected another name"
            raise RequestError(reason)
        known = member is not None
        if member is None:
            member = self._members[name] = Member(name, trio.current_time())
        member.asides += aside
        if not aside:
            member.present = True
            member.taker = taker if member.nameless else None
        if not known:
            try:
                await self.ask(member, Attach())
            except BaseException:
                self.leave(member, aside=aside)
                raise
        return member

    async def _wait_for_end(self, name: str) -> None:
        """Wait a moment for a connection of that name, which may be about to end."""
        with trio.move_on_after(ENDING_S):
            while (member := self._members.get(name)) is not None and member.present:
                await member.ended.wait()

    def leave(self, member: Member, *, aside: bool = False) -> None:
        """A connection ended; who asked for nothing, or has no name, is gone with its last."""
        member.asides -= aside
        if not aside:
            member.present = False
            member.ended.set()
            member.ended = trio.Event()
        member.absent_since = trio.current_time()
        idle = not (member.present or member.asides)
        keeps = member.subscriptions or member.advertisements or member.home
        if idle and (member.nameless or not keeps):
            self._members.pop(member.name, None)
            self._engine().submit(client(member.name), Detach())

    async def subscribe(self, member: Member, label: str, wanted: Filter) -> None:
        """Put a subscription in force, in place of an earlier one of that label.

        Raises:
            ProtocolError: the broker refuses it; nothing changed.
        """
        held = member.subscriptions
        if held.get(label) == wanted:
            return
        if label in held:
            await self.unsubscribe(member, label)
        await self._ask_noted(member, held, Subscribe(label, wanted))

    async def unsubscribe(self, member: Member, label: str) -> None:
        """Take a subscription back; raises as `subscribe` does."""
        await self._ask_noted(member, member.subscriptions, Unsubscribe(label))

    async def advertise(self, member: Member, label: str, announced: Filter) -> None:
        """Announce publications; the same again does nothing.

        Raises:
            ProtocolError: the broker refuses it, as that label announces others; nothing changed.
        """
        held = member.advertisements
        if held.get(label) != announced:
            await self._ask_noted(member, held, Advertise(label, announced))

    async def unadvertise(self, member: Member, label: str) -> None:
        """Take an advertisement back; raises as `subscribe` does."""
        await self._ask_noted(member, member.advertisements, Unadvertise(label))

    async def forget(self, member: Member) -> None:
        """Take back all that a client asked for, and keep nothing for it."""
        await self.ask(member, Detach(), member.forget)
        await self._writer.run(lambda store: store.broker.forget(member.name))
        member.deliveries = 0
        if member.present or member.asides:
            await self.ask(member, Attach())
        else:
            self._members.pop(member.name, None)

    async def ask(
        self, member: Member, message: FromClient, first: Callable[[], None] | None = None
    ) -> Outcome:
        """Hand the broker a client's message; ``first`` is done if it is not refused.

        Raises:
            ProtocolError: the broker refuses it; nothing changed.
        """
        (outcome,) = await self._engine().ask(client(member.name), [message], first)
        if outcome.error is not None:
            raise outcome.error
        return outcome

    async def _ask_noted(self, member: Member, held: dict[str, Filter], message: Labelled) -> None:
        await self.ask(member, message, noted(held, message))

    async def ask_all(self, member: Member, messages: Sequence[FromClient]) -> list[Outcome]:
        """Hand the broker messages of a client in their order, and tell what came of each."""
        return await self._engine().ask(client(member.name), messages)

    # Deliveries

    def queued(self, effect: Deliver | Match, now: float) -> QueuedDelivery | None:
        """What is to be stored of a delivery, None for a client without a name."""
        member = self._members.get(effect.client)
        if member is None or member.nameless:
            return None
        return QueuedDelivery(effect.client, delivery_bytes(effect, now))

    def delivered(self, effect: Deliver | Match, now: float) -> None:
        """A delivery is stored, where anything is to be stored of it."""
        member = self._members.get(effect.client)
        if member is None:
            return
        if member.taker is not None:
            member.taker(delivery_bytes(effect, now))
        elif not member.nameless:
            member.deliveries += 1
            member.grown.set()

    def matched(self, effect: ForComposites) -> None:
        """A publication that a client does not get itself has gone through its matcher."""
        if self._keeps:
            self._engine().submit(client(effect.client), ClientAcknowledge((effect.id,)))

    async def read(self, member: Member, after: int, most: int) -> list[QueuedDelivery]:
        """The next deliveries of a client after a position."""
        return await self._writer.run(lambda store: store.broker.queued(member.name, after, most))

    async def acknowledge(self, member: Member, position: int) -> None:
        """A client has its deliveries up to a position."""

        def drop(store: Store) -> None:
            if self._keeps:
                self._tell_taken(member, store.broker.queued_until(member.name, position))
            number = store.broker.acknowledge(member.name, position)
            member.deliveries = max(0, member.deliveries - number)

        await self._writer.write(drop)

    def _tell_taken(self, member: Member, deliveries: Iterable[QueuedDelivery]) -> None:
        ids = tuple(id_ for one in deliveries if (id_ := id_of(one)) is not None)
        if ids:
            self._engine().submit(client(member.name), ClientAcknowledge(ids))

    # Clients of other brokers, which are dead

    def adopt(self, effect: Adopted) -> None:
        """A client of a dead broker is here, until that is back."""
        member = self._members.get(effect.client)
        if member is not None:
            member.home = effect.home
            member.subscriptions.update(effect.subscriptions)
            log.info("client is taken over", name=member.name, broker=effect.home)

    def dismiss(self, effect: Dismissed) -> None:
        """The broker of a client is back, and has all that was for it here."""
        member = self._members.pop(effect.client, None)
        if member is not None:
            log.info("client is handed back", name=member.name, broker=effect.home)
            member.dismiss(f"broker {effect.home} is back, and serves client {member.name!r} again")

    async def withdraw(self, client_name: str, ids: Iterable[Id] | None) -> None:
        """Another broker gave these to a client, or all that waits for it here if None."""
        wanted = None if ids is None else set(ids)

        def discard(store: Store) -> int:
            deliveries = store.broker.queued(client_name, 0, MOST_DELIVERIES)
            return store.broker.discard(
                one.position for one in deliveries if wanted is None or id_of(one) in wanted
            )

        number = await self._writer.run(discard)
        member = self._members.get(client_name)
        if member is not None:
            member.deliveries = max(0, member.deliveries - number)

    async def run(self) -> None:
        """Forget who was away for too long, and the oldest deliveries of who lets them pile up."""
        while True:
            await trio.sleep(PRUNE_S)
            now = trio.current_time()
            try:
                for member in list(self._members.values()):
                    away = not (member.present or member.asides)
                    if away and now - member.absent_since > self._retention_s:
                        await self.forget(member)
                    elif member.deliveries > MOST_DELIVERIES:
                        await self._make_room(member)
            except StoreError as error:
                log.warning("deliveries of clients cannot be dropped", cause=str(error))

    async def _make_room(self, member: Member) -> None:
        number = member.deliveries - MOST_DELIVERIES
        if self._keeps:
            self._tell_taken(member, await self.read(member, 0, number))
        lost = await self._writer.run(lambda store: store.broker.drop_oldest(member.name, number))
        member.deliveries -= lost
        log.warning("a client takes too little: the oldest are lost", name=member.name, lost=lost)


def _check_name(name: str) -> None:
    if name.startswith(NAMELESS) or not name.isprintable() or not name:
        reason = f"a client's name is printable and does not begin with {NAMELESS!r}"
        raise RequestError(f"{reason}, not {name!r}")
