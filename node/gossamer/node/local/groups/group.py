"""This peer's part in one queue group: its log, its workers, and the group's leader if it is that.

The rules are `gossamer.protocol.patterns.groups`; here are the clock, the disk and the questions to
other peers. The events of the group are kept as those of a client with a name are, and are done
once a worker of any peer has acknowledged them.

alone     -- nobody else is of the group ------------------>  leading
alone     -- a leader is found, and leads this peer ------->  following
following -- the leader is not heard for `LOST_S` --------->  leading
leading   -- somebody follows a greater epoch ------------->  alone
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import trio
from attrs import define, field

from gossamer.node.errors import NoAnswerError
from gossamer.node.local.groups import wire
from gossamer.node.local.groups.leading import PAUSE_S, Leading, OtherPeers
from gossamer.node.local.groups.log import GroupLog, client_of
from gossamer.node.local.history import History, KeptEvent
from gossamer.node.local.peer_like import EventLike, PeerLike
from gossamer.node.local.services import feed
from gossamer.node.page.snapshot import Snapshot
from gossamer.node.store.store import StoredSubscription
from gossamer.node.transport.base import Address
from gossamer.protocol.content.filters.expressions import parse_expression
from gossamer.protocol.patterns.groups import ANSWER_S, LOST_S, Member, Round

# The applications of one node that take events of one queue group.


@define(eq=False)
class Worker:
    """An application of this node that takes events of the group.

    Attributes:
        window: events that it may have at a time.
        send: gives it one.
        has: ids of those that it has not acknowledged.
    """

    window: int
    send: Callable[[EventLike], Awaitable[None]]
    has: set[int] = field(factory=set)


class Workers:
    """All workers of one group at this node.

    Attributes:
        left: set when a worker leaves; another event then.
        idle_since: trio's time when there was none, or the last one left.
    """

    def __init__(self) -> None:
        self.left = trio.Event()
        self.idle_since = trio.current_time()
        self._workers: list[Worker] = []

    def __len__(self) -> int:
        """How many there are."""
        return len(self._workers)

    def add(self, worker: Worker) -> None:
        """One more."""
        self._workers.append(worker)

    def remove(self, worker: Worker) -> None:
        """One is gone."""
        self._workers.remove(worker)
        self.left.set()
        self.left = trio.Event()
        self.idle_since = trio.current_time()

    def room(self, held: int) -> int:
        """How many events they take beyond the ``held`` that are assigned to this node."""
        given = sum(len(worker.has) for worker in self._workers)
        queued = held - given
        return max(0, sum(worker.window for worker in self._workers) - given - max(0, queued))

    def with_most_room(self) -> Worker | None:
        """The worker that takes most events yet; None if none takes any."""
        free = [one for one in self._workers if len(one.has) < one.window]
        return max(free, key=lambda one: one.window - len(one.has), default=None)


# Rounds of gossip after which a peer that has announced itself would have been heard.
SETTLE_ROUNDS: Final = 6
# Between two looks of one that follows.
LOOK_S: Final = 0.5


class Group:
    """This peer in a group; `run` does its part."""

    def __init__(
        self, peer: PeerLike, history: History, name: str, expression: str, done: Iterable[int]
    ) -> None:
        self.name, self.expression = name, expression
        self.digest = wire.digest_of(name, expression)
        self.workers = Workers()
        self.scope = trio.CancelScope()
        self._peer = peer
        self._history = history
        self._member = Member(peer.key, done)
        wanted = parse_expression(peer.schema, expression)
        self._log = GroupLog(
            peer,
            history,
            self.client,
            wanted,
            self._member,
            lambda event: self._leading.arrive(event),
            lambda: self._leading.wake(),
        )
        self._others = OtherPeers(peer, self.digest, expression)
        self._leading = Leading(
            name,
            self.digest,
            peer.key,
            self._member,
            self._log,
            self._others,
            self.take_round,
            self._fetch,
        )
        self._round_at = -math.inf
        self._heard = trio.Event()
        self._nudging = False
        self._nursery: trio.Nursery | None = None

    @property
    def client(self) -> str:
        """The name under which its events are kept."""
        return client_of(self.name, self.expression)

    @property
    def is_led(self) -> bool:
        """Whether a leader, or this peer itself, was heard a moment ago."""
        return trio.current_time() - self._round_at <= LOST_S

    def describe(self) -> Mapping[str, Any]:
        """Its state, as plain values."""
        return {
            "name": self.name,
            "expression": self.expression,
            "workers": len(self.workers),
            "waiting": len(self._member.pending),
            "at_workers": len(self._member.held),
            "leads": self._leading.leader is not None,
            "peers": [f"{key:016x}" for key in self._member.view] if self.is_led else [],
        }

    # Workers

    def join(self, worker: Worker) -> None:
        """Give events to a worker from now on."""
        self.workers.add(worker)
        self._nudge()

    def leave(self, worker: Worker) -> None:
        """A worker is gone: what it has goes to others, of any peer."""
        self.workers.remove(worker)
        for event in worker.has:
            self._member.give_back(event)
        self._nudge()

    def finish(self, worker: Worker, event: int) -> None:
        """A worker has dealt with an event, which nobody gets any more once that is on the disk."""
        worker.has.discard(event)
        if self._nursery is not None:
            self._nursery.start_soon(self._finish, event)

    async def _finish(self, event: int) -> None:
        await self._log.finish(event)
        self._nudge()

    async def _give(self, event: int, leader: int) -> None:
        """Give an event that is assigned here to a worker; fetch it where that is needed."""
        kept = self._log.find(event)
        if kept is None:
            kept = await self._fetch(leader, event)
        worker = self.workers.with_most_room()
        if kept is None or worker is None or event not in self._member.held:
            self._member.give_back(event)
            self._nudge()
            return
        worker.has.add(event)
        await worker.send(kept)

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Do this peer's part until cancelled; started once what comes is kept."""
        subscription = StoredSubscription(self.client, self.name, self.expression)
        kept = [one for one in await self._history.subscriptions() if one.client == self.client]
        past_s = max(map(self._history.past_s, kept), default=0.0)
        with self.scope:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                await nursery.start(
                    partial(feed, self._peer, self.expression, self._history.append, past_s=past_s)
                )
                await self._history.subscribe(subscription, from_start=False)
                task_status.started()
                nursery.start_soon(self._log.read)
                nursery.start_soon(self._log.mark)
                try:
                    await self._live()
                finally:
                    # Others may ask until their connections end; nothing new begins here.
                    self._nursery = None

    async def _fetch(self, key: int, event: int) -> KeptEvent | None:
        """An event that another peer of the group keeps; None where it does not answer."""
        kept = await self._others.fetch(key, event)
        if kept is not None:
            await self._history.append(kept)
        return kept

    # Questions of other peers, each answered at once

    def take_hello(self, sender: int, addresses: Sequence[Address]) -> bytes:
        """A peer says that it is of the group; who leads it is the answer."""
        self._others.learn({sender: tuple(addresses)})
        self._leading.add(sender)
        self._heard.set()
        self._others.note_company([sender])
        leads = self._member.epoch[1] if self.is_led else 0
        return wire.hello_answer(leads, self._others.with_addresses([leads])[leads])

    def take_round(self, told: Round, addresses: Mapping[int, tuple[Address, ...]]) -> bytes:
        """A round of a leader, this peer's own too."""
        self._others.learn(addresses)
        report, assigned, done = self._member.take(told, self.workers.room(len(self._member.held)))
        if report.epoch == told.epoch:
            self._round_at = trio.current_time()
            self._heard.set()
        self._log.learn(done)
        for event in assigned:
            if self._nursery is not None:
                self._nursery.start_soon(self._give, event, told.epoch[1])
        return wire.report(report, self._others.with_addresses(report.view))

    def take_nudge(self, sender: int) -> bytes:
        """A peer has something to report to the leader."""
        self._leading.talk_soon(sender)
        return wire.NOTHING

    def take_fetch(self, event: int) -> bytes:
        """A peer wants an event that it does not keep."""
        kept = self._log.find(event)
        return wire.NOTHING if kept is None else wire.event_answer(kept)

    # Finding the others, and following

    async def _live(self) -> None:
        while True:
            if not await self._is_first():
                await self._follow()
            await self._lead()

    async def _is_first(self) -> bool:
        """Look for the others; return whether this peer is to lead, once that is clear."""
        began, announced = trio.current_time(), False
        while True:
            self._heard = trio.Event()
            snapshot = self._peer.snapshot()
            keys = {one.key for one in snapshot.peers if one.connected} | set(self._member.view)
            found = await self._others.greet(keys - {self._peer.key})
            leaders = {one.leader: one.addresses for one in found.values() if one.leader}
            leaders.pop(self._peer.key, None)
            joining = [key for key, one in found.items() if one.belongs]
            self._others.note_company(joining)
            if leaders:
                self._others.learn(leaders)
                await self._others.greet(set(leaders) - set(found))
                with trio.move_on_after(ANSWER_S):
                    while not self._was_led_since(began):
                        await self._heard.wait()
                        self._heard = trio.Event()
            elif self._may_lead(found, joining, snapshot, began):
                return True
            elif not announced:
                announced = True
                await self._others.announce()
            if self._was_led_since(began):
                return False
            with trio.move_on_after(snapshot.round_s):
                await self._heard.wait()

    def _may_lead(
        self,
        found: Mapping[int, wire.Greeted],
        joining: Sequence[int],
        snapshot: Snapshot,
        began: float,
    ) -> bool:
        """Whether this peer is the one to lead those that have answered, who name no leader."""
        if joining and min(joining) > self._peer.key:
            return True
        if not joining and len(found) >= snapshot.known_peers:
            return True
        return trio.current_time() - began > SETTLE_ROUNDS * snapshot.round_s

    def _was_led_since(self, began: float) -> bool:
        return self._round_at >= began

    async def _follow(self) -> None:
        """Wait until the leader is gone, and it is this peer's turn to take its place."""
        looked_at = trio.current_time()
        while True:
            await trio.sleep(LOOK_S)
            now = trio.current_time()
            if now - looked_at > PAUSE_S:
                self._round_at = now  # nobody could be heard meanwhile
            looked_at = now
            others = sorted(set(self._member.view) - {self._member.epoch[1]})
            rank = others.index(self._peer.key) if self._peer.key in others else len(others)
            if now - self._round_at > LOST_S + rank * ANSWER_S:
                return

    async def _lead(self) -> None:
        epoch = (self._member.epoch[0] + 1, self._peer.key)
        company = self._others.company_since(trio.current_time() - LOST_S)
        view = {self._peer.key, *self._member.view, *company}
        await self._leading.lead(epoch, view)

    # Telling the leader

    def _nudge(self) -> None:
        """Let the leader ask this peer soon."""
        if self._leading.leader is not None:
            self._leading.wake()
        elif self.is_led and not self._nudging and self._nursery is not None:
            self._nudging = True
            self._nursery.start_soon(self._nudge_leader)

    async def _nudge_leader(self) -> None:
        await trio.lowlevel.checkpoint()
        self._nudging = False
        try:
            await self._others.ask(self._member.epoch[1], wire.nudge(self.digest))
        except NoAnswerError:
            return  # it asks by itself before long, or another one does
