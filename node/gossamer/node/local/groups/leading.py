"""What the leader of a queue group does: rounds with every peer of the group, itself included."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

import trio

from gossamer.node.errors import NoAnswerError, NodeError
from gossamer.node.local.groups import wire
from gossamer.node.local.groups.log import GroupLog
from gossamer.node.local.history import KeptEvent
from gossamer.node.local.peer_like import PeerLike
from gossamer.node.monitoring.logs import log
from gossamer.node.transport.base import Address
from gossamer.protocol.patterns.groups import ANSWER_S, HEARTBEAT_S, Leader, Member, Report, Round

# The other peers of one queue group: where they are, and what is asked of them.


class OtherPeers:
    """Talks to the other peers of a group."""

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


# Between two announcements of a leader.
ANNOUNCE_S: Final = 30.0
# Rounds of a leader with itself in a row: events that are kept, by those of one round.
TALKS: Final = 8
# Between two attempts of a leader to reach a peer whose connection has ended.
AGAIN_S: Final = 0.25
# A gap between two looks at the clock that says that this process was paused.
PAUSE_S: Final = 2.0
# An event that this peer has not got is fetched once others have had it for so long, not again
# before so many others.
UNKNOWN_S: Final = 3.0
UNKNOWN: Final = 4096

TakeRound = Callable[[Round, Mapping[int, tuple[Address, ...]]], bytes]


class Leading:
    """Leads one group whenever this peer is to.

    Attributes:
        leader: the rules, None while another peer leads.

    Args:
        name: of the group.
        digest: of the group.
        key: of this peer.
        member: this peer in the group.
        group_log: the events that it keeps.
        others: the other peers.
        take_round: takes a round of the leader as any peer does; its answer.
        fetch: gets from a peer an event that this one has not got.
    """

    def __init__(
        self,
        name: str,
        digest: bytes,
        key: int,
        member: Member,
        group_log: GroupLog,
        others: OtherPeers,
        take_round: TakeRound,
        fetch: Callable[[int, int], Awaitable[object]],
    ) -> None:
        self.leader: Leader | None = None
        self._name = name
        self._digest = digest
        self._key = key
        self._member = member
        self._log = group_log
        self._others = others
        self._take_round = take_round
        self._fetch = fetch
        self._unknown: dict[int, float] = {}
        self._wakes: dict[int, trio.Event] = {}
        self._news = trio.Event()
        self._looked_at = self._woken_at = -math.inf

    async def lead(self, epoch: tuple[int, int], view: set[int]) -> None:
        """Lead the peers of ``view`` in ``epoch`` until another peer does."""
        self.leader = leader = Leader(epoch, view, self._member.pending, self._member.is_done)
        log.info("this peer leads a group", group=self._name, epoch=epoch[0])
        self._looked_at = trio.current_time()
        try:
            async with trio.open_nursery() as nursery:
                self._talking = nursery
                nursery.start_soon(self._announce_on)
                while not leader.deposed:
                    self._news = trio.Event()
                    self._look_for_a_pause()
                    self._talk_to_itself(leader)
                    for key in leader.assign(trio.current_time(), self._log.keeps):
                        if key == self._key:
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
        log.info("another peer leads a group", group=self._name)

    def arrive(self, event: int) -> None:
        """This peer keeps an event that is to be done."""
        if self.leader is not None:
            self.leader.arrive(event)

    def add(self, key: int) -> None:
        """A peer says that it is of the group."""
        if self.leader is not None:
            if self.leader.add(key):
                self._start_talking()
            self.wake()

    def talk_soon(self, key: int) -> None:
        """A peer has something to report."""
        if key in self._wakes:
            self._wakes[key].set()

    def wake(self) -> None:
        """There is something to assign, or to tell."""
        self._news.set()
        if self.leader is not None:
            for key, wake in self._wakes.items():
                if self.leader.has_news(key):
                    wake.set()

    def _look_for_a_pause(self) -> None:
        """Note when this process was paused: nobody's answer could be heard meanwhile."""
        now = trio.current_time()
        if now - self._looked_at > PAUSE_S:
            self._woken_at = now
        self._looked_at = now

    def _talk_to_itself(self, leader: Leader) -> None:
        """Talk to this peer as to the others, as long as there is something new."""
        key = self._key
        for _ in range(TALKS):
            told = leader.round_for(key)
            report, _ = wire.read_report(self._take_round(told, {}))
            self._take_report(leader, key, told, report)
            if leader.deposed or not leader.has_news(key):
                return

    def _start_talking(self) -> None:
        assert self.leader is not None
        for key in self.leader.view:
            if key != self._key and key not in self._wakes:
                self._wakes[key] = trio.Event()
                self._talking.start_soon(self._talk, self.leader, key)

    async def _talk(self, leader: Leader, key: int) -> None:
        """Talk to one peer until it does not answer."""
        try:
            while not leader.deposed:
                self._wakes[key] = trio.Event()
                told, raw = await self._exchange(leader, key)
                report, addresses = wire.read_report(raw)
                self._others.learn(addresses)
                for event in self._missing(self._take_report(leader, key, told, report)):
                    await self._fetch(key, event)
                self.wake()
                if not leader.has_news(key):
                    with trio.move_on_after(HEARTBEAT_S):
                        await self._wakes[key].wait()
        except (NoAnswerError, ValueError) as error:
            who = f"{key:016x}"
            log.info("a peer is of a group no more", group=self._name, peer=who, cause=str(error))
            leader.remove(key)
            self._wakes.pop(key, None)
        self.wake()

    async def _exchange(self, leader: Leader, key: int) -> tuple[Round, bytes]:
        """A round with one peer, and its answer.

        Where the connection ends first the peer may have taken the round, so that what it has does
        not go to others as long as it may answer the next one. After a pause of this process, in
        which another peer may have begun to lead, it has the whole time once more.

        Raises:
            NoAnswerError: it did not answer in time.
        """
        deadline = trio.current_time() + ANSWER_S
        while True:
            told = leader.round_for(key)
            question = wire.round_question(
                self._digest, told, self._others.with_addresses(told.view)
            )
            try:
                left_s = deadline - trio.current_time()
                return told, await self._others.ask(key, question, left_s)
            except NoAnswerError:
                await trio.sleep(AGAIN_S)  # a pause is noted meanwhile
                deadline = max(deadline, self._woken_at + ANSWER_S)
                if trio.current_time() >= deadline:
                    raise

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
            await self._others.announce()
            await trio.sleep(ANNOUNCE_S)
