"""Whether this peer belongs to its cluster and reaches anybody in it, and what is wrong if not.

What a peer's applications are told depends on it: who is revoked publishes nothing, and who is
alone though it knows others holds by itself what it acknowledges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import trio
from attrs import define, field

from gossamer.node.errors import PeerRevoked
from gossamer.node.monitoring.logs import log

# Seconds between two looks at what is wrong, and until what lasts is in the log again.
LOOK_S: Final = 2.0
TELL_AGAIN_S: Final = 60.0

ALONE = (
    "no other peer is reached, though others are known: what is published is held by this peer "
    "alone; 'gossamer node doctor HOST:PORT' says why"
)


@define(eq=False)
class Standing:
    """How one peer stands; those who find out set it, those who serve applications ask.

    Attributes:
        key: its permanent key.
        revoked: whether the cluster's authority has said that it belongs no more.
        reaches_nobody: tells whether it knows other peers and reaches none.
        complaints: each tells one thing more that is wrong, in a sentence; "" for nothing.
    """

    key: int = 0
    revoked: bool = False
    reaches_nobody: Callable[[], bool] = lambda: False
    complaints: list[Callable[[], str]] = field(factory=list)

    @property
    def alone(self) -> bool:
        """Whether an acknowledgement now means that this peer holds an event, and nobody else."""
        return not self.revoked and self.reaches_nobody()

    def check(self) -> None:
        """Let a peer that belongs pass.

        Raises:
            PeerRevoked: it belongs no more.
        """
        if self.revoked:
            raise PeerRevoked(self.key)

    def troubles(self) -> tuple[str, ...]:
        """What is wrong, a sentence each, for people."""
        found = [complaint() for complaint in self.complaints]
        if self.revoked:
            found.insert(0, str(PeerRevoked(self.key)))
        elif self.alone:
            found.append(ALONE)
        return tuple(filter(None, found))

    async def tell(self) -> None:
        """Have each trouble in the log when it comes, each minute that it lasts, and at its end."""
        told: dict[str, float] = {}
        while True:
            now, troubles = trio.current_time(), self.troubles()
            for trouble in troubles:
                if now - told.get(trouble, -math.inf) >= TELL_AGAIN_S:
                    told[trouble] = now
                    log.warning("trouble", cause=trouble)
            for trouble in told.keys() - set(troubles):
                del told[trouble]
                log.info("trouble is over", cause=trouble)
            await trio.sleep(LOOK_S)
