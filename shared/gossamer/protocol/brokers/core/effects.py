"""What a broker of any family wants to happen: frozen records for its host to carry out, in order.

Those from `Compute` on are wanted by some families only. A host carries them out without knowing
which family wants them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Protocol

from attrs import frozen

from gossamer.protocol.brokers.core.identifiers import Hop, Id
from gossamer.protocol.content.filters import Filter, Publication
from gossamer.protocol.kernel.errors import ProtocolError


class Published(Protocol):
    """What a client is handed: a publication, notification or document of the family."""

    @property
    def id(self) -> Id:
        """The broker of its publisher and a counter."""
        ...

    @property
    def values(self) -> Publication:
        """What was published, by attribute."""
        ...


@frozen
class Send:
    """Send a message of the family to a neighbour; links are first in, first out."""

    neighbour: str
    message: Any


@frozen
class Deliver:
    """Hand a publication to a client, once for all its subscriptions that match."""

    client: str
    publication: Published
    labels: tuple[str, ...]


@frozen
class Moved:
    """Tell a client that moves what it leaves behind, by label, to attach with elsewhere."""

    client: str
    subscriptions: tuple[tuple[str, Filter], ...]
    advertisements: tuple[tuple[str, Filter], ...]


@frozen
class Refuse:
    """Tell whoever caused it why a message was not carried out; it goes back with the reason.

    Attributes:
        hop: who sent the message; None is the host.
    """

    hop: Hop | None
    error: ProtocolError
    message: Any


@frozen
class SetTimer:
    """Hand `TimerFired` with this token back at a time (microseconds), or soon after."""

    timer: str
    token: int
    at: int


class Compute(ABC):
    """Work something out that takes long, outside a step, and hand the broker the result.

    The result is the same whether rules run compiled or not, and can be pickled.
    """

    @property
    def pays_to_compile(self) -> bool:
        """Whether it takes so long that rules are better compiled for it."""
        return False

    @abstractmethod
    def work(self) -> object:
        """What the broker is handed; runs in any process, as it reads nothing that changes."""


@frozen
class Awaits:
    """What follows from this client's message is to be known safe: `Settled` will say so.

    Attributes:
        ticket: never used before.
    """

    ticket: int


@frozen
class Settled:
    """What followed from a client's message has come to an end.

    Attributes:
        ticket: of its `Awaits`.
        safe: whether it reached every broker that it was for, and is with a backup.
    """

    ticket: int
    safe: bool


@frozen
class Adopted:
    """A client of a dead broker came here, and is kept until that is back.

    Attributes:
        home: where its own broker is.
        subscriptions: what it has asked for there, by label.
    """

    client: str
    home: str
    subscriptions: tuple[tuple[str, Filter], ...]


@frozen
class Dismissed:
    """A client that was adopted has its own broker again, and has left this one."""

    client: str
    home: str


@frozen
class Withdrawn:
    """A client has taken publications from another broker, and needs them no more from this one."""

    client: str
    ids: tuple[Id, ...]


Effect = (
    Send
    | Deliver
    | Moved
    | Refuse
    | SetTimer
    | Compute
    | Awaits
    | Settled
    | Adopted
    | Dismissed
    | Withdrawn
)


class Effects(list[Effect]):
    """The effects of one message, in order.

    Attributes:
        id: what the broker calls what the message subscribed, advertised or published, in the
            whole overlay; None where it did nothing of that, or was refused.
    """

    __slots__ = ("id",)

    def __init__(self, effects: Iterable[Effect] = ()) -> None:
        super().__init__(effects)
        self.id: Id | None = None
