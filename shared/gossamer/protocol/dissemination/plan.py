"""What planning trees for a sample works on, and COMPUTETREE (Algorithm 1)."""

from __future__ import annotations

from typing import Final

import numpy as np

from gossamer.protocol.dissemination.cost import Sample, cost_on_tree
from gossamer.protocol.dissemination.graph import Graph, Reals, Words, Workspace, make_workspace
from gossamer.protocol.dissemination.path_tables import PathTable, join_by_table, make_path_table
from gossamer.protocol.dissemination.spanning import (
    Trees,
    complete_tree,
    hang_up,
    hang_up_forest,
    make_trees,
    new_mark,
    write_shortest_path_tree,
)
from gossamer.protocol.dissemination.stars import (
    WIDTH,
    Stars,
    load_link,
    make_stars,
    unload_links,
    write_low_stretch_forest,
)
from gossamer.protocol.kernel.rules import inline_rule, rule
from gossamer.protocol.kernel.struct import Struct

WORD_BITS: Final = 62


class Plan(Struct):
    """S subscriptions in groups, D documents, and room for trees.

    A group is named by one of its subscriptions, the lowest.

    Attributes:
        graph, sample, work, stars, table: see there.
        groups: int64[S], the group of each subscription.
        held: int64[S, words], bit sets of the documents that a group, by its name, matches.
        documents: int64[D], scratch: those of the group that is looked at.
        width: float64[1], how wide cones of low-stretch trees may grow.
        trees: one tree, scratch.
    """

    graph: Graph
    sample: Sample
    work: Workspace
    stars: Stars
    table: PathTable
    groups: Words
    held: Words
    documents: Words
    width: Reals
    trees: Trees


def make_plan(
    graph: Graph, sample: Sample, table: PathTable | None = None, width: float = WIDTH
) -> Plan:
    """A plan in which every subscription is a group of its own.

    Args:
        table: shortest paths of the graph, if they are known; they depend on nothing else.
        width: of cones, as a share of the radius.
    """
    work = make_workspace(graph)
    groups = np.arange(sample.subscriptions, dtype=np.int64)
    return Plan(
        graph=graph,
        sample=sample,
        work=work,
        stars=make_stars(graph),
        table=make_path_table(graph, work) if table is None else table,
        groups=groups,
        held=_documents_held(sample, groups),
        documents=np.zeros(sample.documents, np.int64),
        width=np.array([width], np.float64),
        trees=make_trees(1, graph.nodes),
    )


def regroup(plan: Plan, groups: Words) -> None:
    """Group the subscriptions anew, each group named by its lowest subscription."""
    _, firsts, inverse = np.unique(groups, return_index=True, return_inverse=True)
    plan.groups[:] = firsts[inverse]
    plan.held[:] = _documents_held(plan.sample, plan.groups)


def _documents_held(sample: Sample, groups: Words) -> Words:
    words = -(-max(sample.documents, 1) // WORD_BITS)
    held = np.zeros((sample.subscriptions, words), np.int64)
    documents = np.repeat(np.arange(sample.documents), np.diff(sample.first))
    bits = np.int64(1) << documents % WORD_BITS
    np.bitwise_or.at(held, (groups[sample.matched], documents // WORD_BITS), bits)
    return held


@inline_rule
def bits_in(word: int) -> int:
    """How many of the 62 lowest bits of a word are set."""
    word -= (word >> 1) & 0x1555555555555555
    word = (word & 0x3333333333333333) + ((word >> 2) & 0x3333333333333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F
    word += word >> 8
    word += word >> 16
    word += word >> 32
    return word & 127


@rule
def write_documents(plan: Plan, one: int, other: int) -> int:
    """Write the documents that match either group to ``plan.documents``; returns how many."""
    count = 0
    for at in range(plan.held.shape[1]):
        word = plan.held[one, at] | plan.held[other, at]
        bit = 0
        while word != 0:
            if word & 1:
                plan.documents[count] = at * WORD_BITS + bit
                count += 1
            word >>= 1
            bit += 1
    return count


@rule
def merge(plan: Plan, one: int, other: int) -> None:
    """Make group ``other`` part of group ``one``."""
    for subscription in range(plan.groups.shape[0]):
        if plan.groups[subscription] == other:
            plan.groups[subscription] = one
    for at in range(plan.held.shape[1]):
        plan.held[one, at] |= plan.held[other, at]


# COMPUTETREE (Algorithm 1): one tree for one group of subscriptions.
#
# The Steiner trees of the group's documents load the links; of the loaded links a low-stretch
# spanning tree is made, and the brokers that no document reached are attached by shortest paths.
# Its cost is at most O(log^2 n log log n) times that of the best tree (Theorem IV.1).
#
# A group here is the union of two, so that a merger can be priced before it is made; give a group
# twice for itself.


@rule
def gather_brokers(
    work: Workspace, sample: Sample, groups: Words, one: int, other: int, document: int
) -> int:
    """Write N_j to ``work.terminals``, the host first; returns how many brokers there are."""
    mark = new_mark(work)
    host = sample.hosts[document]
    work.terminals[0] = host
    work.marks[host] = mark
    count = 1
    for i in range(sample.first[document], sample.first[document + 1]):
        subscription = sample.matched[i]
        if groups[subscription] == one or groups[subscription] == other:
            place = sample.places[subscription]
            if work.marks[place] != mark:
                work.marks[place] = mark
                work.terminals[count] = place
                count += 1
    return count


@rule
def load_links(plan: Plan, one: int, other: int, documents: int) -> int:
    """Load links with m(e) of lines 1 to 9, what documents' Steiner trees carry over them.

    Departs from the paper: where links differ in cost, a link weighs by its cost as well, as it
    does in the sum that Theorem IV.1 bounds; with equal costs nothing changes. Returns how many
    links are loaded.
    """
    graph, work, sample = plan.graph, plan.work, plan.sample
    loaded = 0
    for i in range(documents):
        document = plan.documents[i]
        brokers = gather_brokers(work, sample, plan.groups, one, other, document)
        links = join_by_table(graph, work, plan.table, brokers)
        for j in range(links):
            link = work.tree[j]
            load = sample.sizes[document] * graph.costs[link]
            loaded = load_link(plan.stars, link, load, loaded)
    return loaded


@rule
def only_host(sample: Sample, groups: Words, one: int, other: int) -> int:
    """The broker that all subscriptions of two groups are at, -1 if they are at several."""
    host = -1
    for subscription in range(groups.shape[0]):
        if groups[subscription] == one or groups[subscription] == other:
            if host >= 0 and host != sample.places[subscription]:
                return -1
            host = sample.places[subscription]
    return int(host)


@rule
def write_forest(plan: Plan, one: int, other: int, documents: int) -> int:
    """Write the low-stretch trees of the loaded links to ``work.tree``; returns how many links."""
    loaded = load_links(plan, one, other, documents)
    links = write_low_stretch_forest(plan.graph, plan.work, plan.stars, loaded, plan.width[0])
    unload_links(plan.stars, loaded)
    return int(links)


@rule
def cost_of_union(plan: Plan, one: int, other: int) -> float:
    """cost(S_i U S_j): what the group's documents cost on the tree it would get (Eq. 1).

    Where all subscriptions are at one broker, its shortest path tree is the optimum, and taken.
    """
    documents = write_documents(plan, one, other)
    sample, groups, work = plan.sample, plan.groups, plan.work
    host = only_host(sample, groups, one, other)
    cost = 0.0
    if host >= 0:
        for i in range(documents):
            document = plan.documents[i]
            cost += sample.sizes[document] * plan.table.away[host, sample.hosts[document]]
        return cost
    links = write_forest(plan, one, other, documents)
    hang_up_forest(plan.graph, work, links, plan.trees, 0)
    for i in range(documents):
        document = plan.documents[i]
        brokers = gather_brokers(work, sample, groups, one, other, document)
        cost += sample.sizes[document] * cost_on_tree(plan.graph, plan.trees, 0, work, brokers)
    return cost


@rule
def compute_tree(plan: Plan, group: int, trees: Trees, t: int) -> int:
    """COMPUTETREE for a group, hung up as tree ``t``; returns how many brokers it spans: all."""
    graph, work = plan.graph, plan.work
    root = only_host(plan.sample, plan.groups, group, group)
    if root >= 0:
        links = write_shortest_path_tree(graph, work, root)
    else:
        links = write_forest(plan, group, group, write_documents(plan, group, group))
        links = complete_tree(graph, work, links)
        root = 0
    return int(hang_up(graph, work, links, root, trees, t))
