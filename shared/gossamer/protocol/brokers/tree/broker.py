"""The broker of an overlay without cycles: its `Routing`, and what can be seen of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gossamer.protocol.brokers.core import messages as core
from gossamer.protocol.brokers.core.broker import Broker, NewIndex, Routing, SharedIndex, name_in
from gossamer.protocol.brokers.core.clients import Labelled, read_ids
from gossamer.protocol.brokers.core.messages import Hop, client
from gossamer.protocol.brokers.core.state import Session
from gossamer.protocol.brokers.tree import codec as dumping
from gossamer.protocol.brokers.tree import messages as m
from gossamer.protocol.brokers.tree import pruning, routing, sessions
from gossamer.protocol.brokers.tree.advertisements import Offer
from gossamer.protocol.brokers.tree.codec import CODEC
from gossamer.protocol.brokers.tree.covering import PACE_TIMER, cover_anew, pace
from gossamer.protocol.brokers.tree.outbox import TreeOutbox
from gossamer.protocol.brokers.tree.settings import Statistics, TreeSettings
from gossamer.protocol.brokers.tree.state import Aggregate, Counters, Link, State, TableSizes
from gossamer.protocol.brokers.tree.tables import Entry
from gossamer.protocol.content.filters import Filter, conforms, exact_publication
from gossamer.protocol.kernel.errors import ConfigError

# What makes a broker one of an overlay without cycles: its `Routing`.
#
# Two things stay apart from the core. Links are sessions of numbered frames (`sessions`): a frame
# counts as taken even if what is in it is refused, so `from_neighbour` is this family's own. And
# two refused messages leave effects (`outbox`).

_ON_TIMER = {
    pruning.RELEASE_TIMER: pruning.release,
    pruning.REVIEW_TIMER: pruning.review,
    PACE_TIMER: pace,
    sessions.ACKNOWLEDGE_TIMER: sessions.acknowledge,
}


class TreeRouting(Routing[State, TreeOutbox]):
    """Advertisements flood, subscriptions go towards them, publications come back."""

    codec = CODEC
    reads = read_ids, read_ids

    def begin(self, state: State, now: int, message: object) -> TreeOutbox:
        """Forget statistics that are too old."""
        state.statistics.expire(now)
        return TreeOutbox(state, now)

    # Clients

    def subscribe(
        self, state: State, out: TreeOutbox, session: Session, label: str, wanted: Filter
    ) -> None:
        """Enter a subscription, and make it known towards the advertisements that it meets."""
        id_ = out.give_id()
        session.subscriptions[label] = id_
        routing.subscribe(state, out, client(session.name), m.Subscription(id_, wanted), label)

    def unsubscribe(self, state: State, out: TreeOutbox, session: Session, label: str) -> None:
        """Remove a subscription, with critical distances for those that prune."""
        entry = state.subscriptions[session.subscriptions.pop(label)]
        routing.remove_or_hold(state, out, entry, pruning.critical_of(state, entry))

    def advertise(
        self, state: State, out: TreeOutbox, session: Session, label: str, announced: Filter
    ) -> None:
        id_ = out.give_id()
        session.advertisements[label] = id_
        routing.advertise(state, out, client(session.name), m.Advertisement(id_, announced), label)

    def unadvertise(self, state: State, out: TreeOutbox, session: Session, label: str) -> None:
        routing.on_unadvertisement(
            state, out, client(session.name), session.advertisements.pop(label)
        )

    def publish(
        self, state: State, out: TreeOutbox, session: Session, values: Mapping[str, object]
    ) -> None:
        """Forward what an advertisement of the client allows; raises `NotAdvertisedError`."""
        exact = exact_publication(values)
        for id_ in session.advertisements.values():
            offer = state.advertisements[id_]
            if conforms(exact, offer.filter):
                routing.forward(state, out, offer, m.Publication(out.give_id(), id_, exact))
                return
        raise core.NotAdvertisedError(session.name, values)

    def filters_of(self, state: State, session: Session) -> tuple[Labelled, Labelled]:
        wanted, offered = state.subscriptions, state.advertisements
        return (
            tuple((label, wanted[id_].filter) for label, id_ in session.subscriptions.items()),
            tuple((label, offered[id_].filter) for label, id_ in session.advertisements.items()),
        )

    # Neighbours

    def from_neighbour(self, state: State, out: TreeOutbox, source: Hop, message: m.Frame) -> None:
        """Take a frame; it is numbered before its content is looked at."""
        sessions.on_frame(state, out, source.name, message)

    def is_neighbour(self, state: State, name: str) -> bool:
        return name in state.links

    def on_message(self, state: State, out: TreeOutbox, source: Hop, message: Any) -> None:
        sessions.take(state, out, state.links[source.name], message)

    # The host

    def on_host(self, state: State, out: TreeOutbox, message: Any) -> None:
        """Begin and end sessions; release what was held back under congestion."""
        match message:
            case core.NeighbourUp(name):
                sessions.on_neighbour_up(state, out, name)
            case core.NeighbourDown(name):
                sessions.on_neighbour_down(state, name)
            case core.NeighbourGone(name):
                sessions.on_neighbour_gone(state, out, name)
            case core.Congestion(queue):
                _on_congestion(state, out, queue)
            case core.Restarted():
                _on_restart(state, out)

    def on_timer(self, state: State, out: TreeOutbox, name: str) -> None:
        _ON_TIMER[name](state, out)

    # As plain data

    dump = staticmethod(dumping.dump)
    load = staticmethod(dumping.load)


def _on_restart(state: State, out: TreeOutbox) -> None:
    for link in state.links_in_order():
        link.up = False
    for name in sorted(state.timers):
        out.set_again(name, state.timers[name])


def _on_congestion(state: State, out: TreeOutbox, queue: int) -> None:
    state.queue = queue
    timer = state.timers.get(pruning.RELEASE_TIMER)
    if timer is None or timer.at is None:
        pruning.release(state, out)


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
        cls, data: dict[str, Any], settings: TreeSettings, *, new_index: NewIndex = SharedIndex
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

    def advertisements(self) -> list[Offer]:
        """The advertisement table."""
        return list(self._state.advertisements)

    def subscriptions(self) -> list[Entry]:
        """The subscription table."""
        return list(self._state.subscriptions)

    def links(self) -> list[Link]:
        """What is known of each neighbour, by name."""
        return self._state.links_in_order()
