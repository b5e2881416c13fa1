"""What a peer says of itself to members that look at the cluster."""

from __future__ import annotations

from gossamer.node.monitoring.cluster import SECTORS, Report
from gossamer.node.peer.frames.core import Core
from gossamer.node.peer.frames.wire import MAX_TROUBLE, MAX_TROUBLES
from gossamer.node.peer.views import PeerViews
from gossamer.protocol.peer.space.ring import RING_BITS

_SECTOR_BITS = RING_BITS - (SECTORS.bit_length() - 1)


def report_of(views: PeerViews, core: Core) -> Report:
    """The report of a peer as of now: what its page shows, without what it knows of others."""
    return Report(
        figures=views.figures(),
        wanted=wanted_sectors(core),
        troubles=[one[:MAX_TROUBLE] for one in views.standing.troubles()][:MAX_TROUBLES],
    )


def wanted_sectors(core: Core) -> list[int]:
    """For each sector of the ring, how many subscriptions want events that lie there."""
    found = [0] * SECTORS
    for arcs in core.wanted_arcs():
        sectors = {
            sector
            for low, high in arcs
            for sector in range(low >> _SECTOR_BITS, (high >> _SECTOR_BITS) + 1)
        }
        for sector in sectors:
            found[sector] += 1
    return found
