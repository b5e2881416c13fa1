"""Neighbours of a broker of a general graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import trio

from gossamer.node.broker.links.links import Neighbour, Neighbours
from gossamer.node.broker.links.wire import BrokerFrames, encode_parts
from gossamer.node.broker.machine.engine import Engine
from gossamer.node.security.identity import key_text
from gossamer.node.transport.base.base import Cause
from gossamer.protocol.brokers.graph.codec import plain_message, read_between
from gossamer.protocol.brokers.graph.memory.effects import Refuse, Send
from gossamer.protocol.brokers.graph.memory.messages import (
    BetweenBrokers,
    Directive,
    NeighbourDown,
    NeighbourUp,
    Record,
    Summary,
)


class GraphNeighbours(Neighbours):
    """All neighbours of a broker of a general graph."""

    def __init__(self, nursery: trio.Nursery, engine: Callable[[], Engine]) -> None:
        super().__init__(nursery, engine)
        self._sessions: dict[int, int] = {}

    def _tell_up(self, one: Neighbour) -> None:
        one.frames = BrokerFrames(read_between)
        one.announced = connection = self.pool.get(one.key)
        assert connection is not None
        # Later than any before, also if this broker was started again.
        self._sessions[one.key] = self._engine().now
        self._engine().tell(
            None, NeighbourUp(key_text(one.key)), lambda: self._came_up(one, connection)
        )
        self.changed.unpark_all()

    def refused(self, effect: Any) -> None:
        """If a message could not be taken, that costs the neighbour its connection."""
        if not isinstance(effect, Refuse) or not isinstance(effect.message, BetweenBrokers):
            return
        one = None if effect.hop is None else self.known.get(int(effect.hop.name, 16))
        if one is not None and one.connection is not None:
            one.connection.expel(Cause.BAD_FRAME, str(effect.error))

    def _down_message(self, name: str) -> Any:
        return NeighbourDown(name)

    def _gone_message(self, name: str) -> Any:
        return NeighbourDown(name)

    def _is_send(self, effect: Any) -> bool:
        return isinstance(effect, Send)

    def _begins(self, effect: Any) -> bool:
        return isinstance(effect.message, Summary | Record | Directive)

    def _encode(self, one: Neighbour, effect: Any) -> Iterator[bytes]:
        return encode_parts(self._sessions[one.key], plain_message(effect.message))
