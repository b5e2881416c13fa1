"""How much memory this process holds, for tests that it does not grow."""

from __future__ import annotations

import ctypes
import gc

import psutil


def memory_of_process() -> int:
    """Bytes resident, without what was freed and only not given back to the system yet."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return int(psutil.Process().memory_info().rss)
