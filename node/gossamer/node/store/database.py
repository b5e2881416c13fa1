"""A SQLite file that is opened, brought up to date by steps, and written in transactions.

What SQLite reports becomes an error of `gossamer.node.errors` that names the file.

SQLite's locks are POSIX advisory locks, which a process loses as a whole as soon as it closes any
descriptor of the file, SQLite's or not. Another process then takes itself for the only one, and
removes the write-ahead log when it is done. So a process has one connection to a file
(`_OpenFiles`), and never opens the file by any other means while it has one.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from gossamer.node.errors import StoreError

# The tables of the state file, as the list of steps that led to them.
#
# A step, once released, never changes: a file is brought up to date by the steps it has not seen.


# Marks the file as ours (pragma application_id): "goss".
APPLICATION_ID: Final = 0x676F7373

_FIRST: Final = (
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
    """CREATE TABLE identity (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
        key INTEGER NOT NULL,
        next_sequence INTEGER NOT NULL)""",
    """CREATE TABLE peers (
        key INTEGER PRIMARY KEY,
        addresses TEXT NOT NULL,
        fingerprint BLOB NOT NULL,
        last_seen REAL NOT NULL,
        failures INTEGER NOT NULL)""",
    "CREATE INDEX peers_by_last_seen ON peers (last_seen)",
    """CREATE TABLE subscriptions (
        client TEXT NOT NULL,
        id TEXT NOT NULL,
        expression TEXT NOT NULL,
        PRIMARY KEY (client, id)) WITHOUT ROWID""",
    """CREATE TABLE tokens (
        hash BLOB PRIMARY KEY,
        expires_at REAL NOT NULL,
        public_key BLOB,
        certificate BLOB) WITHOUT ROWID""",
    """CREATE TABLE certificates (
        serial BLOB PRIMARY KEY,
        key INTEGER NOT NULL,
        name TEXT NOT NULL,
        not_after REAL NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE events (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        event_id BLOB NOT NULL UNIQUE,
        publisher INTEGER NOT NULL,
        body BLOB NOT NULL,
        received_at REAL NOT NULL,
        expires_at REAL NOT NULL)""",
    "CREATE INDEX events_by_expiry ON events (expires_at)",
    # Kept by triggers, so that a bound is checked without counting and no write can forget it.
    "CREATE TABLE event_totals (events INTEGER NOT NULL, bytes INTEGER NOT NULL)",
    "INSERT INTO event_totals VALUES (0, 0)",
    """CREATE TRIGGER event_came AFTER INSERT ON events BEGIN
        UPDATE event_totals SET events = events + 1, bytes = bytes + length(NEW.body);
    END""",
    """CREATE TRIGGER event_went AFTER DELETE ON events BEGIN
        UPDATE event_totals SET events = events - 1, bytes = bytes - length(OLD.body);
    END""",
    """CREATE TABLE clients (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        next_ordinal INTEGER NOT NULL)""",
    """CREATE TABLE delivered (
        client INTEGER NOT NULL REFERENCES clients (number) ON DELETE CASCADE,
        ordinal INTEGER NOT NULL,
        event_id BLOB NOT NULL,
        PRIMARY KEY (client, ordinal)) WITHOUT ROWID""",
    "CREATE UNIQUE INDEX delivered_events ON delivered (client, event_id)",
)

_BROKER: Final = (
    "CREATE TABLE broker_log (position INTEGER PRIMARY KEY AUTOINCREMENT, entry BLOB NOT NULL)",
    """CREATE TABLE broker_dump (
        only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
        data BLOB NOT NULL)""",
    """CREATE TABLE broker_mail (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        client TEXT NOT NULL,
        body BLOB NOT NULL)""",
    "CREATE INDEX broker_mail_by_client ON broker_mail (client, position)",
)

# A dump is written in portions while messages go on, and takes the place of the one before it when
# it is whole; of the log, it has what came until it was begun.
_DUMPS_IN_PORTIONS: Final = (
    """CREATE TABLE broker_dumps (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        log_position INTEGER NOT NULL,
        whole INTEGER NOT NULL)""",
    """CREATE TABLE broker_dump_portions (
        position INTEGER PRIMARY KEY AUTOINCREMENT,
        dump INTEGER NOT NULL,
        data BLOB NOT NULL)""",
    "CREATE INDEX broker_dump_portions_by_dump ON broker_dump_portions (dump, position)",
    "INSERT INTO broker_dumps (number, log_position, whole) SELECT 1, 0, 1 FROM broker_dump",
    "INSERT INTO broker_dump_portions (dump, data) SELECT 1, data FROM broker_dump",
    "DROP TABLE broker_dump",
)

_COMPOSITES: Final = (
    """CREATE TABLE broker_composites (
        client TEXT NOT NULL,
        label TEXT NOT NULL,
        mark TEXT NOT NULL,
        text TEXT NOT NULL,
        within_s REAL NOT NULL,
        PRIMARY KEY (client, label)) WITHOUT ROWID""",
)

_SINCE_WHEN: Final = ("ALTER TABLE subscriptions ADD COLUMN since REAL NOT NULL DEFAULT 0",)

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    _FIRST,
    _BROKER,
    _DUMPS_IN_PORTIONS,
    _COMPOSITES,
    _SINCE_WHEN,
)


# How long a write waits for another process, such as a command beside the running node.
BUSY_S: Final = 5.0

Row = tuple[Any, ...]

# What tells a file of a process: the process, the file's device, and its number there.
_FileId = tuple[int, int, int]


class _OpenFiles:
    """The files that this process has a connection to; threads may use it at once."""

    def __init__(self) -> None:
        self._ids: set[_FileId] = set()
        self._lock = threading.Lock()

    def connect(self, path: Path) -> tuple[sqlite3.Connection, _FileId]:
        """The one connection to ``path``, which is made, with mode 600, where it is missing.

        Raises:
            StoreError: this process has one already, or may not write to the file.
            OSError, sqlite3.Error: the file cannot be opened.
        """
        with self._lock:
            file_id = _made(path)
            if file_id in self._ids:
                raise StoreError(path, "is open in this process already, expected one connection")
            if not os.access(path, os.R_OK | os.W_OK):
                raise StoreError(path, "cannot be opened: expected a file that this user can write")
            # "rw": SQLite itself would make a missing file that others can read. Statements run
            # in the event loop, commits in a thread, never both at a time.
            connection = sqlite3.connect(
                _uri(path, "rw"),
                uri=True,
                timeout=BUSY_S,
                isolation_level=None,
                check_same_thread=False,
            )
            self._ids.add(file_id)
            return connection, file_id

    def close(self, connection: sqlite3.Connection, file_id: _FileId) -> None:
        """End a connection; more than once does no harm."""
        with self._lock:
            connection.close()
            self._ids.discard(file_id)


_OPEN: Final = _OpenFiles()


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
            StoreError: a newer version wrote the file, it is no state file, it cannot be opened, or
                this process has it open already; it is untouched.
        """
        self.path = path
        self._depth = 0
        with translated(path):
            self._connection, self._file_id = _OPEN.connect(path)
        try:
            self._prepare(max_pages)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; what was committed stays."""
        _OPEN.close(self._connection, self._file_id)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> int:
        """Run a statement; return how many rows it changed."""
        with translated(self.path):
            return self._connection.execute(sql, parameters).rowcount

    def execute_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each row of parameters."""
        with translated(self.path):
            self._connection.executemany(sql, rows)

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """The rows that a query finds."""
        with translated(self.path):
            return self._connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Sequence[Any] = ()) -> Row | None:
        """The first row that a query finds, or None."""
        with translated(self.path):
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
        if self._version() > len(MIGRATIONS):
            raise newer_version(self.path, self._version())

    def _version(self) -> int:
        with translated(self.path):
            return _version(self._connection, self.path)

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


def read_version(path: Path) -> int:
    """How many migrations a state file has seen; nothing is written, whether a node runs or not.

    Not to be called in a process that has the file open.

    Raises:
        StoreError: it is no state file, or cannot be read.
    """
    with only_reading(path) as connection:
        return _version(connection, path)


def read_meta(path: Path, name: str) -> bytes | None:
    """What a state file has under a name in its table `meta`; as `read_version`."""
    with only_reading(path) as connection:
        if _version(connection, path) == 0:
            return None
        row = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
        return None if row is None else bytes(row[0])


@contextmanager
def only_reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes nothing; not in a process that has the file open."""
    with translated(path):
        connection = sqlite3.connect(_uri(path, "ro"), uri=True, timeout=BUSY_S)
        try:
            yield connection
        finally:
            connection.close()


def _version(connection: sqlite3.Connection, path: Path) -> int:
    ((owner,),) = connection.execute("PRAGMA application_id").fetchall()
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if owner != APPLICATION_ID and names:
        raise StoreError(path, "is a database of another program")
    if "migrations" not in names:
        return 0
    ((version,),) = connection.execute("SELECT count(*) FROM migrations").fetchall()
    return int(version)


def _made(path: Path) -> _FileId:
    """The identity of the file ``path``, which is made with mode 600 where it is missing."""
    with suppress(FileExistsError):
        # Only a file that is new is opened and closed here: nobody in this process has it open.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    status = os.stat(path)
    return os.getpid(), status.st_dev, status.st_ino


def _uri(path: Path, mode: str) -> str:
    return f"{path.absolute().as_uri()}?mode={mode}"


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raise what SQLite and the system report of ``path`` as errors of the node."""
    try:
        yield
    except sqlite3.Error as error:
        raise _store_error(path, error) from error
    except OSError as error:
        raise StoreError(path, f"cannot be opened: {error.strerror}") from error


def newer_version(path: Path, found: int) -> StoreError:
    """The error of a file whose state is of a version that this software does not read."""
    known = len(MIGRATIONS)
    return StoreError(
        path, f"has state of version {found}, expected at most {known}; upgrade gossamer"
    )


def _store_error(path: Path, error: sqlite3.Error) -> StoreError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreError(path, "cannot grow because the disk is full; free some space")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreError(path, f"was locked by another process for {BUSY_S:g} s")
    if code in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
        return StoreError(path, f"is no usable state file ({error})")
    return StoreError(path, f"cannot be used: {error}")
