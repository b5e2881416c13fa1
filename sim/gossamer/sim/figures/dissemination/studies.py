"""What is run for T1 to T7: which topologies, workloads and samples, at full size or reduced.

Where the paper says how, it is so (Sec. VII-A): 500 to 5,000 brokers of transit-stub graphs, 1,000
keywords, up to 10 subscribers a keyword, 10,000 documents, neighbourhoods of 2, 15 and 100 %, 3 %
of the documents sampled. It names neither GT-ITM's parameters nor how many keywords a document has.
So the same is run on graphs on which trees can differ more: transit-stub graphs with links between
stub domains, and Waxman's; and on real networks where their files are at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import attrs

from gossamer.sim.figures.dissemination.readings import read_otherwise
from gossamer.sim.figures.dissemination.runs import Run
from gossamer.sim.studies.dissemination.scenario import (
    Planning,
    TopologySection,
    TreesScenario,
    WorkloadSection,
)
from gossamer.sim.studies.dissemination.workload.workload import LOCALITIES

COSTS, SHARES, MERGERS, REAL = "costs", "shares", "mergers", "real"
TRANSIT_STUB, LINKED, WAXMAN = "transit-stub", "linked stubs", "Waxman"
LOCALIZED1, LOCALIZED2, UNIFORM = LOCALITIES
ONE_KEYWORD: Final = "Waxman, one keyword"
MADE_UP: Final = (TRANSIT_STUB, LINKED, WAXMAN)
SEED: Final = 1
SHARE: Final = 0.03
DOCUMENT_KEYWORDS: Final = 3


@attrs.frozen(kw_only=True)
class Plan:
    """How much is run.

    Attributes:
        sizes: numbers of brokers of transit-stub graphs.
        variant_sizes: of the other graphs that are made up.
        variant_localities: of these.
        keywords, documents: of the workload.
        shares: of documents that are sampled, for T1; shares_size: brokers there.
        exact_size: up to so many brokers Algorithm 2 judges all pairs of groups.
        real_documents, real_share: of the workload on real networks.
    """

    sizes: Sequence[int]
    variant_sizes: Sequence[int]
    variant_localities: Sequence[str]
    keywords: int
    documents: int
    shares: Sequence[float]
    shares_size: int
    exact_size: int
    real_documents: int
    real_share: float = 0.1


FULL: Final = Plan(
    sizes=(500, 1000, 2000, 5000),
    variant_sizes=(500, 2000),
    variant_localities=tuple(LOCALITIES),
    keywords=1000,
    documents=10_000,
    shares=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5),
    shares_size=2000,
    exact_size=5000,
    real_documents=2000,
)
QUICK: Final = Plan(
    sizes=(60, 150),
    variant_sizes=(60,),
    variant_localities=(LOCALIZED1,),
    keywords=100,
    documents=800,
    shares=(0.01, 0.03, 0.3),
    shares_size=60,
    exact_size=150,
    real_documents=200,
)


def plan_runs(plan: Plan, networks: Sequence[Path]) -> list[Run]:
    """Everything, the longest first; ``networks`` are files of real ones."""
    made_up = [
        _costs(plan, TRANSIT_STUB, size, locality) for size in plan.sizes for locality in LOCALITIES
    ]
    made_up += [
        _costs(plan, topology, size, locality)
        for topology in (LINKED, WAXMAN)
        for size in plan.variant_sizes
        for locality in plan.variant_localities
    ]
    made_up.sort(key=lambda run: -run.scenario.topology.brokers)
    shares = [_shares(plan, locality) for locality in LOCALITIES]
    mergers = [_mergers(plan, topology) for topology in (*MADE_UP, ONE_KEYWORD)]
    real = [_real(plan, file) for file in networks]
    return [*shares, *made_up, *mergers, *real, *_alternative(plan)]


def _alternative(plan: Plan) -> list[Run]:
    """Costs and mergers as `readings` has them, the largest first."""
    costs = [
        read_otherwise(_costs(plan, LINKED, size, locality), TRANSIT_STUB)
        for size in reversed(plan.sizes)
        for locality in LOCALITIES
    ]
    return [*costs, read_otherwise(_mergers(plan, LINKED), TRANSIT_STUB)]


def find_networks(checkout: Path) -> list[Path]:
    """The files of ``shared/data/topologies`` beside the checkout, if there are any."""
    return sorted((checkout.parent / "shared" / "data" / "topologies").glob("*.gml"))


def topology_of(kind: str, brokers: int) -> TopologySection:
    """A made up topology; of linked stubs, 0.6 links a broker more than a transit-stub graph."""
    if kind == WAXMAN:
        return TopologySection(kind="waxman", brokers=brokers)
    links = round(0.6 * brokers) if kind == LINKED else 0
    return TopologySection(brokers=brokers, stub_stub_links=links)


def _scenario(plan: Plan, topology: TopologySection, locality: str, share: float) -> TreesScenario:
    return TreesScenario(
        name=f"{topology.kind}, {locality}",
        seed=SEED,
        topology=topology,
        workload=WorkloadSection(
            neighbourhood=LOCALITIES[locality],
            keywords=plan.keywords,
            documents=plan.documents,
            document_keywords=DOCUMENT_KEYWORDS,
        ),
        planning=Planning(sample_share=share),
    )


def _costs(plan: Plan, topology: str, brokers: int, locality: str) -> Run:
    section = topology_of(topology, brokers)
    return Run(
        study=COSTS,
        topology=topology,
        locality=locality,
        scenario=_scenario(plan, section, locality, SHARE),
        exact=brokers <= plan.exact_size and topology == TRANSIT_STUB,
    )


def _shares(plan: Plan, locality: str) -> Run:
    section = topology_of(TRANSIT_STUB, plan.shares_size)
    return Run(
        study=SHARES,
        topology=TRANSIT_STUB,
        locality=locality,
        scenario=_scenario(plan, section, locality, SHARE),
        strategies=("SINGLE", "MULT"),
        shares=tuple(plan.shares),
    )


def _mergers(plan: Plan, topology: str) -> Run:
    """Of each kind of graph; and of one on which documents are as local as can be."""
    kind = WAXMAN if topology == ONE_KEYWORD else topology
    scenario = _scenario(plan, topology_of(kind, min(plan.sizes)), LOCALIZED1, SHARE)
    if topology == ONE_KEYWORD:
        local = attrs.evolve(scenario.workload, nearby=1, document_keywords=1)
        scenario = attrs.evolve(scenario, workload=local)
    return Run(
        study=MERGERS,
        topology=topology,
        locality=LOCALIZED1,
        scenario=scenario,
        strategies=("MULT", "MULT2"),
        exact=True,
        states=24,
    )


def _real(plan: Plan, file: Path) -> Run:
    scenario = TreesScenario(
        name=file.stem,
        seed=SEED,
        topology=TopologySection(kind="file", file=file),
        workload=WorkloadSection(
            neighbourhood=0.05, documents=plan.real_documents, document_keywords=2
        ),
        planning=Planning(sample_share=plan.real_share),
    )
    return Run(study=REAL, topology=file.stem, locality="5 %", scenario=scenario, exact=True)
