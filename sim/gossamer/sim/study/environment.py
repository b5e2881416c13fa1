"""What a run ran on: versions and memory, which are kept with its results."""

from __future__ import annotations

import os
import platform
import resource
import sys
from importlib.metadata import PackageNotFoundError, version


def versions() -> dict[str, str]:
    """Versions of what a run's speed, and nothing else, may depend on."""
    found = {"python": platform.python_version()}
    for package in ("gossamer", "numpy", "numba"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def peak_memory_bytes() -> int:
    """Largest resident memory of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


def usable_cores() -> int:
    """Cores that this process may use, of which a container has often fewer than the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
