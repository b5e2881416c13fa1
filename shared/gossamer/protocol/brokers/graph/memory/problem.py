"""What trees are made for, as the coordinator asks its host."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.brokers.graph.memory.messages import Plan, Version


@frozen
class Problem:
    """What trees are made for.

    Attributes:
        version: that they will be.
        strategy: by which they are made.
        brokers: that can be reached, by name.
        links: between them: two numbers of brokers and a cost.
        absent: brokers that are away, and beside which other each hangs.
        interests: subscriptions, and the number of the broker where each is served.
        documents: of the sample: where they were published, and which subscriptions match.
        present: the trees in use, where they can be compared with new ones.
    """

    version: Version
    strategy: str
    brokers: tuple[str, ...]
    links: tuple[tuple[int, int, float], ...]
    absent: Mapping[str, str]
    interests: tuple[tuple[Id, int], ...]
    documents: tuple[tuple[int, tuple[int, ...]], ...]
    present: Plan | None
