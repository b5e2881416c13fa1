"""The state file: what goes in comes out, within bounds, after the file was closed too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve

from gossamer.node.errors import StoreError
from gossamer.node.store import SequenceNumbers, Store, StoreLimits
from gossamer.node.store.events import RetainedEvent
from gossamer.node.store.store import KnownPeer, StoredSubscription
from gossamer.protocol.kernel.errors import CapacityError

LIMITS = StoreLimits(
    peers=3, subscriptions=2, events=4, event_bytes=100, clients=2, delivered=3, tokens=2
)
KEY = (1 << 62) - 1


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "state.db", LIMITS) as opened:
        yield opened


def event(number: int, size: int = 10, expires_at: float = 1000.0) -> RetainedEvent:
    body = bytes([number]) * size
    return RetainedEvent(bytes([number]) * 8, KEY, body, float(number), expires_at)


def test_everything_is_there_again_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    peer = KnownPeer(KEY, (("fe80::1", 7400), ("host", 1)), b"f" * 32, 5.5, 2)
    subscription = StoredSubscription("app", "s1", 'symbol == "IBM"')
    with Store(path) as store:
        store.set_meta("started", b"\0\1")
        store.peers.remember(peer)
        store.subscriptions.add(subscription)
        store.events.retain(event(1))
        store.deliveries.mark("app", b"e1")
    with Store(path) as store:
        assert store.get_meta("started") == b"\0\1"
        assert store.get_meta("stopped") is None
        assert store.peers.all() == [peer]
        assert store.subscriptions.all() == [subscription]
        assert store.events.after(0, 0.0, 10) == [evolve(event(1), position=1)]
        assert store.deliveries.has("app", b"e1")


def test_sequence_numbers_never_go_back_over_restarts(tmp_path: Path) -> None:
    numbers = []
    for now in (5.0, 4.0, 1e9, 0.0):
        with Store(tmp_path / "state.db") as store:
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


def test_failures_are_counted_until_the_peer_is_seen_again(store: Store) -> None:
    peers, peer = store.peers, KnownPeer(1, (("h", 1),), b"", 1.0)
    peers.remember(peer)
    for key in (1, 1, 7):
        peers.count_failure(key)
    assert peers.find(1) == evolve(peer, failures=2)
    peers.remember(evolve(peer, last_seen=2.0))
    assert peers.find(1) == evolve(peer, last_seen=2.0)
    peers.forget(1)
    assert peers.find(1) is peers.find(7) is None


def test_subscriptions_are_replaced_removed_and_bounded(store: Store) -> None:
    for name, text in (("a", "x > 1"), ("b", "x > 2"), ("a", "x > 3")):
        store.subscriptions.add(StoredSubscription("app", name, text))
    with pytest.raises(CapacityError, match="subscriptions is full at 2"):
        store.subscriptions.add(StoredSubscription("app", "c", "x > 4"))
    assert [one.expression for one in store.subscriptions.all()] == ["x > 3", "x > 2"]
    assert store.subscriptions.remove("app", "a")
    assert not store.subscriptions.remove("app", "a")


def test_events_are_read_in_order_from_a_position_on(store: Store) -> None:
    assert store.events.retain_all([event(2), event(1)]) == [event(2), event(1)]
    assert store.events.retain_all([event(1), event(3), event(3)]) == [event(3)]
    assert store.events.holds(event(1).event_id)
    assert not store.events.holds(event(4).event_id)
    first = store.events.after(0, 0.0, 2)
    rest = store.events.after(first[-1].position, 0.0, 2)
    assert [one.event_id[0] for one in first + rest] == [2, 1, 3]


def test_expired_events_are_unread_then_pruned_and_no_position_given_again(store: Store) -> None:
    store.events.retain(event(1, expires_at=6.0))
    store.events.retain(event(2, expires_at=5.0))
    assert [one.event_id[0] for one in store.events.after(0, 5.0, 9)] == [1]
    assert store.events.prune(5.0) == 1
    store.events.retain(event(3))
    assert [one.position for one in store.events.after(0, 0.0, 9)] == [1, 3]


def test_the_last_deliveries_are_marked_many_at_once_and_clients_are_bounded(store: Store) -> None:
    deliveries = store.deliveries
    assert deliveries.mark("a", b"1")
    assert deliveries.mark_all("a", [b"1", b"2", b"3", b"2"]) == [b"2", b"3"]
    assert deliveries.mark_all("a", []) == []
    deliveries.mark_all("b", [bytes([number]) for number in range(9)])
    known = [deliveries.has("b", bytes([number])) for number in range(9)]
    assert known == [False] * 6 + [True] * 3
    assert deliveries.clients() == {"a": 3, "b": 3}
    with pytest.raises(CapacityError, match="clients is full at 2"):
        deliveries.mark("c", b"1")
    assert not deliveries.has("c", b"1")
    deliveries.forget("a")
    assert not deliveries.has("a", b"3")


def test_a_transaction_that_fails_leaves_nothing_and_an_inner_one_the_outer(store: Store) -> None:
    def fail_after_writing() -> None:
        with store.transaction():
            store.set_meta("a", b"1")
            store.deliveries.mark("c", b"e")
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
