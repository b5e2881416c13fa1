"""Clients of SCOT brokers that take over, and what they publish, as a play notes them."""

from __future__ import annotations

from collections import Counter

from attrs import define, field

from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.content.filters import Filter


@define(eq=False)
class Published:
    """A publication: what it is called, and whether it was acknowledged, and as safe.

    Attributes:
        due: clients that want it and whose subscription was safe when it was published.
    """

    broker: str
    id: Id
    values: dict[str, object]
    due: frozenset[str] = frozenset()
    safe: bool | None = None


@define(eq=False)
class Subscriber:
    """A client that asks for something.

    Attributes:
        at: the brokers that it was attached at, the last one last.
        waiting: notifications that it has not taken, by broker.
        got: how often it got each notification, by broker.
        safe: whether its subscription was acknowledged as safe.
    """

    name: str
    wanted: Filter
    at: list[str]
    waiting: dict[str, list[Id]] = field(factory=dict)
    got: Counter[tuple[str, Id]] = field(factory=Counter)
    safe: bool | None = None

    @property
    def ids(self) -> set[Id]:
        return {id_ for _, id_ in self.got}
