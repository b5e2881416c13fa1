"""Keeps certificates from expiring: asks for new ones in time, and passes on what others ask.

Once two thirds of a certificate's time are over, its peer asks whoever it is connected to, and
asks again until it has a new one. Who holds the authority's key answers; others pass the request
on, each peer's at most once a minute, and the answer back by the way on which the request
came. So it takes no address of the holder, and works for brokers, which connect to their neighbours
only.

A new certificate is put in place while the peer runs: connections that there are go on, and the
peers at their other ends are told, as they would end them with the old certificate. New files in
the folder (of `gossamer node renew`) are found and put in place as well. The authority's own
certificate travels with every answer; a newer one is told to all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import trio
from attrs import evolve

from gossamer.node.errors import (
    BadFrame,
    JoinError,
    NodeError,
    RevokedCertificateError,
    SecurityError,
    StoreError,
    UntimelyCertificateError,
)
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.looks import next_look
from gossamer.node.peer.frames.frame_types import RENEWAL_FRAMES, FrameService
from gossamer.node.peer.membership.documents import LOOK_S, MemberContext
from gossamer.node.peer.membership.renewal_requests import MAX_PENDING, RenewalRequests
from gossamer.node.peer.membership.revocation import RevocationService
from gossamer.node.security.certificates import (
    AUTHORITY_LIFETIME_S,
    CLOCK_SLACK_S,
    DAY_S,
    Authority,
    PeerCertificate,
    date_text,
    read_certificate,
)
from gossamer.node.security.cluster import (
    Membership,
    open_membership,
    previous_membership,
    save_renewed,
    stamp_of,
)
from gossamer.node.security.identity import key_text
from gossamer.node.security.joining.admission import (
    Registrar,
    open_registrar,
    renew_here,
    renew_peer,
)
from gossamer.node.security.renewal import (
    DUE,
    RenewalRequest,
    Renewed,
    accept,
    ask,
    authority_due_at,
    check_request,
    due_at,
    is_name,
    newer_authority,
)
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.schema import Frame
from gossamer.protocol.kernel.errors import CapacityError

# A peer asks between DUE and this part of its certificate's time, so that those that were made
# together do not ask together; and again after the first of these times, then twice as long, up to
# the last and to a hundredth of what is left.
LATEST_DUE: Final = 0.8
FIRST_RETRY_S, LAST_RETRY_S = 30.0, 6 * 3600.0
# Unanswered requests after which people are told.
IN_VAIN: Final = 3


class RenewalService(FrameService):
    """Certificates of a running peer and of those around it; `run` keeps them from expiring.

    Attributes:
        member: this peer's membership as it is now.

    Args:
        revocations: who is revoked, and until when connections are good.
        install: puts a renewed membership in place.
        name: that the peer is to have; "" for the one in its certificate.
    """

    frames = RENEWAL_FRAMES

    def __init__(
        self,
        context: MemberContext,
        revocations: RevocationService,
        install: Callable[[Membership], None],
        name: str,
    ) -> None:
        self.member = member = context.member
        self._context = context
        self._revocations = revocations
        self._install = install
        self._name = name or member.certificate.name
        self._stamp = stamp_of(member.folder)
        self._share = context.draws.uniform(DUE, LATEST_DUE)
        self._ask_at = 0.0  # by trio's clock, at the earliest
        self._asked_in_vain = 0
        self._was_renewed = False  # since the peer was started
        self._news = trio.Event()
        self._inbox: deque[tuple[int, RenewalRequest]] = deque(maxlen=MAX_PENDING)
        self._renewed: Renewed | None = None
        self._requests = RenewalRequests()
        context.standing.ask("certificate", self.complaint)

    async def run(self) -> None:
        """Renew what has to be renewed, until cancelled."""
        while True:
            self._news = trio.Event()
            await self._take_own()
            self._look()
            self._fall_back()
            if self._is_due() and trio.current_time() >= self._ask_at:
                await self._renew()
            while self._inbox:
                await self._grant(*self._inbox.popleft())
            self._requests.forget_late()
            with trio.move_on_at(next_look(LOOK_S)):
                await self._news.wait()

    def complaint(self) -> str:
        """What people should know about this peer's certificate; "" where all is well."""
        certificate, now = self.member.certificate, self._context.now()
        clock = f"this machine's clock says {date_text(now)}"
        way = f"'gossamer node renew {self.member.folder.path}'"
        if now >= certificate.not_after:
            return (
                f"this peer's certificate expired at {date_text(certificate.not_after)}, and"
                f" {clock}: if the clock is right, run {way}"
            )
        if now < certificate.not_before:
            return (
                f"this peer's certificate is not valid before {date_text(certificate.not_before)},"
                f" and {clock}: set the clock"
            )
        if self._asked_in_vain > IN_VAIN and self._wants_name:
            return (
                f"this peer is to be called {self._name!r}, and is called {certificate.name!r} by"
                " others: nobody who can rename it has answered, or another member has that name"
            )
        if self._asked_in_vain > IN_VAIN:
            return (
                f"this peer's certificate expires at {date_text(certificate.not_after)}, and nobody"
                f" who can renew it has answered; {way} explains other ways"
            )
        return ""

    @property
    def _is_holder(self) -> bool:
        """Whether the authority's key is in this peer's folder."""
        return self.member.folder.authority_key.exists()

    # This peer's own

    @property
    def _wants_name(self) -> bool:
        return self._name != self.member.certificate.name

    def _is_due(self) -> bool:
        certificate, now = self.member.certificate, self._context.now()
        if self._wants_name:
            return True
        if self._is_holder:
            early = now < certificate.not_before  # made by this clock, when it was ahead
            return early or now >= min(due_at(certificate), authority_due_at(self.member.authority))
        return now >= due_at(certificate, self._share)

    async def _renew(self) -> None:
        left_s = max(0.0, self.member.certificate.not_after - self._context.now())
        longest_s = min(max(left_s / 100, FIRST_RETRY_S), LAST_RETRY_S)
        wait_s = min(FIRST_RETRY_S * 2 ** min(self._asked_in_vain, 16), longest_s)
        self._ask_at = trio.current_time() + wait_s * self._context.draws.uniform(0.75, 1.25)
        if self._is_holder:
            await self._renew_here()
            return
        if self._wants_name and len(self._context.pool) == 0:
            self._ask_at = trio.current_time() + LOOK_S  # nobody is connected who could answer
            return
        self._asked_in_vain += 1
        asked = self._send_all(
            self._request_frame(ask(self.member.identity, self.member.certificate, self._name))
        )
        log.info(
            "asking for a new certificate",
            expires=date_text(self.member.certificate.not_after),
            peers=asked,
        )

    def _fall_back(self) -> None:
        """Go by the certificate before where this one is not valid yet: a clock was ahead."""
        now = self._context.now()
        if now < self.member.certificate.not_before:
            found = previous_membership(self.member, now)
            if found is not None:
                try:
                    save_renewed(found)
                except (SecurityError, OSError) as error:
                    log.warning("the earlier certificate cannot be kept", cause=str(error))
                self._put_in_place(found)

    async def _renew_here(self) -> None:
        try:
            registrar = open_registrar(self.member)
            found = await self._context.writer.run(
                lambda store: renew_here(registrar, store, self._context.now(), self._name)
            )
        except (SecurityError, StoreError, CapacityError, OSError) as error:
            log.error("the certificates of this peer cannot be renewed", cause=str(error))
            return
        if found != self.member:
            self._put_in_place(found)

    async def _take_own(self) -> None:
        """Keep a certificate that came for this peer, and put it in place."""
        renewed, self._renewed = self._renewed, None
        if renewed is None:
            return
        try:
            found = accept(self.member, renewed, self._context.now())
            await self._context.writer.run(lambda _: save_renewed(found))
        except JoinError:
            return  # it came by several ways
        except (SecurityError, StoreError, OSError) as error:
            log.warning("a renewed certificate is of no use", cause=str(error))
            return
        self._put_in_place(found)

    def _look(self) -> None:
        """Find out whether a command has replaced the files."""
        stamp = stamp_of(self.member.folder)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            found = open_membership(self.member.folder.path)
        except NodeError as error:
            log.warning("the membership in the folder cannot be read", cause=str(error))
            return
        same = (found.certificate, found.authority) == (
            self.member.certificate,
            self.member.authority,
        )
        if found.identity.key == self.member.identity.key and not same:
            self._put_in_place(found)

    def _put_in_place(self, member: Membership) -> None:
        try:
            self._install(member)
        except OSError as error:  # of TLS as well: the files were taken away meanwhile
            log.warning("a renewed certificate cannot be put in place", cause=str(error))
            return
        log.info("certificate is renewed", until=date_text(member.certificate.not_after))
        self.member = member
        self._was_renewed = True
        self._stamp = stamp_of(member.folder)
        self._share = self._context.draws.uniform(DUE, LATEST_DUE)
        self._asked_in_vain = 0
        self._ask_at = 0.0
        self._tell_all()

    def _tell_all(self) -> None:
        self._send_all(self._renewed_frame(self.member.certificate.der))

    # Others

    def greet(self, key: int) -> None:
        """A peer is connected: it may not know a new certificate of the authority or of this peer.

        What was shown when the connection was made may have been replaced since.
        """
        if self._was_renewed or _is_renewed(self.member.authority):
            self._context.send(key, self._renewed_frame(self.member.certificate.der))
        if self._asked_in_vain:  # it may be the holder, or know a way to it
            self._ask_at = min(self._ask_at, trio.current_time() + FIRST_RETRY_S)

    def forget(self, key: int) -> None:
        """A peer is connected no more."""
        self._requests.forget(key)

    def receive(self, sender: int, frame: Frame) -> None:
        """Take a frame about renewals.

        Raises:
            RemoteProtocolError: what it brings is nothing of this cluster.
        """
        if not self._requests.allows(sender):
            self._context.counters.drop("flood")
        elif frame["type"] == "renewal wanted":
            name = frame.get("name", "")
            if not is_name(name.encode()):
                raise BadFrame("renewal wanted", "name", repr(name)[:80], "a name of a peer")
            request = RenewalRequest(frame["certificate"], frame["signature"], name)
            self._take_request(sender, request)
        else:
            self._take_renewed(sender, Renewed(frame["certificate"], frame["authority"]))

    def _take_request(self, sender: int, request: RenewalRequest) -> None:
        certificate = read_certificate(request.certificate)
        key, serial = certificate.key, certificate.serial
        if key == self.member.identity.key or self._requests.joins(key, serial, sender):
            return
        try:
            check_request(self.member.authority, request, key, self._revocations.revoked)
        except RevokedCertificateError:
            return  # the sender may not know yet
        self._requests.begin(key, serial, sender)
        if self._is_holder:
            self._inbox.append((key, request))
            self._news.set()
        else:
            self._send_all(self._request_frame(request), but=sender)

    async def _grant(self, key: int, request: RenewalRequest) -> None:
        """Renew a peer's certificate, as the holder of the authority's key."""
        try:
            registrar: Registrar = open_registrar(self.member)
            renewed = await self._context.writer.run(
                lambda store: renew_peer(registrar, store, request, self._context.now())
            )
        except (SecurityError, StoreError, CapacityError, OSError) as error:
            log.warning("a certificate is not renewed", peer=key_text(key), cause=str(error))
            return
        until = read_certificate(renewed.certificate).not_after
        log.info("a certificate is renewed", peer=key_text(key), until=date_text(until))
        self._answer(key, renewed)

    def _answer(self, key: int, renewed: Renewed) -> None:
        for asker in self._requests.askers(key):
            self._context.send(asker, self._renewed_frame(renewed.certificate))

    def _take_renewed(self, sender: int, renewed: Renewed) -> None:
        self._learn_authority(renewed.authority)
        key = read_certificate(renewed.certificate).key
        if key == self.member.identity.key:
            self._take_for_own(renewed)
        elif key == sender or key in self._requests:
            try:
                self._context.descriptors.learn(renewed.certificate, key, self._context.now())
            except (UntimelyCertificateError, RevokedCertificateError):
                return  # by this clock, or this list: the sender may not know
            self._revocations.refresh(key)
            if key == sender:
                self._note_renewed(read_certificate(renewed.certificate))
            self._answer(key, renewed)

    def _note_renewed(self, certificate: PeerCertificate) -> None:
        """A peer that is connected has another certificate, and maybe another name."""
        with suppress(CapacityError):
            self._context.address_book.learn(certificate.key, (), certificate.name)
        self._context.members.renewed(certificate.key, certificate.name, certificate.not_after)

    def _take_for_own(self, renewed: Renewed) -> None:
        try:
            accept(self.member, renewed, self._context.now())
        except JoinError:
            return  # it came by several ways, or is an old one
        except UntimelyCertificateError as error:
            log.warning("a renewed certificate is of no use", cause=str(error))
            return
        self._renewed = renewed
        self._news.set()

    def _learn_authority(self, der: bytes) -> None:
        """Go by a newer certificate of the authority, and tell everybody of it."""
        found = newer_authority(self.member.authority, der)
        if found is not self.member.authority:
            member = evolve(self.member, authority=found)
            try:
                save_renewed(member)
                self._install(member)
            except (SecurityError, OSError) as error:
                log.warning("the authority's new certificate cannot be kept", cause=str(error))
                return
            log.info("the authority's certificate is renewed", until=date_text(found.not_after))
            self.member = member
            self._stamp = stamp_of(member.folder)
            self._tell_all()

    # Frames

    def _request_frame(self, request: RenewalRequest) -> bytes:
        fields = {"certificate": request.certificate, "signature": request.signature}
        named = {"name": request.name} if request.name else {}
        return encode_frame("renewal wanted", **fields, **named)

    def _renewed_frame(self, certificate: bytes) -> bytes:
        return encode_frame("renewed", certificate=certificate, authority=self.member.authority.der)

    def _send_all(self, frame: bytes, but: int = -1) -> int:
        """Send ``frame`` to everybody connected but one; return to how many."""
        keys = [connection.identity.key for connection in self._context.pool]
        return sum(self._context.send(key, frame) for key in keys if key != but)


def _is_renewed(authority: Authority) -> bool:
    """Whether this is not the certificate that the cluster was made with: others may have that."""
    lasts_s = authority.not_after - authority.not_before
    return lasts_s > AUTHORITY_LIFETIME_S + CLOCK_SLACK_S + DAY_S
