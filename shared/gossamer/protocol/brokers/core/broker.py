"""The one door of a broker, whatever its family: a message in, effects out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Self

from gossamer.protocol.brokers.core import dump as dumping
from gossamer.protocol.brokers.core.clients import OutboxT, StateT
from gossamer.protocol.brokers.core.codec import CLIENT, HOST, NEIGHBOUR
from gossamer.protocol.brokers.core.effects import Effects
from gossamer.protocol.brokers.core.messages import Hop, Id, TimerFired
from gossamer.protocol.brokers.core.routing import Routing
from gossamer.protocol.kernel.errors import LocalProtocolError, RemoteProtocolError


class Broker(Generic[StateT, OutboxT]):
    """A content-based broker: a state, and the routing of its family.

    Same messages in the same order give the same effects and the same dump, bit for bit. Families
    derive a class that makes the state and shows their tables.
    """

    def __init__(self, state: StateT, routing: Routing[StateT, OutboxT]) -> None:
        self._state = state
        self._routing = routing
        self._senders = routing.codec.senders
        self._ends = type(routing).end is not Routing.end

    def _recall(self, data: Mapping[str, Any]) -> Self:
        """Go on, a broker that has seen nothing, as the one that was dumped.

        Raises:
            DumpError: the data is no dump of a broker in this place.
        """
        dumping.load(self._routing, self._state, data)
        return self

    def dump(self) -> dict[str, object]:
        """Everything that the broker remembers for good, as plain data (see `plain`)."""
        return dumping.dump(self._routing, self._state)

    @property
    def name(self) -> str:
        """The broker's name."""
        return self._state.name

    @property
    def next_id(self) -> Id:
        """The identifier that the next thing of a client here gets."""
        return Id(self._state.name, self._state.next_number + 1)

    def handle(self, now: int, source: Hop | None, message: Any) -> Effects:
        """Take a message, and say what is to happen because of it.

        Args:
            now: microseconds, never less than before.
            source: the client or neighbour that sent the message, or None for the host.
            message: what came.

        What is wrong with a message goes back to its source as a `Refuse`; then nothing else
        happens because of it, and but for the counters the state is as before. (Of tree brokers
        two messages are excepted: `tree.memory.outbox`.) `Effects.id` is the identifier of what a
        client's message subscribed, advertised or published.
        """
        state, routing = self._state, self._routing
        out = routing.begin(state, now, message)
        try:
            if source is None:
                self._check_sender(source, message, HOST)
                self._from_host(out, message)
            elif source.is_client:
                self._check_sender(source, message, CLIENT)
                routing.codec.check_from_client(source.name, message)
                routing.from_client(state, out, source.name, message)
            else:
                # As `_check_sender`; nearly all messages come this way.
                if self._senders.get(type(message), NEIGHBOUR) != NEIGHBOUR:
                    self._check_sender(source, message, NEIGHBOUR)
                routing.from_neighbour(state, out, source, message)
        except (LocalProtocolError, RemoteProtocolError) as error:
            return out.refuse(source, error, message)
        if self._ends:
            routing.end(state, out)
        return out.close()

    def _check_sender(self, source: Hop | None, message: Any, came_from: str) -> None:
        # What is no message at all is refused as the message of whoever sent it.
        unknown = CLIENT if source is None else came_from
        expected = self._senders.get(type(message), unknown)
        if expected != came_from:
            shown = "the host" if source is None else f"{source.kind} {source.name!r}"
            came = f"{type(message).__name__} came from {shown}"
            raise LocalProtocolError(f"{came}, expected {expected}")

    def _from_host(self, out: OutboxT, message: Any) -> None:
        if isinstance(message, TimerFired):
            self._on_timer(out, message)
        else:
            self._routing.on_host(self._state, out, message)

    def _on_timer(self, out: OutboxT, message: TimerFired) -> None:
        timer = self._state.timers.get(message.timer)
        if timer is not None and timer.at is not None and timer.token == message.token:
            timer.at = None
            self._routing.on_timer(self._state, out, message.timer)
