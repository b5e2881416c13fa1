"""What the links of a peer are, by their slots."""

from __future__ import annotations

from typing import Any, Final

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
