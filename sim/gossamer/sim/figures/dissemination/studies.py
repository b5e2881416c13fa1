"""What is run for T1 to T7: which topologies, workloads and samples, at full size or reduced.

Where the paper says how, it is so (Sec. VII-A): 500 to 5,000 brokers of transit-stub graphs, 1,000
keywords, up to 10 subscribers a keyword, 10,000 documents, neighbourhoods of 2, 15 and 100 %, 3 %
of the documents sampled. It names neither GT-ITM's parameters nor how many keywords a document has.
So the same is run on graphs on which trees can differ more: transit-stub graphs with links between
stub domains, and Waxman's; and on real networks where their files are at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

import attrs

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.figures.common.claims import ALTERNATIVE, LITERAL, Reading
from gossamer.sim.studies.dissemination.records import state_table
from gossamer.sim.studies.dissemination.scenario import (
    DEFAULT_STRATEGIES,
    Planning,
    TopologySection,
    TreesScenario,
    WorkloadSection,
)
from gossamer.sim.studies.dissemination.strategies import NEIGHBOURS, Outcome, Setting, run_strategy
from gossamer.sim.studies.dissemination.study import warm_up
from gossamer.sim.studies.dissemination.workload import KEYWORD, LOCALITIES, NEAR, sampled
from gossamer.sim.study.records import Column, Table

keep_compiled_code()

MULT2_LISTS: Final = "MULT2-lists"
"""MULT2 with neighbour lists, where MULT2 itself judges all pairs of groups."""


@attrs.frozen(kw_only=True)
class Run:
    """Strategies on one topology and workload: a task of `run_tasks`.

    Attributes:
        study: what it is part of.
        reading: of the paper, LITERAL or ALTERNATIVE.
        topology, locality: in words.
        scenario: what is run, seed and all.
        strategies: which.
        shares: of the documents that are sampled, one after the other; the scenario's if empty.
        exact: whether MULT2 judges all pairs as the paper's; with lists it is run besides then.
        states: of the mergers, how many all documents are routed by.
        on_sample: whether costs are those of the sampled documents, not of all.
    """

    study: str
    reading: str = LITERAL
    topology: str
    locality: str
    scenario: TreesScenario
    strategies: Sequence[str] = DEFAULT_STRATEGIES
    shares: tuple[float, ...] = ()
    exact: bool = False
    states: int = 0
    on_sample: bool = False

    @property
    def label(self) -> str:
        """For progress and errors."""
        other = "" if self.reading == LITERAL else ", read otherwise"
        return f"{self.study}, {self.topology}, {self.locality}{other}, seed {self.scenario.seed}"

    def run(self) -> list[RunResult]:
        """Run it; raises `SimulationError`."""
        with use_compiled():
            return list(self._measure())

    def _measure(self) -> Iterator[RunResult]:
        whole = self.scenario.setting()
        for share in self.shares or (self.scenario.planning.sample_share,):
            planned = sampled(whole.routed, share, self.scenario.seed)
            setting = attrs.evolve(
                whole,
                planned=planned,
                routed=planned if self.on_sample else whole.routed,
                neighbours=None if self.exact else NEIGHBOURS,
            )
            for strategy in self.strategies:
                warm_up(strategy)
                yield self._found(setting, share, run_strategy(strategy, setting))
            if self.exact and "MULT2" in self.strategies:
                lists = attrs.evolve(setting, neighbours=NEIGHBOURS)
                outcome = attrs.evolve(run_strategy("MULT2", lists), strategy=MULT2_LISTS)
                yield self._found(lists, share, outcome)

    def _found(self, setting: Setting, share: float, outcome: Outcome) -> RunResult:
        mergers = outcome.mergers if self.states else None
        return RunResult(
            study=self.study,
            reading=self.reading,
            topology=self.topology,
            locality=self.locality,
            brokers=setting.graph.nodes,
            links=setting.graph.links,
            share=share,
            sampled=setting.planned.documents,
            documents=setting.routed.documents,
            subscriptions=setting.routed.subscriptions,
            strategy=outcome.strategy,
            trees=outcome.trees,
            cost=outcome.bill.total,
            duplicates=int(outcome.bill.duplicates.sum()),
            planning_s=outcome.planning_s,
            mergers=None if mergers is None else (mergers.groups, mergers.costs),
            states=state_table(setting, mergers, self.states) if self.states else {},
        )


@attrs.frozen(kw_only=True, eq=False)
class RunResult:
    """What one strategy came to in a run.

    Attributes:
        study, reading, topology, locality: of the run.
        brokers, links: of the topology.
        share, sampled: of the documents that trees were planned by, and how many these were.
        documents, subscriptions: how many were routed, and to how many.
        strategy: its name.
        trees, cost, duplicates, planning_s: what it came to.
        mergers: trees and cost of the sample after each merger, None if not asked for.
        states: all documents on the trees of some states, see `records.state_table`.
    """

    study: str
    reading: str
    topology: str
    locality: str
    brokers: int
    links: int
    share: float
    sampled: int
    documents: int
    subscriptions: int
    strategy: str
    trees: int
    cost: float
    duplicates: int
    planning_s: float
    mergers: tuple[Column, Column] | None
    states: Table


# How the paper on content-aware trees can be read otherwise: workload, graphs, what is priced.
#
# The alternative was chosen knowing what the paper found, and is judged by the same checks.


def read_otherwise(run: Run, topology: str) -> Run:
    """A run under the alternative; ``topology`` is the one whose verdicts it is held against."""
    workload = attrs.evolve(run.scenario.workload, subscription=KEYWORD, publishers=NEAR)
    return attrs.evolve(
        run,
        reading=ALTERNATIVE,
        topology=topology,
        scenario=attrs.evolve(run.scenario, workload=workload),
        on_sample=True,
        exact=False,
    )


_KEYWORDS: Final = (
    "'we randomly picked up at most 10 nodes and added the keyword to their subscriptions' (Sec. "
    "VII-A): a broker has a subscription for each of its keywords, rather than one for all of "
    "them, so that there are more to group"
)
_GRAPH: Final = (
    "the paper names no parameter of GT-ITM: stub domains are linked to others, 0.6 links a "
    "broker, so that trees have a choice; chosen knowing Fig. 5 and 6"
)
_PUBLISHERS: Final = (
    "'we sampled a small subset of nearby nodes ... We also randomly selected a publisher node for "
    "the document' (Sec. VII-A): one of these nodes, rather than any"
)
_SAMPLE: Final = (
    "costs are those of the sampled documents, as in Fig. 6, whose curve the planner sees; MULT2 "
    "judges each group with its 32 nearest, as all pairs of thousands of groups take hours"
)
READINGS: Final[Mapping[str, Reading]] = MappingProxyType(
    dict.fromkeys(
        ("T2", "T3", "T4", "T5", "T6", "T7"),
        Reading(
            name="a subscription a keyword", sentences=(_KEYWORDS, _GRAPH, _PUBLISHERS, _SAMPLE)
        ),
    )
)

CONTRADICTIONS: Final = dict.fromkeys(
    ("T1", "T4"),
    "'3 % suffices' (Fig. 4) and large gains of many trees (Fig. 5, 6) exclude each other: groups "
    "that a sample tells apart are those that it knows too little of, and documents that were not "
    "sampled match many of them, so that on all documents the gains of many trees are gone",
)


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
    """How much is run; by default what a full run has.

    Attributes:
        sizes: numbers of brokers of transit-stub graphs.
        variant_sizes: of the other graphs that are made up.
        variant_localities: of these.
        keywords, documents: of the workload.
        shares: of documents that are sampled, for T1; shares_size: brokers there.
        exact_size: up to so many brokers Algorithm 2 judges all pairs of groups.
        real_documents, real_share: of the workload on real networks.
    """

    sizes: Sequence[int] = (500, 1000, 2000, 5000)
    variant_sizes: Sequence[int] = (500, 2000)
    variant_localities: Sequence[str] = tuple(LOCALITIES)
    keywords: int = 1000
    documents: int = 10_000
    shares: Sequence[float] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5)
    shares_size: int = 2000
    exact_size: int = 5000
    real_documents: int = 2000
    real_share: float = 0.1


FULL: Final = Plan()
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
