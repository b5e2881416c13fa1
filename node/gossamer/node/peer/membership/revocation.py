"""Shuts out who belongs to the cluster no more, and spreads the list of those revoked.

Peers tell each other the number of the list that they have, on every new connection and whenever it
has grown; who is behind asks for the list. It is signed by the authority, so that it does not
matter who passes it on. Nothing is said while nobody has ever been revoked.

A peer that is revoked itself learns of it from a list, or from whoever refuses it, who shows the
authority's word for it: a proof, which is short, while lists may be long. It keeps the proof in its
folder.

Connections end with the certificate, too. When that is was told by the clock when they began; what
the clock says later does not matter, so that setting it does not end them all.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

import trio

from gossamer.node.errors import (
    BadFrame,
    ClusterFolderError,
    FrameTooLarge,
    PeerRevoked,
    StoreError,
)
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.frame_types import REVOCATION_FRAMES, FrameService
from gossamer.node.peer.membership.admission import MembershipStatus
from gossamer.node.security.certificates import Authority, read_certificate
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.security.identity import write_file
from gossamer.node.security.revocation import (
    RevocationList,
    load_list,
    proves,
    read_list,
    save_list,
)
from gossamer.node.store import Store
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.base import Cause, Farewell
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.links import ConnectionPool
from gossamer.node.transport.schema import Frame

# Seconds between two looks at the file, and until somebody else is asked who has not answered.
LOOK_S: Final = 2.0
REVOKED: Final = "its certificate is revoked; it needs a new invitation"
EXPIRED: Final = "its certificate has expired"


class RevocationFile:
    """The list in a peer's folder, which `gossamer node revoke` may replace at any time.

    Args:
        path: the file.
        authority: of the cluster.
        writer: of the peer's state file, whose lock is the one under which lists are written.
    """

    def __init__(self, path: Path, authority: Authority, writer: StoreWriter) -> None:
        self._path = path
        self._authority = authority
        self._writer = writer
        self._seen: tuple[int, ...] = ()

    def changed(self) -> RevocationList | None:
        """The list, where the file is not as it was at the last call.

        Raises:
            ClusterFolderError: it holds none that the authority signed, or is gone.
        """
        stamp = self._stamp()
        if stamp == self._seen:
            return None
        self._seen = stamp
        return load_list(self._path, self._authority)

    async def keep(self, revoked: RevocationList) -> None:
        """Put ``revoked`` in the file, unless a newer one is there.

        Raises:
            StoreError, OSError: it could not be written; the file is as it was.
        """
        await self._writer.run(self._replace, revoked)

    def _replace(self, _: Store, revoked: RevocationList) -> None:
        try:
            there = load_list(self._path, self._authority).sequence
        except ClusterFolderError:
            there = -1
        if revoked.sequence > there:
            save_list(self._path, revoked)

    def _stamp(self) -> tuple[int, ...]:
        try:
            status = os.stat(self._path)
        except OSError:
            return (-1,)
        return status.st_ino, status.st_size, status.st_mtime_ns


class RevocationService(FrameService):
    """The list that a running peer goes by; `run` keeps it and its file the same.

    Attributes:
        revoked: the newest list met.
    """

    frames = REVOCATION_FRAMES

    def __init__(
        self,
        member: Membership,
        writer: StoreWriter,
        descriptors: DescriptorCache,
        address_book: AddressBook,
        pool: ConnectionPool,
        counters: Counters,
        standing: MembershipStatus,
        *,
        draws: random.Random,
        now: Callable[[], float],
        report_failure: Callable[[int], None],
    ) -> None:
        """A service that goes by the list with which the peer was started.

        Args:
            member: this peer's membership.
            writer: of its state file.
            descriptors: what is believed of others.
            book: where they are found.
            pool: connections to them.
            counters: where those shut out are counted.
            standing: of this peer; told that it is revoked.
            draws: choose who is asked.
            now: Unix seconds.
            report_failure: lets the overlay know that a peer is gone.
        """
        self.revoked = member.revoked
        self._standing = standing
        self._member = member
        self._writer = writer
        self._is_out = False
        self._proof = b""
        self._authority = member.authority
        self._file = RevocationFile(member.folder.revoked, member.authority, writer)
        self._descriptors = descriptors
        self._address_book = address_book
        self._pool = pool
        self._counters = counters
        self._draws = draws
        self._now = now
        self._report_failure = report_failure
        self._news = trio.Event()
        self._kept = member.revoked.sequence
        # By peer: the number it told of, whether it was asked, and the number it was given.
        self._told: dict[int, int] = {}
        self._asked: set[int] = set()
        self._given: dict[int, int] = {}
        # By peer: until when, by trio's clock, its certificate is good.
        self._good_until: dict[int, float] = {}

    async def run(self) -> None:
        """Follow the file, and write to it what peers have brought, until cancelled."""
        if self._member.is_revoked:
            self._leave("the files in its folder")
        while True:
            self._news = trio.Event()
            if self._proof:
                await self._keep_proof()
            self._look()
            if self.revoked.sequence > self._kept:
                await self._keep()
            self._ask_somebody()
            self._expel_expired()
            with trio.move_on_after(LOOK_S):
                await self._news.wait()

    # This peer itself

    def hear(self, proof: bytes) -> None:
        """Take what a peer that refuses this one has shown as the proof of its revocation."""
        key = self._member.identity.key
        if not self._is_out and proof and proves(self._authority, key, proof):
            self._proof = proof
            self._leave("a peer that refused it, with the authority's signature")
            self._news.set()

    def _leave(self, source: str) -> None:
        """Note that this peer belongs no more."""
        if self._is_out:
            return
        self._is_out = True
        error = PeerRevoked(self._member.identity.key)
        log.error("this peer is revoked", cause=str(error), told_by=source)
        self._standing.revoked = True

    async def _keep_proof(self) -> None:
        proof, self._proof = self._proof, b""
        try:
            # In the writer's thread, as nobody waits for it.
            await self._writer.run(lambda _: write_file(self._member.folder.proof, proof))
        except (StoreError, OSError) as error:
            log.warning("the proof of being revoked cannot be kept", cause=str(error))

    # Talking

    def greet(self, key: int) -> None:
        """Take note of a peer that is newly connected, and tell it which list is known here."""
        self._note_end(key)
        self._announce(key)

    def refresh(self, key: int) -> None:
        """A peer's certificate was renewed: if it is connected, that goes on."""
        if key in self._good_until:
            self._note_end(key)

    def _note_end(self, key: int) -> None:
        der = self._descriptors.find_certificate(key)
        if der is not None:
            left_s = read_certificate(der).not_after - self._now()
            self._good_until[key] = trio.current_time() + left_s

    def _announce(self, key: int) -> None:
        if self.revoked.sequence > 0:
            self._send(key, encode_frame("revocations", number=self.revoked.sequence))

    def receive(self, sender: int, frame: Frame) -> None:
        """Take a frame about revocations.

        Raises:
            RemoteProtocolError: it brings something other than what it said.
        """
        if frame["type"] == "revocations wanted":
            self._answer(sender)
        elif frame["number"] > self.revoked.sequence:
            if "list" in frame:
                self._take(sender, frame["number"], frame["list"])
            else:
                self._told[sender] = frame["number"]
                if not self._asked:
                    self._ask(sender)

    def forget(self, key: int) -> None:
        """A peer is connected no more."""
        self._told.pop(key, None)
        self._given.pop(key, None)
        self._good_until.pop(key, None)
        self._asked.discard(key)

    def _answer(self, sender: int) -> None:
        """Give ``sender`` the list; each list once, for it is long and asking is not."""
        number = self.revoked.sequence
        if self._given.get(sender, 0) < number:
            data = self.revoked.to_bytes()
            if self._send(sender, encode_frame("revocations", number=number, list=data)):
                self._given[sender] = number

    def _take(self, sender: int, number: int, data: bytes) -> None:
        if sender not in self._asked:
            return  # it was given up, or nobody asked
        self._asked.discard(sender)
        self._told.pop(sender, None)
        found = read_list(data, self._authority)
        if found.sequence != number:
            raise BadFrame("revocations", "number", str(number), str(found.sequence))
        self._adopt(found)

    def _ask(self, key: int) -> None:
        if self._send(key, encode_frame("revocations wanted")):
            self._asked.add(key)

    def _ask_somebody(self) -> None:
        """Ask one of those who have told of a newer list; who was asked before has not answered."""
        known = self.revoked.sequence
        self._told = {key: number for key, number in self._told.items() if number > known}
        if self._told:
            self._ask(self._draws.choice(sorted(self._told)))

    def _send(self, key: int, frame: bytes) -> bool:
        try:
            return self._pool.try_send(key, frame)
        except FrameTooLarge:
            self._counters.drop("too large")
            return False

    # The list

    def _look(self) -> None:
        try:
            found = self._file.changed()
        except ClusterFolderError as error:
            log.warning("the list of revoked peers cannot be read", cause=str(error))
            # What this peer knows is to be there again.
            self._kept = -1
            return
        if found is not None:
            self._kept = found.sequence
            self._adopt(found)

    async def _keep(self) -> None:
        revoked = self.revoked
        try:
            await self._file.keep(revoked)
        except (StoreError, OSError) as error:
            log.warning("the list of revoked peers cannot be kept", cause=str(error))
        else:
            self._kept = revoked.sequence

    def _adopt(self, found: RevocationList) -> None:
        """Go by ``found`` if it is newer, shut out whom it names, and tell everybody else."""
        if found.sequence <= self.revoked.sequence:
            return
        self.revoked = found
        self._asked.clear()
        self._news.set()
        gone = set(self._descriptors.revoke(found))
        for entry in self._address_book:
            if entry.key in gone or found.forbids(entry.key, 0):
                self._shut_out(entry.key)
        for connection in self._pool:
            self._announce(connection.identity.key)
        if found.forbids(self._member.identity.key, self._member.certificate.serial):
            self._leave("the list of revoked peers")

    def _shut_out(self, key: int) -> None:
        """Break off with a peer that is revoked; it is not to be found again."""
        self._address_book.disown(key)
        self._expel(
            key, "revoked", Farewell(Cause.REVOKED, True, REVOKED, self.revoked.proof_of(key))
        )
        self._report_failure(key)

    def _expel_expired(self) -> None:
        now = trio.current_time()
        for key in [key for key, until in self._good_until.items() if until <= now]:
            del self._good_until[key]
            self._expel(key, "certificate", Farewell(Cause.REFUSED, True, EXPIRED))
            self._report_failure(key)

    def _expel(self, key: int, cause: str, farewell: Farewell) -> None:
        connection = self._pool.get(key)
        if connection is not None:
            self._counters.refuse(cause)
            connection.expel(farewell.cause, farewell.detail, farewell.proof)
