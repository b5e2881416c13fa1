"""A tree broker's memory as plain data, and back: tables, links and statistics.

What follows from the rest (indexes, and where a subscription's advertisements are) is worked out
again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from gossamer.protocol.brokers.core.identifiers import Hop, Id
from gossamer.protocol.brokers.core.plain import plain_values, read_values
from gossamer.protocol.brokers.tree.memory.advertisements import Offer
from gossamer.protocol.brokers.tree.memory.link import Link, Retained
from gossamer.protocol.brokers.tree.memory.messages import CriticalDistance, Publication
from gossamer.protocol.brokers.tree.memory.sent import Sent
from gossamer.protocol.brokers.tree.memory.settings import TreeSettings
from gossamer.protocol.brokers.tree.memory.state import State
from gossamer.protocol.brokers.tree.memory.statistics import Record
from gossamer.protocol.brokers.tree.memory.subscriptions import Entry, SubscriptionTable
from gossamer.protocol.content import filters
from gossamer.protocol.content.filters import Filter

Read = Callable[[str], Filter]
Write = Callable[[Filter], str]
"""Make a filter of its text, and the other way round."""


def dump(state: State) -> dict[str, object]:
    """What a tree broker remembers besides what all brokers do, as plain data."""
    write = cache(filters.to_text)  # most filters are in several tables
    return {
        "next_order": state.subscriptions.next_order,
        "queue": state.queue,
        "last_publications": dict(state.last_publications),
        "advertisements": [
            [*_entry_data(one, write), sorted(one.unsettled)] for one in state.advertisements
        ],
        "subscriptions": [
            [*_entry_data(one, write), one.order, one.held] for one in state.subscriptions
        ],
        "links": [_link_data(link, write) for link in state.links_in_order()],
        "held": [
            [list(id_), [[list(one.advertisement), list(one.distances)] for one in critical]]
            for id_, critical in state.held.items()
        ],
        "statistics": [
            [list(id_), row.time, list(row.advertisement), row.distance, row.count]
            for id_, row in state.statistics.rows()
        ],
    }


def _entry_data(one: Offer | Entry, write: Write) -> list[object]:
    return [list(one.id), write(one.filter), list(one.hop), one.label]


def load(state: State, data: Mapping[str, Any]) -> None:
    """Take up what `dump` made plain data of, in a state with empty tables."""
    read = cache(filters.parse_written)  # most filters are in several tables
    state.queue = data["queue"]
    state.last_publications = dict(data["last_publications"])
    for link_data in data["links"]:
        state.marks.assign(link_data["name"])
        state.links[link_data["name"]] = _link(link_data, state.subscriptions, state.settings, read)
    # Dumps of earlier versions do not say which neighbours are unsettled.
    for id_, text, hop, label, *unsettled in data["advertisements"]:
        offer = state.advertisements.add(Id(*id_), read(text), Hop(*hop), label)
        offer.unsettled.update(*unsettled)
    _load_subscriptions(state, data, read)
    state.held = {
        Id(*id_): tuple(CriticalDistance(Id(*one), tuple(far)) for one, far in critical)
        for id_, critical in data["held"]
    }
    for id_, time, advertisement, distance, count in data["statistics"]:
        state.statistics.record(Id(*id_), Record(time, Id(*advertisement), distance, count))


def _load_subscriptions(state: State, data: Mapping[str, Any], read: Read) -> None:
    for id_, text, hop, label, order, held in data["subscriptions"]:
        entry = state.subscriptions.add(Id(*id_), read(text), Hop(*hop), label)
        entry.order, entry.held = order, held
        directions = state.advertisements.directions(entry.filter)
        entry.towards = {name for name in directions if name != entry.hop.name}
        if entry.hop.is_client:
            entry.towards = set(directions)
    state.subscriptions.next_order = data["next_order"]


def _link_data(link: Link, write: Write) -> dict[str, object]:
    return {
        "name": link.name,
        "up": link.up,
        "out": [link.out_session, link.out_number],
        "in": [link.in_session, link.in_number],
        "unacknowledged": link.unacknowledged,
        "batch": None if link.batch is None else list(link.batch),
        "window": link.window,
        "sent": [[list(id_), write(link.sent.filter_of(id_))] for id_ in link.sent],
        "quenched": [
            [list(covered), list(id_)]
            for id_ in link.sent
            for covered in link.sent.quenched_by(id_)
        ],
        "aggregates": [
            [list(one.id), one.arrivals, one.false_positives]
            for one in link.sent.aggregates.values()
        ],
        "retained": [
            [_publication_data(one.publication), write(one.advertised), one.session, one.number]
            for one in link.retained
        ],
    }


def _link(
    data: dict[str, Any], table: SubscriptionTable, settings: TreeSettings, read: Read
) -> Link:
    sent = Sent(data["name"], table, settings.rules.quench)
    for id_, text in data["sent"]:
        sent.add(Id(*id_), read(text))
    for covered, id_ in data["quenched"]:
        sent.hang(Id(*covered), Id(*id_))
    for id_, arrivals, false_positives in data["aggregates"]:
        sent.preserve(Id(*id_))
        aggregate = sent.aggregates[Id(*id_)]
        aggregate.arrivals, aggregate.false_positives = arrivals, false_positives
    retained = (
        Retained(_publication(publication), read(text), session, number)
        for publication, text, session, number in data["retained"]
    )
    # Dumps of earlier versions have neither of the last two.
    batch, window = data.get("batch"), data.get("window", 0)
    (out_session, out_number), (in_session, in_number) = data["out"], data["in"]
    return Link(
        name=data["name"],
        sent=sent,
        up=data["up"],
        out_session=out_session,
        out_number=out_number,
        in_session=in_session,
        in_number=in_number,
        retained=deque(retained),
        unacknowledged=data["unacknowledged"],
        batch=None if batch is None else tuple(batch),
        window=window,
    )


def _publication_data(one: Publication) -> list[object]:
    values = plain_values(one.values)
    return [list(one.id), list(one.advertisement), values, one.distance, one.count]


def _publication(data: list[Any]) -> Publication:
    id_, advertisement, values, distance, count = data
    found = read_values(values, "values")
    return Publication(Id(*id_), Id(*advertisement), found, distance, count)
