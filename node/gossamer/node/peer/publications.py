"""Publications of this peer's applications, until they are acknowledged.

The protocol publishes again what is not answered; here is how long an application waits for it, and
how many of its publications may wait at a time: more wait for their turn (`window`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import attrs
import trio

from gossamer.node.errors import NotAcknowledged, PeerStopped
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.core import Record
from gossamer.node.peer.frames.events import EventMemory
from gossamer.node.peer.load.window import Window
from gossamer.node.peer.runtime import Runtime
from gossamer.protocol.kernel.errors import InvariantError

# An acknowledgement that takes this part of the time that it may take is slow.
SLOW: Final = 0.3


@attrs.define(eq=False)
class _Waiting:
    """A publication under way.

    Attributes:
        over: set once it is acknowledged, or the peer stops.
        held: whether it is acknowledged.
    """

    over: trio.Event = attrs.field(factory=trio.Event)
    held: bool = False


class Publications:
    """What was published here and waits for its acknowledgement.

    Args:
        runtime: of the peer.
        events: what it may have to send.
        patience_s: how long to wait for one.
        counters: where publications are counted.
    """

    def __init__(
        self, runtime: Runtime, events: EventMemory, patience_s: float, counters: Counters
    ) -> None:
        self._runtime = runtime
        self._events = events
        self._patience_s = patience_s
        self._counters = counters
        slots = runtime.core.settings.pending_publications
        self._window = Window(slots, SLOW * patience_s) if slots else None
        self._waiting: dict[int, _Waiting] = {}
        self._due: dict[int, Record] = {}
        self._gathers = False
        self._stopped = False
        runtime.on_publication = self._on_publication

    async def publish(
        self, event: int, sealed: bytes, point: Sequence[int], application: Hashable = None
    ) -> None:
        """Publish a sealed event at this point; return once it is acknowledged.

        While it has to wait for its turn, those of each ``application`` take turns.
        Where the settings have no publication acknowledged, that is at once.

        Raises:
            NotAcknowledged: it was not in time, or the peer stops; it is not published again.
            PeerStopped: the peer stopped before its turn came; nothing was published.
        """
        if self._window is None:
            self._events.keep(event, sealed)
            await self._send(event, point)
            return
        async with self._window.place(application):
            if self._stopped:
                raise PeerStopped
            began = trio.current_time()
            try:
                await self._publish_and_wait(event, sealed, point)
            except NotAcknowledged:
                self._window.note(trio.current_time() - began)
                raise
            self._window.note(trio.current_time() - began)

    def stop(self) -> None:
        """Let nobody wait any longer."""
        self._stopped = True
        for waiting in self._waiting.values():
            waiting.over.set()

    async def _send(self, event: int, point: Sequence[int]) -> None:
        """Let the protocol publish an event, with all that others are about to publish."""
        self._counters.events_published += 1
        self._due[event] = self._runtime.core.publish(event, point)
        if self._gathers:
            return  # who came first takes it along
        # Those whose events share a signature come here in the same turn of the event loop.
        self._gathers = True
        await trio.lowlevel.cancel_shielded_checkpoint()
        self._gathers = False
        due, self._due = [*self._due.values()], {}
        self._runtime.publish(due)

    async def _publish_and_wait(self, event: int, sealed: bytes, point: Sequence[int]) -> None:
        began = trio.current_time()
        waiting = self._waiting[event] = _Waiting()
        self._events.pinned[event] = sealed
        try:
            await self._send(event, point)
            with trio.move_on_after(self._patience_s):
                await waiting.over.wait()
        finally:
            del self._waiting[event]
            self._due.pop(event, None)
            self._events.keep(event, self._events.pinned.pop(event))
            if not waiting.held:
                self._counters.events_unacknowledged += 1
                self._runtime.handle(self._runtime.core.withdraw(event))
        if not waiting.held:
            raise NotAcknowledged(event, None if self._stopped else self._patience_s)
        self._counters.acknowledge_latency.observe(trio.current_time() - began)

    def _on_publication(self, event: int, held: bool) -> None:
        waiting = self._waiting.get(event)
        if waiting is None:
            return
        if not held:
            raise InvariantError(f"event {event:016x} was published beyond all slots")
        self._counters.events_acknowledged += 1
        waiting.held = True
        waiting.over.set()
