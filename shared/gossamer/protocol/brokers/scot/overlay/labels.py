"""Where a broker is in a SCOT, and sets of clusters as bits (Sec. 4.3, 4.4)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from attrs import frozen

from gossamer.protocol.brokers.scot.overlay.errors import ClusterIndexError, LabelOrderError

MAX_CLUSTERS: Final = 62
"""Clusters whose vector is a whole number of 64 bits."""

_LABEL: Final = re.compile(r"B\(\s*([^\s,()]+)\s*,\s*([^\s,()]+)\s*\)")


class BrokerLabel(NamedTuple):
    """A broker B(region, cluster): a vertex of each factor, the acyclic one's first."""

    region: str
    cluster: int

    @classmethod
    def parse(cls, text: str) -> BrokerLabel:
        """The label that a text such as "B(a,0)" gives.

        Raises:
            ClusterIndexError: the second part is no whole number from zero on.
            LabelOrderError: the parts are in the wrong order, or the text is no label at all.
        """
        found = _LABEL.fullmatch(text)
        if found is None:
            raise LabelOrderError("label", text, 'a region and a cluster, such as "B(a,0)"')
        region, cluster = found.groups()
        if cluster.isdecimal():
            return cls(region, int(cluster))
        if region.isdecimal():
            raise LabelOrderError("label", text, f"the region first, as in B({cluster},{region})")
        raise ClusterIndexError("label", text, "a cluster number from 0 on in second place")

    def __str__(self) -> str:
        return f"B({self.region},{self.cluster})"


@frozen(order=True)
class ClusterBitVector:
    """A set of clusters, one bit for each, the rightmost for cluster 0 (Sec. 4.4, Fig. 4).

    A subscription's has the bit of its host cluster; a notification's has the bits of the target
    secondary clusters that it still has to reach by dynamic routing.

    Attributes:
        bits: the vector as a whole number, never negative.
    """

    bits: int = 0

    @classmethod
    def of(cls, *clusters: int) -> ClusterBitVector:
        """The vector of these clusters."""
        bits = 0
        for cluster in clusters:
            bits |= 1 << cluster
        return cls(bits)

    def __contains__(self, cluster: int) -> bool:
        return bool(self.bits >> cluster & 1)

    def __iter__(self) -> Iterator[int]:
        return (cluster for cluster in range(self.bits.bit_length()) if cluster in self)

    def __bool__(self) -> bool:
        return self.bits != 0

    def without(self, cluster: int) -> ClusterBitVector:
        """The vector with the bit of a cluster cleared."""
        return ClusterBitVector(self.bits & ~(1 << cluster))

    def text(self, clusters: int) -> str:
        """The bits, as many as a SCOT has clusters: "100" for cluster 2 of three."""
        return f"{self.bits:0{clusters}b}"


NO_CLUSTERS: Final = ClusterBitVector()
