"""One run of the figures about trees: strategies on one topology and workload."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.figures.common.readings import LITERAL
from gossamer.sim.studies.dissemination.records import state_table
from gossamer.sim.studies.dissemination.scenario import DEFAULT_STRATEGIES, TreesScenario
from gossamer.sim.studies.dissemination.simulation import warm_up
from gossamer.sim.studies.dissemination.strategies import NEIGHBOURS, Outcome, Setting, run_strategy
from gossamer.sim.studies.dissemination.workload.workload import sampled
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
