"""Subscriptions that overlap: narrow ones, each covered by several broad ones; and a ledger.

They are those of `gossamer.sim.studies.tree_brokers.covering_workload`, where every root covers its
children and nothing else, but for the children: they stand ``overlap - 1`` stairs farther along x.
With C = degree + 1, root r of R and its children i = 1 .. degree ask for

    x >= r C                        and  y >= (R - 1 - r) C
    x >= (r + overlap - 1) C + i    and  y >= (R - r) C - i

so that exactly the roots r .. r + overlap - 1 cover them, as far as there are so many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random

from attrs import define, field, frozen

OFFER = "x >= 0 and present(y) and number >= 0"
"""An advertisement that allows all publications."""


@frozen
class Interest:
    """A subscription: a root, which covers others, or a child of one."""

    label: str
    expression: str
    root: int
    is_root: bool


@frozen(kw_only=True)
class Interests:
    """``roots`` (1 + ``degree``) subscriptions.

    Each of the ``degree`` children of a root is covered by ``overlap`` roots; 1 is the papers'
    workload. A publication matches about ``children_matched`` of them, and ``overlap`` roots
    besides.
    """

    roots: int
    degree: int
    overlap: int
    children_matched: int = 6

    @property
    def _stair(self) -> int:
        return self.degree + 1

    def all(self) -> list[Interest]:
        return [
            self._interest(root, child)
            for root in range(self.roots)
            for child in range(self._stair)
        ]

    def publications(self, count: int, seed: int) -> list[tuple[int, int]]:
        """Values of x and y; uniform among the roots, and fixed by the seed."""
        draws = Random(f"publications {seed}")
        above = (self.roots + self.overlap - 1) * self._stair - 1 + self.children_matched
        xs = (draws.randrange(self.roots * self._stair) for _ in range(count))
        return [(x, above - x) for x in xs]

    def matching(self, x: int, y: int) -> list[str]:
        stair, top = self._stair, self.roots * self._stair
        first = max(0, -(-(top - stair - y) // stair))
        last = min(x // stair, self.roots - 1)
        found = [label_of(root, 0) for root in range(first, last + 1)]
        for place in range(max(0, top - y), min(x - (self.overlap - 1) * stair, top - 1) + 1):
            root, child = divmod(place, stair)
            if child:
                found.append(label_of(root, child))
        return found

    def _interest(self, root: int, child: int) -> Interest:
        stair = self._stair
        if child:
            x, y = (root + self.overlap - 1) * stair + child, (self.roots - root) * stair - child
        else:
            x, y = root * stair, (self.roots - 1 - root) * stair
        return Interest(label_of(root, child), f"x >= {x} and y >= {y}", root, child == 0)


def label_of(root: int, child: int) -> str:
    return f"{root}.{child}"


Delivery = tuple[str, int]
"""A subscribers' host and the number of a publication: its client there gets it once."""


@frozen
class Published:
    due: float  # when it was to be published
    wanted: Mapping[str, frozenset[str]]  # by host the labels of the subscriptions that it matches


@define(eq=False)
class Ledger:
    """All that happened; times are seconds of one clock."""

    interests: Interests
    homes: Mapping[str, str]  # hosts of the subscriptions, by label
    published: list[Published] = field(factory=list)
    got: dict[Delivery, tuple[float, frozenset[str]]] = field(factory=dict)  # when, and for whom
    repeated: int = 0
    asked: dict[str, float] = field(factory=dict)  # when subscriptions were taken back, by label
    answered: dict[str, float] = field(factory=dict)
    latest: float = 0.0  # when the last delivery came
    settled: int = 0  # publications waited for before anything was taken back

    def publish(self, x: int, y: int, due: float) -> dict[str, int]:
        wanted: dict[str, set[str]] = {}
        for label in self.interests.matching(x, y):
            wanted.setdefault(self.homes[label], set()).add(label)
        frozen_wanted = {host: frozenset(labels) for host, labels in wanted.items()}
        self.published.append(Published(due, frozen_wanted))
        return {"x": x, "y": y, "number": len(self.published) - 1}

    def deliver(self, host: str, number: int, labels: Iterable[str], now: float) -> None:
        self.repeated += (host, number) in self.got
        self.got.setdefault((host, number), (now, frozenset(labels)))
        self.latest = now

    def due(self) -> list[Delivery]:
        return [
            (host, number)
            for number, one in enumerate(self.published)
            for host, labels in one.wanted.items()
            if any(self._is_due(label, number) for label in labels)
        ]

    def missing(self) -> int:
        return sum(delivery not in self.got for delivery in self.due())

    def delays(self) -> list[tuple[float, float]]:
        made = (delivery for delivery in self.due() if delivery in self.got)
        pairs = ((self.published[number].due, self.got[host, number][0]) for host, number in made)
        return [(due, at - due) for due, at in pairs]

    def wrong(self) -> Counter[str]:
        """How many deliveries were missing, repeated, or for what did not want them.

        While a subscription is being taken back, what it matches may come or not.
        """
        false = missing = 0
        for number, one in enumerate(self.published):
            for host, labels in one.wanted.items():
                _, got = self.got.get((host, number), (0.0, frozenset[str]()))
                missing += any(self._is_due(label, number) and label not in got for label in labels)
                false += any(not self._may_get(label, one.due) for label in got & labels)
        false += sum(self._unwanted(*delivery) for delivery in self.got)
        return +Counter(missing=missing, repeated=self.repeated, false=false)

    def _is_due(self, label: str, number: int) -> bool:
        return number < self.settled or label not in self.asked

    def _may_get(self, label: str, due: float) -> bool:
        return label not in self.answered or due <= self.answered[label]

    def _unwanted(self, host: str, number: int) -> bool:
        _, got = self.got[host, number]
        return not got or not got <= self.published[number].wanted.get(host, frozenset())


def percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)] if ordered else 0.0
