"""The events of one queue group that this peer keeps, and what is known to be done of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import trio

from gossamer.node.errors import StoreError
from gossamer.node.local.history import GROUP_MARK, RETRY_S, History, KeptEvent
from gossamer.node.local.peer_like import PeerLike
from gossamer.node.monitoring.logs import log
from gossamer.protocol.content.filters.expressions import Expression
from gossamer.protocol.patterns.groups import Member

# Events taken from the log before earlier ones are done.
AHEAD: Final = 1024


class GroupLog:
    """The events of a group as they are kept; `read` and `mark` have to run.

    Args:
        peer, history: of the node.
        client: the name under which they are kept.
        wanted: the group's expression.
        member: told of every event that is to be done.
        on_event: called with the id of each of these.
        on_news: called when something has come.
    """

    def __init__(
        self,
        peer: PeerLike,
        history: History,
        client: str,
        wanted: Expression,
        member: Member,
        on_event: Callable[[int], None],
        on_news: Callable[[], None],
    ) -> None:
        self._peer = peer
        self._history = history
        self._client = client
        self._wanted = wanted
        self._member = member
        self._on_event = on_event
        self._on_news = on_news
        self._kept: dict[int, KeptEvent] = {}
        self._read_to = 0
        self._to_mark: list[int] = []
        self._marking = trio.Event()
        self._room = trio.Event()

    @property
    def is_full(self) -> bool:
        """Whether there may be more events further on."""
        return len(self._member.pending) >= AHEAD

    def keeps(self, event: int) -> bool:
        """Whether `find` finds it."""
        return event in self._kept

    def find(self, event: int) -> KeptEvent | None:
        """An event that is to be done, None where it is not, or further on."""
        return self._kept.get(event)

    async def read(self) -> None:
        """Take events from the log until cancelled."""
        self._read_to = self._history.place(self._client)
        while True:
            while self.is_full:
                self._room = trio.Event()
                await self._room.wait()
            grown = self._history.grown
            batch = await self._history.read(self._client, self._read_to, self._peer.schema)
            for kept, got in batch:
                self._read_to = kept.position
                wanted = not got and self._wanted.matches(kept.values)
                if wanted and self._member.arrive(kept.id):
                    self._kept[kept.id] = kept
                    self._on_event(kept.id)
            if batch:
                self._on_news()
            else:
                await grown.wait()

    async def mark(self) -> None:
        """Note on the disk what `learn` was told, until cancelled."""
        while True:
            await self._marking.wait()
            self._marking = trio.Event()
            events, self._to_mark = self._to_mark, []
            await self._settle(events)

    def learn(self, done: Iterable[int]) -> None:
        """Events were done elsewhere; that is on the disk before long."""
        self._to_mark.extend(done)
        if self._to_mark:
            self._forget(self._to_mark)
            self._marking.set()

    async def finish(self, event: int) -> None:
        """An event was done here; returns once that is on the disk, and known to the member."""
        await self._settle([event], besides=event)
        self._member.finish(event)
        self._forget([event])

    async def _settle(self, events: list[int], besides: int = -1) -> None:
        """Note on the disk that events are done; waits while it takes nothing."""
        while True:
            try:
                await self._history.settle(self._client, self._place(besides), events)
                return
            except StoreError as error:
                log.warning("what a group has done cannot be kept", cause=str(error))
                await trio.sleep(RETRY_S)

    def _place(self, besides: int) -> int:
        """The position up to which nothing is to be done any more."""
        positions = (self._kept[one].position for one in self._member.pending if one != besides)
        return min(positions, default=self._read_to + 1) - 1

    def _forget(self, events: Iterable[int]) -> None:
        for event in events:
            self._kept.pop(event, None)
        self._room.set()


def client_of(name: str, expression: str) -> str:
    """The name under which the events of a group are kept."""
    return f"{GROUP_MARK}{name}{GROUP_MARK}{expression}"


def group_of(client: str) -> tuple[str, str] | None:
    """Name and expression of the group whose events are kept under a name; None for clients."""
    if not client.startswith(GROUP_MARK):
        return None
    name, _, expression = client[1:].partition(GROUP_MARK)
    return name, expression
