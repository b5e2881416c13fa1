"""What one step of a broker wants to happen, in order."""

from __future__ import annotations

from typing import Final

from gossamer.protocol.brokers.core.effects import Effects, Outbox, Send
from gossamer.protocol.brokers.core.messages import Hop, Id
from gossamer.protocol.brokers.tree import messages as m
from gossamer.protocol.brokers.tree.state import Link, Retained, State
from gossamer.protocol.kernel.errors import ProtocolError

# A tuple, as one is not made anew for every message.
_TRIGGERED: Final = (m.Subscription, m.Unsubscription)


class TreeOutbox(Outbox[State]):
    """Collects effects, and numbers what goes over links."""

    __slots__ = ("_onward", "_packed")

    def __init__(self, state: State, now: int) -> None:
        Outbox.__init__(self, state, now)
        self._packed: dict[str, list[m.Subscription | m.Unsubscription]] = {}
        self._onward: set[Id] = set()

    def close(self) -> Effects:
        """All effects; nothing can be added afterwards."""
        for name in sorted(self._packed):
            self._unpack(self._state.links[name])
        self._count_onward()
        return self.effects

    def _count_onward(self) -> None:
        onward = len(self._onward)
        packed = self._state.settings.rules.pack
        self._state.counters.triggered_onward += min(onward, 1) if packed else onward
        self._onward.clear()

    def refuse(self, source: Hop | None, error: ProtocolError, message: m.Message) -> Effects:
        """What a message has led to until it was refused, and that it was.

        That is something in two cases only: a frame may be refused after one before it was found
        missing, which was asked for; and of a `Synchronise` with an advertisement that came another
        way the rest is taken over.
        """
        refusal = super().refuse(source, error, message)
        return Effects([*self.close(), *refusal])

    def send_on(self, link: Link, message: m.BetweenBrokers) -> None:
        """Send to a neighbour; what an interrupted link misses, `Synchronise` tells later.

        Only publications are not repeated by it: they are retained as the settings say, or lost.
        """
        if isinstance(message, m.Publication):
            self._send_publication(link, message)
            return
        if not link.up:
            return
        if isinstance(message, m.Subscription) and message.triggered:
            self._onward.add(message.id)
        if self._state.settings.rules.pack and isinstance(
            message, m.Subscription | m.Unsubscription
        ):
            self._packed.setdefault(link.name, []).append(message)
        else:
            self._send_frame(link, message)

    def send_again(self, link: Link) -> None:
        """Send the publications that a neighbour has not acknowledged."""
        for retained in link.retained:
            self._send_frame(link, retained.publication)
            retained.session, retained.number = link.out_session, link.out_number

    def _send_publication(self, link: Link, publication: m.Publication) -> None:
        if link.up:
            self._send_frame(link, publication)
        room = self._state.settings.retained_publications
        if not room:
            self._state.counters.lost += not link.up
            return
        if len(link.retained) >= room:
            link.retained.popleft()
            self._state.counters.lost += 1
        advertised = self._state.advertisements[publication.advertisement].filter
        retained = Retained(publication, advertised)
        if link.up:
            retained.session, retained.number = link.out_session, link.out_number
        link.retained.append(retained)

    def _send_frame(self, link: Link, message: m.BetweenBrokers) -> None:
        self._unpack(link)
        self._put(link, message)

    def _unpack(self, link: Link) -> None:
        messages = self._packed.pop(link.name, ())
        if len(messages) == 1:
            self._put(link, messages[0])
        elif messages:
            self._put(link, m.Packed(tuple(messages)))

    def _put(self, link: Link, message: m.BetweenBrokers) -> None:
        link.out_number += 1
        counters = self._state.counters
        count(counters.sent, counters.triggered_sent, message)
        self.effects.append(Send(link.name, m.Frame(link.out_session, link.out_number, message)))


def count(every: dict[str, int], triggered: dict[str, int], message: m.BetweenBrokers) -> None:
    """Count a message by kind, and what it packs; `triggered` counts what nobody asked for."""
    kind = type(message).__name__
    every[kind] = every.get(kind, 0) + 1
    if isinstance(message, m.Packed):
        for inner in message.messages:
            name = type(inner).__name__
            every[name] = every.get(name, 0) + 1
    if is_triggered(message):
        triggered[kind] = triggered.get(kind, 0) + 1


def is_triggered(message: m.BetweenBrokers) -> bool:
    """Whether a message is, or packs, a triggered one."""
    if isinstance(message, m.Packed):
        return any(inner.triggered for inner in message.messages)
    return isinstance(message, _TRIGGERED) and message.triggered
