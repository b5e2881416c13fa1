"""Whether this peer belongs to its cluster and reaches anybody, and processes of one key.

What a peer's applications are told depends on it: who is revoked publishes nothing, and who is
alone though it knows others holds by itself what it acknowledges.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

import trio
from attrs import define, field

from gossamer.node.errors import DoubledIdentity, NodeError, PeerRevoked
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.metric_labels import TROUBLES
from gossamer.node.transport.base.base import Address, Admitted, Cause, Farewell, PeerIdentity

# Seconds between two looks at what is wrong, and until what lasts is in the log again.
LOOK_S: Final = 2.0
TELL_AGAIN_S: Final = 60.0

ALONE = (
    "no other peer is reached, though others are known: what is published is held by this peer "
    "alone; 'gossamer node doctor HOST:PORT' says why"
)


@define(eq=False)
class MembershipStatus:
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


# Notices that several processes run under one key, as copies of a node's folder or machine do.
#
# Others keep one connection for each key, so that such processes take each other's place again and
# again, and neither gets all of its events. Each hello names its process: whoever meets another one
# of a key takes it for a restart, until the former comes again. It tells the one whose place was
# taken, which knows at once, since it still runs.


# Seconds for which a doubled identity is told after the last sign of it.
TOLD_S: Final = 60.0
# Keys and, of each, processes that are remembered.
KEYS, PROCESSES = 1024, 4
ADVICE: Final = "stop one of them, or let it join anew in a folder of its own"


@define(eq=False)
class _Processes:
    """Those of one key.

    Attributes:
        places: where each was met, the last one last.
        doubled_at: trio's time when one came again after another.
        who: the peer, for people.
    """

    places: OrderedDict[bytes, str] = field(factory=OrderedDict)
    doubled_at: float = float("-inf")
    who: str = ""


class DoubledIdentities:
    """What one node knows of them."""

    def __init__(self) -> None:
        self._keys: OrderedDict[int, _Processes] = OrderedDict()
        self._own_at = float("-inf")
        self._own_detail = ""

    def on_admitted(self, admitted: Admitted) -> None:
        """Somebody is connected."""
        key, process = admitted.identity.key, admitted.hello.process
        if not process:
            return
        known = self._keys.pop(key, None) or _Processes()
        self._keys[key] = known
        known.who = str(admitted.identity)
        if process in known.places and next(reversed(known.places)) != process:
            known.doubled_at = trio.current_time()
        known.places.pop(process, None)
        known.places[process] = admitted.place
        for many, most in ((known.places, PROCESSES), (self._keys, KEYS)):
            while len(many) > most:
                many.popitem(last=False)

    def on_down(self, identity: PeerIdentity, farewell: Farewell) -> None:
        """A connection ended: another process of our key may have taken our place."""
        if farewell.cause is Cause.REPLACED and not farewell.by_us and farewell.detail:
            self._note_own(f"{identity} has met it at {farewell.detail}")

    def on_refusal(self, error: NodeError | None, remote: Address) -> None:
        """Somebody was not let in, since it has our own key."""
        if isinstance(error, DoubledIdentity):
            self._note_own(f"it came from {remote}")

    def complaint(self) -> str:
        """Which identities are doubled, in a sentence; "" where none is known to be."""
        now = trio.current_time()
        if now - self._own_at < TOLD_S:
            return f"another process runs under this node's key ({self._own_detail}): {ADVICE}"
        doubled = [one for one in self._keys.values() if now - one.doubled_at < TOLD_S]
        if not doubled:
            return ""
        first, more = doubled[0], len(doubled) - 1
        places = " and at ".join(list(first.places.values())[-2:])
        others = f", and {more} more are doubled" if more else ""
        return f"{first.who} runs twice, at {places}{others}: {ADVICE}"

    def _note_own(self, detail: str) -> None:
        self._own_at, self._own_detail = trio.current_time(), detail
