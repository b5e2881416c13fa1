"""What one peer may make this one do in a gossip round, beside passing events on.

Some records take milliseconds to deal with, or let their sender choose whom this peer knows. Peers
send few of them in a round; what is beyond that is dropped and counted, and lost is nothing that
the next round's gossip does not bring.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from gossamer.node.monitoring.metrics import Counters
from gossamer.protocol.peer.record_table.records import (
    COMPARE,
    COMPARE_SOON,
    COMPARED,
    FIND_HOST,
    FIND_SEAT,
    FINGER_REQUEST,
    HANDOVER,
    INSTALL,
    INSTALL_NEWS,
    LACKING,
    LISTED,
    LOAD_SHIFTED,
    MOVED,
    REPLAY_OFFER,
    REPLAY_WANTED,
    RING_OFFER,
    TMAN_REQUEST,
)
from gossamer.protocol.peer.sampling.sampler import RECORDS_A_ROUND

# Several rounds of a peer fall in one of ours where this process was held up: ten of most kinds
# were counted at most while overlays formed on a busy machine. Samplers declare their own numbers.
PER_ROUND: Final = MappingProxyType(
    {
        **RECORDS_A_ROUND,
        TMAN_REQUEST: 24,
        INSTALL: 24,
        INSTALL_NEWS: 24,
        LOAD_SHIFTED: 24,
        HANDOVER: 24,
        FINGER_REQUEST: 48,
        # Searches of others pass through here.
        FIND_HOST: 96,
        FIND_SEAT: 96,
        # Old neighbours are told once, and new ones.
        MOVED: 24,
        # A peer asks 32 questions in a round; those of others pass through here, too.
        COMPARE: 96,
        COMPARED: 96,
        LISTED: 96,
        LACKING: 96,
        COMPARE_SOON: 24,
        # Of 256 events each, where a neighbour's path moves while much is published.
        REPLAY_OFFER: 96,
        RING_OFFER: 96,
        REPLAY_WANTED: 96,
    }
)


# Rounds of which a peer may use what it has not used: under load, what it sent in several of its
# rounds comes at once, or is dealt with at once.
SAVED: Final = 8


class RateLimits:
    """How much of its budget each peer has left in this round.

    Args:
        counters: where what is too much is counted.
    """

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._round = 0
        # By sender and kind, what was left in the round in which the last came.
        self._left: dict[tuple[int, int], tuple[int, int]] = {}

    def new_round(self) -> None:
        """Everybody has as much more, up to what may be saved."""
        self._round += 1

    def allows(self, sender: int, kind: int) -> bool:
        """Whether to take one more record of that kind; one that is not taken is counted."""
        most = PER_ROUND.get(kind)
        if most is None:
            return True
        left, then = self._left.get((sender, kind), (most, self._round))
        if then < self._round:
            left = min(left + most * (self._round - then), SAVED * most)
        self._left[sender, kind] = max(0, left - 1), self._round
        if left > 0:
            return True
        self._counters.drop("flood")
        return False

    def forget(self, sender: int) -> None:
        """A peer is connected no more; should it come back, it has saved nothing."""
        for kind in PER_ROUND:
            self._left.pop((sender, kind), None)
