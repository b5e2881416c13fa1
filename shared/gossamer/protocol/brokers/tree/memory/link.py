"""A link to a neighbour: what stands there, and what may still be under way."""

from __future__ import annotations

from collections import deque

from attrs import define, field

from gossamer.protocol.brokers.core.identifiers import Hop, neighbour
from gossamer.protocol.brokers.tree.memory.messages import Publication
from gossamer.protocol.brokers.tree.memory.sent import Sent
from gossamer.protocol.content.filters import Filter

NOT_SENT = -1
"""Session and number of a publication that waits for its link."""


@define(eq=False)
class Retained:
    """A publication that a neighbour has not acknowledged, and its place on the link.

    Its advertisement is kept with it, because it may be taken back before that.
    """

    publication: Publication
    advertised: Filter
    session: int = NOT_SENT
    number: int = NOT_SENT


@define(eq=False)
class Link:
    """What a broker knows of a neighbour.

    Attributes:
        name: the neighbour.
        sent: subscriptions that stand there.
        up: whether frames can be sent.
        out_session, out_number: of the last frame sent.
        in_session, in_number: of the last frame taken.
        retained: publications that are not acknowledged.
        unacknowledged: publications taken since the last acknowledgement.
        batch: the session and number of the last frame of a batch that the neighbour has not
            acknowledged, and when it was sent (`routing.pacing`).
        window: subscriptions of the next batch; 0: as many as the settings say.
    """

    name: str
    sent: Sent
    up: bool = False
    out_session: int = 0
    out_number: int = 0
    in_session: int = 0
    in_number: int = 0
    retained: deque[Retained] = field(factory=deque)
    unacknowledged: int = 0
    batch: tuple[int, int, int] | None = None
    window: int = 0

    @property
    def hop(self) -> Hop:
        """The neighbour as a hop."""
        return neighbour(self.name)
