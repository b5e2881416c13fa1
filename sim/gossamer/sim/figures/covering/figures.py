"""`gossamer sim figures covering`: both papers on filter aggregation, P1 to P9 and I1 to I6.

claims.json       verdicts, see `gossamer.sim.figures.common.claims`
checks.json       the numbers and bounds behind them
readings.md       both readings of every claim side by side
<table>.parquet   what the runs measured, see the modules of the experiments
plots/            named after the papers' figures: selective7a is Fig. 7(a) of the selective paper
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

import attrs
import numpy as np
from matplotlib.figure import Figure

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.brokers.core.broker import compiled_index
from gossamer.protocol.brokers.core.messages import Id, NeighbourUp, neighbour
from gossamer.protocol.brokers.tree import TreeBroker, TreeSettings
from gossamer.protocol.brokers.tree.messages import (
    Advertisement,
    BetweenBrokers,
    Frame,
    Publication,
    Subscription,
    Synchronise,
)
from gossamer.protocol.content.filters import exact_publication, parse
from gossamer.sim.figures.common.claims import LITERAL, RATIO, Check, Claim
from gossamer.sim.figures.common.measurements import check_readings, run_tables
from gossamer.sim.figures.common.points import Experiment, write_figures
from gossamer.sim.figures.covering.burst_runs import FULL, QUICK, plan_bursts
from gossamer.sim.figures.covering.claims import INCREMENTAL_CLAIMS, SELECTIVE_CLAIMS
from gossamer.sim.figures.covering.plots import Outcomes, draw_bursts
from gossamer.sim.figures.covering.readings import CONTRADICTIONS, READINGS
from gossamer.sim.figures.covering.scene_claims import MOBILE, WORKFLOWS
from gossamer.sim.results.plot_style import beside, covering_styles, new_figure
from gossamer.sim.results.results import check_destination
from gossamer.sim.studies.tree_brokers.covering_workload import CoveringWorkload
from gossamer.sim.study.records import Column
from gossamer.sim.study.tasks import Progress, run_tasks

# I1: Table II of the incremental paper with this code: what a broker spends on a message.
#
# One broker stands between a neighbour with publishers and five neighbours that subscribe, so that
# it determines covering on the way to the publishers. Processor time, as measured here and now.
# table_ii.parquet has it in microseconds.


keep_compiled_code()

COVERINGS: Final = ("active", "lazy", "off")
SUBSCRIBERS: Final = ("A", "B", "C", "D", "E")
PUBLISHERS: Final = "publishers"
DEGREE: Final = 30
CHILDREN_MATCHED: Final = 6


@attrs.frozen(kw_only=True)
class Times:
    """Microseconds of processor time a message."""

    covering: str
    subscription: float
    publication: float
    subscriptions: int


@attrs.frozen(kw_only=True)
class Measurement:
    """The whole of Table II: a task of `run_tasks`.

    Attributes:
        subscriptions: issued, 42,000 in the paper.
        publications: routed after them; the paper's 200,000 give the same mean.
    """

    subscriptions: int
    publications: int

    @property
    def label(self) -> str:
        """For progress and errors."""
        return f"Table II, {self.subscriptions:,} subscriptions"

    def run(self) -> list[Times]:
        """Measure each covering, after short runs that compile."""
        for covering in COVERINGS:
            self._measure(covering, 200, 20)
        return [
            self._measure(covering, self.subscriptions, self.publications) for covering in COVERINGS
        ]

    def _measure(self, covering: str, subscriptions: int, publications: int) -> Times:
        workload = CoveringWorkload(max(1, subscriptions // (DEGREE + 1)), DEGREE)
        broker = _Fed(covering)
        asked = [
            Subscription(Id("origin", number + 1), one.filter)
            for number, one in enumerate(workload.subscriptions())
        ]
        reach = 1 + CHILDREN_MATCHED / (DEGREE + 1)
        told = [
            Publication(
                Id("source", number + 2),
                Id("source", 1),
                exact_publication(workload.publication(number, reach)),
            )
            for number in range(publications)
        ]
        begun = time.process_time()
        for number, subscription in enumerate(asked):
            broker.feed(SUBSCRIBERS[number % len(SUBSCRIBERS)], subscription)
        between = time.process_time()
        for publication in told:
            broker.feed(PUBLISHERS, publication)
        end = time.process_time()
        return Times(
            covering=covering,
            subscription=1e6 * (between - begun) / len(asked),
            publication=1e6 * (end - between) / len(told),
            subscriptions=len(asked),
        )


class _Fed:
    """A broker whose neighbours are played."""

    def __init__(self, covering: str) -> None:
        settings = TreeSettings(covering=covering)
        self._broker = TreeBroker("between", settings, new_index=compiled_index)
        self._numbers = dict.fromkeys((PUBLISHERS, *SUBSCRIBERS), 0)
        self._now = 0
        offer = Advertisement(Id("source", 1), parse("present(x) and present(y)"))
        for name in self._numbers:
            self._broker.handle(0, None, NeighbourUp(name))
            standing = (offer,) if name == PUBLISHERS else ()
            self.feed(name, Synchronise(standing, ()))

    def feed(self, name: str, message: BetweenBrokers) -> None:
        """Let a neighbour send a message."""
        self._now += 1
        self._numbers[name] += 1
        self._broker.handle(self._now, neighbour(name), Frame(1, self._numbers[name], message))


def check_i1(measured: Sequence[Times]) -> Claim:
    """Table II: what covering costs, and what it saves."""
    times = {one.covering: one for one in measured}
    active, lazy, off = (times[covering] for covering in COVERINGS)

    def covering(one: Times) -> float:
        return (one.subscription - off.subscription) / off.subscription

    def publication(one: Times) -> float:
        return one.publication / off.publication

    return Claim(
        "I1",
        "42,000 subscriptions, a message each: matching 0.81, 1.6 and 1.6 ms, covering 12, 27 "
        "and 0 ms, publication 3.0, 6.2 and 7.9 ms (active, lazy, none): covering costs an "
        "order more than matching, active covering halves publication time.",
        [
            Check("covering over matching, active", covering(active), RATIO, "12 over 0.81", 5),
            Check("covering over matching, lazy", covering(lazy), RATIO, "27 over 1.6", 5),
            Check(
                "publication, active over none",
                publication(active),
                RATIO,
                "3.0 over 7.9",
                high=0.6,
            ),
            Check(
                "publication, lazy over none", publication(lazy), RATIO, "6.2 over 7.9", 0.6, 1.0
            ),
        ],
        "The matching index answers what covers a filter about as fast as it takes the filter "
        "in, and what a publication costs depends on how much it matches rather than on how "
        "much there is",
        "microseconds of processor time a subscription and a publication: "
        + "; ".join(
            f"{one.covering} {one.subscription:.0f} and {one.publication:.0f}" for one in measured
        )
        + "; matching is what a subscription costs without covering",
    )


def plot_times(measured: Sequence[Times]) -> Figure:
    """What a message costs under each covering."""
    figure = new_figure()
    names = [one.covering for one in measured]
    colours = [style.colour for style in covering_styles(names).values()]
    panels = beside(figure, 2)
    for axes, kind in zip(panels, ("subscription", "publication"), strict=True):
        values = [getattr(one, kind) for one in measured]
        axes.bar(names, values, color=colours, width=0.6)
        for place, value in enumerate(values):
            axes.annotate(f"{value:,.0f}", (place, value), ha="center", va="bottom")
        axes.set(title=f"Microseconds a {kind}")
    return figure


def _table(measured: Sequence[Times]) -> dict[str, Column]:
    return {
        "covering": np.array([one.covering for one in measured]),
        "subscription_us": np.array([one.subscription for one in measured]),
        "publication_us": np.array([one.publication for one in measured]),
        "subscriptions": np.array([one.subscriptions for one in measured]),
    }


TABLE: Final = Experiment(
    tasks=lambda quick: [
        Measurement(subscriptions=1_500 if quick else 42_000, publications=300 if quick else 10_000)
    ],
    check=lambda outcomes: [check_i1(outcomes[0])],
    tables=lambda outcomes: {"table_ii": _table(outcomes[0])},
    draw=lambda outcomes: [("incremental_table_ii", plot_times(outcomes[0]))],
)


# P1 to P8 and I2 to I4: the controlled scenarios of both papers, as a part of the figures.
#
# bursts.parquet  one row a burst: what was varied, and all measures
# core.parquet    one row a core broker of a burst
# delays.parquet  delays over time, the publications of a burst in 120 groups
# queues.parquet  input queues of the core over time


_KEYS: Final = ("run.study", "run.reading", "run.covering", "run.x")
_FURTHER: Final = ("run.burst.workload.roots", "run.burst.workload.degree", "run.burst.seed")


BURSTS: Final = Experiment(
    tasks=lambda quick: plan_bursts(QUICK if quick else FULL),
    check=lambda outcomes: check_readings(
        (*SELECTIVE_CLAIMS, *INCREMENTAL_CLAIMS),
        partial(Outcomes.of, list(chain(*outcomes))),
        *(READINGS, CONTRADICTIONS),
    ),
    tables=lambda outcomes: run_tables(list(chain(*outcomes)), "bursts", _KEYS, _FURTHER),
    draw=lambda outcomes: draw_bursts(Outcomes.of(chain(*outcomes), LITERAL)),
)


EXPERIMENTS: Final[tuple[Experiment, ...]] = (TABLE, BURSTS, MOBILE, WORKFLOWS)


def reproduce_covering(
    out: Path,
    *,
    quick: bool,
    processes: int,
    progress: Progress | None = None,
    experiments: Sequence[Experiment] = EXPERIMENTS,
) -> list[Claim]:
    """Run everything behind the evaluations of both papers (Sec. V), judge it, write ``out`` whole.

    Takes and raises what `reproduce_vinifera` does, but needs no trace.
    ``quick`` runs a tenth of the papers' sizes and less.
    ``experiments`` are those that are run.
    """
    check_destination(out)
    planned = [list(experiment.tasks(quick)) for experiment in experiments]
    outcomes = run_tasks([task for tasks in planned for task in tasks], processes, progress)
    bounds = np.cumsum([0, *map(len, planned)]).tolist()
    found = [outcomes[begin:end] for begin, end in pairwise(bounds)]
    pairs = list(zip(experiments, found, strict=True))
    claims = [claim for one, its in pairs for claim in one.check(its)]
    claims.sort(key=lambda claim: ("PI".index(claim.id[0]), int(claim.id[1:])))
    tables = {name: table for one, its in pairs for name, table in one.tables(its).items()}
    write_figures(out, claims, tables, lambda: chain(*(one.draw(its) for one, its in pairs)))
    return claims
