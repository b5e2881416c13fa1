"""Spreads what the authority signs: later versions of the schema, and the list of those revoked.

Peers tell each other the number of the document that they go by, on every new connection and
whenever it has changed; who is behind asks for the document. It is signed by the authority, so that
it does not matter who passes it on. Nothing is said while the first is in force.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, Final, Generic, TypeVar

import trio
from attrs import frozen

from gossamer.node.errors import BadFrame, ClusterFolderError, FrameTooLarge, StoreError
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.looks import next_look
from gossamer.node.monitoring.members import MemberTable
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.frame_types import SCHEMA_FRAMES, FrameService
from gossamer.node.peer.membership.admission import MembershipStatus
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.security.identity import file_stamp
from gossamer.node.security.revocation import RevocationList
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

D = TypeVar("D", RevocationList, SchemaDocument)


@frozen
class MemberContext:
    """What the services of one member share.

    Attributes:
        member: its membership when it was started.
        writer: of its state file, whose lock is the one under which documents are written.
        descriptors: what is believed of others, by their certificates.
        standing: of this peer; told that it is revoked, or cannot renew its certificate.
        now: Unix seconds.
    """

    member: Membership
    writer: StoreWriter
    descriptors: DescriptorCache
    address_book: AddressBook
    pool: ConnectionPool
    counters: Counters
    standing: MembershipStatus
    members: MemberTable
    draws: random.Random
    now: Callable[[], float]

    def send(self, key: int, frame: bytes) -> bool:
        """Send a frame to a peer if it is connected; return whether that was done."""
        try:
            return self.pool.try_send(key, frame)
        except FrameTooLarge:
            self.counters.drop("too large")
            return False


class DocumentService(FrameService, Generic[D]):
    """Keeps a document and its file the same, and spreads it; `run` follows the file.

    Attributes:
        kind: type of the frames that bring it.
        part: their field that holds it.
        title: what people call it.
        first: number of the one that all have.
        nothing: number of a file that holds none.
    """

    kind: ClassVar[str]
    part: ClassVar[str]
    title: ClassVar[str]
    first: ClassVar[int]
    nothing: ClassVar[int]

    def __init__(
        self, context: MemberContext, path: Path, document: D | None = None, kept: int = 0
    ) -> None:
        self._context = context
        self._path = path
        self._document: D | None = document
        self._kept = kept
        self._seen: tuple[int, ...] = ()
        self._news = trio.Event()
        # By peer: the number it told of, whether it was asked, and the number it was given.
        self._told: dict[int, int] = {}
        self._asked: set[int] = set()
        self._given: dict[int, int] = {}

    @property
    def number(self) -> int:
        """Of what is in force."""
        raise NotImplementedError

    def _number_of(self, document: D) -> int:
        raise NotImplementedError

    def _load(self) -> D | None:
        """What the file holds; raises `ClusterFolderError` where that is nothing of use."""
        raise NotImplementedError

    def _save(self, document: D) -> None:
        raise NotImplementedError

    def _read(self, data: bytes) -> D:
        """What another peer has sent, verified; raises `RemoteProtocolError`."""
        raise NotImplementedError

    def _adopt(self, found: D) -> None:
        """Go by ``found`` if it is newer, and tell everybody else."""
        raise NotImplementedError

    async def run(self) -> None:
        """Follow the file, and write to it what peers have brought, until cancelled."""
        while True:
            self._news = trio.Event()
            self._look()
            if self._document is not None and self.number > self._kept:
                await self._keep(self._document)
            self._ask_somebody()
            await self._look_further()
            with trio.move_on_at(next_look(LOOK_S)):
                await self._news.wait()

    async def _look_further(self) -> None:
        """Do what else is due."""

    # Talking

    def greet(self, key: int) -> None:
        """Tell a peer that is newly connected what is in force here."""
        if self.number > self.first:
            self._context.send(key, encode_frame(self.kind, number=self.number))

    def receive(self, sender: int, frame: Frame) -> None:
        """Take a frame about such documents.

        Raises:
            RemoteProtocolError: it brings something other than what it said.
        """
        if frame["type"] != self.kind:
            self._answer(sender)
        elif frame["number"] > self.number:
            if self.part in frame:
                self._take(sender, frame["number"], frame[self.part])
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
        number = self.number
        if self._document is None or self._given.get(sender, 0) >= number:
            return
        fields = {"number": number, self.part: self._document.to_bytes()}
        if self._context.send(sender, encode_frame(self.kind, **fields)):
            self._given[sender] = number

    def _take(self, sender: int, number: int, data: bytes) -> None:
        if sender not in self._asked:
            return  # it was given up, or nobody asked
        self._asked.discard(sender)
        self._told.pop(sender, None)
        found = self._read(data)
        if self._number_of(found) != number:
            raise BadFrame(self.kind, "number", str(number), str(self._number_of(found)))
        self._adopt(found)

    def _ask(self, key: int) -> None:
        if self._context.send(key, encode_frame(f"{self.kind} wanted")):
            self._asked.add(key)

    def _ask_somebody(self) -> None:
        """Ask one of those who told of a newer one; who was asked before did not answer."""
        known = self.number
        self._told = {key: number for key, number in self._told.items() if number > known}
        if self._told:
            self._ask(self._context.draws.choice(sorted(self._told)))

    # The file

    def _look(self) -> None:
        stamp = file_stamp(self._path)
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            found = self._load()
        except ClusterFolderError as error:
            log.warning(f"{self.title} cannot be read", cause=str(error))
            found = None  # what this peer knows is to be there again
        self._kept = self.nothing if found is None else self._number_of(found)
        if found is not None:
            self._adopt(found)

    async def _keep(self, document: D) -> None:
        try:
            await self._context.writer.run(self._replace, document)
        except (StoreError, OSError) as error:
            log.warning(f"{self.title} cannot be kept", cause=str(error))
        else:
            self._kept = self._number_of(document)

    def _replace(self, _: Store, document: D) -> None:
        """Put a document in the file, unless a newer one is there."""
        try:
            there = self._load()
        except ClusterFolderError:
            there = None
        if there is None or self._number_of(document) > self._number_of(there):
            self._save(document)

    def _go_by(self, document: D) -> None:
        self._document = document
        self._asked.clear()
        self._news.set()


class SchemaService(DocumentService[SchemaDocument]):
    """The version of the schema that a running peer goes by, ``version`` when it starts.

    Args:
        change: has the peer go by a later version.
    """

    frames = SCHEMA_FRAMES
    kind, part, title = "schema", "document", "the schema"
    first = nothing = FIRST_VERSION

    def __init__(
        self,
        context: MemberContext,
        version: SchemaVersion,
        change: Callable[[SchemaVersion], None],
    ) -> None:
        super().__init__(context, context.member.folder.schema, kept=FIRST_VERSION)
        self._version = version
        self._change = change

    @property
    def number(self) -> int:
        """Of the version in force."""
        return self._version.number

    def _number_of(self, document: SchemaDocument) -> int:
        return document.version.number

    def _load(self) -> SchemaDocument | None:
        return load_document(self._path, self._context.member.authority)

    def _save(self, document: SchemaDocument) -> None:
        save_document(self._path, document)

    def _read(self, data: bytes) -> SchemaDocument:
        return read_document(data, self._context.member.authority)

    def _adopt(self, found: SchemaDocument) -> None:
        if found.version == self._version:
            self._document = found
        if found.version.number <= self.number:
            return
        if not found.version.continues(self._version):
            log.warning(
                "a version of the schema does not continue the one in force",
                version=found.version.number,
                in_force=self.number,
            )
            return
        self._version = found.version
        self._change(found.version)
        log.info("the schema has changed", version=self.number)
        self._go_by(found)
        for connection in self._context.pool:
            self.greet(connection.identity.key)
