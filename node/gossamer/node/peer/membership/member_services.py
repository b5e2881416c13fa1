"""What a peer does for the membership of all: every service, or none without certificates."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
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
from gossamer.node.peer.membership.services import make_services
from gossamer.node.peer.membership.status import Standing
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.security.revocation import RevocationList
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.links import ConnectionPool
from gossamer.protocol.content.schema import SchemaVersion


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
        standing: Standing,
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
