"""The state file: what goes in comes out; files of no use, full disks, and killed processes."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from attrs import evolve

from gossamer.node.errors import StoreError
from gossamer.node.store import SequenceNumbers, Store, StoreLimits, database
from gossamer.node.store.database import MIGRATIONS
from gossamer.node.store.events import RetainedEvent
from gossamer.node.store.store import KnownPeer, StoredSubscription
from gossamer.protocol.kernel.errors import CapacityError
from support.draws import larger

LIMITS = StoreLimits(
    peers=3, subscriptions=2, events=4, event_bytes=100, clients=2, delivered=3, tokens=2
)
KEY = (1 << 62) - 1


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with Store(path, LIMITS) as opened:
        yield opened


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def event(number: int, size: int = 10, expires_at: float = 1e12) -> RetainedEvent:
    body = bytes([number % 256]) * size
    return RetainedEvent(number.to_bytes(8, "big"), KEY, body, float(number), expires_at)


def retain(store: Store, numbers: range) -> None:
    for number in numbers:
        store.events.retain_all([event(number, 1000)])


def numbers_of(events: Iterable[RetainedEvent]) -> list[int]:
    return [int.from_bytes(one.event_id, "big") for one in events]


def test_everything_is_there_again_after_reopening(path: Path) -> None:
    peer = KnownPeer(KEY, (("fe80::1", 7400), ("host", 1)), b"f" * 32, 5.5)
    subscription = StoredSubscription("app", "s1", 'symbol == "IBM"')
    with Store(path) as store:
        store.set_meta("started", b"\0\1")
        store.peers.remember(peer)
        store.subscriptions.add(subscription)
        store.events.retain_all([event(1)])
        store.deliveries.mark_all("app", [b"e1"])
    with Store(path) as store:
        assert (store.get_meta("started"), store.get_meta("stopped")) == (b"\0\1", None)
        assert (store.peers.all(), store.subscriptions.all()) == ([peer], [subscription])
        assert store.events.after(0, 0.0, 10) == [evolve(event(1), position=1)]
        assert store.deliveries.has("app", b"e1")


def test_sequence_numbers_never_go_back_over_restarts(path: Path) -> None:
    numbers = []
    for now in (5.0, 4.0, 1e9, 0.0):
        with Store(path) as store:
            store.bind(KEY, now)
            sequence = SequenceNumbers(store.lease_sequence, 3)
            numbers += [sequence.next() for _ in range(4)]
    assert numbers == sorted(set(numbers))
    assert (numbers[0], numbers[4]) == (5000, 5006)


def test_the_state_of_one_peer_leases_many_sequence_numbers_at_once(store: Store) -> None:
    leases = []

    def lease(count: int) -> int:
        leases.append(count)
        return store.lease_sequence(count)

    with pytest.raises(StoreError, match="belongs to no peer"):
        store.lease_sequence(1)
    store.bind(KEY, 0.0)
    store.bind(KEY, 99.0)
    with pytest.raises(StoreError, match=f"of peer {KEY:016x}, expected that of {1:016x}"):
        store.bind(1, 0.0)
    sequence = SequenceNumbers(lease)
    assert [sequence.next() for _ in range(1001)] == list(range(1001))
    assert leases == [1000, 1000]


@pytest.mark.parametrize(
    ("seen", "kept"), [((4, 1, 3, 2, 5), [4, 0, 2]), ((10, 11, 12, 0), [2, 1, 3])]
)
def test_peers_not_seen_longest_go(store: Store, seen: tuple[int, ...], kept: list[int]) -> None:
    for number, last_seen in enumerate(seen):
        store.peers.remember(KnownPeer(number, (), b"", float(last_seen)))
    assert [peer.key for peer in store.peers.all()] == kept


def test_a_peer_is_kept_as_it_was_seen_last(store: Store) -> None:
    peer = KnownPeer(1, (("h", 1),), b"", 1.0)
    for one in (peer, evolve(peer, last_seen=2.0)):
        store.peers.remember(one)
    assert store.peers.all() == [evolve(peer, last_seen=2.0)]


def test_subscriptions_are_replaced_removed_and_bounded(store: Store) -> None:
    for name, text in (("a", "x > 1"), ("b", "x > 2"), ("a", "x > 3")):
        store.subscriptions.add(StoredSubscription("app", name, text))
    with pytest.raises(CapacityError, match="subscriptions is full at 2"):
        store.subscriptions.add(StoredSubscription("app", "c", "x > 4"))
    assert [one.expression for one in store.subscriptions.all()] == ["x > 3", "x > 2"]
    assert [store.subscriptions.remove("app", "a") for _ in range(2)] == [True, False]


def test_events_are_read_in_order_from_a_position_on(store: Store) -> None:
    events = store.events
    assert events.retain_all([event(2), event(1)]) == [event(2), event(1)]
    assert events.retain_all([event(1), event(3), event(3)]) == [event(3)]
    first = events.after(0, 0.0, 2)
    rest = events.after(first[-1].position, 0.0, 2)
    assert numbers_of(first + rest) == [2, 1, 3]


def test_expired_events_are_unread_then_pruned_and_no_position_given_again(store: Store) -> None:
    store.events.retain_all([event(1, expires_at=6.0)])
    store.events.retain_all([event(2, expires_at=5.0)])
    assert numbers_of(store.events.after(0, 5.0, 9)) == [1]
    assert store.events.prune(5.0) == 1
    store.events.retain_all([event(3)])
    assert [one.position for one in store.events.after(0, 0.0, 9)] == [1, 3]


def test_the_last_deliveries_are_marked_many_at_once_and_clients_are_bounded(store: Store) -> None:
    deliveries = store.deliveries
    assert deliveries.mark_all("a", [b"1"])
    assert deliveries.mark_all("a", [b"1", b"2", b"3", b"2"]) == [b"2", b"3"]
    assert deliveries.mark_all("a", []) == []
    names = [bytes([number]) for number in range(9)]
    deliveries.mark_all("b", names)
    assert [deliveries.has("b", name) for name in names] == [False] * 6 + [True] * 3
    assert deliveries.clients() == {"a": 3, "b": 3}
    with pytest.raises(CapacityError, match="clients is full at 2"):
        deliveries.mark_all("c", [b"1"])
    assert not deliveries.has("c", b"1")
    deliveries.forget("a")
    assert not deliveries.has("a", b"3")


def test_a_transaction_that_fails_leaves_nothing_and_an_inner_one_the_outer(store: Store) -> None:
    def fail_after_writing() -> None:
        with store.transaction():
            store.set_meta("a", b"1")
            store.deliveries.mark_all("c", [b"e"])
            raise KeyError

    with pytest.raises(KeyError):
        fail_after_writing()
    assert (store.get_meta("a"), store.deliveries.clients()) == (None, {})
    with store.transaction():
        for name in ("a", "b"):
            store.subscriptions.add(StoredSubscription("app", name, "x > 1"))
        with pytest.raises(CapacityError):
            store.subscriptions.add(StoredSubscription("app", "c", "x > 1"))
        store.set_meta("a", b"1")
    assert [one.id for one in store.subscriptions.all()] == ["a", "b"]
    assert store.get_meta("a") == b"1"


def test_a_broker_keeps_a_dump_of_one_piece(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def state(store: Store) -> tuple[bytes | None, list[bytes]]:
        return store.broker.dump(), list(store.broker.log())

    with monkeypatch.context() as before:
        before.setattr(database, "MIGRATIONS", MIGRATIONS[:2])
        with Store(path) as store:
            store.database.execute("INSERT INTO broker_dump VALUES (1, ?)", (b"the dump",))
            store.database.execute("INSERT INTO broker_log (entry) VALUES (?)", (b"an entry",))
    with Store(path) as store:
        assert state(store) == (b"the dump", [b"an entry"])
        number = store.broker.begin_dump()
        store.broker.append([b"another"])
        store.broker.add_to_dump(number, b"a newer ")
        assert store.broker.dump() == b"the dump"
        store.broker.add_to_dump(number, b"dump")
        store.broker.finish_dump(number)
        while store.broker.give_up():
            pass
        assert state(store) == (b"a newer dump", [b"another"])
        store.broker.begin_anew()
        assert state(store) == (None, [])


def test_an_older_file_is_updated_or_kept_and_a_newer_refused_and_untouched(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Store(path) as store:
        store.set_meta("a", b"1")
    failing = (*MIGRATIONS, ("CREATE TABLE later (x)", "NONSENSE"))
    with monkeypatch.context() as before:
        before.setattr(database, "MIGRATIONS", failing)
        with pytest.raises(StoreError, match="syntax error"):
            Store(path)
    with Store(path) as store:
        assert store.database.row("SELECT 1 FROM sqlite_master WHERE name = 'later'") is None
    newer = (*MIGRATIONS, ("CREATE TABLE later (x)", "INSERT INTO later VALUES (7)"))
    with monkeypatch.context() as later:
        later.setattr(database, "MIGRATIONS", newer)
        for _ in range(2):
            with Store(path) as store:
                assert store.get_meta("a") == b"1"
                assert store.database.rows("SELECT x FROM later") == [(7,)]
    written = path.read_bytes()
    with pytest.raises(StoreError, match="6, expected at most 5; upgrade"):
        Store(path)
    assert path.read_bytes() == written


def test_a_file_of_another_program_is_refused_and_untouched_until_it_is_gone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE diary (entry)")
    for content, words in (
        (path.read_bytes(), "of another program"),
        (b"dear diary " * 1000, r"state\.db is no usable state file"),
    ):
        path.write_bytes(content)
        for _ in range(2):
            with pytest.raises(StoreError, match=words):
                Store(path)
        assert path.read_bytes() == content
    path.unlink()
    with Store(path) as store:
        store.database.execute("UPDATE event_totals SET events = 1000000")
        with pytest.raises(StoreError, match="counts events that it does not hold"):
            store.events.retain_all([event(1)])
    with pytest.raises(StoreError, match=r"no/state\.db cannot be opened: No such file"):
        Store(path.parent / "no" / "state.db")


def test_a_process_opens_a_file_once_by_whatever_name(path: Path) -> None:
    other_name = path.with_name("link.db")
    with Store(path) as store:
        other_name.symlink_to(path)
        for again in (path, other_name):
            with pytest.raises(StoreError, match="is open in this process already"):
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
        with pytest.raises(StoreError):
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
            with pytest.raises(StoreError, match="locked by another process"):
                store.set_meta("a", b"2")
        store.set_meta("a", b"3")
        assert store.get_meta("a") == b"3"


def test_a_full_disk_fails_the_write_whole_and_reading_goes_on(path: Path) -> None:
    with Store(path, max_pages=60) as store:
        with pytest.raises(StoreError, match="disk is full; free some space"):
            retain(store, range(1000))
        written, _ = store.events.totals()
        assert 10 < written < 1000
        assert store.events.totals() == (written, 1000 * written)
        assert len(store.events.after(0, 0.0, 1000)) == written
        with pytest.raises(StoreError), store.transaction():
            retain(store, range(1000, 1100))
        assert store.events.totals() == (written, 1000 * written)
        with pytest.raises(StoreError):
            store.events.retain_all([event(2000, size=1_000_000)])
    with Store(path) as store:
        assert store.events.retain_all([event(2000, size=1_000_000)]), "there is room again"


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
            store.events.retain_all([RetainedEvent(name, 1, b"x" * (number % 100), 0.0, 1e12)])
            store.deliveries.mark_all("app", [name])
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
            assert numbers_of(events)[-1] == last
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
