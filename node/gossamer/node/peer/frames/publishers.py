"""How peers learn whose keys events are signed by, and events that wait for that.

An event names a key. What proves whose that is, the publisher's introduction
(`gossamer.node.security.event_keys`), a peer sends before the first event of that publisher that it
sends on a connection: so whoever passes an event on, or holds it, knows its publisher, be that gone
by then. Where an introduction was lost on the way, the event waits, and whoever brought it is
asked, then the publisher and other neighbours, a few each round. Of those that find no room to wait
only the identifiers are kept: what is remembered otherwise is taken from there in the end, and the
rest is asked for again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import attrs

from gossamer.node.errors import RevokedCertificateError, UntimelyCertificateError
from gossamer.node.monitoring.metrics import Counters
from gossamer.node.peer.frames.events import EventMemory
from gossamer.node.peer.frames.forgeries import UNKNOWN, Forgeries
from gossamer.node.peer.frames.frame_types import KEYS_AT_ONCE, PUBLISHER_FRAMES, FrameService
from gossamer.node.security.event_keys import (
    MOST_KEYS,
    Publisher,
    PublisherCache,
)
from gossamer.node.security.sealing import Seal, publisher_of
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.schema import Frame

# Events that wait until it is known whose keys they were signed by.
#
# Anybody can make up events and keys, so what waits is bounded: in number and bytes, by neighbour
# that brings it, and in how many questions it leads to.


# Events that wait, together and of those that one neighbour brought, and their bytes.
MOST_PARKED: Final = 1024
MOST_OF_ONE: Final = 128
MOST_BYTES: Final = 4 << 20
# For how many rounds, in each of which so many neighbours are asked for a key, and each of them
# for so many keys.
PATIENCE_ROUNDS: Final = 120
ASKED_A_ROUND: Final = 3


class Parked(NamedTuple):
    """An event that waits: its identifier, all of it, and the key of who brought it."""

    event: int
    sealed: bytes
    brought_by: int


@attrs.define(eq=False)
class _Missing:
    """A key that is not known: what waits for it, since how many rounds, and who was asked.

    Attributes:
        questions: how many so far.
    """

    events: dict[int, Parked] = attrs.field(factory=dict)
    rounds: int = 0
    questions: int = 0
    asked: set[int] = attrs.field(factory=set)


class ParkedEvents:
    """What waits, by the key that it waits for."""

    def __init__(self) -> None:
        self._missing: dict[bytes, _Missing] = {}
        self._of: Counter[int] = Counter()
        self._bytes = 0

    def __len__(self) -> int:
        """How many events wait."""
        return self._of.total()

    def add(self, signer: bytes, parked: Parked) -> bool:
        """Let an event wait; False where it finds no room."""
        missing = self._missing.get(signer)
        if missing is not None and parked.event in missing.events:
            return True
        if (
            len(self) >= MOST_PARKED
            or self._of[parked.brought_by] >= MOST_OF_ONE
            or self._bytes + len(parked.sealed) > MOST_BYTES
        ):
            return False
        if missing is None:
            missing = self._missing[signer] = _Missing()
        missing.events[parked.event] = parked
        self._of[parked.brought_by] += 1
        self._bytes += len(parked.sealed)
        return True

    def take(self, signer: bytes) -> list[Parked]:
        """What waited for a key, and waits no more."""
        missing = self._missing.pop(signer, None)
        if missing is None:
            return []
        for parked in missing.events.values():
            self._of[parked.brought_by] -= 1
            self._bytes -= len(parked.sealed)
        self._of += Counter()  # forgets those of whom nothing waits
        return list(missing.events.values())

    def ask_first(self, signer: bytes, neighbour: int) -> bool:
        """Whether to ask the neighbour that brought an event for its key, as was not done yet."""
        asked = self._missing[signer].asked
        if neighbour in asked:
            return False
        asked.add(neighbour)
        return True

    def new_round(self, neighbours: Sequence[int]) -> tuple[list[Parked], dict[int, list[bytes]]]:
        """What nobody could prove for too long, and whom to ask now for which keys.

        Args:
            neighbours: keys of the peers that are connected.
        """
        given_up: list[Parked] = []
        questions: dict[int, list[bytes]] = {}
        # Those first of which least was asked: who makes up keys delays its own.
        by_questions = sorted(self._missing.items(), key=lambda item: item[1].questions)
        for signer, missing in by_questions:
            missing.rounds += 1
            if missing.rounds > PATIENCE_ROUNDS:
                given_up += self.take(signer)
                continue
            for key in _to_be_asked(missing, neighbours):
                keys = questions.setdefault(key, [])
                if len(keys) < KEYS_AT_ONCE:
                    missing.asked.add(key)
                    missing.questions += 1
                    keys.append(signer)
        return given_up, questions


def _to_be_asked(missing: _Missing, neighbours: Sequence[int]) -> list[int]:
    """Who may know a key: who brought events, their publisher, then any neighbour."""
    events = missing.events.values()
    named = [key for one in events for key in (one.brought_by, publisher_of(one.sealed))]
    connected = set(neighbours)
    may_know = [key for key in dict.fromkeys((*named, *neighbours)) if key in connected]
    left = [key for key in may_know if key not in missing.asked]
    if not left:
        # All were asked; what they did not know then they may know now.
        missing.asked.clear()
        left = may_know
    return left[:ASKED_A_ROUND]


# Introductions unknown here that one peer may bring in a round, each of which takes a third of a
# millisecond to verify, and keys that it may ask for.
PER_ROUND: Final = 128

# Keys of which events wait by their identifiers alone, and how many of each.
MOST_SIGNERS, MOST_OUTSIDE = 64, 1 << 12


@attrs.define(eq=False)
class _Outside:
    """Events of a key that is not known, which found no room to wait; since how many rounds."""

    events: set[int] = attrs.field(factory=set)
    rounds: int = 0


@attrs.define(eq=False, slots=False)
class PublisherService(FrameService):
    """Exchanges introductions.

    Args:
        send: sends a frame to a peer if it is connected; returns whether it did.
        neighbours: keys of the peers that are connected.
        now: Unix seconds.
        lacks: told of an event that may be its publisher's, and is remembered nowhere.
    """

    frames = PUBLISHER_FRAMES

    _key: int
    _cache: PublisherCache
    _events: EventMemory
    _seal: Seal
    _forgeries: Forgeries
    _counters: Counters
    _send: Callable[[int, bytes], bool]
    _neighbours: Callable[[], Sequence[int]]
    _now: Callable[[], float]
    _lacks: Callable[[int], None]

    def __attrs_post_init__(self) -> None:
        self._release: Callable[[int, bytes, int], None]
        self._own: Publisher | None = None
        # By peer, what was sent to it on this connection, or came from it.
        self._shown: dict[int, dict[bytes, Publisher]] = {}
        self._last_shown: tuple[int, Publisher | None] = (-1, None)
        self._parked = ParkedEvents()
        self._outside: dict[bytes, _Outside] = {}
        self._taken: Counter[int] = Counter()

    def release_to(self, release: Callable[[int, bytes, int], None]) -> None:
        """Have ``release`` take each event whose publisher is known at last.

        Its identifier, all of it, and the key of who brought it.
        """
        self._release = release

    def find(self, signer: bytes) -> Publisher | None:
        """Whose key an event names, if that is known."""
        if self._own is not None and signer == self._own.signer:
            return self._own
        return self._cache.find(signer)

    def is_revoked(self, publisher: Publisher) -> bool:
        """Whether a publisher belongs to the cluster no more."""
        return self._cache.is_revoked(publisher)

    def introduce_self(self, own: Publisher) -> None:
        """Show this from now on before events of this peer."""
        self._own = own
        self._last_shown = (-1, None)

    def show(self, to: int, event: int) -> None:
        """Introduce the publisher of an event to the peer that it is about to be sent to."""
        if event != self._last_shown[0]:
            # An event goes to one receiver after another.
            sealed = self._events.find(event)
            found = None if sealed is None else self.find(self._seal.signer_of(sealed))
            self._last_shown = event, found
        self._show(to, self._last_shown[1])

    def show_signer(self, to: int, signer: bytes) -> None:
        """Introduce a publisher to a peer that one of its events is about to be sent to."""
        self._show(to, self.find(signer))

    def _show(self, to: int, publisher: Publisher | None) -> None:
        if publisher is None or publisher.key == to:
            return
        if self._shown.get(to, {}).get(publisher.signer) is publisher:
            return
        if self._send(to, encode_frame("publishers", introductions=[publisher.introduction])):
            self._note_shown(to, publisher)

    def park(self, signer: bytes, event: int, sealed: bytes, brought_by: int) -> None:
        """Let an event wait for the introduction of its publisher, and ask for that."""
        if not self._parked.add(signer, Parked(event, sealed, brought_by)):
            if self._wait_outside(signer, event, brought_by):
                self._counters.drop("unproven")
            else:
                self._forgeries.note(UNKNOWN, event, sealed, brought_by)
        elif self._parked.ask_first(signer, brought_by):
            self.ask(brought_by, [signer])

    def _wait_outside(self, signer: bytes, event: int, brought_by: int) -> bool:
        """Note an event that found no room to wait; return whether there was room for that."""
        waiting = self._outside.get(signer)
        if waiting is None:
            if len(self._outside) >= MOST_SIGNERS:
                return False
            waiting = self._outside[signer] = _Outside()
            self.ask(brought_by, [signer])
        if len(waiting.events) >= MOST_OUTSIDE:
            return False
        waiting.events.add(event)
        return True

    def _let_in(self, signer: bytes, brought_by: int) -> None:
        """A publisher is known: hand on what is remembered of what found no room to wait."""
        waiting = self._outside.pop(signer, None)
        for event in () if waiting is None else waiting.events:
            sealed = self._events.find(event)
            if sealed is None:
                self._lacks(event)
            else:
                self._release(event, sealed, brought_by)

    def receive(self, sender: int, frame: Frame) -> None:
        """Take what one of `PUBLISHER_FRAMES` brings.

        Raises:
            CertificateError: the sender passes on what is no introduction.
        """
        if frame["type"] == "publishers wanted":
            self._answer(sender, frame["signers"])
            return
        for introduction in frame["introductions"]:
            known = self._cache.recognise(introduction)
            if known is not None:
                self._note_shown(sender, known)
            elif self._may_bring(sender):
                self._learn(sender, introduction)

    def new_round(self) -> None:
        """Ask others for what is missing still; give up what nobody knows."""
        self._taken.clear()
        neighbours = self._neighbours()
        given_up, questions = self._parked.new_round(neighbours)
        for signer, waiting in list(self._outside.items()):
            waiting.rounds += 1
            if waiting.rounds > PATIENCE_ROUNDS:
                del self._outside[signer]
            elif neighbours:
                one = neighbours[waiting.rounds % len(neighbours)]
                questions.setdefault(one, [])
                if len(questions[one]) < KEYS_AT_ONCE:
                    questions[one].append(signer)
        for parked in given_up:
            self._forgeries.note(UNKNOWN, *parked)
        for key, signers in questions.items():
            self.ask(key, signers)

    @property
    def waits(self) -> bool:
        """Whether a publisher is still to be asked for."""
        return bool(self._parked or self._outside)

    def forget(self, key: int) -> None:
        """A peer is connected no more; what it was shown may be lost."""
        self._shown.pop(key, None)

    def _may_bring(self, sender: int) -> bool:
        self._taken[sender] += 1
        if self._taken[sender] > PER_ROUND:
            self._counters.drop("flood")
            return False
        return True

    def _learn(self, sender: int, introduction: bytes) -> None:
        try:
            publisher = self._cache.learn(introduction, self._now())
        except (UntimelyCertificateError, RevokedCertificateError):
            # So it is by the clock and the list of this peer; the sender's may differ.
            self._counters.drop("stale")
            return
        self._last_shown = (-1, None)
        self._note_shown(sender, publisher)
        for parked in self._parked.take(publisher.signer):
            self._release(*parked)
        self._let_in(publisher.signer, sender)

    def _answer(self, sender: int, signers: Iterable[bytes]) -> None:
        found = [self.find(signer) for signer in signers if self._may_bring(sender)]
        known = [publisher for publisher in found if publisher is not None]
        if known:
            introductions = [publisher.introduction for publisher in known]
            self._send(sender, encode_frame("publishers", introductions=introductions))

    def ask(self, key: int, signers: Sequence[bytes]) -> None:
        """Ask a neighbour whose keys these are."""
        if key != self._key:
            self._send(key, encode_frame("publishers wanted", signers=list(signers)))

    def _note_shown(self, to: int, publisher: Publisher) -> None:
        shown = self._shown.setdefault(to, {})
        if len(shown) >= MOST_KEYS:
            shown.clear()
        shown[publisher.signer] = publisher
