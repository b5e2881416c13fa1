"""What every node with a certificate has: who belongs no more, and how certificates are renewed."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import suppress

import attrs
import trio

from gossamer.node.monitoring.members import MemberTable
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.certificate_requests import CertificateService
from gossamer.node.peer.frames.frame_types import FrameService
from gossamer.node.peer.membership.admission import MembershipStatus
from gossamer.node.peer.membership.renewal import RenewalService
from gossamer.node.peer.membership.revocation import RevocationService
from gossamer.node.peer.membership.schema_spread import SchemaService
from gossamer.node.security.certificates import PeerCertificate
from gossamer.node.security.cluster import Membership
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.store.writer import StoreWriter
from gossamer.node.transport.base import Transport
from gossamer.node.transport.links import ConnectionPool
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
        standing,
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

    @property
    def all(self) -> Sequence[FrameService]:
        """Those that there are."""
        services = (self.certificates, self.revocations, self.renewals, self.schemas)
        return [one for one in services if one is not None]

    def start(self, nursery: trio.Nursery) -> None:
        """Run in ``nursery``."""
        for service in (self.revocations, self.renewals, self.schemas):
            if service is not None:
                nursery.start_soon(service.run)
