"""The second step of hashes that follow a distribution: bends the ring to spread mass evenly."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

import numpy as np
from attrs import frozen

from gossamer.protocol.peer.space.line import RING_SIZE, Int64s, scale_wide

EVEN_SHARE_BITS: Final = 10
"""One 2^10-th of the ring is spread evenly over the domain (a guess), so that values which the
distribution never saw still differ."""


@frozen
class RingWarp:
    """A non-decreasing piecewise-linear map of the ring to itself (equi-depth, beyond the paper).

    A place u holds the share F(u) of a distribution below it and is mapped to about
    ((1 - e) F(u) + e u / 2^62) * 2^62, with e = 2^-10. Between knots F is linear; the mass of a
    repeated value spreads from that value to the next knot.

    Places at least 2^11 apart stay different. So, together with the uniform step: numbers at least
    2^-50 of the domain's width apart hash differently, and integers, dates and enumerations of at
    most 2^50 values are strictly increasing. Within a bucket between knots whose arc is no shorter
    than before, every two places stay different.

    Attributes:
        knots: places where the slope changes, ascending from 0 to 2^62.
        images: where the knots are mapped, non-decreasing from 0 to 2^62.
    """

    knots: tuple[int, ...]
    images: tuple[int, ...]

    @classmethod
    def following(cls, places: Int64s, counts: Int64s, buckets: int) -> RingWarp:
        """The warp for a distribution of counts (above 0) over ascending, distinct places."""
        below = np.cumsum(counts) - counts
        total = int(counts.sum())
        chosen = _knot_ranks(below, counts, total, buckets)
        knots = [int(place) for place in places[chosen]]
        images = [_image(int(below[rank]), total, int(places[rank])) for rank in chosen]
        if knots[0] > 0:
            knots, images = [0, *knots], [0, *images]
        return cls((*knots, RING_SIZE), (*images, RING_SIZE))

    def __call__(self, place: int) -> int:
        """Where one place is mapped."""
        bucket = bisect_right(self.knots, place) - 1
        knot, image = self.knots[bucket], self.images[bucket]
        arc, width = self.images[bucket + 1] - image, self.knots[bucket + 1] - knot
        return image + (place - knot) * arc // width

    def array(self, places: Int64s) -> Int64s:
        """Where places are mapped, one-dimensional arrays both."""
        knots = np.array(self.knots, dtype=np.int64)
        images = np.array(self.images, dtype=np.int64)
        buckets = np.searchsorted(knots, places, side="right") - 1
        offsets = places - knots[buckets]
        arcs, widths = np.diff(images)[buckets], np.diff(knots)[buckets]
        return images[buckets] + scale_wide(offsets, arcs, widths)


def _knot_ranks(below: Int64s, counts: Int64s, total: int, buckets: int) -> Int64s:
    """Ranks of both ends, of every quantile, and of every heavy value and the one after it."""
    last = len(counts) - 1
    quantiles = np.searchsorted(below, np.arange(buckets) * total // buckets, side="right") - 1
    heavy = np.flatnonzero(counts * buckets >= total)
    after_heavy = np.minimum(heavy + 1, last)
    return np.unique(np.concatenate(([0, last], quantiles, heavy, after_heavy)))


def _image(below: int, total: int, place: int) -> int:
    followed = ((1 << EVEN_SHARE_BITS) - 1) * RING_SIZE * below // total
    return (followed + place) >> EVEN_SHARE_BITS
