"""Requests for new certificates under way, and how many frames about them a peer may send."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import trio
from attrs import define, field

# A peer's request is passed on once in this time, and its answer awaited for as long.
FORWARD_S: Final = 60.0
# Requests under way at a time, and peers that are answered for each.
MAX_PENDING: Final = 256
MAX_ASKERS: Final = 16
# Frames about renewals that one peer may send at once, and seconds until it may send one more:
# each costs two signatures to verify.
BURST: Final = 32
REFILL_S: Final = 1.0


@define
class _Pending:
    """A request that is being answered, or was passed on: about which certificate, for whom."""

    serial: int
    until: float
    askers: list[int] = field(factory=list)


@define
class _Allowance:
    """How many frames a peer may still send."""

    left: float = BURST
    at: float = field(factory=trio.current_time)

    def take(self) -> bool:
        now = trio.current_time()
        self.left = min(BURST, self.left + (now - self.at) / REFILL_S)
        self.at = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class RenewalRequests:
    """What is under way at one peer, by the key of whose certificate it is about."""

    def __init__(self) -> None:
        self._pending: OrderedDict[int, _Pending] = OrderedDict()
        self._allowances: dict[int, _Allowance] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._pending

    def allows(self, sender: int) -> bool:
        """Count a frame of ``sender``; return whether it may be taken."""
        return self._allowances.setdefault(sender, _Allowance()).take()

    def joins(self, key: int, serial: int, sender: int) -> bool:
        """Whether a request is under way already, or there is no room for it.

        In the first case ``sender`` is to get the answer as well.
        """
        pending = self._pending.get(key)
        if pending is None or pending.serial != serial:
            return pending is None and len(self._pending) >= MAX_PENDING
        if sender not in pending.askers and len(pending.askers) < MAX_ASKERS:
            pending.askers.append(sender)
        return True

    def begin(self, key: int, serial: int, sender: int) -> None:
        """A request of ``sender`` is under way from now on."""
        self._pending.pop(key, None)
        until = trio.current_time() + FORWARD_S
        self._pending[key] = _Pending(serial, until, [sender])

    def askers(self, key: int) -> list[int]:
        """Who is to get the answer."""
        pending = self._pending.get(key)
        return [] if pending is None else list(pending.askers)

    def forget(self, sender: int) -> None:
        """A peer is connected no more."""
        self._allowances.pop(sender, None)

    def forget_late(self) -> None:
        """Requests that nobody has answered in time may come again."""
        now = trio.current_time()
        while self._pending and next(iter(self._pending.values())).until <= now:
            self._pending.popitem(last=False)
