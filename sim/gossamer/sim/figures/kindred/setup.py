"""What is compared, how much of it is run, and the points that studies are made of.

The set-up is that of the Vinifera figures (`gossamer.sim.figures.vinifera.studies`): the same
widths, places, rates and warm-up, so that the values stand beside those of docs/figures.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import attrs

from gossamer.sim.figures.common.points import Point
from gossamer.sim.figures.vinifera import studies
from gossamer.sim.figures.vinifera.studies import (
    BASELINE,
    HUGE,
    KINDS,
    LARGE,
    PAPER,
    RESILIENT,
    Trace,
)
from gossamer.sim.figures.vinifera.studies import FULL as PAPER_FULL
from gossamer.sim.studies.peers.inputs.scenario import Churn

KINDRED: Final = "kindred"
SYSTEMS: Final = (KINDRED, PAPER, RESILIENT, BASELINE)

STANDARD: Final = 1000


@attrs.frozen(kw_only=True)
class Plan:
    """How much is run; by default what a full run has.

    Attributes:
        seeds: of every point that takes seconds; others run with the first only.
        events: events of a point.
        nodes: of studies that do not vary it.
        friends: numbers of friend links.
        sizes: numbers of nodes that all systems have.
        larger: numbers of nodes that `kindred` alone has, with the first seed.
        attributes: numbers of attributes.
        attribute_nodes: number of nodes with several attributes.
        rates: publication rates, in X a round.
        rate_rounds: rounds in which there are so many.
        churn_hours: the part of the real trace that V8 to V10 are about, from and to.
        bundled_hours: how much is played of the bundled trace where the real one is absent.
        month: whether all of the real trace is played, also faster and backwards.
        silence: the part of the real trace in which nobody is told of failures, hours; None for
            none.
    """

    seeds: tuple[int, ...] = (1, 2, 3)
    events: int = 2000
    nodes: int = STANDARD
    friends: tuple[int, ...] = (0, 4, 8)
    sizes: tuple[int, ...] = (300, 1000, 3000, 5000, 10_000)
    larger: tuple[int, ...] = (30_000, 100_000)
    attributes: tuple[int, ...] = (1, 2, 3, 5)
    attribute_nodes: int = 500
    rates: tuple[float, ...] = (0.5, 1.0, 2.0, 3.0, 5.0)
    rate_rounds: int = 40
    churn_hours: tuple[float, float] = PAPER_FULL.churn_hours
    bundled_hours: float = PAPER_FULL.bundled_hours
    month: bool = True
    silence: tuple[float, float] | None = (250.0, 256.0)


FULL: Final = Plan()
QUICK: Final = Plan(
    seeds=(1,),
    events=200,
    nodes=300,
    friends=(8,),
    sizes=(150, 300),
    larger=(),
    attributes=(1, 3),
    attribute_nodes=100,
    rates=(0.5, 5.0),
    rate_rounds=10,
    churn_hours=(251.0, 253.0),
    bundled_hours=1.5,
    month=False,
    silence=None,
)


@attrs.frozen(kw_only=True)
class Data:
    """What is played of churn.

    Attributes:
        trace: of V8 to V10, the real one or the bundled one.
        real: all of the real trace; None where it is absent.
    """

    trace: Trace
    real: Churn | None


def seeds_of(plan: Plan, nodes: int, system: str = KINDRED) -> tuple[int, ...]:
    """The seeds of a point: with many nodes others than `kindred` have the first only."""
    most = LARGE if system != KINDRED else HUGE
    return plan.seeds if nodes < most else plan.seeds[:1]


def kinds_and_seeds(plan: Plan) -> Iterator[tuple[str, int]]:
    """What points of the standard size are run with."""
    for kind in KINDS:
        for seed in plan.seeds:
            yield kind, seed


def steady_point(
    plan: Plan,
    study: str,
    system: str,
    kind: str,
    seed: int,
    *,
    nodes: int | None = None,
    **more: Any,
) -> Point:
    """A point without churn, see there, of the plan's size unless ``nodes`` says another."""
    size = plan.nodes if nodes is None else nodes
    return studies.steady_point(plan.events, study, system, kind, seed, nodes=size, **more)
