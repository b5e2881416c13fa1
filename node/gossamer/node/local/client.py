"""The node of this machine, for applications that have the protocol layer loaded as well.

    async with open_client(address) as client:
        await client.subscribe("dear", "price > 80")
        async for event in client.events:
            ...

It is a `gossamer.client.session.Session` whose values are exact, and checked against the schema
before they are sent. `gossamer.client` is for everybody else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from gossamer.client.frames import BROKER, Frame
from gossamer.client.link import Introduction, LocalAddress, Resume
from gossamer.client.session import Session
from gossamer.node.local.frames import (
    event_values_from_wire,
    schema_from_wire,
    values_to_wire,
)
from gossamer.protocol.content.filters import exact_publication
from gossamer.protocol.content.schema import Schema
from gossamer.protocol.kernel.errors import ContentError

# How long a node may be away: longer than a restart takes, also after the machine's own.
PATIENCE_S: Final = 60.0


class ExactValues:
    """Canonical values, checked against the node's schema; at a broker, of any names.

    Attributes:
        schema: what events are made of; None: at a broker, of anything.
    """

    errors: tuple[type[Exception], ...] = (ContentError,)

    def __init__(self) -> None:
        self.schema: Schema | None = None
        self._is_broker = False

    def adopt(self, attached: Frame) -> None:
        """Take over what the node said its events are made of."""
        self.schema = schema_from_wire(attached["schema"]) if attached["schema"] else None
        self._is_broker = attached.get("role") == BROKER

    def to_wire(self, values: Mapping[str, object]) -> dict[str, object]:
        """Values of an event that is to be published; `ContentError` where they do not fit."""
        if self._is_broker:
            # Not loaded for the clients of peers, which it would cost a third of their start.
            from gossamer.protocol.brokers.core.plain_data import plain_values

            return plain_values(exact_publication(values, self.schema))
        assert self.schema is not None, "peers have one"
        return values_to_wire(self.schema.check_event(values))

    def from_wire(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values of an event that came."""
        if self._is_broker:
            from gossamer.protocol.brokers.core.plain_data import read_values

            return read_values(values, "values")
        assert self.schema is not None, "peers have one"
        return event_values_from_wire(self.schema, values)


class LocalClient(Session[ExactValues]):
    """A session whose values are exact; made by `open_client`."""

    @property
    def schema(self) -> Schema | None:
        """What events are made of; None: at a broker, of anything."""
        return self.values.schema


@asynccontextmanager
async def open_client(
    address: LocalAddress,
    name: str | None = None,
    resume: Resume | None = None,
    *,
    aside: bool = False,
    ordered: bool = False,
    patience_s: float = PATIENCE_S,
    on_change: Callable[[str], None] | None = None,
) -> AsyncIterator[LocalClient]:
    """Connect to the node whose socket is at ``address``, and again whenever it was away.

    Args:
        address: see `gossamer.node.local.address.local_address`.
        name: of a client whose subscriptions and undelivered events the node is to keep.
        resume: what an earlier client of that name left.
        aside: ask and publish for the name of a broker's client that may be connected itself, and
            leave its events to it.
        ordered: have the events of each publisher in its order.
        patience_s, on_change: as of `gossamer.client.session.Session`.

    Raises:
        NodeError: as of `Session.running`.
    """
    who = Introduction(name, aside, ordered)
    client = LocalClient(
        address.folder, lambda: address, ExactValues(), who, resume, patience_s, on_change
    )
    async with client.running():
        yield client
