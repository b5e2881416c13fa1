"""What a broker has sent on one link and not taken back, and what that quenches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import define

from gossamer.protocol.brokers.core.identifiers import Id
from gossamer.protocol.brokers.tree.memory.subscriptions import SubscriptionTable
from gossamer.protocol.content.filters import Filter


@define(eq=False)
class Aggregate:
    """A subscription that nobody holds any more, preserved for those that it quenches.

    Attributes:
        id, filter: the subscription.
        arrivals: publications that came on the link since then and match it.
        false_positives: those of them that nobody wanted.
    """

    id: Id
    filter: Filter
    arrivals: int = 0
    false_positives: int = 0


class Sent:
    """The subscriptions that stand at a neighbour because of this broker.

    Whatever could be sent and is not, is quenched: it hangs below one that was sent and covers it.
    Hanging is remembered, not searched for again, so that taking a subscription back finds exactly
    what it quenched, even where covering cannot be decided both ways.

    Attributes:
        aggregates: what is preserved for nobody (imprecise aggregation, selective paper,
            Sec. III-B).
    """

    def __init__(self, name: str, table: SubscriptionTable, indexed: bool) -> None:
        """Nothing is sent yet.

        Args:
            name: the neighbour.
            table: whose index holds what is sent.
            indexed: whether anybody will ask what covers what.
        """
        self._name = name
        self._table = table
        self._indexed = indexed
        self._filters: dict[Id, Filter] = {}
        self._coverer: dict[Id, Id] = {}
        self._quenched: dict[Id, dict[Id, None]] = {}
        self.aggregates: dict[Id, Aggregate] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def __iter__(self) -> Iterator[Id]:
        return iter(self._filters)

    def __contains__(self, id_: Id) -> bool:
        return id_ in self._filters

    def filter_of(self, id_: Id) -> Filter:
        """The filter of a subscription that was sent."""
        return self._filters[id_]

    def add(self, id_: Id, wanted: Filter) -> None:
        """Remember that a subscription was sent."""
        self._filters[id_] = wanted
        if self._indexed:
            self._table.add_sent(self._name, id_, wanted)

    def remove(self, id_: Id) -> list[Id]:
        """Forget a subscription that was sent; returns what it quenched, which now hangs free."""
        wanted = self._filters.pop(id_)
        aggregate = self.aggregates.pop(id_, None)
        if self._indexed:
            self._table.remove_sent(self._name, id_, wanted, aggregate is not None)
        free = list(self._quenched.pop(id_, ()))
        for covered in free:
            del self._coverer[covered]
        return free

    def clear(self) -> None:
        """Forget everything."""
        for id_ in list(self._filters):
            self.remove(id_)

    def preserve(self, id_: Id) -> None:
        """From now on a subscription that was sent is kept for nobody."""
        wanted = self._filters[id_]
        self.aggregates[id_] = Aggregate(id_, wanted)
        if self._indexed:
            self._table.preserve(wanted)

    def coverer(self, wanted: Filter, besides: Id | None = None) -> Id | None:
        """What was sent and covers a filter, or None; rather not what is kept for nobody."""
        if not self._indexed:
            return None
        found = (id_ for id_ in self._table.sent_covering(self._name, wanted) if id_ != besides)
        return min(found, key=lambda id_: (id_ in self.aggregates, id_), default=None)

    def covered_by(self, wanted: Filter) -> list[Id]:
        """What was sent and a filter covers, in the order of identifiers."""
        return sorted(self._table.sent_covered_by(self._name, wanted)) if self._indexed else []

    def hang(self, id_: Id, coverer: Id) -> None:
        """Remember what quenches a subscription."""
        self._coverer[id_] = coverer
        self._quenched.setdefault(coverer, {})[id_] = None

    def coverer_of(self, id_: Id) -> Id | None:
        """What quenches a subscription, or None."""
        return self._coverer.get(id_)

    def quenched_by(self, id_: Id) -> list[Id]:
        """What a subscription that was sent quenches."""
        return list(self._quenched.get(id_, ()))

    def free(self, id_: Id) -> Id | None:
        """A subscription is not to be sent any more; returns what quenched it, or None."""
        coverer = self._coverer.pop(id_, None)
        if coverer is not None:
            del self._quenched[coverer][id_]
            if not self._quenched[coverer]:
                del self._quenched[coverer]
        return coverer

    def aggregates_matching(self, values: Mapping[str, object]) -> list[Aggregate]:
        """The aggregates that match a publication."""
        if not self.aggregates or not self._indexed:
            return []
        found = sorted(self._table.preserved_matching(self._name, values))
        return [self.aggregates[id_] for id_ in found if id_ in self.aggregates]
