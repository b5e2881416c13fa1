"""What the processes of peers have in common, whatever stack they run; see the modules `*_peers`.

Each stack runs in an environment of its own, so this needs nothing but the standard library.
"""

from __future__ import annotations

import asyncio
import gc
import random
import struct
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from bench.stacks.peer_requests import answers_stream, describe, serve

# What every event begins with: its number and when it was published or due, Unix seconds.
HEAD = struct.Struct("<Qd")
SEED = 1


class Publication(NamedTuple):
    """An event to be published by a peer, to the subscribers of a topic."""

    event: int
    peer: int
    topic: str
    due_at: float  # Unix seconds; 0 in a burst, once those before it are taken


class Receipt(NamedTuple):
    """An event that the application of a peer took, and when it was sent or due, Unix seconds."""

    peer: int
    event: int
    sent_at: float
    taken_at: float


class Applications(ABC):
    """The peers of this process and the applications that use them."""

    def __init__(self) -> None:
        self.receipts: list[Receipt] = []
        self.published = 0  # events of a stream that the stack has taken
        self.refused: Counter[str] = Counter()
        self._filler = b""
        self._first = 0
        self._counted = 0
        self._arrived: set[tuple[int, int]] = set()

    @abstractmethod
    async def open(self, peers: Sequence[int], settings: dict[str, Any]) -> list[str]:
        """Start these peers; return where each is reached, "" where nobody has to be told."""

    @abstractmethod
    async def join(self, addresses: Sequence[str]) -> None:
        """Connect the peers to those of all processes, by the number of the peer."""

    @abstractmethod
    async def subscribe(self, topics: Sequence[tuple[int, list[str]]]) -> None:
        """Give the events of [peer, topics] to `note`."""

    @abstractmethod
    async def publish_steadily(self, publications: Sequence[Publication]) -> None:
        """Publish each when it is due, whatever becomes of those before."""

    @abstractmethod
    async def publish_at_once(self, publications: Sequence[Publication], window: int) -> None:
        """Publish as fast as the stack takes events, so many of a peer at a time."""

    @abstractmethod
    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Let something run beside the requests."""

    @abstractmethod
    async def close(self) -> None:
        """Part from all others, at the end."""

    async def send(self, publication: Publication) -> None:
        """Publish an event; return once the stack has taken it."""
        raise NotImplementedError

    async def publish_one(self, publication: Publication) -> None:
        """Publish an event, and count it or why it was refused."""
        try:
            await self.send(publication)
        except Exception as error:
            self.refuse(error)
        else:
            self.published += 1

    async def publish(
        self, publications: list[tuple[int, int, str, float]], first: int, size: int, window: int
    ) -> None:
        """Begin to publish this process's share of a stream; `progress` tells how far that is.

        The first number of the stream is above all of streams before; sizes are bytes of an event.
        """
        events = [Publication(*one) for one in publications]
        self.published, self.refused = 0, Counter()
        self._filler = random.Random(SEED).randbytes(size - HEAD.size)
        self._first = first
        self._arrived.clear()
        if events and events[0].due_at:
            self.start(partial(self.publish_steadily, events))
        else:
            self.start(partial(self.publish_at_once, events, window))

    async def progress(self) -> tuple[int, int]:
        """How many events of the stream were published or refused, and how many came once."""
        fresh = self.receipts[self._counted :]
        self._counted += len(fresh)
        self._arrived.update((one.peer, one.event) for one in fresh if one.event >= self._first)
        return self.published + self.refused.total(), len(self._arrived)

    async def take(self) -> dict[str, Any]:
        """What was taken since the last time, and what was refused."""
        taken, self.receipts, self._counted = self.receipts, [], 0
        return {"receipts": taken, "refused": dict(self.refused)}

    def payload(self, publication: Publication) -> bytes:
        return HEAD.pack(publication.event, publication.due_at or time.time()) + self._filler

    def note(self, peer: int, payload: bytes) -> None:
        taken_at = time.time()
        event, sent_at = HEAD.unpack_from(payload)
        self.receipts.append(Receipt(peer, event, sent_at, taken_at))

    def refuse(self, error: BaseException) -> None:
        self.refused[describe(error)] += 1


def by_peer(publications: Sequence[Publication]) -> dict[int, list[Publication]]:
    shares: dict[int, list[Publication]] = {}
    for one in publications:
        shares.setdefault(one.peer, []).append(one)
    return shares


class AsyncioApplications(Applications):
    """Applications in one loop of asyncio."""

    def __init__(self) -> None:
        super().__init__()
        self._tasks: set[asyncio.Future[None]] = set()

    def start(self, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.ensure_future(work())
        self._tasks.add(task)  # the loop holds it by a weak reference only
        task.add_done_callback(self._tasks.discard)


def run_on_asyncio(make: Callable[[], Applications]) -> None:
    answers = answers_stream()

    async def work() -> None:
        await serve(make(), partial(asyncio.to_thread, sys.stdin.readline), answers)

    gc.freeze()
    asyncio.run(work())
