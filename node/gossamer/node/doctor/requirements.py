"""What this machine has to have for any node, whether there is one yet or not."""

from __future__ import annotations

import os
import platform
import resource
import shutil
import sys
from pathlib import Path
from typing import Final

from gossamer.node.doctor.findings import Finding
from gossamer.node.doctor.local import check_port

# A node holds a descriptor for each connection to a peer, a client or its page, and some files.
FEW_FILES: Final = 1024
# What the state files of a node with the default settings may grow to.
LITTLE_SPACE: Final = 1 << 30


def check_machine(folder: Path, ports: tuple[int, ...]) -> list[Finding]:
    """Whether a node could run here, in ``folder``, at these ports; nothing is changed."""
    return [
        check_python(),
        check_files(),
        check_space(folder),
        check_place(folder),
        *(check_port("0.0.0.0", port) for port in ports),
    ]


def check_python() -> Finding:
    """Which Python it is; the package does not install for one that is too old."""
    words = f"Python {platform.python_version()} on {platform.system()}, {sys.executable}"
    return Finding("python", True, words)


def check_files() -> Finding:
    """Whether a process may have as many descriptors as a node needs."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    what = f"a process may have {soft} files and connections open"
    if soft != resource.RLIM_INFINITY and soft < FEW_FILES:
        return Finding("open files", False, what, f"ulimit -n {FEW_FILES}")
    return Finding("open files", True, what)


def check_space(folder: Path) -> Finding:
    """Whether there is room for the files of a node."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Finding("disk", False, f"{folder} cannot be looked at ({error.strerror})")
    what = f"{free / (1 << 30):,.1f} GiB are free at {folder.absolute()}"
    if free < LITTLE_SPACE:
        return Finding("disk", False, what, "Make room: what cannot be kept waits in memory.")
    return Finding("disk", True, what)


def check_place(folder: Path) -> Finding:
    """Whether this user can make a node's folder here."""
    if os.access(folder, os.W_OK | os.X_OK):
        return Finding("folder", True, f"this user may write to {folder.absolute()}")
    what = f"this user may not write to {folder.absolute()}"
    return Finding("folder", False, what, "Go to a folder of your own.")
