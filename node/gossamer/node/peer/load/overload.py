"""Notices who brings more than this peer, or those it sends to, can deal with.

Nobody's events are held back for being many: queues give every neighbour, and every publisher whose
events it brings, the same share (`transport.fair_queue`). What does not fit into its share waits,
and what waits in vain is dropped. Here it is noticed whose that is, new events of theirs are taken
no more while too much of them waits, and the log has a line when that begins and one when it ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from types import MappingProxyType
from typing import Final

import attrs
import trio

from gossamer.node.monitoring.logs import log
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.address_book import AddressBook
from gossamer.node.peer.frames.core import SELF
from gossamer.node.security.identity import key_text
from gossamer.node.transport.send_queue import Backlog, Flow
from gossamer.protocol.peer.record_table.records import (
    COMPARE,
    COMPARE_SOON,
    COMPARED,
    FIND_HOST,
    FIND_SEAT,
    FINGER_REQUEST,
    HANDOVER,
    INSTALL,
    INSTALL_NEWS,
    LACKING,
    LISTED,
    LOAD_SHIFTED,
    MOVED,
    REPLAY_OFFER,
    REPLAY_WANTED,
    RING_OFFER,
    TMAN_REQUEST,
)
from gossamer.protocol.peer.sampling.sampler import RECORDS_A_ROUND

# Bytes of a flow that may wait, over all connections: some 900 events of a handful of attributes.
# Who publishes waits for acknowledgements and has `delivery.publications` of them under way.
MOST_WAITING: Final = 512 << 10
PASSING_ON: Final = "its events wait to be passed on"
# Seconds without anything dropped after which that is over.
QUIET_S: Final = 5.0
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


@attrs.define(eq=False, slots=False)
class Overloads:
    """What is too much, and whose it is."""

    _backlog: Backlog
    _counters: Counters
    _address_book: AddressBook

    def __attrs_post_init__(self) -> None:
        # By peer, when a frame for it was dropped last.
        self._dropped_at: dict[int, float] = {}
        self._lasting: dict[Hashable, _Overload] = {}

    def __len__(self) -> int:
        """Who brings too much right now."""
        return len(self._lasting)

    @property
    def lasts(self) -> bool:
        """Whether `new_round` has yet to find that something is over."""
        return bool(self._lasting or self._dropped_at)

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
        self._dropped_at[key] = trio.current_time()

    def new_round(self) -> list[int]:
        """Look what is over; return the keys of peers that were not sent all and are now."""
        now = trio.current_time()
        for source, overload in list(self._lasting.items()):
            if now - overload.last_at >= QUIET_S:
                del self._lasting[source]
                self._end(source, overload)
        over = [key for key, at in self._dropped_at.items() if now - at >= QUIET_S]
        for key in over:
            del self._dropped_at[key]
        return over

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

    def _named(self, source: Hashable, publisher: Hashable) -> dict[str, str]:
        """Who it is, for people: who brought it, and whose events most of it is, where known."""
        named = {"peer": self.text_of(source)}
        if publisher is not None:
            named["publisher"] = self.text_of(publisher)
        return named

    def text_of(self, who: Hashable) -> str:
        """A neighbour, a publisher or another source, for people."""
        if not isinstance(who, int):
            return str(who)
        entry = self._address_book.find(who)
        if entry is not None and entry.handle == SELF and not entry.name:
            return f"applications here ({key_text(who)})"
        return self._address_book.text_of(who)


# What one peer may make this one do in a gossip round, beside passing events on.
#
# Some records take milliseconds to deal with, or let their sender choose whom this peer knows.
# Peers send few of them in a round; what is beyond that is dropped and counted, and lost is nothing
# that the next round's gossip does not bring.


# Several rounds of a peer fall in one of ours where this process was held up: ten of most kinds
# were counted at most while overlays formed on a busy machine. Samplers declare their own numbers.
PER_ROUND: Final = MappingProxyType(
    {
        **RECORDS_A_ROUND,
        TMAN_REQUEST: 24,
        INSTALL: 24,
        INSTALL_NEWS: 24,
        LOAD_SHIFTED: 24,
        HANDOVER: 24,
        FINGER_REQUEST: 48,
        # Searches of others pass through here.
        FIND_HOST: 96,
        FIND_SEAT: 96,
        # Old neighbours are told once, and new ones.
        MOVED: 24,
        # A peer asks 32 questions in a round; those of others pass through here, too.
        COMPARE: 96,
        COMPARED: 96,
        LISTED: 96,
        LACKING: 96,
        COMPARE_SOON: 24,
        # Of 256 events each, where a neighbour's path moves while much is published.
        REPLAY_OFFER: 96,
        RING_OFFER: 96,
        REPLAY_WANTED: 96,
    }
)


# Rounds of which a peer may use what it has not used: under load, what it sent in several of its
# rounds comes at once, or is dealt with at once.
SAVED: Final = 8


class RateLimits:
    """How much of its budget each peer has left in this round."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._round = 0
        # By sender and kind, what was left in the round in which the last came.
        self._left: dict[tuple[int, int], tuple[int, int]] = {}

    def new_round(self) -> None:
        """Everybody has as much more, up to what may be saved."""
        self._round += 1

    def allows(self, sender: int, kind: int) -> bool:
        """Whether to take one more record of that kind; one that is not taken is counted."""
        most = PER_ROUND.get(kind)
        if most is None:
            return True
        left, then = self._left.get((sender, kind), (most, self._round))
        if then < self._round:
            left = min(left + most * (self._round - then), SAVED * most)
        self._left[sender, kind] = max(0, left - 1), self._round
        if left > 0:
            return True
        self._counters.drop("flood")
        return False

    def forget(self, sender: int) -> None:
        """A peer is connected no more; should it come back, it has saved nothing."""
        for kind in PER_ROUND:
            self._left.pop((sender, kind), None)
