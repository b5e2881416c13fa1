"""Cache invalidation: caches beside a database forget what somebody else has changed.

    gossamer node init cache --peers 2 --port 7780 --schema examples/node/cache.toml
    gossamer node run cache/peer1 cache/peer2
    python examples/node/cache_invalidation.py cache/peer1 cache/peer2

Whoever writes to the database publishes table, row and version after the commit. A cache subscribes
to the tables that it keeps rows of. Two things make it safe, whatever fails: an entry is older than
the version that is told, or it stays, so that a notice that comes late or twice does no harm; and
while the connection to the node is lost, or notices may have been missed, nothing is served from
the cache at all.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from gossamer.client import CONNECTED, BlockingClient, NodeError, connect


@dataclass(frozen=True)
class Row:
    """What a database has under a key: a value, and how often it was changed."""

    value: str
    version: int


class Database:
    """Stands for a real one; threads may use it at once.

    Attributes:
        reads: how often a row was read.
    """

    def __init__(self) -> None:
        self.reads = 0
        self._rows: dict[str, Row] = {}
        self._lock = threading.Lock()

    def read(self, row: str) -> Row:
        """What is there now."""
        with self._lock:
            self.reads += 1
            return self._rows.get(row, Row("", 0))

    def write(self, row: str, value: str) -> int:
        """Change a row; its new version."""
        with self._lock:
            version = self._rows.get(row, Row("", 0)).version + 1
            self._rows[row] = Row(value, version)
            return version


class Cache:
    """Rows of one table; use it as a context."""

    def __init__(self, folder: str, table: str, load: Callable[[str], Row]) -> None:
        self._folder, self._table, self._load = folder, table, load
        self._rows: dict[str, Row] = {}
        # What was told of rows, so that one that is being read meanwhile is not kept too old.
        self._told: dict[str, int] = {}
        self._serving = False
        self._lock = threading.Lock()
        self._node: BlockingClient | None = None

    def __enter__(self) -> Cache:
        self._opened = connect(self._folder, on_change=self._on_change)
        self._node = self._opened.__enter__()
        self._notices = self._node.subscribe(f'table == "{self._table}"')
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()
        self._serving = True
        return self

    def __exit__(self, *_: object) -> None:
        self._notices.close()
        self._opened.__exit__(None, None, None)
        self._thread.join()

    def get(self, row: str) -> str:
        """The value of a row, from the cache where that is known to be as new as any notice."""
        with self._lock:
            found = self._rows.get(row) if self._serving else None
        if found is not None:
            return found.value
        loaded = self._load(row)
        with self._lock:
            if self._serving and loaded.version >= self._told.get(row, 0):
                self._rows[row] = loaded
        return loaded.value

    def _follow(self) -> None:
        try:
            for notice in self._notices:
                row, version = str(notice.values["row"]), int(notice.values["version"])
                with self._lock:
                    self._told[row] = max(version, self._told.get(row, 0))
                    kept = self._rows.get(row)
                    if kept is not None and kept.version < version:
                        del self._rows[row]
        except NodeError:
            self._forget()

    def _on_change(self, reason: str) -> None:
        if reason == CONNECTED:
            self._serving = True
        else:
            self._forget()

    def _forget(self) -> None:
        """Notices may be missed from now on: begin with nothing when they come again."""
        with self._lock:
            self._serving = False
            self._rows.clear()


def change(node: BlockingClient, database: Database, table: str, row: str, value: str) -> None:
    """Write to the database, and tell the caches."""
    version = database.write(row, value)
    node.publish({"table": table, "row": row, "version": version})


def main(reader: str, writer: str) -> None:
    database = Database()
    database.write("ada", "London")
    with Cache(reader, "people", database.read) as cache, connect(writer) as node:
        for _ in range(100):
            cache.get("ada")
        print(f"100 lookups, {database.reads} read of the database")
        change(node, database, "people", "ada", "Turin")
        while cache.get("ada") != "Turin":
            time.sleep(0.01)
        print("the cache has what was written")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: cache_invalidation.py READER_FOLDER WRITER_FOLDER")
    main(sys.argv[1], sys.argv[2])
