"""Tables of what points measured, as figures write them to Parquet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from gossamer.sim.figures.common.points import Outcome
from gossamer.sim.study.records import Column


def points_table(outcomes: Sequence[Outcome]) -> dict[str, Column]:
    """One row a point: what was varied, the seed, and all measures."""
    points = [outcome.point for outcome in outcomes]
    return {
        "study": np.array([point.study for point in points]),
        "system": np.array([point.system for point in points]),
        "kind": np.array([point.kind for point in points]),
        "x": np.array([point.x for point in points]),
        "seed": np.array([point.scenario.seed for point in points]),
        **{
            name: np.array([outcome.measures[name] for outcome in outcomes])
            for name in outcomes[0].measures
        },
    }


def load_table(outcomes: Sequence[Outcome], studies: Collection[str]) -> dict[str, Column]:
    """One row a node of a point of these studies, least load first."""
    chosen = [outcome for outcome in outcomes if outcome.point.study in studies]
    return _stack([(outcome, {"load": outcome.load}) for outcome in chosen])


def hours_table(outcomes: Sequence[Outcome], first_hours: Mapping[str, float]) -> dict[str, Column]:
    """One row an hour of a point of these studies, by the hour at which each begins."""
    chosen = [outcome for outcome in outcomes if outcome.point.study in first_hours]
    return _stack(
        [
            (
                outcome,
                {
                    **outcome.hours,
                    "hour": outcome.hours["hour"] + first_hours[outcome.point.study],
                },
            )
            for outcome in chosen
        ]
    )


def _stack(parts: Sequence[tuple[Outcome, Mapping[str, Column]]]) -> dict[str, Column]:
    """Tables of points under one another, with columns that tell them apart."""
    lengths = [len(next(iter(table.values()))) for _, table in parts]
    points = [outcome.point for outcome, _ in parts]
    return {
        "study": np.repeat([point.study for point in points], lengths),
        "system": np.repeat([point.system for point in points], lengths),
        "kind": np.repeat([point.kind for point in points], lengths),
        "x": np.repeat([point.x for point in points], lengths),
        "seed": np.repeat([point.scenario.seed for point in points], lengths),
        **{name: np.concatenate([table[name] for _, table in parts]) for name in parts[0][1]},
    }
