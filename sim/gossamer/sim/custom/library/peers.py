"""What a protocol asks of a sampler that it runs over: rules, and the same for plain nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gossamer.protocol.kernel.draws import below
from gossamer.protocol.kernel.rules import inline_rule
from gossamer.protocol.peer.sampling.sampler import EMPTY, handle_of, view_length


@inline_rule
def peers_known(sampler: Any, me: int) -> Any:
    """How many peers row ``me`` knows by its sampler."""
    return view_length(sampler, me)


@inline_rule
def peer_at(sampler: Any, me: int, place: int) -> Any:
    """The row of the peer at a place of the view of row ``me``, from 0 to `peers_known` - 1."""
    return handle_of(sampler.views[me, place])


@inline_rule
def random_peer(sampler: Any, me: int, drawn: int) -> Any:
    """The row of a peer that row ``me`` knows, by a `draw`; -1 where it knows none."""
    known = view_length(sampler, me)
    if known == 0:
        return -1
    return handle_of(sampler.views[me, below(drawn, known)])


class View:
    """The view of one node, for plain nodes.

    Args:
        sampler: the state of the sampler.
        me: the row of the node.
        draw: draws for it.
    """

    def __init__(self, sampler: Any, me: int, draw: Callable[[], int]) -> None:
        self._row = sampler.views[me]
        self.draw = draw

    def __len__(self) -> int:
        return int((self._row != EMPTY).sum())

    def __getitem__(self, place: int) -> int:
        return int(handle_of.interpreted(self._row[range(len(self))[place]]))

    def random(self) -> int:
        """The row of a peer that the node knows; -1 where it knows none."""
        drawn, known = self.draw(), len(self)
        return self[below.interpreted(drawn, known)] if known else -1
