"""A disk that is soon full, where tests may mount one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[Path]:
    """A file system of ``size`` bytes in a new folder; skips the test where none can be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"needs to mount a small disk: {error}")
    if mounted.returncode:
        pytest.skip(f"needs to mount a small disk: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        # Lazily: Spark closes what it failed to write when it pleases.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk: Path, left: int) -> None:
    """Fill a disk up to so many bytes."""
    (disk / "filling").write_bytes(bytes(shutil.disk_usage(disk).free - left))
