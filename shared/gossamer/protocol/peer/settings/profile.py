"""The words of profiles and descriptors, and what the links of a peer are by their slots.

Every peer holds dozens of descriptors, and every exchange carries dozens, so their size is what a
large overlay costs. A profile is

    word 0   IDENTIFIER  place on the ring
    word 1   ARC_START   where on the ring the owner's arc begins: its predecessor's place
    word 2   LOAD        see `load_shifting`
    word 3.. RANGES      per attribute R ranges of values that it wants, a word each

Without ring links nothing is routed: ranges follow the identifier at once. An overlay of friends
alone, which is what T-Man builds, has no ring to have a place on: a profile is ranges only, and the
first of them stands where others look for an identifier, so that it is what breaks ties.

A peer that does not stand on the ring says so by an IDENTIFIER past the last place, `OFF_THE_RING`
and more: distances are counted as if it stood there, and nobody links to it.

A range is two numbers of 31 bits, its low and high end in units of 2^31 values. That is enough to
say how alike two peers are; subscriptions themselves travel whole.
"""

from __future__ import annotations

from typing import Any, Final

from gossamer.protocol.kernel.rules import inline_rule

IDENTIFIER, ARC_START, LOAD, RANGES = 0, 1, 2, 3
RANGES_OFF_THE_RING = 1
RANGES_OF_FRIENDS_ALONE = 0

OFF_THE_RING = 1 << 62

HALF_BITS = 31
HALF_MASK = (1 << HALF_BITS) - 1

# The range that holds no value, and a word that no range exceeds.
NOTHING = HALF_MASK << HALF_BITS

# Above it, a quarter of a million events a round, a load told by others is not believed.
MAX_LOAD = (1 << 31) - 1


@inline_rule
def range_word(low: Any, high: Any) -> Any:
    """The word of a range whose ends are given in units of 2^31."""
    return low << HALF_BITS | high


@inline_rule
def low_end(word: int) -> int:
    """The low end of a range, in units of 2^31."""
    return word >> HALF_BITS


@inline_rule
def high_end(word: int) -> int:
    """The high end of a range, in units of 2^31."""
    return word & HALF_MASK


@inline_rule
def coarse_range(low: Any, high: Any) -> Any:
    """The range word that covers the values from ``low`` to ``high``."""
    return range_word(low >> HALF_BITS, high >> HALF_BITS)


# Descriptors as words: the handle in the low bits, the age or timestamp above it.


HANDLE_BITS = 32
HANDLE_MASK = (1 << HANDLE_BITS) - 1
# Of a descriptor in rounds; with some samplers a timestamp has its place.
MAX_AGE = (1 << 29) - 1


# What the links of a peer are, by their slots.


LINK_KINDS: Final = ("ring", "small-world", "friend", "finger", "host", "guest")
_RING, _SMALL_WORLD, _FRIEND, _FINGER, _HOST, _GUEST = range(len(LINK_KINDS))


def link_kinds(settings: Any) -> list[int]:
    """What the link in every slot is, as an index into `LINK_KINDS`.

    Long links lead to those beside a place that was left behind, too: these count as fingers.

    Args:
        settings: `config.Settings`, or the parameters that a state has of them.
    """
    return [
        *[_RING] * (2 * settings.ring_links),
        *[_SMALL_WORLD] * settings.small_world_links,
        *[_FRIEND] * settings.friend_links,
        *[_FINGER] * (2 * settings.finger_levels),
        *[_HOST] * settings.guest_links,
        *[_GUEST] * (2 * settings.guest_links),
        *[_FINGER] * (2 * (settings.move_rounds > 0)),
    ]
