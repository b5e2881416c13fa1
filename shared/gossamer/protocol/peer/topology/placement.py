"""Placement by interest: a peer has its place on the ring where its subscriptions lie.

Goes beyond the paper, whose identifiers are uniform draws. The peers that answer for a value are
then those that want it, so that installing a subscription hardly leaves its neighbourhood, and an
event that has come there is among its subscribers. Mercury (Bharambe et al., SIGCOMM 2004) places
nodes by the values they hold; here it is by those they ask for.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import mix_many
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.settings.config import Settings
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER
from gossamer.protocol.peer.space.ring import RING_BITS, RING_MASK
from gossamer.protocol.peer.space.routing_key import bits_an_attribute, curve_index, low_bits
from gossamer.protocol.peer.state.state import State

Int64s = npt.NDArray[np.int64]

NOWHERE: Final = -1
# Streams of draws: which subscription decides, the low bits, and from here on where along an
# attribute that it leaves out.
_WHICH, _OWN, _ALONG = 0x77686963, 0x6F776E, 0x616C6F6E67


def homes_of(settings: Settings, boxes: Int64s, constrained: Int64s, keys: Int64s) -> Int64s:
    """Where peers belong: at the key of the centre of a subscription, its low bits their own.

    Of several subscriptions a random one decides, which stays the same while there are as many: to
    stand where most others do would make hubs there, and leave rare interests without anybody near.
    Attributes that it leaves out have no centre: it is drawn.

    Args:
        settings: of the overlay.
        boxes: int64[n, S, 2A], lowest and highest hashed value of every attribute.
        constrained: int64[n, S], bits of the attributes constrained, -1 for no subscription.
        keys: int64[n], the peers' permanent keys.

    Returns:
        int64[n], `NOWHERE` for peers without subscriptions.
    """
    rows, count = np.arange(len(keys)), (constrained >= 0).sum(axis=1)
    draws = mix_many(settings.seed, keys, _WHICH)
    wanted = (draws >> 31) * count >> 31
    # Those that there are first, in their order.
    which = np.argsort(constrained < 0, axis=1, kind="stable")[rows, np.minimum(wanted, count - 1)]
    bits, attributes = constrained[rows, which], settings.attributes
    centres = []
    for a in range(attributes):
        low, high = boxes[rows, which, 2 * a], boxes[rows, which, 2 * a + 1]
        along = mix_many(settings.seed, keys, _ALONG + a) & RING_MASK
        is_centred = (bits >> a & 1 == 1) | (attributes == 1)
        centres.append(np.where(is_centred, low + (high - low) // 2, along))
    shift = RING_BITS - bits_an_attribute(attributes)
    index = curve_index([centre >> shift for centre in centres], bits_an_attribute(attributes))
    own = mix_many(settings.seed, keys, _OWN) & ((1 << low_bits(attributes)) - 1)
    return np.where(count > 0, index << low_bits(attributes) | own, NOWHERE)


@rule
def take_place(s: State, p: int, place: int) -> None:
    """Let a peer that is not on the ring yet have a place."""
    s.sampler.profile[p, IDENTIFIER] = place
    s.sampler.profile[p, ARC_START] = place
