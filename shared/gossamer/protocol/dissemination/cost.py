"""The cost model (Sec. III-B): what documents cost on the trees that carry them.

Equation 1 counts, for every document and tree, the links of the smallest part of the tree that
joins the document's host and the hosts of the tree's subscriptions that match. That part is found
by climbing from these hosts, so it takes no more time than it has links.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from gossamer.protocol.dissemination.graph import (
    Graph,
    Reals,
    TreesError,
    Words,
    Workspace,
    no_broker,
    read_weights,
)
from gossamer.protocol.dissemination.spanning import Trees, new_mark
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.kernel.struct import Struct

# A sample of published documents and the subscriptions they match (Sec. III-A).
#
# How documents match is none of the trees' business: keywords, filters or anything else gives for
# each document the subscriptions that it matches.


class Sample(Struct):
    """D documents and S subscriptions, both at brokers of one graph.

    Attributes:
        hosts: int64[D], the broker where each document is published, host(d).
        sizes: float64[D], what each costs on a link of cost 1, w_j; above zero.
        first: int64[D + 1], where a document's subscriptions begin in ``matched``.
        matched: int64[...], subscriptions, rising within a document.
        places: int64[S], the broker of each subscription, host(s).
    """

    hosts: Words
    sizes: Reals
    first: Words
    matched: Words
    places: Words

    @property
    def documents(self) -> int:
        """How many documents there are."""
        return len(self.hosts)

    @property
    def subscriptions(self) -> int:
        """How many subscriptions there are."""
        return len(self.places)

    def matches(self, document: int) -> Words:
        """The subscriptions that a document matches."""
        return self.matched[self.first[document] : self.first[document + 1]]

    def chosen(self, documents: Words) -> Sample:
        """A sample of some of these documents."""
        return _assemble(
            self.hosts[documents],
            self.sizes[documents],
            [self.matches(document) for document in documents.tolist()],
            self.places,
        )


def make_sample(
    nodes: int,
    hosts: npt.ArrayLike,
    matches: Sequence[Iterable[int]],
    places: npt.ArrayLike,
    sizes: npt.ArrayLike = 1.0,
) -> Sample:
    """Documents and subscriptions at the brokers of a graph.

    Args:
        nodes: how many brokers there are.
        hosts: broker of each document.
        matches: the subscriptions that each document matches, in any order.
        places: broker of each subscription.
        sizes: size of each document, or one for all; any unit that costs of links go by.

    Raises:
        TreesError: a document or subscription is at a broker that is not there, a document matches
            a subscription that is not there, or a size is not a finite number above zero.
        ValueError: documents and what they match are not equally many.
    """
    where = _read_brokers(hosts, nodes, "document")
    subscribed = _read_brokers(places, nodes, "subscription")
    if len(matches) != len(where):
        raise ValueError(f"matches are given for {len(matches)} documents, expected {len(where)}")
    found = [np.unique(np.array(list(one), np.int64)) for one in matches]
    for document, one in enumerate(found):
        wrong = one[(one < 0) | (one >= len(subscribed))]
        if len(wrong):
            raise TreesError(
                f"document {document} matches subscription {int(wrong[0])}, "
                f"expected one from 0 to {len(subscribed) - 1}"
            )
    weights = read_weights(sizes, len(where), "size of documents", "size of document {}".format)
    return _assemble(where, weights, found, subscribed)


def match_keywords(
    documents: Sequence[Iterable[int]], subscriptions: Sequence[Iterable[int]]
) -> list[Words]:
    """The subscriptions that have a keyword in common with each document (Sec. VII-A)."""
    holders: dict[int, list[int]] = {}
    for subscription, keywords in enumerate(subscriptions):
        for keyword in keywords:
            holders.setdefault(int(keyword), []).append(subscription)
    found = []
    for keywords in documents:
        lists = [holders.get(int(keyword), []) for keyword in keywords]
        found.append(np.unique(np.array([one for held in lists for one in held], np.int64)))
    return found


def _assemble(hosts: Words, sizes: Reals, matches: Sequence[Words], places: Words) -> Sample:
    first = np.zeros(len(hosts) + 1, np.int64)
    np.cumsum([len(one) for one in matches], out=first[1:])
    matched = np.concatenate([np.zeros(0, np.int64), *matches])
    return Sample(hosts=hosts, sizes=sizes, first=first, matched=matched, places=places)


def _read_brokers(brokers: npt.ArrayLike, nodes: int, what: str) -> Words:
    read = np.array(brokers, np.int64).reshape(-1)
    wrong = np.flatnonzero((read < 0) | (read >= nodes))
    if len(wrong):
        raise no_broker(f"host of {what} {wrong[0]}", int(read[wrong[0]]), nodes)
    return read


class Bill(Struct):
    """What each of D documents cost, and what they load m links with.

    Attributes:
        cost: float64[D], of a document on all trees, its size included (Eq. 1).
        trees: int64[D], over how many trees it went.
        visits: int64[D], how often it reached a broker other than its own.
        duplicates: int64[D], how many visits were to a broker that had it already (Fig. 7).
        loads: float64[m], the sizes of all documents that crossed a link, once for each tree.
    """

    cost: Reals
    trees: Words
    visits: Words
    duplicates: Words
    loads: Reals

    @property
    def total(self) -> float:
        """cost(R): of all documents."""
        return float(self.cost.sum())


class Deliveries(Struct):
    """Which brokers each of D documents goes to, on which tree.

    Attributes:
        first: int64[D + 1], where a document's deliveries begin in ``tree`` and ``broker``.
        tree: int64[...], trees, those of one document in rising order.
        broker: int64[...], the broker to reach; the document's own and repetitions cost nothing.
    """

    first: Words
    tree: Words
    broker: Words


def make_bill(documents: int, links: int) -> Bill:
    """A bill with nothing on it."""
    return Bill(
        cost=np.zeros(documents),
        trees=np.zeros(documents, np.int64),
        visits=np.zeros(documents, np.int64),
        duplicates=np.zeros(documents, np.int64),
        loads=np.zeros(links),
    )


@inline_rule
def visit(work: Workspace, node: int, mark: int, reached: int) -> int:
    """Note that a document comes to ``node`` on one more tree; 1 if it had been there, else 0."""
    work.marks[node] = mark
    if work.seen[node] == reached:
        return 1
    work.seen[node] = reached
    return 0


@rule
def climb(
    graph: Graph,
    trees: Trees,
    t: int,
    work: Workspace,
    node: int,
    top: int,
    mark: int,
    reached: int,
    links: int,
) -> tuple[int, float, int, int]:
    """Extend the marked part of tree ``t``, whose highest broker is ``top``, to ``node``.

    The part's links are ``work.tree[:links]``. Returns the new top, the cost of the links added,
    how many links the part has now, and how many of those added lead to brokers that bore
    ``reached`` already.
    """
    cost, again = 0.0, 0
    while work.marks[node] != mark:
        if trees.depth[t, node] > trees.depth[t, top]:
            again += visit(work, node, mark, reached)
            link = trees.link[t, node]
            node = trees.above[t, node]
        else:
            link = trees.link[t, top]
            top = trees.above[t, top]
            again += visit(work, top, mark, reached)
        cost += graph.costs[link]
        work.tree[links] = link
        links += 1
    return top, cost, links, again


@rule
def cost_on_tree(graph: Graph, trees: Trees, t: int, work: Workspace, count: int) -> float:
    """Cost of the least part of tree ``t`` that joins ``work.terminals[:count]``."""
    mark = new_mark(work)
    top = work.terminals[0]
    work.marks[top] = mark
    cost, links = 0.0, 0
    for i in range(1, count):
        node = work.terminals[i]
        top, more, links, _ = climb(graph, trees, t, work, node, top, mark, mark, links)
        cost += more
    return cost


@rule
def write_bill(
    graph: Graph, trees: Trees, work: Workspace, sample: Sample, deliveries: Deliveries, bill: Bill
) -> None:
    """Write what every document costs on the trees that carry it; loads are added up."""
    for document in range(sample.hosts.shape[0]):
        host = sample.hosts[document]
        reached = new_mark(work)
        work.seen[host] = reached
        cost, used, visits, duplicates = 0.0, 0, 0, 0
        at, end = deliveries.first[document], deliveries.first[document + 1]
        while at < end:
            tree = deliveries.tree[at]
            mark = new_mark(work)
            work.marks[host] = mark
            top, links = host, 0
            while at < end and deliveries.tree[at] == tree:
                broker = deliveries.broker[at]
                top, more, links, again = climb(
                    graph, trees, tree, work, broker, top, mark, reached, links
                )
                cost += more
                duplicates += again
                at += 1
            for i in range(links):
                bill.loads[work.tree[i]] += sample.sizes[document]
            visits += links
            used += 1
        bill.cost[document] = cost * sample.sizes[document]
        bill.trees[document] = used
        bill.visits[document] = visits
        bill.duplicates[document] = duplicates


def deliver_by_group(sample: Sample, groups: Words) -> Deliveries:
    """Each document to the subscriptions ``s`` that it matches, on trees ``groups[s]``."""
    documents = np.repeat(np.arange(sample.documents), np.diff(sample.first))
    trees = groups[sample.matched]
    order = np.lexsort((trees, documents))
    return Deliveries(
        first=sample.first, tree=trees[order], broker=sample.places[sample.matched[order]]
    )


def deliveries_on(deliveries: Deliveries, tree: int) -> Deliveries:
    """Of these deliveries the ones on one tree."""
    chosen = deliveries.tree == tree
    counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(chosen)])
    return Deliveries(
        first=counts[deliveries.first],
        tree=deliveries.tree[chosen],
        broker=deliveries.broker[chosen],
    )


def price_deliveries(
    graph: Graph, work: Workspace, trees: Trees, sample: Sample, deliveries: Deliveries
) -> Bill:
    """What the documents cost where they go as ``deliveries`` say."""
    bill = make_bill(sample.documents, graph.links)
    write_bill(graph, trees, work, sample, deliveries, bill)
    return bill


def price(graph: Graph, work: Workspace, trees: Trees, groups: Words, sample: Sample) -> Bill:
    """What the documents cost where tree ``groups[s]`` serves subscription ``s`` (Eq. 1)."""
    return price_deliveries(graph, work, trees, sample, deliver_by_group(sample, groups))
