"""What a broker of any family wants to happen: frozen records for its host to carry out, in order.

Those from `Compute` on are wanted by some families only. A host carries them out without knowing
which family wants them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, Protocol, TypeVar

from attrs import frozen

from gossamer.protocol.brokers.core.messages import Hop, Id
from gossamer.protocol.brokers.core.state import BrokerState, Timer
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


OfSomeFamilies = Compute | Awaits | Settled | Adopted | Dismissed | Withdrawn
Effect = Send | Deliver | Moved | Refuse | SetTimer | OfSomeFamilies


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


StateT = TypeVar("StateT", bound=BrokerState)


class Outbox(Generic[StateT]):
    """Collects effects, and counts them.

    Attributes:
        now: time of the step, in microseconds.
        effects: so far.
    """

    __slots__ = ("_state", "effects", "now")

    def __init__(self, state: StateT, now: int) -> None:
        self.now = now
        self.effects = Effects()
        self._state = state

    def give_id(self) -> Id:
        """A new identifier, for what a client subscribes, advertises or publishes now."""
        given = self._state.new_id()
        self.effects.id = given
        return given

    def add(self, effect: Effect) -> None:
        """Add an effect that has no rule of its own."""
        self.effects.append(effect)

    def send(self, neighbour: str, message: Any) -> None:
        """Send a message to a neighbour."""
        self.put(neighbour, message, type(message).__name__)

    def put(self, neighbour: str, message: Any, kind: str) -> None:
        """Send a message as it is, and count it as one of a kind."""
        sent = self._state.counters.sent
        sent[kind] = sent.get(kind, 0) + 1
        self.effects.append(Send(neighbour, message))

    def deliver(self, client: str, publication: Published, labels: tuple[str, ...]) -> None:
        """Hand a publication to a client."""
        self._state.counters.delivered += 1
        self.effects.append(Deliver(client, publication, labels))

    def set_timer(self, name: str, delay: int) -> None:
        """Ask for a timer in so many microseconds, unless it is set already."""
        timer = self._state.timers.setdefault(name, Timer())
        if timer.at is None:
            timer.token += 1
            timer.at = self.now + delay
            self.effects.append(SetTimer(name, timer.token, timer.at))

    def set_again(self, name: str, timer: Timer) -> None:
        """Ask once more for a timer that is set."""
        if timer.at is not None:
            self.effects.append(SetTimer(name, timer.token, timer.at))

    def close(self) -> Effects:
        """All effects; nothing can be added afterwards."""
        return self.effects

    def refuse(self, source: Hop | None, error: ProtocolError, message: Any) -> Effects:
        """All effects of a message that is refused: that its sender is told, and nothing else."""
        self._state.counters.refused += 1
        return Effects([Refuse(source, error, message)])
