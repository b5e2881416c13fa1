"""Shuts out who belongs to the cluster no more; the list of those revoked spreads by `documents`.

A peer that is revoked itself learns of it from a list, or from whoever refuses it, who shows the
authority's word for it: a proof, which is short, while lists may be long. It keeps the proof in its
folder.

Connections end with the certificate, too. When that is was told by the clock when they began; what
the clock says later does not matter, so that setting it does not end them all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from gossamer.node.errors import PeerRevoked, StoreError
from gossamer.node.monitoring.logs import log
from gossamer.node.peer.frames.frame_types import REVOCATION_FRAMES
from gossamer.node.peer.membership.documents import DocumentService, MemberContext
from gossamer.node.security.certificates import read_certificate
from gossamer.node.security.identity import write_file
from gossamer.node.security.revocation import (
    RevocationList,
    load_list,
    proves,
    read_list,
    save_list,
)
from gossamer.node.transport.base import Cause, Farewell

REVOKED: Final = "its certificate is revoked; it needs a new invitation"
EXPIRED: Final = "its certificate has expired"


class RevocationService(DocumentService[RevocationList]):
    """The list of those revoked that a running peer goes by.

    Args:
        report_failure: lets the overlay know that a peer is gone.
    """

    frames = REVOCATION_FRAMES
    kind, part, title = "revocations", "list", "the list of revoked peers"
    first, nothing = 0, -1
    _document: RevocationList

    def __init__(self, context: MemberContext, report_failure: Callable[[int], None]) -> None:
        member = context.member
        super().__init__(context, member.folder.revoked, member.revoked, member.revoked.sequence)
        self._member = member
        self._report_failure = report_failure
        self._is_out = False
        self._proof = b""
        # By peer: until when, by trio's clock, its certificate is good.
        self._good_until: dict[int, float] = {}

    @property
    def revoked(self) -> RevocationList:
        """The newest list met."""
        return self._document

    @property
    def number(self) -> int:
        """Of that list."""
        return self.revoked.sequence

    def _number_of(self, document: RevocationList) -> int:
        return document.sequence

    def _load(self) -> RevocationList:
        return load_list(self._path, self._member.authority)

    def _save(self, document: RevocationList) -> None:
        save_list(self._path, document)

    def _read(self, data: bytes) -> RevocationList:
        return read_list(data, self._member.authority)

    async def run(self) -> None:
        """Follow the file, and write to it what peers have brought, until cancelled."""
        if self._member.is_revoked:
            self._leave("the files in its folder")
        await super().run()

    async def _look_further(self) -> None:
        if self._proof:
            await self._keep_proof()
        self._expel_expired()

    # This peer itself

    def hear(self, proof: bytes) -> None:
        """Take what a peer that refuses this one has shown as the proof of its revocation."""
        key = self._member.identity.key
        if not self._is_out and proof and proves(self._member.authority, key, proof):
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
        self._context.standing.revoked = True

    async def _keep_proof(self) -> None:
        proof, self._proof = self._proof, b""
        try:
            # In the writer's thread, as nobody waits for it.
            await self._context.writer.run(lambda _: write_file(self._member.folder.proof, proof))
        except (StoreError, OSError) as error:
            log.warning("the proof of being revoked cannot be kept", cause=str(error))

    # Others

    def greet(self, key: int) -> None:
        """Take note of a peer that is newly connected, and tell it which list is known here."""
        self._note_end(key)
        super().greet(key)

    def forget(self, key: int) -> None:
        """A peer is connected no more."""
        super().forget(key)
        self._good_until.pop(key, None)

    def refresh(self, key: int) -> None:
        """A peer's certificate was renewed: if it is connected, that goes on."""
        if key in self._good_until:
            self._note_end(key)

    def _note_end(self, key: int) -> None:
        der = self._context.descriptors.find_certificate(key)
        if der is not None:
            left_s = read_certificate(der).not_after - self._context.now()
            self._good_until[key] = trio.current_time() + left_s

    def _adopt(self, found: RevocationList) -> None:
        """Go by ``found`` if it is newer, shut out whom it names, and tell everybody else."""
        if found.sequence <= self.number:
            return
        self._go_by(found)
        gone = set(self._context.descriptors.revoke(found))
        for entry in self._context.address_book:
            if entry.key in gone or found.forbids(entry.key, 0):
                self._shut_out(entry.key)
        for connection in self._context.pool:
            super().greet(connection.identity.key)
        if found.forbids(self._member.identity.key, self._member.certificate.serial):
            self._leave("the list of revoked peers")

    def _shut_out(self, key: int) -> None:
        """Break off with a peer that is revoked; it is not to be found again."""
        self._context.address_book.disown(key)
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
        connection = self._context.pool.get(key)
        if connection is not None:
            self._context.counters.refuse(cause)
            connection.expel(farewell.cause, farewell.detail, farewell.proof)
