"""What a broker knows of all brokers: links, who can be reached, and their subscriptions.

Every broker tells of its own links, with numbers that grow, and that floods to all. A link is
there where both of its ends say so. What brokers that are away have last said is kept, as they may
come back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from attrs import define, field

from gossamer.protocol.brokers.core.broker import NewIndex
from gossamer.protocol.brokers.core.messages import Id
from gossamer.protocol.content.filters import Filter, to_text
from gossamer.protocol.kernel.errors import InvariantError


@define(eq=False)
class TopologyMap:
    """The graph of brokers as one of them sees it.

    Attributes:
        name: of that broker.
        numbers: of the last update of each broker.
        links: neighbours of each broker, as it last said, and what a document costs there.
        lost: since when (microseconds) each broker cannot be reached that could be before, or that
            trees join.
    """

    name: str
    numbers: dict[str, int] = field(factory=dict)
    links: dict[str, dict[str, float]] = field(factory=dict)
    lost: dict[str, int] = field(factory=dict)
    _ways: dict[str, str] | None = None

    def set_links(self, broker: str, links: Mapping[str, float], now: int) -> None:
        """Take over what a broker says of its links."""
        before = self.reachable
        self.links[broker] = dict(links)
        self._ways = None
        after = self.reachable
        for one in before - after:
            self.lost[one] = now
        for one in after:
            self.lost.pop(one, None)

    def miss(self, brokers: Collection[str], now: int) -> None:
        """Count those as lost from now on that cannot be reached, and never could be from here."""
        for one in sorted(set(brokers) - self.reachable):
            self.lost.setdefault(one, now)

    def cost(self, one: str, other: str) -> float | None:
        """What a document costs between two brokers, None where they are not linked.

        Where the ends differ, the greater cost counts.
        """
        there, back = self.links.get(one, {}).get(other), self.links.get(other, {}).get(one)
        return None if there is None or back is None else max(there, back)

    def costs(self) -> dict[tuple[str, str], float]:
        """What a document costs on each link, by both ends in either order."""
        return {
            (one, other): cost
            for one in sorted(self.links)
            for other in sorted(self.links[one])
            if (cost := self.cost(one, other)) is not None
        }

    @property
    def reachable(self) -> frozenset[str]:
        """The brokers that can be reached, this one included."""
        return frozenset((*self._found(), self.name))

    def way_to(self, broker: str) -> str | None:
        """The neighbour on a way of fewest links to another broker, None where there is none."""
        return self._found().get(broker)

    def anchors(self, missed: Collection[str]) -> dict[str, str]:
        """For each broker that is missed, another beside which it was, or may come back.

        That is one that can be reached, or is missed too and leads to one. A link counts of which
        one end said last that it works: what the other said may never have come here. Who is on no
        such link hangs beside this broker.
        """
        found: dict[str, str] = {}
        known = set(self.reachable)
        beside = self._named() if missed else {}
        while left := sorted(set(missed) - known):
            nearer = {one: min(near) for one in left if (near := known & beside.get(one, set()))}
            if not nearer:
                nearer = dict.fromkeys(left, self.name)
            found |= nearer
            known |= nearer.keys()
        return found

    def _named(self) -> dict[str, set[str]]:
        """For each broker, whom it says it is linked to, and who says that of it."""
        beside: dict[str, set[str]] = {}
        for one, links in self.links.items():
            for other in links:
                beside.setdefault(one, set()).add(other)
                beside.setdefault(other, set()).add(one)
        return beside

    def _found(self) -> dict[str, str]:
        """The first broker on the way to each; of equally long ways that by the lesser name."""
        if self._ways is None:
            ways: dict[str, str] = {}
            queue = deque([self.name])
            while queue:
                one = queue.popleft()
                for other in sorted(self.links.get(one, {})):
                    if other not in ways and other != self.name and self.cost(one, other):
                        ways[other] = ways.get(one, other)
                        queue.append(other)
            self._ways = ways
        return self._ways


# The subscriptions of all brokers, and which of them a document matches.
#
# What a client asks for, all its filters, is one subscription: a disjunction, as a set of keywords
# is (Sec. VII-A). So a client is in one group, and gets a document on one tree.

Matches = dict[Id, list[Filter]]
"""Subscriptions that a document matches, and by which of their filters."""

# Every filter is marked alike: a table asks for all that match.
_MARK: Final = 1


class InterestTable:
    """Subscriptions by identifier, whose broker is the client's host broker."""

    def __init__(self, new_index: NewIndex) -> None:
        self._filters: dict[Id, set[Filter]] = {}
        self._hosts: dict[str, set[Id]] = {}
        self._index = new_index()
        self._places: dict[int, tuple[Filter, set[Id]]] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, interest: object) -> bool:
        return interest in self._filters

    def __iter__(self) -> Iterator[Id]:
        return iter(sorted(self._filters))

    def filters(self, interest: Id) -> tuple[Filter, ...]:
        """The filters of a subscription, in an order that depends on nothing else."""
        return tuple(sorted(self._filters.get(interest, ()), key=to_text))

    def of(self, broker: str) -> list[Id]:
        """The subscriptions at a broker, in order."""
        return sorted(self._hosts.get(broker, ()))

    def add(self, interest: Id, wanted: Iterable[Filter]) -> None:
        """Enter a subscription, or filters that it has not yet."""
        for one in wanted:
            held = self._filters.setdefault(interest, set())
            self._hosts.setdefault(interest.broker, set()).add(interest)
            if one not in held:
                held.add(one)
                self._enter(interest, one)

    def remove(self, interest: Id, gone: Iterable[Filter]) -> None:
        """Forget filters of a subscription, and it itself when none is left."""
        held = self._filters.get(interest, set())
        for one in gone:
            if one in held:
                held.discard(one)
                self._leave(interest, one)
        if not held and interest in self._filters:
            del self._filters[interest]
            self._hosts[interest.broker].discard(interest)

    def replace(self, broker: str, interests: Mapping[Id, Iterable[Filter]]) -> None:
        """Let these be the subscriptions at a broker, and no others."""
        for one in self.of(broker):
            kept = set(interests.get(one, ()))
            self.remove(one, self._filters[one] - kept)
        for one, wanted in interests.items():
            self.add(one, wanted)

    def match(self, values: Mapping[str, object]) -> Matches:
        """The subscriptions that a document matches, and by which filters."""
        found: Matches = {}
        for place in sorted(self._index.match(values, _MARK)):
            wanted, holders = self._places[place]
            for interest in holders:
                found.setdefault(interest, []).append(wanted)
        return found

    def _enter(self, interest: Id, wanted: Filter) -> None:
        place = self._index.add(wanted, _MARK)
        self._places.setdefault(place, (wanted, set()))[1].add(interest)

    def _leave(self, interest: Id, wanted: Filter) -> None:
        place = self._index.place_of(wanted)
        if place is None:
            raise InvariantError(f"a filter of subscription {interest} is not in the index")
        self._places[place][1].discard(interest)
        if self._index.remove(place):
            del self._places[place]
