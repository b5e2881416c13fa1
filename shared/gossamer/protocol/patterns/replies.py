"""Request and reply: which replies to a request count.

A request is an event; who subscribed to it replies to its requester's peer alone. A replier that
does not hear that its reply arrived sends it again, so that a reply may come more than once.

open -- a reply that has not come before, of fewer than wanted ---->  open
open -- the last reply wanted ------------------------------------>  complete
open, complete -- the requester waits no longer ------------------>  unknown
"""

from __future__ import annotations

import enum
from typing import Final

from attrs import define, field

from gossamer.protocol.kernel.errors import CapacityError

MOST_REPLIES: Final = 1024
"""Most replies that a request may wait for."""
MOST_REQUESTS: Final = 1024
"""Most requests of one peer that may wait at a time."""


class Arrival(enum.IntEnum):
    """What becomes of a reply that comes."""

    TAKEN = 0  # it counts, and is handed on
    REPEATED = 1  # it came before, and is not handed on again
    NOBODY_WAITS = 2  # the request is unknown here by now, or has all replies that it wants


@define(eq=False)
class _Open:
    wanted: int
    came: set[tuple[int, int]] = field(factory=set)


class OpenRequests:
    """The requests of one peer that wait for replies."""

    def __init__(self, limit: int = MOST_REQUESTS) -> None:
        self._limit = limit
        self._open: dict[int, _Open] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, request: int, wanted: int) -> None:
        """Let replies to ``request`` come, ``wanted`` of them at most.

        Raises:
            CapacityError: as many requests wait as may; nothing changed.
        """
        if len(self._open) >= self._limit:
            raise CapacityError("requests that wait for replies", self._limit, "try again later")
        self._open[request] = _Open(wanted)

    def close(self, request: int) -> None:
        """Let nobody wait for replies to ``request`` any more."""
        self._open.pop(request, None)

    def take(self, request: int, replier: int, reply: int) -> Arrival:
        """Take a reply that comes.

        Args:
            request: to which.
            replier: permanent key of the peer that sends it.
            reply: its number, which that peer uses for no other reply to this request.
        """
        waiting = self._open.get(request)
        if waiting is None:
            return Arrival.NOBODY_WAITS
        if (replier, reply) in waiting.came:
            return Arrival.REPEATED
        if len(waiting.came) >= waiting.wanted:
            return Arrival.NOBODY_WAITS
        waiting.came.add((replier, reply))
        return Arrival.TAKEN
