"""Spreads later versions of the schema, and has the peer go by them.

As with the list of revoked peers: peers tell each other the number of the version that they go by,
on every new connection and whenever it has changed; who is behind asks for the document. It is
signed by the authority, so that it does not matter who passes it on. Nothing is said while the
first version is in force.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Final

import trio

from gossamer.node.errors import BadFrame, ClusterFolderError, FrameTooLarge, StoreError
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.frame_types import SCHEMA_FRAMES, FrameService
from gossamer.node.security.cluster import Membership
from gossamer.node.security.schema_document import (
    SchemaDocument,
    load_document,
    read_document,
    save_document,
)
from gossamer.node.store import Store
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.links import ConnectionPool
from gossamer.node.transport.schema import Frame
from gossamer.protocol.content.schema import FIRST_VERSION, SchemaVersion

# Seconds between two looks at the file, and until somebody else is asked who has not answered.
LOOK_S: Final = 2.0


class SchemaService(FrameService):
    """The version of the schema that a running peer goes by; `run` keeps it and its file the same.

    Attributes:
        version: in force.

    Args:
        version: in force when the peer starts.
        member: this peer's membership.
        writer: of its state file, whose lock is the one under which documents are written.
        pool: connections to others.
        counters: where what cannot be sent is counted.
        draws: choose who is asked.
        change: has the peer go by a later version.
    """

    frames = SCHEMA_FRAMES

    def __init__(
        self,
        version: SchemaVersion,
        member: Membership,
        writer: StoreWriter,
        pool: ConnectionPool,
        counters: Counters,
        *,
        draws: random.Random,
        change: Callable[[SchemaVersion], None],
    ) -> None:
        self.version = version
        self._member = member
        self._writer = writer
        self._pool = pool
        self._counters = counters
        self._draws = draws
        self._change = change
        self._document: SchemaDocument | None = None
        self._kept = FIRST_VERSION
        self._seen: tuple[int, ...] = ()
        self._news = trio.Event()
        # By peer: the version it told of, whether it was asked, and the version it was given.
        self._told: dict[int, int] = {}
        self._asked: set[int] = set()
        self._given: dict[int, int] = {}

    async def run(self) -> None:
        """Follow the file, and write to it what peers have brought, until cancelled."""
        while True:
            self._news = trio.Event()
            self._look()
            if self._document is not None and self.version.number > self._kept:
                await self._keep(self._document)
            self._ask_somebody()
            with trio.move_on_after(LOOK_S):
                await self._news.wait()

    # Talking

    def greet(self, key: int) -> None:
        """Tell a peer that is newly connected which version is in force here."""
        if self.version.number > FIRST_VERSION:
            self._send(key, encode_frame("schema", number=self.version.number))

    def receive(self, sender: int, frame: Frame) -> None:
        """Take a frame about the schema.

        Raises:
            RemoteProtocolError: it brings something other than what it said.
        """
        if frame["type"] == "schema wanted":
            self._answer(sender)
        elif frame["number"] > self.version.number:
            if "document" in frame:
                self._take(sender, frame["number"], frame["document"])
            else:
                self._told[sender] = frame["number"]
                if not self._asked:
                    self._ask(sender)

    def forget(self, key: int) -> None:
        """A peer is connected no more."""
        self._told.pop(key, None)
        self._given.pop(key, None)
        self._asked.discard(key)

    def _answer(self, sender: int) -> None:
        """Give ``sender`` the document; each once, for it is long and asking is not."""
        document = self._document
        if document is None or self._given.get(sender, 0) >= self.version.number:
            return
        number = self.version.number
        if self._send(sender, encode_frame("schema", number=number, document=document.to_bytes())):
            self._given[sender] = number

    def _take(self, sender: int, number: int, data: bytes) -> None:
        if sender not in self._asked:
            return  # it was given up, or nobody asked
        self._asked.discard(sender)
        self._told.pop(sender, None)
        found = read_document(data, self._member.authority)
        if found.version.number != number:
            raise BadFrame("schema", "number", str(number), str(found.version.number))
        self._adopt(found)

    def _ask(self, key: int) -> None:
        if self._send(key, encode_frame("schema wanted")):
            self._asked.add(key)

    def _ask_somebody(self) -> None:
        """Ask one of those who told of a later version; who was asked before did not answer."""
        known = self.version.number
        self._told = {key: number for key, number in self._told.items() if number > known}
        if self._told:
            self._ask(self._draws.choice(sorted(self._told)))

    def _send(self, key: int, frame: bytes) -> bool:
        try:
            return self._pool.try_send(key, frame)
        except FrameTooLarge:
            self._counters.drop("too large")
            return False

    # The document

    def _look(self) -> None:
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            found = load_document(self._member.folder.schema, self._member.authority)
        except ClusterFolderError as error:
            log.warning("the schema cannot be read", cause=str(error))
            found = None
        self._kept = FIRST_VERSION if found is None else found.version.number
        if found is not None:
            self._adopt(found)

    def _stamp(self) -> tuple[int, ...]:
        try:
            status = os.stat(self._member.folder.schema)
        except OSError:
            return (-1,)
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _adopt(self, found: SchemaDocument) -> None:
        """Go by ``found`` if it is of a later version, and tell everybody else."""
        if found.version == self.version:
            self._document = found
        if found.version.number <= self.version.number:
            return
        if not found.version.continues(self.version):
            log.warning(
                "a version of the schema does not continue the one in force",
                version=found.version.number,
                in_force=self.version.number,
            )
            return
        self._document, self.version = found, found.version
        self._change(found.version)
        log.info("the schema has changed", version=found.version.number)
        self._asked.clear()
        self._news.set()
        for connection in self._pool:
            self.greet(connection.identity.key)

    async def _keep(self, document: SchemaDocument) -> None:
        try:
            await self._writer.run(self._replace, document)
        except (StoreError, OSError) as error:
            log.warning("the schema cannot be kept", cause=str(error))
        else:
            self._kept = document.version.number

    def _replace(self, _: Store, document: SchemaDocument) -> None:
        folder, authority = self._member.folder, self._member.authority
        try:
            there = load_document(folder.schema, authority)
        except ClusterFolderError:
            there = None
        if there is None or document.version.number > there.version.number:
            save_document(folder.schema, document)
