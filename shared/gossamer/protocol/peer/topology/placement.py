"""Placement by interest: a peer has its place on the ring where its subscriptions lie.

Goes beyond the paper, whose identifiers are uniform draws. The peers that answer for a value are
then those that want it, so that installing a subscription hardly leaves its neighbourhood, and an
event that has come there is among its subscribers. Mercury (Bharambe et al., SIGCOMM 2004) places
nodes by the values they hold; here it is by those they ask for.
"""

from __future__ import annotations

from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.peer.rendezvous.box_aggregation import routing_attribute
from gossamer.protocol.peer.settings.profile import ARC_START, IDENTIFIER
from gossamer.protocol.peer.state.state import State

# The low bits of a place are the peer's own: peers of equal interests spread over an arc of this
# many bits, within which places say nothing of values.
SPREAD_BITS = 36
SPREAD_MASK = (1 << SPREAD_BITS) - 1

# The draw by which one of several subscriptions decides.
_WHICH = 0x706C616365


@rule
def place_by_interest(s: State, p: int) -> int:
    """Where peer ``p`` belongs: the centre of one of its subscriptions; -1 if it has none.

    Of several a random one decides, the same as long as there are as many: to stand where most
    others do would make hubs there, and leave rare interests without anybody near.
    """
    count = 0
    for k in range(s.constrained.shape[1]):
        count += s.constrained[p, k] >= 0
    if count == 0:
        return -1
    own = mix(s.sampler.seed, s.sampler.key[p], _WHICH)
    wanted = below(own, count)
    for k in range(s.constrained.shape[1]):
        if s.constrained[p, k] < 0:
            continue
        if wanted == 0:
            a = routing_attribute(s, p, k)
            low, high = s.subscriptions[p, k, 2 * a], s.subscriptions[p, k, 2 * a + 1]
            return (low + (high - low) // 2) & ~SPREAD_MASK | own & SPREAD_MASK
        wanted -= 1
    return -1


@rule
def take_place(s: State, p: int) -> None:
    """Let a peer that is not on the ring yet have the place of its interests, if it has any."""
    place = place_by_interest(s, p)
    if s.params.by_interest == 1 and place >= 0:
        s.sampler.profile[p, IDENTIFIER] = place
        s.sampler.profile[p, ARC_START] = place
