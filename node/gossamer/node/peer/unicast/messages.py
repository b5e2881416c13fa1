"""Questions that one peer asks another, whose key and addresses it knows, and their answers.

A question names a service; whoever offers it answers at once, in one step. The asking peer connects
to the other one if it is not connected. Nothing is asked twice here, so that a question without an
answer may have been taken or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import trio
from attrs import define, field

from gossamer.node.errors import (
    BadFrame,
    NoAnswerError,
    PeerUnreachable,
    TransportBroken,
    TransportClosed,
)
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.transport.base.base import Address
from gossamer.node.transport.base.frames import encode_frame
from gossamer.node.transport.base.schema import Frame
from gossamer.node.transport.links import ConnectionPool
from gossamer.protocol.kernel.errors import CapacityError

# Takes the key of the peer that asks and the body of its question, and returns that of the answer.
# It raises ValueError for what no peer that keeps to the protocol asks.
Service = Callable[[int, bytes], bytes]


class Unicast(Protocol):
    """What applications of the node need of `Messages`."""

    @property
    def addresses(self) -> Sequence[Address]:
        """Where this peer listens."""
        ...

    @property
    def connected(self) -> Mapping[int, float]:
        """Keys of the peers that are connected, and since when."""
        ...

    def offer(self, name: str, service: Service) -> None:
        """Have ``service`` answer questions from now on."""
        ...

    async def ask(
        self, key: int, addresses: Sequence[Address], service: str, body: bytes, patience_s: float
    ) -> bytes:
        """Ask peer ``key``; return its answer.

        Raises:
            NoAnswerError: none came; the question may have been taken or not.
        """
        ...


@define(eq=False)
class _Asked:
    key: int
    over: trio.Event = field(factory=trio.Event)
    answer: Frame | None = None


class Messages:
    """The questions of one peer and its answers.

    Attributes:
        addresses: where this peer listens.

    Args:
        key: permanent key of this peer.
        pool: connections to others.
        address_book: where others listen.
        counters: where answers that cannot be sent are counted.
    """

    def __init__(
        self, key: int, pool: ConnectionPool, address_book: AddressBook, counters: Counters
    ) -> None:
        self.addresses: Sequence[Address] = ()
        self._key = key
        self._pool = pool
        self._address_book = address_book
        self._counters = counters
        self._services: dict[str, Service] = {}
        self._asked: dict[int, _Asked] = {}
        self._number = 0

    @property
    def connected(self) -> Mapping[int, float]:
        """Keys of the peers that are connected, and since when."""
        return {connection.identity.key: connection.opened_at for connection in self._pool}

    def offer(self, name: str, service: Service) -> None:
        """Have ``service`` answer questions from now on."""
        self._services[name] = service

    async def ask(
        self, key: int, addresses: Sequence[Address], service: str, body: bytes, patience_s: float
    ) -> bytes:
        """Ask peer ``key``; return its answer.

        Args:
            key: whom; this peer itself too.
            addresses: where it listens, in case that nothing is known of it.
            service: what is asked for.
            body: the question.
            patience_s: how long to wait for the answer, and for a connection.

        Raises:
            NoAnswerError: none came; the question may have been taken or not.
        """
        if key == self._key:
            await trio.lowlevel.checkpoint()
            return self._services[service](key, body)
        self._number += 1
        number = self._number
        asked = self._asked[number] = _Asked(key)
        frame = encode_frame("question", service=service, number=number, body=body)
        why = f"it did not answer within {patience_s:g} s"
        try:
            with trio.move_on_after(patience_s):
                self._learn(key, addresses)
                await self._pool.send(key, frame)
                await asked.over.wait()
                why = "the connection ended before its answer"
        except (PeerUnreachable, TransportBroken, TransportClosed, CapacityError) as error:
            why = str(error)
        finally:
            del self._asked[number]
        if asked.answer is None:
            raise NoAnswerError(key, why)
        if "body" not in asked.answer:
            raise NoAnswerError(key, f"it does not offer {service!r}")
        answer: bytes = asked.answer["body"]
        return answer

    def receive(self, sender: int, frame: Frame) -> None:
        """Take a question or an answer.

        Raises:
            RemoteProtocolError: the question is none.
        """
        if frame["type"] == "answer":
            asked = self._asked.get(frame["number"])
            if asked is not None and asked.key == sender:
                asked.answer = frame
                asked.over.set()
            return
        service, fields = self._services.get(frame["service"]), {}
        if service is not None:
            try:
                fields = {"body": service(sender, frame["body"])}
            except ValueError as error:
                raise BadFrame("question", "body", str(error)[:80], frame["service"]) from None
        if not self._pool.try_send(
            sender, encode_frame("answer", number=frame["number"], **fields)
        ):
            self._counters.drop("queue full")

    def forget(self, key: int) -> None:
        """A peer is connected no more: what it was asked is not answered."""
        for asked in self._asked.values():
            if asked.key == key:
                asked.over.set()

    def _learn(self, key: int, addresses: Sequence[Address]) -> None:
        """Note where a peer listens, unless something is known already."""
        with suppress(CapacityError):
            if not self._address_book.addresses_of(key):
                self._address_book.learn(key, addresses)
