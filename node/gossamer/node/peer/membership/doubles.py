"""Notices that several processes run under one key, as copies of a node's folder or machine do.

Others keep one connection for each key, so that such processes take each other's place again and
again, and neither gets all of its events. Each hello names its process: whoever meets another one
of a key takes it for a restart, until the former comes again. It tells the one whose place was
taken, which knows at once, since it still runs.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import trio
from attrs import define, field

from gossamer.node.errors import NodeError
from gossamer.node.errors.transport import DoubledIdentity
from gossamer.node.transport.base.base import Address, Admitted, Cause, Farewell, PeerIdentity

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
