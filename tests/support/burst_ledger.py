"""What publishers published, subscribers got, and who took which subscription back when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from attrs import define, field, frozen

from support.overlapping_interests import Interests

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
