"""State files that cannot be used, disks that are full, and processes that die while writing."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from gossamer.node import errors
from gossamer.node.store import Store, database
from gossamer.node.store.database import MIGRATIONS
from gossamer.node.store.events import RetainedEvent
from support.draws import larger


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def event(number: int, size: int = 1000) -> RetainedEvent:
    return RetainedEvent(number.to_bytes(8, "big"), 1, b"x" * size, 0.0, 1e12)


def retain(store: Store, numbers: range) -> None:
    for number in numbers:
        store.events.retain(event(number))


def test_a_file_from_a_newer_version_is_refused_and_untouched(path: Path) -> None:
    Store(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO migrations (version) VALUES (?)", (len(MIGRATIONS) + 1,))
    connection.close()
    before = path.read_bytes()
    with pytest.raises(errors.StoreError, match="6, expected at most 5; upgrade"):
        Store(path)
    assert path.read_bytes() == before


def test_a_broker_keeps_a_dump_of_one_piece(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before:
        before.setattr(database, "MIGRATIONS", MIGRATIONS[:2])
        with Store(path) as store:
            store.database.execute("INSERT INTO broker_dump VALUES (1, ?)", (b"the dump",))
            store.database.execute("INSERT INTO broker_log (entry) VALUES (?)", (b"an entry",))
    with Store(path) as store:
        assert store.broker.dump() == b"the dump"
        assert list(store.broker.log()) == [b"an entry"]
        number = store.broker.begin_dump()
        store.broker.append([b"another"])
        store.broker.add_to_dump(number, b"a newer ")
        assert store.broker.dump() == b"the dump"
        store.broker.add_to_dump(number, b"dump")
        store.broker.finish_dump(number)
        while store.broker.give_up():
            pass
        assert store.broker.dump() == b"a newer dump"
        assert list(store.broker.log()) == [b"another"]
        store.broker.begin_anew()
        assert store.broker.dump() is None
        assert list(store.broker.log()) == []


def test_an_older_file_is_updated_or_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(path) as store:
        store.set_meta("a", b"1")
    failing = (*MIGRATIONS, ("CREATE TABLE later (x)", "NONSENSE"))
    with monkeypatch.context() as before:
        before.setattr(database, "MIGRATIONS", failing)
        with pytest.raises(errors.StoreError, match="syntax error"):
            Store(path)
    with Store(path) as store:
        assert store.database.row("SELECT 1 FROM sqlite_master WHERE name = 'later'") is None
    newer = (*MIGRATIONS, ("CREATE TABLE later (x)", "INSERT INTO later VALUES (7)"))
    monkeypatch.setattr(database, "MIGRATIONS", newer)
    for _ in range(2):
        with Store(path) as store:
            assert store.get_meta("a") == b"1"
            assert store.database.rows("SELECT x FROM later") == [(7,)]


def test_a_file_of_another_program_is_refused_and_untouched_until_it_is_gone(path: Path) -> None:
    path.write_bytes(b"dear diary " * 1000)
    for _ in range(2):
        with pytest.raises(errors.StoreError, match=r"state\.db is no usable state file"):
            Store(path)
    assert path.read_bytes() == b"dear diary " * 1000
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE diary (entry)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(errors.StoreError, match="of another program"):
        Store(path)
    assert path.read_bytes() == before
    path.unlink()
    Store(path).close()


def test_a_file_that_counts_wrongly_or_has_no_folder_is_named(path: Path) -> None:
    with Store(path) as store:
        store.database.execute("UPDATE event_totals SET events = 1000000")
        with pytest.raises(errors.StoreError, match="counts events that it does not hold"):
            store.events.retain(event(1))
    with pytest.raises(errors.StoreError, match=r"no/state\.db cannot be opened: No such file"):
        Store(path.parent / "no" / "state.db")


def test_a_process_opens_a_file_once_by_whatever_name(path: Path) -> None:
    other_name = path.with_name("link.db")
    with Store(path) as store:
        other_name.symlink_to(path)
        for again in (path, other_name):
            with pytest.raises(errors.StoreError, match="is open in this process already"):
                Store(again)
        store.set_meta("a", b"1")
    store.close()
    with Store(other_name) as store:
        assert store.get_meta("a") == b"1"


COMMAND = """
import sys
from pathlib import Path
from gossamer.node.store import Store
from gossamer.node.store.database import read_version

read_version(Path(sys.argv[1]))
with Store(Path(sys.argv[1])) as store:
    store.set_meta("command", b"1")
"""


def test_a_command_beside_a_running_process_leaves_it_its_log(path: Path) -> None:
    """SQLite removes the log with what it takes for the last connection, unless locks forbid it."""
    log = path.with_name("state.db-wal")
    with Store(path) as store:
        with pytest.raises(errors.StoreError):
            Store(path)
        store.set_meta("before", b"1")
        number = log.stat().st_ino
        for _ in range(2):
            subprocess.run([sys.executable, "-c", COMMAND, str(path)], check=True, timeout=60)
            assert log.stat().st_ino == number
        store.set_meta("after", b"1")
        assert store.get_meta("command") == b"1"
        with closing(sqlite3.connect(path)) as other:
            names = {name for (name,) in other.execute("SELECT name FROM meta")}
        assert names == {"before", "after", "command"}


@pytest.mark.usefixtures("no_umask")
def test_nobody_else_can_read_a_file_or_what_lies_beside_it(path: Path) -> None:
    with Store(path) as store:
        store.set_meta("a", b"1")
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in path.parent.iterdir()}
    assert modes == {"state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600}


def test_a_lock_of_another_process_is_bounded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_S", 0.01)
    with Store(path) as store:
        with closing(sqlite3.connect(path)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(errors.StoreError, match="locked by another process"):
                store.set_meta("a", b"2")
        store.set_meta("a", b"3")
        assert store.get_meta("a") == b"3"


def test_a_full_disk_fails_the_write_whole_and_reading_goes_on(path: Path) -> None:
    with Store(path, max_pages=60) as store:
        with pytest.raises(errors.StoreError, match="disk is full; free some space"):
            retain(store, range(1000))
        written, _ = store.events.totals()
        assert 10 < written < 1000
        assert store.events.totals() == (written, 1000 * written)
        assert len(store.events.after(0, 0.0, 1000)) == written
        with pytest.raises(errors.StoreError), store.transaction():
            retain(store, range(1000, 1100))
        assert store.events.totals() == (written, 1000 * written)
        with pytest.raises(errors.StoreError):
            store.events.retain(event(2000, size=1_000_000))
    with Store(path) as store:
        assert store.events.retain(event(2000, size=1_000_000)), "there is room again"


WRITER = """
import sys
from pathlib import Path
from gossamer.node.store import SequenceNumbers, Store, StoreLimits
from gossamer.node.store.events import RetainedEvent

with Store(Path(sys.argv[1]), StoreLimits(events=50)) as store:
    store.bind(1, 0.0)
    numbers = SequenceNumbers(store.lease_sequence, 3)
    while True:
        number = numbers.next()
        name = number.to_bytes(8, "big")
        with store.transaction():
            store.events.retain(RetainedEvent(name, 1, b"x" * (number % 100), 0.0, 1e12))
            store.deliveries.mark("app", name)
            store.set_meta("last", name)
        print(number, flush=True)
"""


def test_a_process_killed_while_it_writes_leaves_a_consistent_state(path: Path) -> None:
    said: list[int] = []
    for kill in range(larger(3, 5)):
        said += run_until_killed(path, lines=20 + 7 * kill)
        with Store(path) as store:
            assert store.database.rows("PRAGMA integrity_check") == [("ok",)]
            last = int.from_bytes(store.get_meta("last") or b"", "big")
            assert last >= said[-1]
            events = store.events.after(0, 0.0, 1000)
            assert len(events) == 50 or last < 200
            assert int.from_bytes(events[-1].event_id, "big") == last
            assert store.deliveries.has("app", events[-1].event_id)
            assert store.events.totals() == (len(events), sum(len(one.body) for one in events))
    assert said == sorted(set(said))


def run_until_killed(path: Path, lines: int) -> list[int]:
    """The numbers that the writer reported before it was killed after ``lines`` of them."""
    command = [sys.executable, "-c", WRITER, str(path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as writer:
        assert writer.stdout is not None
        said = [int(writer.stdout.readline()) for _ in range(lines)]
        writer.send_signal(signal.SIGKILL)
        said += [int(line) for line in writer.stdout if line.endswith("\n")]
    return said
