"""Small-world links: sought at distances with density 1/d, so that every scale is equally likely.

Kleinberg's model as Symphony builds it (Vinifera, Sec. IV-B1, refs. [24] and [26]).
"""

from __future__ import annotations

from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.sampling.sampler import draw
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_BITS, clockwise
from gossamer.protocol.peer.state.state import State

HALF = 31
HALF_MASK = (1 << HALF) - 1
SMALLEST_OCTAVE = 32


@rule
def draw_offsets(s: State, p: int) -> None:
    """Draw, once, at what distances peer ``p`` seeks its small-world links.

    An offset holds two numbers of 31 bits: the scale, uniform over the octaves of the ring, and
    the place within an octave, accepted with probability 1 / (1 + place), which turns a flat
    octave into 1/d. Integers only, so that every host draws the same.
    """
    for k in range(s.offsets.shape[1]):
        if s.offsets[p, k] >= 0:
            continue
        scale = draw(s.sampler, p) >> HALF
        while True:
            place = draw(s.sampler, p) >> HALF
            if (draw(s.sampler, p) >> (HALF + 1)) * ((1 << HALF) + place) < 1 << (2 * HALF - 1):
                break
        s.offsets[p, k] = scale << HALF | place


@rule
def offset_distance(s: State, p: int, k: int) -> int:
    """The clockwise distance of ``p``'s small-world link ``k``.

    The smallest scale is that of the gap to the successor, so that offsets drawn before the ring
    has formed fit its density when it has.
    """
    octave = SMALLEST_OCTAVE
    if s.successor[p] >= 0:
        gap = clockwise(
            s.sampler.profile[p, IDENTIFIER], s.link_profile[p, s.successor[p], IDENTIFIER]
        )
        while octave < RING_BITS - 1 and gap >> (octave + 1) > 0:
            octave += 1
    scale = s.offsets[p, k] >> HALF
    octave += (scale * (RING_BITS - octave)) >> HALF
    place = s.offsets[p, k] & HALF_MASK
    base = 1 << octave
    if octave >= HALF:
        return base + (place << (octave - HALF))
    return base + (place >> (HALF - octave))
