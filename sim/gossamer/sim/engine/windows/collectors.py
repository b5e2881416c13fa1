"""What observers write when several threads observe: one collector a worker, gathered in order."""

from __future__ import annotations

from typing import Any


class Collectors:
    """How a collector is divided among workers; here it is not.

    All workers write to the one there is, which is sound where an observer writes nothing but rows
    of the node that takes the record. Another kind of collector comes with a class of its own that
    overrides these methods.
    """

    def part(self, whole: Any) -> Any:
        """What one worker writes to."""
        return whole

    def end_window(self, whole: Any, parts: list[Any]) -> None:
        """Called after every window with all parts: whatever depends on order is moved from them.

        A row is run by one worker in a window, and windows come in order of time.
        """

    def gather(self, whole: Any, parts: list[Any]) -> None:
        """Called before the engine returns: sums are moved from the parts to the whole."""
