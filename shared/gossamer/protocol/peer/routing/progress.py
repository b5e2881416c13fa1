"""How near to its value something has come on its way, so that nothing goes round.

Goes beyond the paper. Views may be wrong while peers move: who gets an event copy as the one who
answers for it, and takes another peer for that, sends it where its owner has left, and may get it
again. So what is on its way carries a *bound* that only falls: sent greedily, the sender's own
distance to the value; sent as to who answers for the value, a little more than the distance from
there to where the sender takes the receiver to stand. A receiver that is not below the bound, at
the place where it really stands, is a *stray*: it tells the sender where it stands, and begins
anew from there. What has strayed `MOST_STRAYS` times rests at the next.

It ends with any views and whatever moves meanwhile, since (strays left, greedy before final, bound)
falls with every hop. Below the bound and greedy, the next bound is the own distance, or the copy
becomes final. Below the bound and final, the value is no value of the receiver's own arc, so that
by its own table its predecessor, or who else stands closest behind the value, stands nearer than
itself, and the next bound is at most the receiver's own distance. Each compares its own place and
its own table at that moment.

A word holds all of it: whether it is final, strays, and how far the bound has fallen; 0 where
nothing is known.
"""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.peer.routing.lookup import closest_past, next_hop
from gossamer.protocol.peer.settings.profile import IDENTIFIER
from gossamer.protocol.peer.space.ring import RING, clockwise
from gossamer.protocol.peer.state.links import is_off_ring
from gossamer.protocol.peer.state.state import State

# What `next_hop_on` gives in place of a hop.
ANSWERS, RESTS = -1, -2
# The sign of the word of what is sent as to who answers for the value.
IS_FINAL = -(1 << 63)
# Up to half the ring, distances are told exactly; those that may be longer in halves.
STRAYS_AT = 61
UNBOUNDED = (1 << STRAYS_AT) - 1
MOST_STRAYS = 3


@inline_rule
def strays_of(word: int) -> Any:
    """How often something strayed on its way."""
    return (word >> STRAYS_AT) & MOST_STRAYS


@rule
def own_distance(s: State, p: int, value: int) -> int:
    """How far ``p`` stands from a value, as the bound of what it sends greedily.

    Off the ring it is as far as can be from all.
    """
    if is_off_ring(s, p):
        return UNBOUNDED - 1
    ahead = clockwise(s.sampler.profile[p, IDENTIFIER], value)
    # One way round it may be more than half the ring.
    ahead = min(ahead, RING - ahead) if s.params.nearest_routing == 1 else ahead >> 1
    return int(min(ahead, UNBOUNDED - 1))


@rule
def is_stray(s: State, p: int, value: int, word: int) -> bool:
    """Whether ``p``, which does not answer for a value, should not have got what is sent to it.

    Args:
        s: the state; unchanged.
        p: the row.
        value: where it is to go.
        word: its progress.
    """
    bound = UNBOUNDED - (word & UNBOUNDED)
    if is_off_ring(s, p):
        return bool(word & IS_FINAL != 0 or bound < UNBOUNDED)
    if bound == UNBOUNDED:
        return False
    if word & IS_FINAL == 0:
        return bool(own_distance(s, p, value) >= bound)
    return bool(clockwise(value, s.sampler.profile[p, IDENTIFIER]) >= bound)


@rule
def next_hop_on(s: State, p: int, value: int, word: int, strayed: bool) -> int:
    """Where what is on its way to a value goes from ``p``: a hop as of `next_hop`.

    `ANSWERS` where ``p`` answers for the value, `RESTS` where it has strayed too often.
    """
    hop = next_hop(s, p, value)
    if hop < 0:
        return ANSWERS
    if strayed:
        return RESTS if strays_of(word) == MOST_STRAYS else hop
    if word & IS_FINAL != 0:
        # Some link is past the value: the predecessor is.
        ahead = clockwise(s.sampler.profile[p, IDENTIFIER], value)
        return int(2 * closest_past(s, p, ahead) + 1)
    return hop


@rule
def progress_on(s: State, p: int, hop: int, value: int, word: int, strayed: bool) -> int:
    """The progress of what goes on from ``p`` by ``hop``."""
    bound = own_distance(s, p, value)
    final = 0
    if hop & 1 == 1:
        past = clockwise(value, s.link_profile[p, hop >> 1, IDENTIFIER])
        bound = min(past, UNBOUNDED - 2) + 1
        final = IS_FINAL
    strays = strays_of(word) + strayed
    return int(final | strays << STRAYS_AT | (UNBOUNDED - bound))
