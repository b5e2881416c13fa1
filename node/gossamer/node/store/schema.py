"""The tables of the state file, as the list of steps that led to them.

A step, once released, never changes: a file is brought up to date by the steps it has not seen.
"""

from __future__ import annotations

from typing import Final

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
