"""I1: Table II of the incremental paper with this code: what a broker spends on a message.

One broker stands between a neighbour with publishers and five neighbours that subscribe, so that
it determines covering on the way to the publishers. Processor time, as measured here and now.
table_ii.parquet has it in microseconds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np
from matplotlib.figure import Figure

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.brokers.core.messages import Id, NeighbourUp, neighbour
from gossamer.protocol.brokers.core.routing import compiled_index
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
from gossamer.sim.figures.common.claims import RATIO, Check, Claim
from gossamer.sim.figures.common.experiments import Experiment
from gossamer.sim.results.plot_style import beside, covering_styles, new_figure
from gossamer.sim.studies.tree_brokers.covering_workload import CoveringWorkload
from gossamer.sim.study.records import Column

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
    claims=("I1",),
    tasks=lambda quick: [
        Measurement(subscriptions=1_500 if quick else 42_000, publications=300 if quick else 10_000)
    ],
    check=lambda outcomes: [check_i1(outcomes[0])],
    tables=lambda outcomes: {"table_ii": _table(outcomes[0])},
    draw=lambda outcomes: [("incremental_table_ii", plot_times(outcomes[0]))],
)
