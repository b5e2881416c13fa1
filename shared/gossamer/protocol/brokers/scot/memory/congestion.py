"""Which output queues are congested: the link status table (Sec. 6.3)."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field, frozen

from gossamer.protocol.brokers.scot.memory.messages import QueueReport


@frozen
class LinkStatus:
    """An output queue as it was at the end of the last window.

    Attributes:
        length: notifications in it.
        entered, left: notifications that entered and left it in the window.
    """

    length: int = 0
    entered: int = 0
    left: int = 0

    @property
    def congestion_element(self) -> float:
        """How the queue changed: above 1 it grew, below 1 it shrank.

        Departs from the paper: one is added to both numbers. The paper wants their ratio, and 1 for
        a queue where nothing happens; without the one that would be 0 / 0.
        """
        return (1 + self.entered) / (1 + self.left)

    @property
    def load(self) -> float:
        """Length times congestion element: 0 for an empty queue.

        Departs from the paper: its Eq. 3 is lost. It names these two, a threshold of 10 and a
        window of 50 milliseconds (Sec. 7.3), and calls a queue congestion-free at length 0 and
        element 1; a product above the threshold is our reading.
        """
        return self.length * self.congestion_element


_IDLE = LinkStatus()


@define
class LinkStatusTable:
    """The paper's LST: the status of every link, replaced window by window.

    Attributes:
        threshold: load above which a link is overloaded.
    """

    threshold: float
    _status: dict[str, LinkStatus] = field(factory=dict)
    _overloaded: set[str] = field(factory=set)

    def update(self, reports: Iterable[QueueReport]) -> None:
        """Take over how queues are at the end of a window."""
        for report in reports:
            status = LinkStatus(report.length, report.entered, report.left)
            self._status[report.neighbour] = status
            if status.load > self.threshold:
                self._overloaded.add(report.neighbour)
            else:
                self._overloaded.discard(report.neighbour)

    @property
    def any_overloaded(self) -> bool:
        """Whether some output queue is congested."""
        return bool(self._overloaded)

    def status(self, neighbour: str) -> LinkStatus:
        """The status of a link; idle if nothing is known."""
        return self._status.get(neighbour, _IDLE)

    def overloaded(self, neighbour: str) -> bool:
        """Whether the output queue to a neighbour is congested."""
        return neighbour in self._overloaded

    def least_loaded(self, neighbours: Iterable[str]) -> str:
        """The link with the least load; of equal ones the first by name."""
        return min(neighbours, key=lambda name: (self.status(name).load, name))
