"""The state file agrees with the plainest model of it, however often it is opened anew."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from gossamer.node.store import Store, StoreLimits
from gossamer.node.store.events import RetainedEvent
from gossamer.protocol.kernel.errors import CapacityError

LIMITS = StoreLimits(events=5, event_bytes=40, clients=2, delivered=3)
event_ids = st.integers(0, 9).map(lambda number: bytes([number]))
clients = st.sampled_from(["a", "b", "c"])


class StoreAgainstModel(RuleBasedStateMachine):
    """Events and deliveries, with the file closed and opened now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.store = Store(Path(self.folder.name) / "state.db", LIMITS)
        self.events: list[tuple[bytes, int, float]] = []
        self.delivered: dict[str, list[bytes]] = {}
        self.numbers: list[int] = []

    @initialize(now=st.integers(-10, 10))
    def bind(self, now: int) -> None:
        self.store.bind(7, now)

    @rule(event_id=event_ids, size=st.integers(0, 50), expires_at=st.integers(0, 20))
    def retain(self, event_id: bytes, size: int, expires_at: int) -> None:
        event = RetainedEvent(event_id, 1, b"x" * size, 0.0, float(expires_at))
        if size > 40:
            with pytest.raises(CapacityError, match="an event is larger"):
                self.store.events.retain(event)
            return
        is_new = all(event_id != known for known, _, _ in self.events)
        assert self.store.events.retain(event) == is_new
        if is_new:
            self.events.append((event_id, size, expires_at))
        while len(self.events) > 5 or sum(size for _, size, _ in self.events) > 40:
            del self.events[0]

    @rule(now=st.integers(0, 20))
    def prune(self, now: int) -> None:
        left = [one for one in self.events if one[2] > now]
        assert self.store.events.prune(now) == len(self.events) - len(left)
        self.events = left

    @rule(client=clients, event_id=event_ids)
    def mark(self, client: str, event_id: bytes) -> None:
        if client not in self.delivered and len(self.delivered) == 2:
            return
        known = self.delivered.setdefault(client, [])
        assert self.store.deliveries.mark(client, event_id) == (event_id not in known)
        if event_id not in known:
            self.delivered[client] = [*known, event_id][-3:]

    @rule(client=clients)
    def forget(self, client: str) -> None:
        self.store.deliveries.forget(client)
        self.delivered.pop(client, None)

    @rule(count=st.integers(1, 5))
    def lease(self, count: int) -> None:
        first = self.store.lease_sequence(count)
        self.numbers += range(first, first + count)

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = Store(Path(self.folder.name) / "state.db", LIMITS)

    @invariant()
    def agrees(self) -> None:
        found = self.store.events.after(0, -1.0, 100)
        assert [one.event_id for one in found] == [event_id for event_id, _, _ in self.events]
        sizes = [size for _, size, _ in self.events]
        assert self.store.events.totals() == (len(sizes), sum(sizes))
        counts = {client: len(known) for client, known in self.delivered.items()}
        assert self.store.deliveries.clients() == counts
        assert self.numbers == sorted(set(self.numbers))

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


TestStoreAgainstModel = StoreAgainstModel.TestCase
TestStoreAgainstModel.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
