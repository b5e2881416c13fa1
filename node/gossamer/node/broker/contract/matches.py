"""What follows for a client from publications that match composite subscriptions."""

from __future__ import annotations

from attrs import frozen

from gossamer.protocol.brokers.core.messages import Id


@frozen
class Match:
    """Hand publications that match a composite subscription together to a client.

    Attributes:
        client: its name.
        body: what it gets, as of `gossamer.node.broker.deliveries`.
    """

    client: str
    body: bytes


@frozen
class ForComposites:
    """A client wants a publication for its composite subscriptions only, and does not get it.

    Attributes:
        client: its name.
        id: of the publication.
    """

    client: str
    id: Id
