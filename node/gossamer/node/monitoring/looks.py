"""When a node looks at what nobody tells it of: all that is to be looked at, at the same instants.

Each look by itself would wake a process that has nothing else to do, several times a second in all.
"""

from __future__ import annotations

import math

import trio

# The part of its time that a look comes too early at most.
SOON = 0.5


def next_look(seconds: float) -> float:
    """When to look next, by trio's clock, at what is looked at every ``seconds``.

    That is a multiple of these, half of them away at least.
    """
    return seconds * math.ceil((trio.current_time() + SOON * seconds) / seconds)
