"""Queue groups: each event goes to one worker of a group, of whichever peer.

The peers of a group all subscribe to the same expression, so that every one of them gets, and
keeps, every event. One of them leads: it says which peer's workers get an event. What the overlay
promises of events thereby holds of a group, and the leader only has to keep peers from doing the
same twice. It assigns an event only once every peer of its view has said that it neither did it nor
has it at a worker (an **offer**), so that a leader that takes over, or finds peers it did not know
of, needs to know nothing of what was before.

A leader talks to each peer in **rounds**: a question with offers, assignments and what is done, and
a report as its answer. A peer follows the greatest **epoch** that it has heard of, a number and the
leader's key, and refuses rounds of lesser ones; a leader whose round is refused follows too. A
leader assigns only while all peers of its view have answered a moment ago (`LEASE_S`), which is
less than others wait before they take its place (`LOST_S`): one that was paused asks before it
assigns.

offered  -- every peer of the view has answered, nobody has it ---->  free
offered  -- somebody has it at a worker --------------------------->  assigned
free     -- a peer has room --------------------------------------->  assigned
free     -- a peer joins the view --------------------------------->  offered
assigned -- its peer leaves the view, or gives it back ------------>  free
any      -- somebody says that it is done ------------------------->  done
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from attrs import define, field, frozen

from gossamer.protocol.patterns.ordering import RecentNumbers

# Seconds: between two rounds in which there is nothing to say, until an answer is given up, for
# how long answers allow to assign, and until others take the place of a leader that is not heard.
HEARTBEAT_S: Final = 1.0
ANSWER_S: Final = 4.0
LEASE_S: Final = 4.0
LOST_S: Final = 8.0
# Events in one list of a round.
BATCH: Final = 256
# Events remembered as done.
REMEMBERED: Final = 100_000

Epoch = tuple[int, int]
"""A number that grows, and the key of the leader."""


@frozen
class Round:
    """What a leader tells one peer of the group.

    Attributes:
        epoch: the leader's.
        serial: grows from one round of the epoch to the next.
        view: keys of the peers that it leads.
        offers: events of which it asks whether they were done, or are at a worker.
        assigned: events for the peer's workers; those of earlier rounds that are not reported yet
            come again.
        done: events that somebody has done.
    """

    epoch: Epoch
    serial: int
    view: tuple[int, ...]
    offers: tuple[int, ...] = ()
    assigned: tuple[int, ...] = ()
    done: tuple[int, ...] = ()


@frozen
class Report:
    """What a peer of the group answers.

    Attributes:
        epoch: the greatest that it knows: the round's, unless it refuses the round.
        done: those of the offers and assignments that it knows to be done, and what its workers
            have done without the leader's having said so.
        held: all events at its workers, or about to be.
        waiting: the oldest events that it keeps and knows nothing of.
        room: how many more its workers take.
        view: keys of the peers of the group as it knew them before this round.
    """

    epoch: Epoch
    done: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    room: int = 0
    view: tuple[int, ...] = ()


class Member:
    """The part of a peer in a group.

    Attributes:
        epoch: the greatest heard of; (0, 0) before the first.
        view: keys of the peers of the group, as the leader last said.
        pending: events that are kept here and not known to be done, oldest first.
        held: those assigned to this peer and not done.
    """

    def __init__(self, key: int, done: Iterable[int] = ()) -> None:
        self.key = key
        self.epoch: Epoch = (0, 0)
        self.view: tuple[int, ...] = (key,)
        self.pending: dict[int, None] = {}
        self.held: set[int] = set()
        self._done = RecentNumbers(REMEMBERED, done)
        self._finished: dict[int, None] = {}
        self._serial = 0

    def is_done(self, event: int) -> bool:
        """Whether the event is known to be done."""
        return event in self._done

    def arrive(self, event: int) -> bool:
        """An event is kept here from now on; return whether it is still to be done."""
        if event in self._done:
            return False
        self.pending[event] = None
        return True

    def finish(self, event: int) -> bool:
        """A worker of this peer has done an event; return whether that is new."""
        self.held.discard(event)
        if event in self._done:
            return False
        self._finished[event] = None
        self._note_done(event)
        return True

    def give_back(self, event: int) -> None:
        """A worker is gone that had an event; the next report says so."""
        self.held.discard(event)

    def learn(self, done: Iterable[int]) -> list[int]:
        """Note what others have done; return what of that is new."""
        news = [event for event in done if event not in self._done]
        for event in news:
            self._note_done(event)
        return news

    def take(self, told: Round, room: int) -> tuple[Report, list[int], list[int]]:
        """Take a round; return the answer, what is newly assigned here, and what is newly done."""
        if told.epoch < self.epoch or (told.epoch, told.serial) <= (self.epoch, self._serial):
            return Report(self.epoch if told.epoch < self.epoch else (0, 0)), [], []
        before = self.view
        self.epoch, self._serial, self.view = told.epoch, told.serial, told.view
        news = [event for event in told.done if event not in self._done]
        for event in told.done:
            self._finished.pop(event, None)
            self.held.discard(event)
            self._note_done(event)
        known = [event for event in (*told.offers, *told.assigned) if event in self._done]
        assigned = [
            event for event in told.assigned if event not in self._done and event not in self.held
        ]
        self.held.update(assigned)
        return self._report(known, room - len(assigned), before), assigned, news

    def _report(self, known: Iterable[int], room: int, before: tuple[int, ...]) -> Report:
        waiting: list[int] = []
        for event in self.pending:
            if len(waiting) == BATCH:
                break
            if event not in self.held:
                waiting.append(event)
        done = tuple(dict.fromkeys((*known, *list(self._finished)[: 4 * BATCH])))
        held = tuple(sorted(self.held))
        return Report(self.epoch, done, held, tuple(waiting), max(0, room), before)

    def _note_done(self, event: int) -> None:
        self.pending.pop(event, None)
        if event not in self._done:
            self._done.add(event)


@define(eq=False)
class _Peer:
    """A peer of the view.

    Attributes:
        heard_at: when it last answered.
        room: events that it takes beyond those that it has.
        at: events assigned to it.
        confirmed: those of them that it has said to have.
        to_tell: events that are done, of which it has not confirmed to know.
    """

    heard_at: float = -math.inf
    room: int = 0
    at: set[int] = field(factory=set)
    confirmed: set[int] = field(factory=set)
    to_tell: dict[int, None] = field(factory=dict)


@define(eq=False)
class _Event:
    """An event that is not done.

    Attributes:
        asked: keys of the peers that have yet to answer its offer.
        at: key of the peer that it is assigned to, None where it is to none.
    """

    asked: set[int]
    at: int | None = None


class Leader:
    """The part of the peer that leads a group; all times are of one clock that never goes back.

    Attributes:
        epoch: its own.
        deposed: whether a peer follows a greater epoch, so that this peer has to as well.
    """

    def __init__(
        self,
        epoch: Epoch,
        view: Iterable[int],
        pending: Iterable[int],
        is_done: Callable[[int], bool],
    ) -> None:
        """A leader of the peers that it knows of.

        Args:
            epoch: greater than all that it has heard of, with its own key.
            view: keys of the peers of the group, its own included.
            pending: events that are kept here and not known to be done.
            is_done: whether an event is known to be done.
        """
        self.epoch = epoch
        self.deposed = False
        self._is_done = is_done
        self._peers: dict[int, _Peer] = {key: _Peer() for key in view}
        self._gone: set[int] = set()
        self._serial = 0
        self._events = {event: _Event(set(self._peers)) for event in pending}

    @property
    def view(self) -> tuple[int, ...]:
        """Keys of the peers that it leads, ascending."""
        return tuple(sorted(self._peers))

    @property
    def waiting(self) -> int:
        """How many events are not done."""
        return len(self._events)

    def add(self, key: int) -> bool:
        """Lead a peer that says that it is of the group; return whether it is new."""
        if key in self._peers:
            return False
        self._gone.discard(key)
        self._peers[key] = _Peer()
        for event in self._events.values():
            if event.at is None:
                event.asked.add(key)
        return True

    def remove(self, key: int) -> None:
        """A peer gave no answer: what it has goes to others."""
        peer = self._peers.pop(key, None)
        if peer is None:
            return
        self._gone.add(key)
        for event in self._events.values():
            event.asked.discard(key)
            if event.at == key:
                event.at = None

    def arrive(self, event: int) -> None:
        """An event is kept here from now on."""
        if event not in self._events and not self._is_done(event):
            self._events[event] = _Event(set(self._peers))

    def has_news(self, key: int) -> bool:
        """Whether there is something to tell a peer."""
        peer = self._peers.get(key)
        if peer is None:
            return False
        offered = any(key in state.asked for state in self._events.values())
        return offered or bool(peer.to_tell or peer.at - peer.confirmed)

    def round_for(self, key: int) -> Round:
        """What to tell a peer of the view now."""
        peer = self._peers[key]
        self._serial += 1
        offers: list[int] = []
        for event, state in self._events.items():
            if key in state.asked:
                offers.append(event)
                if len(offers) == BATCH:
                    break
        assigned = tuple(sorted(peer.at - peer.confirmed))
        done = tuple(peer.to_tell)[:BATCH]
        return Round(self.epoch, self._serial, self.view, tuple(offers), assigned, done)

    def take(
        self, key: int, told: Round, report: Report, now: float
    ) -> tuple[list[int], list[int]]:
        """Take a peer's answer to a round.

        Returns the events that are newly known to be done, and those that the peer keeps and this
        one does not.
        """
        peer = self._peers.get(key)
        if report.epoch != self.epoch:
            self.deposed = self.deposed or report.epoch > self.epoch
            return [], []
        if peer is None:
            return [], []
        if math.isinf(peer.heard_at):
            self._meet(report.view)
        peer.heard_at = now
        for event in told.done:
            peer.to_tell.pop(event, None)
        for event in told.offers:
            if event in self._events:
                self._events[event].asked.discard(key)
        news = [event for event in report.done if self._settle(event)]
        # Whoever did it has to hear that this is known; to the others it is told.
        peer.to_tell.update(dict.fromkeys(report.done))
        self._note_held(key, peer, told, report)
        peer.room = report.room
        return news, self._compare(peer, report.waiting)

    def assign(self, now: float, is_kept: Callable[[int], bool] = lambda _: True) -> set[int]:
        """Assign what is free to peers that have room; return the keys of those that got some.

        Args:
            now: seconds.
            is_kept: whether an event is here by now, so that others can have it from here.
        """
        if self.deposed or any(now - peer.heard_at > LEASE_S for peer in self._peers.values()):
            return set()
        got: set[int] = set()
        order = sorted(self._peers, key=lambda key: (-self._peers[key].room, key))
        for event, state in self._events.items():
            if state.at is not None or state.asked or not is_kept(event):
                continue
            key = max(order, key=lambda one: self._peers[one].room)
            peer = self._peers[key]
            if peer.room <= 0:
                break
            peer.room -= 1
            peer.at.add(event)
            state.at = key
            got.add(key)
        return got

    def _meet(self, view: Iterable[int]) -> None:
        """Lead those whom a peer knew of before; not those that are known to be gone."""
        for key in view:
            if key not in self._gone:
                self.add(key)

    def _settle(self, event: int) -> bool:
        """Note an event as done; return whether that is new."""
        was_open = self._events.pop(event, None) is not None
        for peer in self._peers.values():
            peer.at.discard(event)
        if not was_open and self._is_done(event):
            return False
        for peer in self._peers.values():
            peer.to_tell[event] = None
        return True

    def _note_held(self, key: int, peer: _Peer, told: Round, report: Report) -> None:
        """Note what a peer has at its workers, and what it has no more."""
        held = set(report.held)
        for event in held:
            state = self._events.get(event)
            if state is None and not self._is_done(event):
                state = self._events[event] = _Event(set(self._peers) - {key})
            if state is not None and state.at is None:
                state.at = key
                peer.at.add(event)
        # What was assigned since the round is not expected in its answer; what it has said to
        # have before, and has no more, it has given back.
        for event in (peer.at - held).intersection((*told.assigned, *peer.confirmed)):
            peer.at.discard(event)
            state = self._events.get(event)
            if state is not None and state.at == key:
                state.at = None
        peer.confirmed = peer.at & held

    def _compare(self, peer: _Peer, waiting: Iterable[int]) -> list[int]:
        """Tell a peer what it need not keep; return what only that peer keeps."""
        unknown = []
        for event in waiting:
            if self._is_done(event):
                peer.to_tell[event] = None
            elif event not in self._events:
                unknown.append(event)
        return unknown
