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
from contextlib import suppress
from functools import partial
from typing import Any, Final

import trio
from attrs import define, field

from gossamer.node.errors import NoAnswerError, NodeError
from gossamer.node.local.groups import wire
from gossamer.node.local.groups.log import GroupLog, client_of
from gossamer.node.local.history import History, KeptEvent
from gossamer.node.local.peer_like import EventLike, PeerLike
from gossamer.node.local.services import feed
from gossamer.node.monitoring.logs import log
from gossamer.node.page.snapshot import Snapshot
from gossamer.node.store.subscriptions import StoredSubscription
from gossamer.node.transport.base.base import Address
from gossamer.protocol.content.expressions.language import parse_expression
from gossamer.protocol.patterns.groups import (
    ANSWER_S,
    HEARTBEAT_S,
    LOST_S,
    Leader,
    Member,
    Report,
    Round,
)

# Rounds of gossip after which a peer that has announced itself would have been heard.
SETTLE_ROUNDS: Final = 6
# Between two announcements of a leader, and two looks of one that follows.
ANNOUNCE_S: Final = 30.0
LOOK_S: Final = 0.5
# Rounds of a leader with itself in a row: events that are kept, by those of one round.
TALKS: Final = 8
# Between two attempts of a leader to reach a peer whose connection has ended.
AGAIN_S: Final = 0.25
# A gap between two looks that says that this process was paused.
PAUSE_S: Final = 2.0
# An event that this peer has not got is fetched once others have had it for so long, not again
# before so many others.
UNKNOWN_S: Final = 3.0
UNKNOWN: Final = 4096


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


class Group:
    """This peer in a group; `run` does its part."""

    def __init__(
        self, peer: PeerLike, history: History, name: str, expression: str, done: Iterable[int]
    ) -> None:
        self.name, self.expression = name, expression
        self.digest = wire.digest_of(name, expression)
        self.idle_since = trio.current_time()
        self.leader: Leader | None = None
        self.left = trio.Event()  # set when a worker leaves; another one then
        self.scope = trio.CancelScope()
        self._peer = peer
        self._history = history
        self._member = Member(peer.key, done)
        wanted = parse_expression(peer.schema, expression)
        self._log = GroupLog(
            peer, history, self.client, wanted, self._member, self._on_event, self._wake
        )
        self._workers: list[Worker] = []
        self._addresses: dict[int, tuple[Address, ...]] = {}
        self._company: dict[int, float] = {}
        self._unknown: dict[int, float] = {}
        self._round_at = -math.inf
        self._wakes: dict[int, trio.Event] = {}
        self._news = trio.Event()
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
            "workers": len(self._workers),
            "waiting": len(self._member.pending),
            "at_workers": len(self._member.held),
            "leads": self.leader is not None,
            "peers": [f"{key:016x}" for key in self._member.view] if self.is_led else [],
        }

    @property
    def has_workers(self) -> bool:
        """Whether applications of this node take its events."""
        return bool(self._workers)

    # Workers

    def join(self, worker: Worker) -> None:
        """Give events to a worker from now on."""
        self._workers.append(worker)
        self._nudge()

    def leave(self, worker: Worker) -> None:
        """A worker is gone: what it has goes to others, of any peer."""
        self._workers.remove(worker)
        self.left.set()
        self.left = trio.Event()
        self.idle_since = trio.current_time()
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

    @property
    def _room(self) -> int:
        given = sum(len(worker.has) for worker in self._workers)
        queued = len(self._member.held) - given
        return max(0, sum(worker.window for worker in self._workers) - given - max(0, queued))

    async def _give(self, event: int, leader: int) -> None:
        """Give an event that is assigned here to a worker; fetch it where that is needed."""
        kept = self._log.find(event)
        if kept is None:
            kept = await self._fetch(leader, event)
        free = [one for one in self._workers if len(one.has) < one.window]
        if kept is None or not free or event not in self._member.held:
            self._member.give_back(event)
            self._nudge()
            return
        worker = max(free, key=lambda one: one.window - len(one.has))
        worker.has.add(event)
        await worker.send(kept)

    def _on_event(self, event: int) -> None:
        if self.leader is not None:
            self.leader.arrive(event)

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Do this peer's part until cancelled; started once what comes is kept."""
        subscription = StoredSubscription(self.client, self.name, self.expression)
        with self.scope:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                await nursery.start(
                    partial(feed, self._peer, self.expression, self._history.append)
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
        question = wire.fetch(self.digest, event)
        try:
            raw = await self._ask(key, question)
            kept = wire.read_event(raw, event, self._peer.schema)
        except (NoAnswerError, ValueError):
            return None
        if kept is not None:
            await self._history.append(kept)
        return kept

    # Questions of other peers, each answered at once

    def take_hello(self, sender: int, addresses: Sequence[Address]) -> bytes:
        """A peer says that it is of the group; who leads it is the answer."""
        self._addresses[sender] = tuple(addresses)
        if self.leader is not None:
            if self.leader.add(sender):
                self._start_talking()
            self._wake()
        self._heard.set()
        self._company[sender] = trio.current_time()
        leads = self._member.epoch[1] if self.is_led else 0
        return wire.hello_answer(leads, self._with_addresses([leads])[leads])

    def take_round(self, told: Round, addresses: Mapping[int, tuple[Address, ...]]) -> bytes:
        """A round of a leader, this peer's own too."""
        self._addresses.update(addresses)
        report, assigned, done = self._member.take(told, self._room)
        if report.epoch == told.epoch:
            self._round_at = trio.current_time()
            self._heard.set()
        self._log.learn(done)
        for event in assigned:
            if self._nursery is not None:
                self._nursery.start_soon(self._give, event, told.epoch[1])
        return wire.report(report, self._with_addresses(report.view))

    def take_nudge(self, sender: int) -> bytes:
        """A peer has something to report to the leader."""
        if sender in self._wakes:
            self._wakes[sender].set()
        return wire.NOTHING

    def take_fetch(self, event: int) -> bytes:
        """A peer wants an event that it does not keep."""
        kept = self._log.find(event)
        return wire.NOTHING if kept is None else wire.event_answer(kept)

    def _with_addresses(self, keys: Iterable[int]) -> dict[int, tuple[Address, ...]]:
        own = {self._peer.key: tuple(self._peer.messages.addresses)}
        return {key: own.get(key) or self._addresses.get(key, ()) for key in keys}

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
            found = await self._greet(keys - {self._peer.key})
            leaders = {one.leader: one.addresses for one in found.values() if one.leader}
            leaders.pop(self._peer.key, None)
            joining = [key for key, one in found.items() if one.belongs]
            self._company |= dict.fromkeys(joining, trio.current_time())
            if leaders:
                self._addresses |= leaders
                await self._greet(set(leaders) - set(found))
                with trio.move_on_after(ANSWER_S):
                    while not self._was_led_since(began):
                        await self._heard.wait()
                        self._heard = trio.Event()
            elif self._may_lead(found, joining, snapshot, began):
                return True
            elif not announced:
                announced = True
                await self._announce()
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

    async def _greet(self, keys: Iterable[int]) -> dict[int, wire.Greeted]:
        """Say to peers that this one is of the group; return what those said that answered."""
        found: dict[int, wire.Greeted] = {}
        question = wire.hello(self.digest, self._peer.messages.addresses)

        async def greet(key: int) -> None:
            try:
                found[key] = wire.read_hello_answer(await self._ask(key, question))
            except (NoAnswerError, ValueError):
                return

        async with trio.open_nursery() as nursery:
            for key in keys:
                nursery.start_soon(greet, key)
        return found

    async def _announce(self) -> None:
        """Say to all who subscribe to the expression that this peer is of the group."""
        body = wire.announcement(self.digest, self._peer.messages.addresses)
        with suppress(NodeError):  # it is not acknowledged, or the peer is about to stop
            await self._peer.announce(self.expression, body)

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

    # Leading

    async def _lead(self) -> None:
        """Lead the group until another peer does."""
        epoch = (self._member.epoch[0] + 1, self._peer.key)
        recent = trio.current_time() - LOST_S
        company = [key for key, at in self._company.items() if at > recent]
        view = {self._peer.key, *self._member.view, *company}
        self.leader = leader = Leader(epoch, view, self._member.pending, self._member.is_done)
        log.info("this peer leads a group", group=self.name, epoch=epoch[0])
        try:
            async with trio.open_nursery() as nursery:
                self._talking = nursery
                nursery.start_soon(self._announce_on)
                while not leader.deposed:
                    self._news = trio.Event()
                    self._talk_to_itself(leader)
                    for key in leader.assign(trio.current_time(), self._log.keeps):
                        if key == self._peer.key:
                            self._talk_to_itself(leader)
                        elif key in self._wakes:
                            self._wakes[key].set()
                    self._start_talking()
                    with trio.move_on_after(HEARTBEAT_S):
                        await self._news.wait()
                nursery.cancel_scope.cancel()
        finally:
            self.leader = None
            self._wakes.clear()
        log.info("another peer leads a group", group=self.name)

    def _talk_to_itself(self, leader: Leader) -> None:
        """Talk to this peer as to the others, as long as there is something new."""
        key = self._peer.key
        for _ in range(TALKS):
            told = leader.round_for(key)
            report, _ = wire.read_report(self.take_round(told, {}))
            self._take_report(leader, key, told, report)
            if leader.deposed or not leader.has_news(key):
                return

    def _start_talking(self) -> None:
        """Talk to peers of the view that are not talked to."""
        assert self.leader is not None
        for key in self.leader.view:
            if key != self._peer.key and key not in self._wakes:
                self._wakes[key] = trio.Event()
                self._talking.start_soon(self._talk, self.leader, key)

    async def _talk(self, leader: Leader, key: int) -> None:
        """Talk to one peer until it does not answer."""
        try:
            while not leader.deposed:
                self._wakes[key] = trio.Event()
                told, raw = await self._exchange(leader, key)
                report, addresses = wire.read_report(raw)
                self._addresses |= addresses
                for event in self._missing(self._take_report(leader, key, told, report)):
                    await self._fetch(key, event)
                self._wake()
                if not leader.has_news(key):
                    with trio.move_on_after(HEARTBEAT_S):
                        await self._wakes[key].wait()
        except (NoAnswerError, ValueError) as error:
            who = f"{key:016x}"
            log.info("a peer is of a group no more", group=self.name, peer=who, cause=str(error))
            leader.remove(key)
            self._wakes.pop(key, None)
        self._wake()

    async def _exchange(self, leader: Leader, key: int) -> tuple[Round, bytes]:
        """A round with one peer, and its answer.

        Where the connection ends first the peer may have taken the round, so that what it has does
        not go to others as long as it may answer the next one.

        Raises:
            NoAnswerError: it did not answer in time.
        """
        deadline = trio.current_time() + ANSWER_S
        while True:
            told = leader.round_for(key)
            question = wire.round_question(self.digest, told, self._with_addresses(told.view))
            try:
                left_s = deadline - trio.current_time()
                return told, await self._ask(key, question, left_s)
            except NoAnswerError:
                if trio.current_time() + AGAIN_S >= deadline:
                    raise
            await trio.sleep(AGAIN_S)

    def _take_report(self, leader: Leader, key: int, told: Round, report: Report) -> list[int]:
        """Take an answer to a round; return the events that only that peer keeps."""
        news, unknown = leader.take(key, told, report, trio.current_time())
        self._log.learn(self._member.learn(news))
        if news:
            for wake in self._wakes.values():
                wake.set()
        return unknown

    def _missing(self, unknown: Iterable[int]) -> list[int]:
        """Those of the events that another peer keeps which this one will not get by itself."""
        if self._log.is_full:
            return []  # they may be further on in the log
        now, missing = trio.current_time(), []
        for event in unknown:
            since = self._unknown.setdefault(event, now)
            if now - since > UNKNOWN_S:
                self._unknown[event] = math.inf
                missing.append(event)
        while len(self._unknown) > UNKNOWN:
            del self._unknown[next(iter(self._unknown))]
        return missing

    async def _announce_on(self) -> None:
        while True:
            await self._announce()
            await trio.sleep(ANNOUNCE_S)

    def _wake(self) -> None:
        """There is something to assign, or to tell."""
        self._news.set()
        if self.leader is not None:
            for key, wake in self._wakes.items():
                if self.leader.has_news(key):
                    wake.set()

    # Telling the leader

    def _nudge(self) -> None:
        """Let the leader ask this peer soon."""
        if self.leader is not None:
            self._wake()
        elif self.is_led and not self._nudging and self._nursery is not None:
            self._nudging = True
            self._nursery.start_soon(self._nudge_leader)

    async def _nudge_leader(self) -> None:
        await trio.lowlevel.checkpoint()
        self._nudging = False
        try:
            await self._ask(self._member.epoch[1], wire.nudge(self.digest))
        except NoAnswerError:
            return  # it asks by itself before long, or another one does

    async def _ask(self, key: int, question: bytes, patience_s: float = ANSWER_S) -> bytes:
        where = self._addresses.get(key, ())
        return await self._peer.messages.ask(key, where, wire.SERVICE, question, patience_s)
