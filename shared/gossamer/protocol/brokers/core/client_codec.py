"""What clients send to any broker, as plain data and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gossamer.protocol.brokers.core import messages as m
from gossamer.protocol.brokers.core.plain import read_name
from gossamer.protocol.brokers.core.shapes import (
    ASKED,
    FILTER,
    LABEL,
    VALUES,
    Kinds,
    Shape,
    shape,
)

MAX_STANDING: Final = 1_000_000
"""Most advertisements or subscriptions that one message between brokers holds."""

FROM_CLIENT: Final[Mapping[str, Shape]] = {
    "attach": shape(m.Attach, ASKED, ASKED),
    "detach": shape(m.Detach),
    "move": shape(m.Move),
    "advertise": shape(m.Advertise, LABEL, FILTER),
    "unadvertise": shape(m.Unadvertise, LABEL),
    "subscribe": shape(m.Subscribe, LABEL, FILTER),
    "unsubscribe": shape(m.Unsubscribe, LABEL),
    "publish": shape(m.Publish, VALUES),
}
"""Shapes of what clients send to any broker."""


_FROM_CLIENT: Final = Kinds(FROM_CLIENT)


def check_from_client(client: str, message: object, kinds: Kinds = _FROM_CLIENT) -> None:
    """Let a message of a client pass whose names, filters and values can be read again.

    Raises `MalformedMessageError` or `ContentError`.
    """
    read_name(client, "client")
    kinds.check(message)
