"""The cost model (Sec. III-B): what documents cost on the trees that carry them.

Equation 1 counts, for every document and tree, the links of the smallest part of the tree that
joins the document's host and the hosts of the tree's subscriptions that match. That part is found
by climbing from these hosts, so it takes no more time than it has links.
"""

from __future__ import annotations

import numpy as np

from gossamer.protocol.dissemination.graphs.graph import Graph, Reals, Words, Workspace
from gossamer.protocol.dissemination.graphs.spanning import Trees, new_mark
from gossamer.protocol.dissemination.sample import Sample
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.kernel.struct import Struct


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
