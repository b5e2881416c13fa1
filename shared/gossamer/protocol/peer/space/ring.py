"""The identifier ring: integers modulo 2^62, read clockwise (Vinifera, Sec. IV-A).

Identifiers and hashed attribute values are signed 64-bit integers in [0, 2^62), so that sums and
differences of two of them never overflow.
"""

from __future__ import annotations

from gossamer.protocol.kernel.rules import inline_rule

RING_BITS = 62
RING = 1 << RING_BITS
RING_MASK = RING - 1


@inline_rule
def clockwise(start: int, end: int) -> int:
    """Distance from ``start`` to ``end`` going clockwise, in [0, 2^62)."""
    return (end - start) & RING_MASK


@inline_rule
def in_arc(value: int, start: int, end: int) -> bool:
    """Whether ``value`` lies in the arc (start, end]; the arc is the whole ring if start == end."""
    if start == end:
        return True
    return ((end - value) & RING_MASK) < ((end - start) & RING_MASK)
