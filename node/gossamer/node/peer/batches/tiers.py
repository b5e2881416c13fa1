"""When a peer begins to take events in batches by compiled rules: once that pays.

A peer at rest takes them one by one by interpreted rules, and spares itself the memory. Compiled
code is loaded, and made where there is none, beside the peer's work, and used from one read to the
next; the rules and what they do are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from gossamer.compiled.object_code import LinkedCode
from gossamer.node.config.broker import ALWAYS, NEVER
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.batches import machine_code

# Frames in a second from which on it pays to load code: a twentieth of a processor's time.
BUSY_RATE: Final = 200.0
LOOKS_S: Final = 1.0


class Tiers:
    """Loads compiled rules when they are needed.

    Attributes:
        compiled: whether they are in use.

    Args:
        choice: "auto", "always" or "never".
        counters: tell how busy the peer is.
        use: takes the code.
    """

    def __init__(self, choice: str, counters: Counters, use: Callable[[LinkedCode], None]) -> None:
        self.compiled = False
        self._choice = choice
        self._counters = counters
        self._use = use

    async def run(self) -> None:
        """Wait until the peer is busy, and let it use compiled rules from then on."""
        if self._choice == NEVER:
            return
        while self._choice != ALWAYS and not await self._is_busy():
            pass
        code = await trio.to_thread.run_sync(machine_code.load)
        if code is None:
            await trio.to_thread.run_sync(machine_code.make, abandon_on_cancel=True)
            code = await trio.to_thread.run_sync(machine_code.load)
        if code is None:
            log.warning("compiled rules cannot be had", effect="events are taken one by one")
            return
        self._use(code)
        self.compiled = True
        log.info("events are taken by compiled rules")

    async def _is_busy(self) -> bool:
        before = self._counters.frames_received
        await trio.sleep(LOOKS_S)
        return self._counters.frames_received - before >= BUSY_RATE * LOOKS_S
