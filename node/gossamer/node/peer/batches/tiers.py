"""When a peer begins to use compiled rules: once that pays.

A peer at rest takes records one by one by interpreted rules, and spares itself the memory. Compiled
code is loaded, and made where there is none, beside the peer's work, and used from one read to the
next; the rules and what they do are the same. Busy is who takes many frames, or whose process works
much for other reasons: with forty neighbours gossip alone takes more time than events do.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import trio

from gossamer.node.config.broker import ALWAYS, NEVER
from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.batches import machine_code
from gossamer.node.peer.batches.machine_code import EVENTS, MAKING_S, STEPS, Made
from gossamer.protocol.kernel.linking import LinkedCode

# Frames in a second from which on it pays to load code: a twentieth of a processor's time.
BUSY_RATE: Final = 200.0
LOOKS_S: Final = 1.0
# The share of a processor's time from which on it pays, and in how many of how many looks: forming
# an overlay, which a peer does once, takes a few seconds.
BUSY_SHARE: Final = 0.1
BUSY_LOOKS, LOOKS = 8, 10
# Between two looks whether another process has made what it makes.
LOOK_AGAIN_S: Final = 5.0

Use = Callable[[LinkedCode], None]


class Tiers:
    """Loads compiled rules when they are needed.

    Attributes:
        compiled: whether those for events are in use.

    Args:
        choice: "auto", "always" or "never".
        counters: tell how busy the peer is.
        use: takes the code of a part, in the order in which parts are wanted.
        used_s: processor time of this process, seconds.
    """

    def __init__(
        self,
        choice: str,
        counters: Counters,
        use: Mapping[str, Use],
        used_s: Callable[[], float] = time.process_time,
    ) -> None:
        self.compiled = False
        self._choice = choice
        self._counters = counters
        self._use = use
        self._used_s = used_s
        self._busy = deque[bool](maxlen=LOOKS)

    async def run(self) -> None:
        """Wait until the peer is busy, and let it use compiled rules from then on."""
        if self._choice == NEVER:
            return
        while self._choice != ALWAYS and not await self._is_busy():
            pass
        for part, use in self._use.items():
            code = await self._code(part)
            if code is None:
                log.warning("compiled rules cannot be had", part=part, effect=_EFFECTS[part])
                continue
            use(code)
            self.compiled = self.compiled or part == EVENTS
            log.info("compiled rules are used", part=part)

    async def _code(self, part: str) -> LinkedCode | None:
        """The code of a part, made if there is none; None where it cannot be had."""
        code = await trio.to_thread.run_sync(machine_code.load, part)
        made = Made.ELSEWHERE
        with trio.move_on_after(MAKING_S):
            while code is None and made is Made.ELSEWHERE:
                made = await trio.to_thread.run_sync(
                    machine_code.make, part, abandon_on_cancel=True
                )
                if made is Made.ELSEWHERE:
                    # Many peers of a machine start at once, and one process makes it for them all.
                    await trio.sleep(LOOK_AGAIN_S)
                code = await trio.to_thread.run_sync(machine_code.load, part)
        return code

    async def _is_busy(self) -> bool:
        frames, used_s, now = self._counters.frames_received, self._used_s(), time.monotonic()
        await trio.sleep(LOOKS_S)
        passed_s = max(LOOKS_S, time.monotonic() - now)
        self._busy.append(self._used_s() - used_s >= BUSY_SHARE * passed_s)
        frames = self._counters.frames_received - frames
        return frames >= BUSY_RATE * LOOKS_S or sum(self._busy) >= BUSY_LOOKS


_EFFECTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        EVENTS: "events are taken one by one",
        STEPS: "gossip takes more time",
    }
)
