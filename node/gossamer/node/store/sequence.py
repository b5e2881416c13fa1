"""Sequence numbers of a peer's own descriptors."""

from __future__ import annotations

from collections.abc import Callable


class SequenceNumbers:
    """Numbers that only grow, over restarts too, with one write for many numbers."""

    def __init__(self, lease: Callable[[int], int], count: int = 1000) -> None:
        """Take numbers from ``lease``, such as `Store.lease_sequence`, ``count`` at a time."""
        self._lease = lease
        self._count = count
        self._next = self._end = 0

    def next(self) -> int:
        """A number greater than all before.

        Raises:
            StoreError: a lease was needed and could not be had; no number was spent.
        """
        if self._next == self._end:
            self._next = self._lease(self._count)
            self._end = self._next + self._count
        self._next += 1
        return self._next - 1
