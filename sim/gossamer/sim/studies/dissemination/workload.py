"""The workload of Sec. VII-A: keywords that are wanted near each other, and documents about them.

For each keyword a broker is drawn, and of the x % of brokers that are nearest to it a few subscribe
to the keyword. A document takes keywords that are subscribed to near some broker. The paper can be
read in two ways about what a subscription is and where documents are published: `Locality`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np

from gossamer.protocol.content.encodings import EncodingError, decoded
from gossamer.protocol.dissemination.cost import Sample, make_sample, match_keywords
from gossamer.protocol.dissemination.graph import Graph, Words, make_workspace
from gossamer.protocol.dissemination.paths import find_paths
from gossamer.protocol.kernel.draws import mix_many
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.storage.workloads import workload_folder
from gossamer.sim.studies.dissemination.topologies import Stream, Topology
from gossamer.sim.study.scenario_format import check_keys

LOCALITIES: Final = {"Localized1": 0.02, "Localized2": 0.15, "Uniform": 1.0}
"""The paper's three data sets, by the share x of the brokers that is a neighbourhood."""

BROKER, KEYWORD = "broker", "keyword"
SUBSCRIPTIONS: Final = (BROKER, KEYWORD)
"""Who has a subscription of its own: each broker, the set of its keywords; or each broker for each
of its keywords ("subscriptions are keywords")."""

ANYWHERE, NEAR = "anywhere", "near"
PUBLISHERS: Final = (ANYWHERE, NEAR)
"""Where a document is published: at any broker, or at one of those whose keywords it takes."""

_KEYWORD_KEY, _DOCUMENT_KEY, _SAMPLE_KEY, _SIZE_KEY = 16, 17, 18, 19
_DRAWS = 1 << 62


@attrs.frozen
class Locality:
    """What the workload is like.

    Attributes:
        neighbourhood: x, the share of the brokers that want a keyword, above 0 up to 1.
        keywords: how many there are.
        subscribers: at most so many brokers subscribe to a keyword.
        documents: how many are published.
        nearby: of so many brokers near each other a document takes its keywords; a guess, the
            paper says "a small subset".
        document_keywords: at most so many it takes; a guess. With 10,000 documents and 1,000
            keywords a keyword cannot be in "around 5 documents", as the paper says it is.
        subscription: one of `SUBSCRIPTIONS`.
        publishers: one of `PUBLISHERS`.
        largest_size: of a document, drawn from 1 to this; beyond the paper, where all are 1.
    """

    neighbourhood: float = LOCALITIES["Localized1"]
    keywords: int = 1000
    subscribers: int = 10
    documents: int = 10_000
    nearby: int = 5
    document_keywords: int = 5
    subscription: str = BROKER
    publishers: str = ANYWHERE
    largest_size: float = 1.0

    def __attrs_post_init__(self) -> None:
        if not 0 < self.neighbourhood <= 1:
            raise ScenarioError(
                None, "neighbourhood", self.neighbourhood, "a share above 0, up to 1"
            )
        for name in ("keywords", "subscribers", "documents", "nearby", "document_keywords"):
            if getattr(self, name) < 1:
                value = getattr(self, name)
                raise ScenarioError(None, name, value, "a whole number of at least 1")
        for name, choices in (("subscription", SUBSCRIPTIONS), ("publishers", PUBLISHERS)):
            if getattr(self, name) not in choices:
                expected = f"one of {', '.join(choices)}"
                raise ScenarioError(None, name, getattr(self, name), expected)
        if not 1 <= self.largest_size < math.inf:
            raise ScenarioError(None, "largest_size", self.largest_size, "a number of at least 1")


@attrs.frozen(eq=False)
class Workload:
    """Subscriptions and documents, both by their keywords.

    Attributes:
        places: the broker of each subscription.
        subscriptions: the keywords of each.
        hosts: the broker that publishes each document.
        documents: the keywords of each.
        sizes: of each document.
    """

    places: tuple[int, ...]
    subscriptions: tuple[tuple[int, ...], ...]
    hosts: tuple[int, ...]
    documents: tuple[tuple[int, ...], ...]
    sizes: tuple[float, ...]

    def sample(self, graph: Graph) -> Sample:
        """All the documents, with the subscriptions that share a keyword with them."""
        matches = match_keywords(self.documents, self.subscriptions)
        return make_sample(graph.nodes, self.hosts, matches, self.places, self.sizes)


def make_workload(graph: Graph, locality: Locality, seed: int) -> Workload:
    """Draw a workload for the brokers of a graph."""
    near = Nearest(graph)
    interests = _interests(graph.nodes, near, locality, Stream(seed, _KEYWORD_KEY))
    subscribed = list(_subscriptions(interests, locality))
    stream = Stream(seed, _DOCUMENT_KEY)
    hosts: list[int] = []
    documents: list[tuple[int, ...]] = []
    while len(documents) < locality.documents:
        root = stream.below(graph.nodes)
        around = near.to(root, locality.nearby)
        known = sorted({keyword for broker in around for keyword in interests[broker]})
        place = stream.below(len(around) if locality.publishers == NEAR else graph.nodes)
        host = around[place] if locality.publishers == NEAR else place
        if known:
            documents.append(tuple(sorted(stream.some(known, locality.document_keywords))))
            hosts.append(host)
    return Workload(
        places=tuple(broker for broker, _ in subscribed),
        subscriptions=tuple(keywords for _, keywords in subscribed),
        hosts=tuple(hosts),
        documents=tuple(documents),
        sizes=tuple(_sizes(locality, Stream(seed, _SIZE_KEY))),
    )


def _subscriptions(
    interests: Sequence[list[int]], locality: Locality
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Broker and keywords of each subscription."""
    for broker, wanted in enumerate(interests):
        if locality.subscription == KEYWORD:
            yield from ((broker, (keyword,)) for keyword in wanted)
        elif wanted:
            yield broker, tuple(wanted)


def _sizes(locality: Locality, stream: Stream) -> Iterator[float]:
    for _ in range(locality.documents):
        yield 1.0 + stream.uniform() * (locality.largest_size - 1.0)


def sampled(sample: Sample, share: float, seed: int) -> Sample:
    """The documents that are sampled where each is with probability ``share`` (Sec. VI).

    Raises:
        ScenarioError: the share is not above 0 and up to 1.
    """
    if not 0 < share <= 1:
        raise ScenarioError(None, "sampling share", share, "a share above 0, up to 1")
    documents = np.arange(sample.documents, dtype=np.int64)
    draws = mix_many(seed, documents, _SAMPLE_KEY)
    return sample.chosen(documents[draws < share * _DRAWS])


def _interests(
    brokers: int, near: Nearest, locality: Locality, stream: Stream
) -> Sequence[list[int]]:
    interests: list[list[int]] = [[] for _ in range(brokers)]
    size = math.ceil(locality.neighbourhood * brokers)
    for keyword in range(locality.keywords):
        around = near.to(stream.below(brokers), size)
        for broker in stream.some(around, locality.subscribers):
            interests[broker].append(keyword)
    return interests


class Nearest:
    """The brokers nearest to any broker, itself first; of equally near ones the lower."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._work = make_workspace(graph)
        self._source: Words = np.zeros(1, np.int64)
        self._known: dict[tuple[int, int], list[int]] = {}

    def to(self, broker: int, count: int) -> list[int]:
        """The ``count`` nearest, or all."""
        if (broker, count) not in self._known:
            self._source[0] = broker
            find_paths(self._graph, self._work, self._source, 1)
            self._known[broker, count] = self._work.order[:count].tolist()
        return self._known[broker, count]


# Subscriptions and documents from the tables of a workload of kind "keywords".


KIND: Final = "keywords"


def read_tables(path: Path, brokers: int) -> Workload:
    """The workload of a folder; a broker subscribes once, to all the keywords that it wants.

    Args:
        path: the folder.
        brokers: how many the topology has.

    Raises:
        ResultsError: it holds no workload.
        ScenarioError: its kind is another, its brokers are not those of the topology, or its
            tables are damaged.
    """
    found = workload_folder(path)
    if found.kind != KIND:
        raise ScenarioError(None, "kind", found.kind, f"{KIND!r}, for dissemination trees")
    wanted = found.columns("subscriptions", ["brokers"])["brokers"].to_pylist()
    documents = found.columns("events", ["host", "keywords", "size"])
    hosts = documents["host"].to_pylist()
    largest = max((broker for row in (hosts, *wanted) for broker in row), default=-1)
    if largest >= brokers:
        expected = f"at most {brokers - 1}, the last broker of the topology"
        raise ScenarioError(None, "broker", largest, expected)
    interests: list[list[int]] = [[] for _ in range(brokers)]
    for keyword, subscribers in enumerate(wanted):
        for broker in subscribers:
            interests[broker].append(keyword)
    places = tuple(broker for broker, keywords in enumerate(interests) if keywords)
    return Workload(
        places=places,
        subscriptions=tuple(tuple(interests[broker]) for broker in places),
        hosts=tuple(hosts),
        documents=tuple(map(tuple, documents["keywords"].to_pylist())),
        sizes=tuple(documents["size"].to_pylist()),
    )


# Subscriptions and documents from a JSON file, by the names of a topology's brokers.
#
#     {"subscriptions": [{"broker": "B1", "keywords": ["news", "sport"]}, ...],
#      "documents": [{"host": "B7", "keywords": ["sport"], "size": 2.5}, ...]}
#
# A document matches the subscriptions that have a keyword in common with it; its size is 1 where
# none is given. Nothing else is accepted. A folder is a workload of kind "keywords", whose brokers
# have numbers (see `gossamer.sim.results.storage.workloads`).


_PARTS: Final = ("subscriptions", "documents")


def read_workload(path: Path, topology: Topology) -> Workload:
    """Read the workload of a topology, from a file or folder.

    Raises:
        ResultsError: the folder holds no workload.
        ScenarioError: the file is missing, not JSON, or names a broker that is not there, a
            keyword that is no text, or a size that is no number above zero.
    """
    try:
        if path.is_dir():
            return read_tables(path, topology.graph.nodes)
        return _Reader(topology).workload(_content(path))
    except ScenarioError as error:
        raise attrs.evolve(error, file=str(path)) from None


def _content(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(decoded(path.read_bytes()))
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ScenarioError(None, "the workload", None, "a readable file", reason) from None
    except EncodingError as error:
        raise ScenarioError(None, "the workload", None, "JSON in UTF-8", error.reason) from None
    except (ValueError, RecursionError) as error:
        found = f"unreadable ({str(error).rstrip('.')})"
        raise ScenarioError(None, "the workload", None, "JSON", found) from None
    if not isinstance(content, dict):
        expected = "an object with subscriptions and documents"
        raise ScenarioError(None, "the workload", content, expected)
    check_keys("", content, _PARTS)
    for part in _PARTS:
        entries = content.get(part)
        if not isinstance(entries, list) or not entries:
            raise ScenarioError(None, part, entries, "a list with an entry at least")
    return content


class _Reader:
    """Turns entries into a workload; keywords get numbers in the order in which they come."""

    def __init__(self, topology: Topology) -> None:
        self._brokers = {name: number for number, name in enumerate(topology.names)}
        self._keywords: dict[str, int] = {}

    def workload(self, content: Mapping[str, Any]) -> Workload:
        subscriptions = [
            self._entry(entry, f"subscription {place}", ("broker", "keywords"), "broker")
            for place, entry in enumerate(content["subscriptions"], start=1)
        ]
        documents = [
            self._entry(entry, f"document {place}", ("host", "keywords", "size"), "host")
            for place, entry in enumerate(content["documents"], start=1)
        ]
        sizes = [
            _size(entry, f"size of document {place}")
            for place, entry in enumerate(content["documents"], start=1)
        ]
        return Workload(
            places=tuple(broker for broker, _ in subscriptions),
            subscriptions=tuple(keywords for _, keywords in subscriptions),
            hosts=tuple(broker for broker, _ in documents),
            documents=tuple(keywords for _, keywords in documents),
            sizes=tuple(sizes),
        )

    def _entry(
        self, entry: object, what: str, keys: Sequence[str], broker: str
    ) -> tuple[int, tuple[int, ...]]:
        if not isinstance(entry, dict):
            raise ScenarioError(None, what, entry, f"an object with {' and '.join(keys[:2])}")
        check_keys(f"{what}, ", entry, keys)
        name = entry.get(broker)
        if not isinstance(name, str) or name not in self._brokers:
            expected = f"one of the {len(self._brokers)} brokers of the topology"
            raise ScenarioError(None, f"{broker} of {what}", name, expected)
        keywords = entry.get("keywords")
        if not isinstance(keywords, list):
            raise ScenarioError(None, f"keywords of {what}", keywords, "a list of texts")
        return self._brokers[name], tuple(self._numbers(keywords, what))

    def _numbers(self, keywords: Iterable[object], what: str) -> Iterable[int]:
        for keyword in keywords:
            if not isinstance(keyword, str):
                raise ScenarioError(None, f"keyword of {what}", keyword, "a text")
            yield self._keywords.setdefault(keyword, len(self._keywords))


def _size(entry: Mapping[str, Any], what: str) -> float:
    size = entry.get("size", 1)
    given = isinstance(size, int | float) and not isinstance(size, bool)
    if not (given and math.isfinite(size) and size > 0):
        raise ScenarioError(None, what, size, "a finite number above 0")
    return float(size)
