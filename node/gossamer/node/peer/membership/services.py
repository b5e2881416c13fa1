"""What a peer does for the membership of all: every service, or none without certificates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs
import trio

from gossamer.node.peer.frames.certificate_requests import CertificateService
from gossamer.node.peer.frames.frame_types import FrameService
from gossamer.node.peer.membership.documents import SchemaService
from gossamer.node.peer.membership.renewal import RenewalService
from gossamer.node.peer.membership.revocation import RevocationService
from gossamer.node.security.cluster import Membership
from gossamer.node.transport.base import Transport

Present = Callable[[Transport, Membership], None]


def show_certificate(transport: Transport, present: Present, member: Membership) -> None:
    """Have ``transport`` show the certificate of ``member`` from now on, and say so in hellos.

    Raises:
        OSError: the files of the certificate cannot be used; the transport is as it was.
    """
    present(transport, member)
    transport.me = attrs.evolve(transport.me, fingerprint=member.certificate.fingerprint)


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
