"""Where publications went lately: remembered by each broker for itself, asked for along links.

A broker remembers so many publications, with whom they came from and whom they went to. Who wants
the route of one asks the neighbours by which it came and went, and these ask theirs. The way is a
tree; should one go around a failure and cross itself, whoever is asked again answers nothing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Final

import trio
from attrs import define, field, frozen

from gossamer.node.broker.engine import Input
from gossamer.node.broker.host import ForComposites
from gossamer.node.broker.wire import MAX_HOPS, MAX_ROUTE, MAX_WAYS
from gossamer.node.errors import RequestError
from gossamer.node.security.identity import key_text
from gossamer.node.transport.frames import encode_frame
from gossamer.node.transport.schema import Frame
from gossamer.protocol.brokers.core.effects import Deliver, Send
from gossamer.protocol.brokers.core.messages import Hop, Id, Publish, client, neighbour

# Publications remembered: an hour of one a second, and some 2 MB.
REMEMBERED: Final = 4096
# How long an answer of a neighbour is waited for, and by how much less its own neighbours'.
ANSWER_S: Final = 5.0
LESS_S: Final = 0.05
# Questions that neighbours may have asked and not been answered.
QUESTIONS: Final = 64


@frozen
class Passage:
    """A publication at one broker.

    Attributes:
        broker: key of the broker, as text.
        name: what people call it.
        source: from whom the publication came, such as "client ada".
        onward: to whom it went.
    """

    broker: str
    name: str
    source: str
    onward: tuple[str, ...]

    def to_wire(self) -> list[str]:
        """As it travels."""
        return [self.broker, self.name, self.source, *self.onward][:MAX_WAYS]


@define
class _Ways:
    source: Hop
    onward: list[Hop]


class Routes:
    """What one broker remembers."""

    def __init__(self, carried: Callable[[Any], Id | None]) -> None:
        """Nothing so far; ``carried`` is the publication that a message between brokers carries."""
        self._carried = carried
        self._recent: OrderedDict[Id, _Ways] = OrderedDict()

    def note(self, told: Input, effects: list[Any], published: Id | None) -> None:
        """Remember a publication that went through.

        Args:
            told: what the broker was told.
            effects: what followed from it.
            published: what it is called, where a client published it.
        """
        if told.source is None:
            return
        id_ = self._publication_of(told, published)
        onward = [way for effect in effects if (way := self._way_of(effect)) is not None]
        if id_ is None:
            return
        if id_ in self._recent:  # a part of its way goes by here again, or it came twice
            known = self._recent[id_].onward
            known += [hop for hop in onward if hop not in known]
            return
        self._recent[id_] = _Ways(told.source, onward)
        if len(self._recent) > REMEMBERED:
            self._recent.popitem(last=False)

    def find(self, id_: Id) -> _Ways | None:
        """What is remembered of a publication."""
        return self._recent.get(id_)

    def _publication_of(self, told: Input, published: Id | None) -> Id | None:
        if isinstance(told.message, Publish):
            return published
        assert told.source is not None
        return None if told.source.is_client else self._carried(told.message)

    def _way_of(self, effect: Any) -> Hop | None:
        if isinstance(effect, Deliver | ForComposites):
            return client(effect.client)
        if isinstance(effect, Send) and self._carried(effect.message) is not None:
            return neighbour(effect.neighbour)
        return None


class RouteService:
    """Answers and asks where publications went; the frames go over links of their own accord.

    Args:
        routes: what this broker remembers.
        key, name: of this broker.
        try_send: sends a frame to a neighbour if there is room.
        nursery: where questions of neighbours are dealt with.
        cyclic: whether a way may come back to where it was.
    """

    def __init__(
        self,
        routes: Routes,
        key: int,
        name: str,
        try_send: Callable[[int, bytes], bool],
        nursery: trio.Nursery,
        *,
        cyclic: bool = False,
    ) -> None:
        self._routes = routes
        self._me = key_text(key)
        self._name = name
        self._try_send = try_send
        self._nursery = nursery
        self._numbers = count(1)
        self._open: dict[int, _Question] = {}
        self._asking = 0
        self._cyclic = cyclic
        self._following: set[Id] = set()

    async def trace(self, id_: Id) -> list[Passage]:
        """The route of a publication as far as its brokers remember it, this broker's part first.

        Raises:
            RequestError: this broker does not remember it.
        """
        found = await self._follow(id_, None, MAX_HOPS)
        if not found:
            raise RequestError(
                f"publication {id_.broker}:{id_.number} is not remembered here, expected one of "
                f"the last {REMEMBERED} that passed this broker"
            )
        return found

    def receive(self, sender: int, frame: Frame) -> None:
        """Take a question, or an answer; what nobody asked for is dropped."""
        if frame["type"] == "route":
            question = self._open.get(frame["question"])
            if question is not None and question.asked == sender:
                question.answer = frame["hops"]
                question.done.set()
        elif self._asking < QUESTIONS:
            self._asking += 1
            self._nursery.start_soon(self._answer, sender, frame)

    async def _answer(self, sender: int, frame: Frame) -> None:
        try:
            id_ = Id(frame["broker"], frame["number"])
            found = await self._follow(id_, key_text(sender), frame["hops"])
        finally:
            self._asking -= 1
        hops = [passage.to_wire() for passage in found[:MAX_ROUTE]]
        self._try_send(sender, encode_frame("route", question=frame["question"], hops=hops))

    async def _follow(self, id_: Id, asker: str | None, hops: int) -> list[Passage]:
        ways = self._routes.find(id_)
        if ways is None or (self._cyclic and id_ in self._following):
            return []
        self._following.add(id_)
        try:
            return await self._follow_on(id_, ways, asker, hops)
        finally:
            self._following.discard(id_)

    async def _follow_on(self, id_: Id, ways: _Ways, asker: str | None, hops: int) -> list[Passage]:
        onward = tuple(f"{hop.kind} {hop.name}" for hop in ways.onward)
        source = f"{ways.source.kind} {ways.source.name}"
        found = [Passage(self._me, self._name, source, onward)]
        neighbours = [hop.name for hop in (ways.source, *ways.onward) if not hop.is_client]
        if hops > 0:
            async with trio.open_nursery() as nursery:
                for name in neighbours:
                    if name != asker:
                        nursery.start_soon(self._ask, name, id_, hops - 1, found)
        return found

    async def _ask(self, name: str, id_: Id, hops: int, found: list[Passage]) -> None:
        number = next(self._numbers)
        question = self._open[number] = _Question(int(name, 16))
        wanted = encode_frame(
            "route wanted", question=number, broker=id_.broker, number=id_.number, hops=hops
        )
        try:
            if self._try_send(question.asked, wanted):
                with trio.move_on_after(max(LESS_S, ANSWER_S - LESS_S * (MAX_HOPS - hops))):
                    await question.done.wait()
        finally:
            del self._open[number]
        found += _passages(question.answer)


@define(eq=False)
class _Question:
    asked: int
    answer: list[list[str]] = field(factory=list)
    done: trio.Event = field(factory=trio.Event)


def _passages(hops: Iterable[list[str]]) -> list[Passage]:
    return [Passage(one[0], one[1], one[2], tuple(one[3:])) for one in hops if len(one) >= 3]
