"""Which queues are congested: the link status table (Sec. 6.3), and what goes beyond it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from attrs import define, field, frozen

from gossamer.protocol.brokers.scot.memory.messages import InputQueue, QueueReport
from gossamer.protocol.brokers.scot.memory.settings import ScotSettings


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

    def load_of(self, neighbour: str) -> float:
        """The load of a link."""
        return self.status(neighbour).load

    def note_input(self, neighbour: str, report: InputQueue) -> None:
        """A neighbour has told of its input queue, which does not count here."""

    def forget_input(self, neighbour: str) -> None:
        """What a neighbour told of its input queue holds no more."""

    def least_loaded(self, neighbours: Iterable[str]) -> str:
        """The link with the least load; of equal ones the first by name."""
        return min(neighbours, key=lambda name: (self.load_of(name), name))


WAY_AROUND: Final = 2.0
"""Load of two messages more: a way around is up to two hops longer, and waits there as well."""


def own_threshold(waiting: Collection[float]) -> float:
    """The load above which a link is overloaded, by how much waits at the other ends of all links.

    A notification that leaves a link waits where it goes instead, and takes the hops of a way
    around. It gains if it would wait longer here than at the least busy neighbour and on those.
    """
    return WAY_AROUND + min(waiting, default=0.0)


@define
class BothEndsTable(LinkStatusTable):
    """Links as loaded as their output queue here and the input queue at the other end; beyond the
    paper.

    Attributes:
        inputs: whether input queues count.
        own: whether the threshold follows from what waits at the other ends.
    """

    inputs: bool = True
    own: bool = False
    _waiting: dict[str, LinkStatus] = field(factory=dict)

    def update(self, reports: Iterable[QueueReport]) -> None:
        """Take over how output queues are at the end of a window."""
        LinkStatusTable.update(self, reports)
        self._compare()

    def load_of(self, neighbour: str) -> float:
        """The load of both queues of a link."""
        return self.status(neighbour).load + self._waiting.get(neighbour, _IDLE).load

    def note_input(self, neighbour: str, report: InputQueue) -> None:
        """Take over how long a neighbour's input queue is."""
        if self.inputs:
            self._waiting[neighbour] = LinkStatus(report.length, report.entered, report.left)
            self._compare()

    def forget_input(self, neighbour: str) -> None:
        """A link comes up: who was started again has an empty queue, and does not say so."""
        if self._waiting.pop(neighbour, None) is not None:
            self._compare()

    def _compare(self) -> None:
        loads = {name: self.load_of(name) for name in {**self._status, **self._waiting}}
        waiting = [self._waiting.get(name, _IDLE).load for name in loads]
        limit = own_threshold(waiting) if self.own else self.threshold
        self._overloaded = {name for name, load in loads.items() if load > limit}


def new_table(settings: ScotSettings) -> LinkStatusTable:
    """An empty table of the links of a broker."""
    if settings.input_queues or settings.own_threshold:
        return BothEndsTable(
            settings.threshold, inputs=settings.input_queues, own=settings.own_threshold
        )
    return LinkStatusTable(settings.threshold)
