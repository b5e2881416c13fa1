"""To whom frames were not sent since too much waited for them; they are told once that is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

# Seconds without anything dropped after which that is over.
QUIET_S: Final = 5.0


class Losses:
    """What peers were not sent.

    Args:
        on_loss: told the key of each of them once no more is dropped.
    """

    def __init__(self, on_loss: Callable[[int], None]) -> None:
        self._on_loss = on_loss
        self._last_at: dict[int, float] = {}

    def note(self, key: int) -> None:
        """A frame for the peer ``key`` was dropped."""
        self._last_at[key] = trio.current_time()

    def new_round(self) -> None:
        """Look what is over."""
        now = trio.current_time()
        for key in [key for key, last_at in self._last_at.items() if now - last_at >= QUIET_S]:
            del self._last_at[key]
            self._on_loss(key)
