"""OPT (Sec. VII): a Steiner tree for every document, and a bound that no routing goes below.

The paper calls the approximate trees' cost the optimum. It is that of the best known graph
routing, one tree a document; what can be proven is the bound.
"""

from __future__ import annotations

import numpy as np

from gossamer.protocol.dissemination.compute_tree import gather_brokers
from gossamer.protocol.dissemination.cost import Bill, make_bill
from gossamer.protocol.dissemination.graphs.exact import least_steiner_cost
from gossamer.protocol.dissemination.graphs.graph import Reals, Words
from gossamer.protocol.dissemination.graphs.steiner import cost_of_links, trim
from gossamer.protocol.dissemination.graphs.tables import join_by_table
from gossamer.protocol.dissemination.graphs.triples import (
    BOUND,
    Triples,
    make_triples,
    write_better_tree,
)
from gossamer.protocol.dissemination.plan import Plan
from gossamer.protocol.dissemination.sample import Sample
from gossamer.protocol.kernel.rules import rule

EXACT_BROKERS = 8
"""Documents that join no more brokers than this are bounded by their optimum; our choice."""


@rule
def write_fast_bill(plan: Plan, sample: Sample, groups: Words, bill: Bill) -> None:
    """Write what each document costs on its own tree, by the fast algorithm."""
    for document in range(sample.hosts.shape[0]):
        brokers = gather_brokers(plan.work, sample, groups, 0, 0, document)
        links = join_by_table(plan.graph, plan.work, plan.table, brokers)
        brokers = gather_brokers(plan.work, sample, groups, 0, 0, document)
        links = trim(plan.graph, plan.work, links, brokers)
        size = sample.sizes[document]
        bill.cost[document] = size * cost_of_links(plan.graph, plan.work, links)
        bill.visits[document] = links
        bill.trees[document] = min(links, 1)
        for i in range(links):
            bill.loads[plan.work.tree[i]] += size


@rule
def write_better_costs(
    plan: Plan, sample: Sample, groups: Words, triples: Triples, costs: Reals
) -> None:
    """Lower costs to what the documents cost by the better algorithm, where that is less."""
    for document in range(costs.shape[0]):
        brokers = gather_brokers(plan.work, sample, groups, 0, 0, document)
        links = write_better_tree(plan.graph, plan.work, triples, brokers)
        cost = sample.sizes[document] * cost_of_links(plan.graph, plan.work, links)
        costs[document] = min(costs[document], cost)


def document_bill(plan: Plan, sample: Sample) -> Bill:
    """OPT: what each document costs on a Steiner tree of its own, by the algorithm of `tables`."""
    bill = make_bill(sample.documents, plan.graph.links)
    write_fast_bill(plan, sample, np.zeros(sample.subscriptions, np.int64), bill)
    return bill


def document_costs(plan: Plan, sample: Sample, better: bool = False) -> Reals:
    """OPT: what each document costs on a Steiner tree of its own.

    Args:
        better: by the algorithm of `triples` (at most 11/6 of the optimum) instead of that of
            `tables` (at most 2).
    """
    costs = document_bill(plan, sample).cost
    if better and sample.documents:
        groups = np.zeros(sample.subscriptions, np.int64)
        triples = make_triples(plan.graph, int(brokers_joined(plan, sample).max()))
        write_better_costs(plan, sample, groups, triples, costs)
    return costs


def brokers_joined(plan: Plan, sample: Sample) -> Words:
    """How many brokers each document joins, its host among them."""
    groups = np.zeros(sample.subscriptions, np.int64)
    return np.array(
        [
            int(gather_brokers(plan.work, sample, groups, 0, 0, document))
            for document in range(sample.documents)
        ],
        np.int64,
    )


def lower_bounds(plan: Plan, sample: Sample, exact: int = EXACT_BROKERS) -> Reals:
    """What each document costs at the least, whatever trees there are.

    The optimum of its Steiner tree where it joins at most ``exact`` brokers, else what the
    algorithms' guarantees leave of the cost that they found.
    """
    groups = np.zeros(sample.subscriptions, np.int64)
    fast, better = document_costs(plan, sample), document_costs(plan, sample, better=True)
    brokers = np.maximum(brokers_joined(plan, sample), 2)
    bounds = np.maximum(fast / (2 - 2 / brokers), better / BOUND)
    for document in np.flatnonzero(brokers <= exact).tolist():
        count = int(gather_brokers(plan.work, sample, groups, 0, 0, document))
        terminals = plan.work.terminals[:count].copy()
        cost = least_steiner_cost(plan.graph, plan.work, terminals)
        bounds[document] = sample.sizes[document] * cost
    return bounds
