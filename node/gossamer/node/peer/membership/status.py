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
from gossamer.node.monitoring.causes import TROUBLES
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
    """

    key: int = 0
    revoked: bool = False
    reaches_nobody: Callable[[], bool] = lambda: False
    _complaints: dict[str, list[Callable[[], str]]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._complaints = {kind: [] for kind in TROUBLES}
        self.ask("revoked", lambda: str(PeerRevoked(self.key)) if self.revoked else "")
        self.ask("alone", lambda: ALONE if self.alone else "")

    def ask(self, kind: str, complaint: Callable[[], str]) -> None:
        """Have ``complaint`` tell what is wrong of a kind of trouble, in a sentence, or ""."""
        self._complaints[kind].append(complaint)

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

    def by_kind(self) -> dict[str, str]:
        """What is wrong: a sentence for people, by kind of trouble."""
        asked = ((kind, one()) for kind, all_of_it in self._complaints.items() for one in all_of_it)
        found: dict[str, str] = {}
        for kind, sentence in asked:
            if sentence:
                found.setdefault(kind, sentence)
        return found

    def troubles(self) -> tuple[str, ...]:
        """What is wrong, a sentence each, for people."""
        return tuple(self.by_kind().values())

    def counts(self) -> dict[str, int]:
        """For each kind of trouble 1 while there is some, else 0."""
        found = self.by_kind()
        return {kind: int(kind in found) for kind in TROUBLES}

    async def tell(self) -> None:
        """Have each trouble in the log when it comes, each minute that it lasts, and at its end."""
        told: dict[str, float] = {}
        while True:
            now, troubles = trio.current_time(), self.by_kind()
            for kind, sentence in troubles.items():
                if now - told.get(kind, -math.inf) >= TELL_AGAIN_S:
                    told[kind] = now
                    log.warning("trouble", kind=kind, cause=sentence)
            for kind in told.keys() - troubles.keys():
                del told[kind]
                log.info("trouble is over", kind=kind)
            await trio.sleep(LOOK_S)
