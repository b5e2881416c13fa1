"""Copies of state files, and what has to change in one that goes back in time."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from gossamer.node.errors import StoreDamagedError
from gossamer.node.store.database import BUSY_S, only_reading, translated
from gossamer.node.store.store import Store


def copy_database(source: Path, target: Path) -> None:
    """Copy a state file as it is at one instant, whether a node writes to it or not.

    Not to be called in a process that has the file open.

    Args:
        source: the state file.
        target: an empty file, whose rights stay as they are.

    Raises:
        StoreDamagedError: it is no database, or the copy is not whole.
        StoreError: it cannot be read, or the copy not be written.
    """
    with only_reading(source) as connection, translated(target):
        copy = sqlite3.connect(target, timeout=BUSY_S)
        try:
            connection.backup(copy)
            # A copy is one file: whoever opens it decides anew how it is written.
            copy.execute("PRAGMA journal_mode = DELETE")
            ((found,),) = copy.execute("PRAGMA quick_check(1)").fetchall()
        finally:
            copy.close()
    if found != "ok":
        raise StoreDamagedError(source, f"is damaged ({found}), expected a state file")


def go_on_from(path: Path, now: float, forgotten: Sequence[str]) -> None:
    """Let a peer go on from an old copy of its state file, which is at ``path``.

    Descriptors are signed by numbers above those that were used since, which follow the clock in
    milliseconds where a file is new and grow more slowly; tokens that were not used when the copy
    was made may have been, and are void. A broker begins anew, as one that lost its disk: its
    neighbours have gone on, and would take what it was for what it is.

    Args:
        path: the state file; no node has it open.
        now: Unix seconds.
        forgotten: names under which it keeps ids of queues, whose positions are given out again.

    Raises:
        StoreError: it cannot be used.
    """
    store = Store(path)
    try:
        store.go_on_from(now, forgotten)
    finally:
        store.close()
