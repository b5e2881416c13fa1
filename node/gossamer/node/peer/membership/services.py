"""What every node with a certificate has: who belongs no more, and how certificates are renewed."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Self

import attrs
import trio

from gossamer.node.monitoring.members import MemberTable
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.certificate_requests import CertificateService
from gossamer.node.peer.membership.renewal import RenewalService
from gossamer.node.peer.membership.revocation import RevocationService
from gossamer.node.peer.membership.schema_spread import SchemaService
from gossamer.node.peer.membership.status import MembershipStatus
from gossamer.node.security.certificates import PeerCertificate
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.security.revocation import RevocationList
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.base.base import Transport
from gossamer.node.transport.links import ConnectionPool
from gossamer.protocol.content.schema import SchemaVersion
from gossamer.protocol.kernel.errors import CapacityError

Present = Callable[[Transport, Membership], None]


def make_services(
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
    install: Callable[[Membership], None],
    members: MemberTable,
    name: str,
) -> tuple[RevocationService, RenewalService]:
    """Both services of a node, which let ``standing`` know what becomes of it.

    Args:
        member: its membership.
        writer: of its state file.
        descriptors: what is believed of others.
        book: where they are found.
        pool: connections to them.
        counters: where those shut out are counted.
        standing: of the node.
        draws: choose who is asked, and when.
        now: Unix seconds.
        report_failure: lets the overlay know that a peer is gone.
        install: puts a renewed membership in place.
        members: where a peer's new name is noted.
        name: that the node is to have.
    """
    revocations = RevocationService(
        member,
        writer,
        descriptors,
        address_book,
        pool,
        counters,
        draws=draws,
        now=now,
        report_failure=report_failure,
    )

    def on_renewed(certificate: PeerCertificate) -> None:
        with suppress(CapacityError):
            address_book.learn(certificate.key, (), certificate.name)
        members.renewed(certificate.key, certificate.name, certificate.not_after)

    renewals = RenewalService(
        member,
        writer,
        descriptors,
        revocations,
        pool,
        draws=draws,
        now=now,
        install=install,
        on_renewed=on_renewed,
        count_drop=counters.drop,
        name=name or member.certificate.name,
    )

    def leave() -> None:
        standing.revoked = True

    revocations.on_own = leave
    standing.ask("certificate", renewals.complaint)
    return revocations, renewals


def show_certificate(transport: Transport, present: Present, member: Membership) -> None:
    """Have ``transport`` show the certificate of ``member`` from now on, and say so in hellos.

    Raises:
        OSError: the files of the certificate cannot be used; the transport is as it was.
    """
    present(transport, member)
    transport.me = attrs.evolve(transport.me, fingerprint=member.certificate.fingerprint)


# What a peer does for the membership of all: every service, or none without certificates.


@attrs.frozen
class MemberServices:
    """The services of one peer, each None without certificates.

    Attributes:
        certificates: gives others the certificates that they ask for.
        revocations: who belongs no more.
        renewals: of certificates.
        schemas: later versions of the schema.
    """

    certificates: CertificateService | None = None
    revocations: RevocationService | None = None
    renewals: RenewalService | None = None
    schemas: SchemaService | None = None

    @classmethod
    def make(
        cls,
        key: int,
        version: SchemaVersion,
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
        install: Callable[[Membership], None],
        members: MemberTable,
        name: str,
        change_schema: Callable[[SchemaVersion], None],
    ) -> Self:
        """The services of a peer with a certificate.

        Args:
            key: of the peer.
            version: of the schema to begin with.
            member, writer, descriptors, address_book, pool, counters, standing: as of
                `make_services`.
            draws, now, report_failure, install, members, name: the same.
            change_schema: puts a later version of the schema in force.
        """
        own = (key, member.certificate.der)
        certificates = CertificateService(descriptors, own, pool.try_send, now)
        revocations, renewals = make_services(
            member,
            writer,
            descriptors,
            address_book,
            pool,
            counters,
            standing,
            draws=draws,
            now=now,
            report_failure=report_failure,
            install=install,
            members=members,
            name=name,
        )
        schemas = SchemaService(
            version, member, writer, pool, counters, draws=draws, change=change_schema
        )
        return cls(certificates, revocations, renewals, schemas)

    @property
    def revoked(self) -> RevocationList | None:
        """Who belongs no more, as far as is known."""
        return None if self.revocations is None else self.revocations.revoked

    @property
    def revoked_keys(self) -> Collection[int]:
        """The keys of those on that list."""
        return () if self.revocations is None else self.revocations.revoked.keys

    def start(self, nursery: trio.Nursery) -> None:
        """Run in ``nursery``."""
        for service in (self.revocations, self.renewals, self.schemas):
            if service is not None:
                nursery.start_soon(service.run)

    def greet(self, key: int) -> None:
        """Say to a peer that is connected what it may not know yet."""
        for service in (self.revocations, self.renewals, self.schemas):
            if service is not None:
                service.greet(key)

    def hear(self, proof: bytes) -> None:
        """A peer does not let this one in, and shows ``proof`` if that is since it is revoked."""
        if self.revocations is not None:
            self.revocations.hear(proof)
