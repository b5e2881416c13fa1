"""Statistics of publications at the subscriber host broker (both papers, Sec. IV-A).

Departs from the papers: the publication's identifier is not stored, since no rule asks for it.
"""

from __future__ import annotations

from collections import deque

from attrs import frozen

from gossamer.protocol.brokers.core.identifiers import Id


@frozen
class Record:
    """A row of Table I: a publication that matched a subscription, and its header on arrival."""

    time: int
    advertisement: Id
    distance: int
    count: int


class Statistics:
    """A sliding window of records, bounded in time (microseconds) and in number."""

    def __init__(self, window: int, most: int) -> None:
        self._window = window
        self._most = most
        self._records: dict[Id, deque[Record]] = {}
        self._size = 0
        # Times and subscriptions of all records, and of some that are purged.
        self._order: deque[tuple[int, Id]] = deque()

    def __len__(self) -> int:
        return self._size

    def record(self, subscription: Id, row: Record) -> None:
        """Remember a publication; the oldest makes room where the window is full."""
        self._records.setdefault(subscription, deque()).append(row)
        self._order.append((row.time, subscription))
        self._size += 1
        self.expire(row.time)

    def expire(self, now: int) -> None:
        """Forget what is older than the window, and the oldest of what is too many."""
        while self._order and (self._order[0][0] < now - self._window or self._size > self._most):
            _, subscription = self._order.popleft()
            records = self._records.get(subscription)
            if records is not None:  # else purged
                records.popleft()
                self._size -= 1
                if not records:
                    del self._records[subscription]

    def purge(self, subscription: Id) -> None:
        """Forget a subscription that is unsubscribed; its identifier never comes again."""
        self._size -= len(self._records.pop(subscription, ()))
        if len(self._order) > 2 * self._most:
            self._order = deque(pair for pair in self._order if pair[1] in self._records)

    def distances(self, subscription: Id) -> dict[Id, list[int]]:
        """The distances of a subscription's publications, by advertisement."""
        found: dict[Id, list[int]] = {}
        for record in self._records.get(subscription, ()):
            found.setdefault(record.advertisement, []).append(record.distance)
        return found

    def largest_count(self, subscription: Id) -> int:
        """The largest count among a subscription's publications, 0 without any."""
        return max((record.count for record in self._records.get(subscription, ())), default=0)

    def rows(self) -> list[tuple[Id, Record]]:
        """Every record with its subscription, the oldest first."""
        places = {subscription: iter(rows) for subscription, rows in self._records.items()}
        return [
            (subscription, next(places[subscription]))
            for _, subscription in self._order
            if subscription in places
        ]
