"""The broker of an overlay without cycles, and what can be seen of it."""

from __future__ import annotations

from typing import Any

from gossamer.protocol.brokers.core.broker import Broker
from gossamer.protocol.brokers.core.dump import name_in
from gossamer.protocol.brokers.core.index import NewIndex, SharedIndex
from gossamer.protocol.brokers.core.state import Session
from gossamer.protocol.brokers.tree.family import TreeRouting
from gossamer.protocol.brokers.tree.memory.advertisements import Offer
from gossamer.protocol.brokers.tree.memory.counters import Counters, TableSizes
from gossamer.protocol.brokers.tree.memory.link import Link
from gossamer.protocol.brokers.tree.memory.outbox import TreeOutbox
from gossamer.protocol.brokers.tree.memory.sent import Aggregate
from gossamer.protocol.brokers.tree.memory.settings import TreeSettings
from gossamer.protocol.brokers.tree.memory.state import State
from gossamer.protocol.brokers.tree.memory.statistics import Statistics
from gossamer.protocol.brokers.tree.memory.subscriptions import Entry
from gossamer.protocol.brokers.tree.routing.covering import cover_anew
from gossamer.protocol.kernel.errors import ConfigError

_ROUTING = TreeRouting()


class TreeBroker(Broker[State, TreeOutbox]):
    """A content-based broker in an overlay without cycles."""

    def __init__(
        self,
        name: str,
        settings: TreeSettings,
        *,
        incarnation: int = 0,
        new_index: NewIndex = SharedIndex,
    ) -> None:
        """A broker that has seen nothing.

        Args:
            name: unique in the overlay.
            settings: which do not change; brokers of one overlay may differ.
            incarnation: larger than whenever a broker of this name lived without its dump, so that
                identifiers and sessions of its earlier lives are not taken for new ones.
            new_index: makes an empty index of filters; `index.compiled_index` for large tables.
        """
        super().__init__(State.empty(name, settings, new_index, incarnation), _ROUTING)

    @classmethod
    def load(
        cls,
        data: dict[str, Any],
        settings: TreeSettings,
        *,
        new_index: NewIndex = SharedIndex,
    ) -> TreeBroker:
        """The broker that was dumped; raises `DumpError` for what is no dump.

        The host then reports `Restarted`, and `NeighbourUp` for every link that works.
        """
        return cls(name_in(data), settings, new_index=new_index)._recall(data)

    def configure(self, settings: TreeSettings) -> None:
        """Go on with other settings.

        What stands on links depends on what is quenched and taken back when covered, so that
        these two have to stay as they are. Nothing is sent.

        Raises:
            ConfigError: they would not; nothing has changed.
        """
        state = self._state
        old, new = state.settings.rules, settings.rules
        if (old.quench, old.clean) != (new.quench, new.clean):
            expected = f"a covering that leaves tables as {state.settings.covering!r} does"
            raise ConfigError("broker.covering", settings.covering, expected)
        kept = Statistics(settings.statistics_window, settings.statistics_entries)
        for id_, row in state.statistics.rows():
            kept.record(id_, row)
        state.settings, state.statistics = settings, kept

    def cover_anew(self, now: int) -> None:
        """Go on with tables that were made by another covering; every link goes down.

        For a broker that was loaded, before it is told `Restarted`. Its neighbours may have any
        covering, and learn what is new when their links come up.

        Args:
            now: microseconds, never less than before.
        """
        state = self._state
        out = TreeOutbox(state, now)
        for link in state.links_in_order():
            link.up = False
            cover_anew(state, out, link)
        out.close()

    @property
    def counters(self) -> Counters:
        """What happened so far; belongs to the broker."""
        return self._state.counters

    def sizes(self) -> TableSizes:
        """How large the tables are."""
        return self._state.sizes()

    def aggregates(self) -> dict[str, list[Aggregate]]:
        """By neighbour, the subscriptions that it keeps for nobody, with what they cost."""
        return {
            link.name: [link.sent.aggregates[id_] for id_ in sorted(link.sent.aggregates)]
            for link in self._state.links_in_order()
            if link.sent.aggregates
        }

    def clients(self) -> list[Session]:
        """The attached clients; these and what follows are for looking at, not for changing."""
        return list(self._state.clients.values())

    def advertisements(self) -> list[Offer]:
        """The advertisement table."""
        return list(self._state.advertisements)

    def subscriptions(self) -> list[Entry]:
        """The subscription table."""
        return list(self._state.subscriptions)

    def links(self) -> list[Link]:
        """What is known of each neighbour, by name."""
        return self._state.links_in_order()
