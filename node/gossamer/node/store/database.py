"""A SQLite file that is opened, brought up to date, and written in transactions.

What SQLite reports becomes an error of `gossamer.node.errors` that names the file.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from gossamer.node.errors import (
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreFullError,
    StoreVersionError,
)
from gossamer.node.store.schema import APPLICATION_ID, MIGRATIONS

# How long a write waits for another process, such as a command beside the running node.
BUSY_S: Final = 5.0

Row = tuple[Any, ...]


class Database:
    """One connection to a state file; used by one thread at a time.

    Attributes:
        path: the file.
    """

    def __init__(self, path: Path, *, max_pages: int | None = None) -> None:
        """Open ``path``, made with mode 600 where it is missing, and migrate it.

        Args:
            path: the file; its folder exists.
            max_pages: pages that the file may grow to, where not the disk is to be the limit.

        Raises:
            StoreVersionError: a newer version wrote the file; it is untouched.
            StoreDamagedError: the file is no state file; it is untouched.
            StoreError: the file cannot be opened.
        """
        self.path = path
        self._depth = 0
        with self._translated():
            # Made here, because SQLite would make a file that others can read.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            # Statements run in the event loop, commits in a thread, never both at a time.
            self._connection = sqlite3.connect(
                path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
        try:
            self._prepare(max_pages)
        except BaseException:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file; what was committed stays."""
        self._connection.close()

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run a statement; return how many rows it changed."""
        with self._translated():
            return self._connection.execute(sql, parameters).rowcount

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """The rows that a query finds."""
        with self._translated():
            return self._connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        """The first row that a query finds, or None."""
        with self._translated():
            found: Row | None = self._connection.execute(sql, parameters).fetchone()
            return found

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All statements inside are carried out together, or none of them.

        Transactions nest: an inner one that fails takes back its own statements only.
        """
        if self._depth == 0:
            self.begin()
            try:
                yield
            except BaseException:
                self.roll_back()
                raise
            self.commit()
            return
        mark = f"depth_{self._depth}"
        self.execute(f"SAVEPOINT {mark}")
        self._depth += 1
        try:
            yield
        except BaseException:
            # SQLite gives up the whole transaction when the disk fails: no mark is left then.
            if self.in_transaction:
                self.execute(f"ROLLBACK TO {mark}")
                self.execute(f"RELEASE {mark}")
            raise
        else:
            self.execute(f"RELEASE {mark}")
        finally:
            self._depth -= 1

    @property
    def in_transaction(self) -> bool:
        """Whether statements are waiting for a commit."""
        return self._connection.in_transaction

    def begin(self) -> None:
        """Begin a transaction that is ended by `commit` or `roll_back`; may wait for the lock."""
        self.execute("BEGIN IMMEDIATE")
        self._depth = 1

    def commit(self) -> None:
        """End the transaction; it is on the disk on return, and taken back on an error."""
        try:
            self.execute("COMMIT")
            self._depth = 0
        except StoreError:
            self.roll_back()
            raise

    def roll_back(self) -> None:
        """End the transaction as if it had never begun."""
        self._depth = 0
        if self.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")

    def _prepare(self, max_pages: int | None) -> None:
        self._check_owner()
        self.execute("PRAGMA journal_mode = WAL")
        self.execute("PRAGMA synchronous = FULL")
        self.execute("PRAGMA foreign_keys = ON")
        if self._version() < len(MIGRATIONS):
            with self.transaction():
                self._migrate()
        if max_pages is not None:
            self.execute(f"PRAGMA max_page_count = {max_pages:d}")

    def _check_owner(self) -> None:
        """Refuse a database of another program, before anything is written to it."""
        ((owner,),) = self.rows("PRAGMA application_id")
        tables = self.row("SELECT count(*) FROM sqlite_master")
        if owner != APPLICATION_ID and tables != (0,):
            raise StoreDamagedError(self.path, "is a database of another program")
        if self._version() > len(MIGRATIONS):
            raise StoreVersionError(self.path, self._version(), len(MIGRATIONS))

    def _version(self) -> int:
        """How many migrations the file has seen."""
        if self.row("SELECT 1 FROM sqlite_master WHERE name = 'migrations'") is None:
            return 0
        ((version,),) = self.rows("SELECT count(*) FROM migrations")
        return int(version)

    def _migrate(self) -> None:
        """Carry out what is missing; asks again, because another process may have been faster."""
        self.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self.execute(
            "CREATE TABLE IF NOT EXISTS migrations ("
            "version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP)"
        )
        for version in range(self._version() + 1, len(MIGRATIONS) + 1):
            for statement in MIGRATIONS[version - 1]:
                self.execute(statement)
            self.execute("INSERT INTO migrations (version) VALUES (?)", (version,))

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _store_error(self.path, error) from error
        except OSError as error:
            raise StoreError(self.path, f"cannot be opened: {error.strerror}") from error


def _store_error(path: Path, error: sqlite3.Error) -> StoreError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreFullError(path)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusyError(path, f"was locked by another process for {BUSY_S:g} s")
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return StoreDamagedError(path, f"is no usable state file ({error})")
    return StoreError(path, f"cannot be used: {error}")
