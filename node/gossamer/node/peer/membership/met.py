"""What connections tell the table of members."""

from __future__ import annotations

from gossamer.node.monitoring.members import MemberTable
from gossamer.node.security.certificates import read_certificate
from gossamer.node.security.descriptors import DescriptorCache
from gossamer.node.transport.base.base import Admitted, Cause, Farewell, PeerIdentity

_BROKEN = frozenset({Cause.LOST, Cause.SILENT, Cause.STALLED})


def note_connected(
    members: MemberTable, admitted: Admitted, descriptors: DescriptorCache | None
) -> None:
    """Note that a member is connected, and what it and its certificate say of it."""
    identity, hello = admitted.identity, admitted.hello
    der = None if descriptors is None else descriptors.find_certificate(identity.key)
    members.connected(
        identity.key,
        identity.name,
        tuple(map(str, hello.addresses)),
        hello.software.removeprefix("gossamer "),
        None if der is None else read_certificate(der).not_after,
    )


def note_disconnected(members: MemberTable, identity: PeerIdentity, farewell: Farewell) -> None:
    """Note that a member is connected no more."""
    left = farewell.cause is Cause.SHUTDOWN and not farewell.by_us
    broken = farewell.cause in _BROKEN
    members.disconnected(identity.key, left=left, broken=broken, cause=str(farewell))
