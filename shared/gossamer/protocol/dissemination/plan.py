"""What planning trees for a sample works on: the graph, the documents, and the present groups."""

from __future__ import annotations

from typing import Final

import numpy as np

from gossamer.protocol.dissemination.graphs.graph import (
    Graph,
    Reals,
    Words,
    Workspace,
    make_workspace,
)
from gossamer.protocol.dissemination.graphs.spanning import Trees, make_trees
from gossamer.protocol.dissemination.graphs.tables import PathTable, make_path_table
from gossamer.protocol.dissemination.sample import Sample
from gossamer.protocol.dissemination.stars import WIDTH, Stars, make_stars
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
