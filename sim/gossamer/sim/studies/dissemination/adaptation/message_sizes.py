"""How many bytes messages between brokers take, as nodes send them."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import cbor2

from gossamer.protocol.brokers.graph.codec import CODEC
from gossamer.protocol.brokers.graph.messages import BetweenBrokers

_REMEMBERED: Final = 4_096


class MessageSizes:
    """Sizes of messages; what floods is the same message on many links, and measured once."""

    def __init__(self) -> None:
        self._known: OrderedDict[int, tuple[BetweenBrokers, int]] = OrderedDict()

    def of(self, message: BetweenBrokers) -> int:
        """Bytes of a message, without what a transport adds."""
        known = self._known.get(id(message))
        if known is not None:
            return known[1]
        size = len(cbor2.dumps(CODEC.plain_message(message)))
        # With the message itself, so that its identity is not another's meanwhile.
        self._known[id(message)] = message, size
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return size
