"""A node's draws, which depend on the seed, the node and how often it has drawn."""

from __future__ import annotations

from typing import Any

from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.kernel.rules import inline_rule


@inline_rule
def draw(state: Any, me: int) -> Any:
    """The node's next uniform draw from [0, 2^62); state is the protocol's, as in handlers."""
    state.draws[me] += 1
    return mix(state.seed, me, state.draws[me])


@inline_rule
def draw_below(state: Any, me: int, bound: int) -> Any:
    """A uniform draw from 0 to ``bound - 1``; bound is from 1 to 2^31 - 1."""
    return below(draw(state, me), bound)


@inline_rule
def draw_float(state: Any, me: int) -> Any:
    """A uniform draw from [0, 1)."""
    return (draw(state, me) >> 9) / 9007199254740992.0


@inline_rule
def draw_other(state: Any, me: int) -> Any:
    """The row of any node but this one, whether it is up or not; there are at least two."""
    other = below(draw(state, me), state.nodes - 1)
    return other + 1 if other >= me else other
