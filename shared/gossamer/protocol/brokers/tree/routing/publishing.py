"""Publications on the reverse paths of the subscriptions that match them."""

from __future__ import annotations

from typing import Final

from gossamer.protocol.brokers.core.identifiers import Hop
from gossamer.protocol.brokers.tree.memory.advertisements import Offer
from gossamer.protocol.brokers.tree.memory.messages import Publication
from gossamer.protocol.brokers.tree.memory.outbox import TreeOutbox
from gossamer.protocol.brokers.tree.memory.settings import Pruning
from gossamer.protocol.brokers.tree.memory.state import State
from gossamer.protocol.brokers.tree.memory.statistics import Record
from gossamer.protocol.brokers.tree.memory.subscriptions import Entry

_BY_STATISTICS: Final = (Pruning.SELECTIVE, Pruning.INCREMENTAL)


def on_publication(state: State, out: TreeOutbox, hop: Hop, publication: Publication) -> None:
    """Forward a publication of a neighbour; dropped if it is stale or came before.

    Both are plain to see: along a tree, numbers of publications from one broker only grow, and none
    comes before its advertisement or after the end of that.
    """
    known = state.advertisements.get(publication.advertisement)
    origin, number = publication.id
    if known is None or known.hop != hop:
        state.counters.stale += 1
    elif number <= state.last_publications.get(origin, -1):
        state.counters.duplicates += 1
    else:
        state.last_publications[origin] = number
        forward(state, out, known, publication)


def forward(state: State, out: TreeOutbox, offer: Offer, publication: Publication) -> None:
    """Send a publication to every last hop of a subscription that matches, but not back.

    And to those of whom it is not known yet whether they have any.
    """
    matched = state.subscriptions.matched(publication.values, offer.hop)
    matching = matched.remote + len(matched.local)
    if not offer.hop.is_client:
        publication = with_header(publication, matching)
        _count_arrivals(state, offer.hop, publication, matching > 0)
        _record(state, out.now, publication, matched.local)
    neighbours = matched.neighbours
    if offer.unsettled:
        neighbours = sorted(offer.unsettled.union(neighbours))
    for name in neighbours:
        out.send_on(state.links[name], publication)
    _deliver(out, publication, matched.local)


def with_header(publication: Publication, matching: int) -> Publication:
    """The publication with *distance* and *count* as this broker changes them.

    "If the publication matches more than one subscription, count is incremented by one and distance
    reset to zero. Otherwise, count is left unchanged, and distance is incremented by one"
    (selective paper, Sec. IV-A); the publisher host broker leaves both at zero.
    """
    distance, count = publication.distance + 1, publication.count
    if matching > 1:
        distance, count = 0, count + 1
    return Publication(
        publication.id, publication.advertisement, publication.values, distance, count
    )


def _count_arrivals(state: State, hop: Hop, publication: Publication, wanted: bool) -> None:
    state.counters.false_positives += not wanted
    for aggregate in state.links[hop.name].sent.aggregates_matching(publication.values):
        aggregate.arrivals += 1
        aggregate.false_positives += not wanted


def _record(state: State, now: int, publication: Publication, local: list[Entry]) -> None:
    """Statistics of the subscriber host broker, if pruning asks for them; brokers on the way keep
    none (Sec. IV-A)."""
    if state.settings.rules.pruning not in _BY_STATISTICS:
        return
    row = Record(now, publication.advertisement, publication.distance, publication.count)
    for entry in local:
        state.statistics.record(entry.id, row)


def _deliver(out: TreeOutbox, publication: Publication, entries: list[Entry]) -> None:
    labels: dict[str, list[str]] = {}
    for entry in entries:
        labels.setdefault(entry.hop.name, []).append(entry.label)
    for name in sorted(labels):
        out.deliver(name, publication, tuple(labels[name]))
