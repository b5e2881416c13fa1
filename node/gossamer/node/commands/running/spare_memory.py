"""Memory that was freed, and that the C library keeps for itself.

A burst, of strangers or of events, leaves holes between what stays. glibc gives a hole back to the
system only when it is asked: after ten minutes of floods that was 7 of 75 MB.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final

import trio

# A call takes a fifth of a millisecond in a peer, and 5 ms where a GB is in use.
PAUSE_S: Final = 60.0


async def give_back_spare_memory() -> None:
    """Give the system every minute what is spare, until cancelled; at once without glibc."""
    trim = find_trim()
    while trim is not None:
        await trio.sleep(PAUSE_S)
        trim()


def find_trim() -> Callable[[], None] | None:
    """What gives spare memory to the system; None where the C library is another than glibc."""
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):
        return None

    def trim() -> None:
        malloc_trim(ctypes.c_size_t(0))

    return trim
