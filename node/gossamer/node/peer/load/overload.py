"""Notices who brings more than this peer, or those it sends to, can deal with.

Nobody's events are held back for being many: queues give every neighbour, and every publisher whose
events it brings, the same share (`transport.fair_queue`). What does not fit into its share waits,
and what waits in vain is dropped. Here it is noticed whose that is, new events of theirs are taken
no more while too much of them waits, and the log has a line when that begins and one when it ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Final

import attrs
import trio

from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.core import SELF
from gossamer.node.peer.load.losses import QUIET_S, Losses
from gossamer.node.security.identity import key_text
from gossamer.node.transport.queues.fair_queue import Backlog, Flow

# Bytes of a flow that may wait, over all connections: some 900 events of a handful of attributes.
# Who publishes waits for acknowledgements and has `delivery.publications` of them under way.
MOST_WAITING: Final = 512 << 10
PASSING_ON: Final = "its events wait to be passed on"
# Publishers told apart of one source while its overload lasts.
MAX_PUBLISHERS: Final = 64


@attrs.define(eq=False)
class _Overload:
    """One that lasts.

    Attributes:
        began_at, last_at: trio's time of the first and of the last sign of it.
        dropped: frames, by publisher.
    """

    began_at: float
    last_at: float
    dropped: Counter[Hashable] = attrs.field(factory=Counter)

    def note(self, publisher: Hashable) -> None:
        if publisher not in self.dropped and len(self.dropped) >= MAX_PUBLISHERS:
            publisher = None
        self.dropped[publisher] += 1

    def main_publisher(self) -> Hashable:
        """Whose events were dropped most."""
        return max(self.dropped, key=self.dropped.__getitem__, default=None)


class Overloads:
    """What is too much, and whose it is.

    Args:
        backlog: what waits to be sent.
        counters: where it is counted.
        book: knows what people call peers.
        losses: told to whom frames were not sent.
    """

    def __init__(
        self,
        backlog: Backlog,
        counters: Counters,
        address_book: AddressBook,
        losses: Losses,
    ) -> None:
        self._backlog = backlog
        self._counters = counters
        self._address_book = address_book
        self._losses = losses
        self._lasting: dict[Hashable, _Overload] = {}

    def __len__(self) -> int:
        """Who brings too much right now."""
        return len(self._lasting)

    def complaint(self) -> str:
        """Who brings too much right now, in a sentence; "" where nobody does."""
        if not self._lasting:
            return ""
        source, overload = next(iter(self._lasting.items()))
        named = " with events of ".join(self._named(source, overload.main_publisher()).values())
        more = len(self._lasting) - 1
        others = f", and so do {more} more" if more else ""
        return f"{named} brings more than can be passed on{others}: some of it is dropped"

    def may_pass_on(self, flow: Flow) -> bool:
        """Whether there is room for a new event of a flow; nothing is noted."""
        return self._backlog.of(flow) < MOST_WAITING

    def has_room(self, flow: Flow) -> bool:
        """Whether a new event of a flow may be passed on; if not, that is noted."""
        if self._backlog.of(flow) < MOST_WAITING:
            return True
        self.refuse(flow, PASSING_ON)
        return False

    def refuse(self, flow: Flow, why: str) -> None:
        """A new event of a flow is not taken."""
        self._counters.drop("overload")
        self._note(flow, why)

    def note_dropped(self, key: int, flow: Flow) -> None:
        """A frame of a flow was dropped, since too much waits for the peer ``key``."""
        self._counters.drop("queue full")
        self._note(flow, PASSING_ON)
        self._losses.note(key)

    def new_round(self) -> None:
        """Look what is over."""
        now = trio.current_time()
        for source, overload in list(self._lasting.items()):
            if now - overload.last_at >= QUIET_S:
                del self._lasting[source]
                self._end(source, overload)
        self._losses.new_round()

    def _note(self, flow: Flow, why: str) -> None:
        now = trio.current_time()
        overload = self._lasting.get(flow.source)
        if overload is None:
            overload = self._lasting[flow.source] = _Overload(now, now)
            self._counters.overloads += 1
            log.warning("overload begins", **self._named(*flow[:2]), cause=why)
        overload.last_at = now
        overload.note(flow.publisher)

    def _end(self, source: Hashable, overload: _Overload) -> None:
        log.warning(
            "overload ends",
            **self._named(source, overload.main_publisher()),
            lasted_s=f"{overload.last_at - overload.began_at:.1f}",
            dropped=sum(overload.dropped.values()),
        )

    def name_of(self, publisher: int) -> str:
        """What people call a publisher."""
        return self._text(publisher)

    def _named(self, source: Hashable, publisher: Hashable) -> dict[str, str]:
        """Who it is, for people: who brought it, and whose events most of it is, where known."""
        named = {"peer": self._text(source)}
        if publisher is not None:
            named["publisher"] = self._text(publisher)
        return named

    def _text(self, who: Hashable) -> str:
        if not isinstance(who, int):
            return str(who)
        entry = self._address_book.find(who)
        if entry is None or not (entry.name or entry.handle == SELF):
            return key_text(who)
        return f"{entry.name or 'applications here'} ({key_text(who)})"
