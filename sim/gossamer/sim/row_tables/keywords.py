"""Keywords wanted near each other, and documents about them (see `keyword_rows`)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import attrs
import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from gossamer.protocol.dissemination.graph import Graph
from gossamer.sim.errors import ScenarioError
from gossamer.sim.row_tables.table import Field, RowTable, list_array
from gossamer.sim.studies.dissemination.workload import Locality, Workload
from gossamer.sim.study.draws import Floats, Int64s, choices, distinct_choices, uniform

# The keyword workload of Sec. VII-A with every row drawn for itself.
#
# It is that of `gossamer.sim.studies.dissemination.workload`, whose documents are drawn one after
# another, with other draws: here a keyword's subscribers, and a document once these are known,
# depend on the seed and their own number alone.


# The seed's streams.
_ROOTS, _SUBSCRIBERS, _PLACES, _HOSTS, _KEYWORDS, _SIZES = 301, 302, 303, 304, 305, 306
# A table of the distances between all brokers is kept.
MOST_BROKERS: Final = 5_000
# Brokers whose distances to all others are held at a time.
_AT_A_TIME: Final = 256


@attrs.frozen(eq=False)
class KeywordRows:
    """Subscriptions by keyword, documents by number.

    Attributes:
        locality: what the workload is like.
        seed: of all draws.
        near: int32[brokers, size], those nearest to each, itself first, of equally near ones the
            lower; as many as a neighbourhood or a document needs.
        known: int64[brokers, most], keywords that are wanted near each, ascending, then -1.
    """

    locality: Locality
    seed: int
    near: Int64s
    known: Int64s

    @property
    def brokers(self) -> int:
        """How many there are."""
        return len(self.near)

    def subscribers_of(self, keywords: Int64s) -> Int64s:
        """The brokers that want these keywords: int64[keywords, most], then -1."""
        return _subscribers(self.near, self.locality, self.seed, keywords)

    def roots_of(self, keywords: Int64s) -> Int64s:
        """The broker around which each of these keywords is wanted."""
        return choices(self.seed, _ROOTS, keywords, 0, self.brokers)

    def hosts_of(self, documents: Int64s) -> Int64s:
        """The broker that publishes each of these documents."""
        return choices(self.seed, _HOSTS, documents, 0, self.brokers)

    def sizes_of(self, documents: Int64s) -> Floats:
        """The size of each of these documents, from 1 to the largest."""
        spread = self.locality.largest_size - 1.0
        return 1.0 + spread * uniform(self.seed, _SIZES, documents, 0)

    def keywords_of(self, documents: Int64s) -> Int64s:
        """The keywords of these documents, ascending: int64[documents, most], then -1."""
        numbers = (self.known >= 0).sum(axis=1)
        places = np.full(len(documents), -1, np.int64)
        short = np.arange(len(documents))
        column = 0
        while len(short):
            places[short] = choices(self.seed, _PLACES, documents[short], column, self.brokers)
            short = short[numbers[places[short]] == 0]
            column += 1
        options = numbers[places]
        wanted = np.minimum(options, self.locality.document_keywords)
        chosen = distinct_choices(self.seed, _KEYWORDS, documents, wanted, options)
        found = np.where(chosen >= 0, self.known[places[:, None], chosen], np.iinfo(np.int64).max)
        found.sort(axis=1)
        return np.where(found == np.iinfo(np.int64).max, -1, found)

    def workload(self) -> Workload:
        """All of it, as the simulator takes it."""
        keywords = np.arange(self.locality.keywords, dtype=np.int64)
        interests: list[list[int]] = [[] for _ in range(self.brokers)]
        for keyword, brokers in enumerate(self.subscribers_of(keywords).tolist()):
            for broker in brokers:
                if broker >= 0:
                    interests[broker].append(keyword)
        places = tuple(broker for broker, wanted in enumerate(interests) if wanted)
        documents = np.arange(self.locality.documents, dtype=np.int64)
        return Workload(
            places=places,
            subscriptions=tuple(tuple(interests[broker]) for broker in places),
            hosts=tuple(self.hosts_of(documents).tolist()),
            documents=tuple(
                tuple(keyword for keyword in row if keyword >= 0)
                for row in self.keywords_of(documents).tolist()
            ),
            sizes=tuple(self.sizes_of(documents).tolist()),
        )


def make_keyword_rows(graph: Graph, locality: Locality, seed: int) -> KeywordRows:
    """The workload for the brokers of a graph.

    Raises:
        ScenarioError: there are more brokers than `MOST_BROKERS`.
    """
    if graph.nodes > MOST_BROKERS:
        raise ScenarioError(None, "brokers", graph.nodes, f"at most {MOST_BROKERS}")
    size = max(math.ceil(locality.neighbourhood * graph.nodes), locality.nearby)
    near = _nearest(graph, min(size, graph.nodes))
    keywords = np.arange(locality.keywords, dtype=np.int64)
    subscribers = _subscribers(near, locality, seed, keywords)
    return KeywordRows(locality, seed, near, _known(near, locality, subscribers))


def _nearest(graph: Graph, size: int) -> Int64s:
    """int64[brokers, size]: the brokers nearest to each by the cost of the way there."""
    shape = (graph.nodes, graph.nodes)
    costs = csr_array((graph.costs[graph.link], graph.to, graph.first), shape=shape)
    near = np.empty((graph.nodes, size), np.int64)
    for first in range(0, graph.nodes, _AT_A_TIME):
        some = np.arange(first, min(first + _AT_A_TIME, graph.nodes))
        order = np.argsort(dijkstra(costs, indices=some), axis=1, kind="stable")
        near[some] = order[:, :size]
    return near


def _subscribers(near: Int64s, locality: Locality, seed: int, keywords: Int64s) -> Int64s:
    roots = choices(seed, _ROOTS, keywords, 0, len(near))
    size = math.ceil(locality.neighbourhood * len(near))
    numbers = np.full(len(keywords), min(locality.subscribers, size))
    options = np.full(len(keywords), size)
    chosen = distinct_choices(seed, _SUBSCRIBERS, keywords, numbers, options)
    return near[roots[:, None], chosen]


def _known(near: Int64s, locality: Locality, subscribers: Int64s) -> Int64s:
    """The keywords wanted by any of the brokers that are near each broker."""
    brokers, keywords = len(near), len(subscribers)
    wanted = np.zeros((brokers, keywords), np.bool_)
    wanted[subscribers, np.arange(keywords)[:, None]] = True
    around = near[:, : locality.nearby]
    rows = [np.flatnonzero(wanted[around[broker]].any(axis=0)) for broker in range(brokers)]
    known = np.full((brokers, max(map(len, rows))), -1, np.int64)
    for broker, row in enumerate(rows):
        known[broker, : len(row)] = row
    return known


_NUMBERS = pa.list_(pa.int32())


@attrs.frozen(kw_only=True)
class KeywordTables:
    """Subscriptions by keyword and documents by number.

    Attributes:
        spec: who wants what where.
    """

    spec: KeywordRows

    def tables(self) -> tuple[RowTable, ...]:
        """Keywords with the brokers that want them, then documents."""
        return (
            RowTable(
                name="subscriptions",
                units=self.spec.locality.keywords,
                fields=(
                    Field("keyword", pa.int64(), "row number"),
                    Field("root", pa.int32(), "broker around which it is wanted"),
                    Field("brokers", _NUMBERS, "brokers that want it, in order of draw"),
                ),
                make=self.subscription_columns,
            ),
            RowTable(
                name="events",
                units=self.spec.locality.documents,
                fields=(
                    Field("document", pa.int64(), "row number"),
                    Field("host", pa.int32(), "broker that publishes it"),
                    Field("keywords", _NUMBERS, "its keywords, ascending"),
                    Field("size", pa.float64(), "of the document, 1 or more"),
                ),
                make=self.event_columns,
            ),
        )

    def subscription_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these keywords."""
        return {
            "keyword": rows,
            "root": self.spec.roots_of(rows).astype(np.int32),
            "brokers": _lists(self.spec.subscribers_of(rows)),
        }

    def event_columns(self, rows: Int64s) -> Mapping[str, Any]:
        """The columns of these documents."""
        return {
            "document": rows,
            "host": self.spec.hosts_of(rows).astype(np.int32),
            "keywords": _lists(self.spec.keywords_of(rows)),
            "size": self.spec.sizes_of(rows),
        }


def _lists(padded: Int64s) -> pa.ListArray:
    there = padded >= 0
    return list_array(there.sum(axis=1), padded[there].astype(np.int32))
