"""The cost model (Sec. III-B): what documents cost on the trees that carry them.

Equation 1 counts, for every document and tree, the links of the smallest part of the tree that
joins the document's host and the hosts of the tree's subscriptions that match. That part is found
by climbing from these hosts, so it takes no more time than it has links.
"""

from __future__ import annotations

import numpy as np

from gossamer.protocol.rules import inline_rule, rule
from gossamer.protocol.struct import Struct
from gossamer.protocol.trees.graph import Graph, Reals, Words, Workspace
from gossamer.protocol.trees.sample import Sample
from gossamer.protocol.trees.spanning import Trees, new_mark


class Bill(Struct):
    """What each of D documents cost.

    Attributes:
        cost: float64[D], of a document on all trees, its size included (Eq. 1).
        trees: int64[D], over how many trees it went.
        visits: int64[D], how often it reached a broker other than its own.
        duplicates: int64[D], how many visits were to a broker that had it already (Fig. 7).
    """

    cost: Reals
    trees: Words
    visits: Words
    duplicates: Words

    @property
    def total(self) -> float:
        """cost(R): of all documents."""
        return float(self.cost.sum())


def make_bill(documents: int) -> Bill:
    """A bill with nothing on it."""
    return Bill(
        cost=np.zeros(documents),
        trees=np.zeros(documents, np.int64),
        visits=np.zeros(documents, np.int64),
        duplicates=np.zeros(documents, np.int64),
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
) -> tuple[int, float, int, int]:
    """Extend the marked part of tree ``t``, whose highest broker is ``top``, to ``node``.

    Returns the new top, the cost of the links added, how many they are, and how many lead to
    brokers that bore ``reached`` already.
    """
    cost, links, again = 0.0, 0, 0
    while work.marks[node] != mark:
        if trees.depth[t, node] > trees.depth[t, top]:
            again += visit(work, node, mark, reached)
            cost += graph.costs[trees.link[t, node]]
            node = trees.above[t, node]
        else:
            cost += graph.costs[trees.link[t, top]]
            top = trees.above[t, top]
            again += visit(work, top, mark, reached)
        links += 1
    return top, cost, links, again


@rule
def cost_on_tree(graph: Graph, trees: Trees, t: int, work: Workspace, count: int) -> float:
    """Cost of the least part of tree ``t`` that joins ``work.terminals[:count]``."""
    mark = new_mark(work)
    top = work.terminals[0]
    work.marks[top] = mark
    cost = 0.0
    for i in range(1, count):
        top, more, _, _ = climb(graph, trees, t, work, work.terminals[i], top, mark, mark)
        cost += more
    return cost


@rule
def sort_by_group(sample: Sample, groups: Words, document: int, sorted_: Words) -> int:
    """Write the document's subscriptions to ``sorted_``, group by group; returns how many."""
    count = 0
    for i in range(sample.first[document], sample.first[document + 1]):
        subscription = sample.matched[i]
        at = count
        while at > 0 and groups[sorted_[at - 1]] > groups[subscription]:
            sorted_[at] = sorted_[at - 1]
            at -= 1
        sorted_[at] = subscription
        count += 1
    return count


@rule
def write_bill(
    graph: Graph,
    trees: Trees,
    work: Workspace,
    sample: Sample,
    groups: Words,
    sorted_: Words,
    bill: Bill,
) -> None:
    """Write what every document costs where tree ``g`` serves group ``g``.

    Args:
        groups: int64[S], the group of each subscription.
        sorted_: int64[S], scratch.
    """
    for document in range(sample.hosts.shape[0]):
        matched = sort_by_group(sample, groups, document, sorted_)
        host = sample.hosts[document]
        reached = new_mark(work)
        work.seen[host] = reached
        cost, used, visits, duplicates = 0.0, 0, 0, 0
        at = 0
        while at < matched:
            group = groups[sorted_[at]]
            mark = new_mark(work)
            work.marks[host] = mark
            top = host
            while at < matched and groups[sorted_[at]] == group:
                place = sample.places[sorted_[at]]
                top, more, links, again = climb(
                    graph, trees, group, work, place, top, mark, reached
                )
                cost += more
                visits += links
                duplicates += again
                at += 1
            used += 1
        bill.cost[document] = cost * sample.sizes[document]
        bill.trees[document] = used
        bill.visits[document] = visits
        bill.duplicates[document] = duplicates


def price(graph: Graph, work: Workspace, trees: Trees, groups: Words, sample: Sample) -> Bill:
    """What the documents cost where tree ``groups[s]`` serves subscription ``s`` (Eq. 1)."""
    bill = make_bill(sample.documents)
    scratch = np.zeros(max(sample.subscriptions, 1), np.int64)
    write_bill(graph, trees, work, sample, groups, scratch, bill)
    return bill
