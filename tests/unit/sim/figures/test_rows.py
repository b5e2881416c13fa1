"""Claims as rows of data: what quantities give, their units, and the verdicts on them."""

from __future__ import annotations

import math

import attrs
import numpy as np
import pytest

from gossamer.sim.figures.common.claims import COUNT, HOPS, RATIO, SECONDS, SHARE
from gossamer.sim.figures.common.measurements import (
    Quantity,
    Row,
    Statement,
    at,
    check_claims,
    first,
    last,
    least,
    most,
)
from gossamer.sim.figures.common.points import Floats


@attrs.frozen
class Measured:
    """Measurements at one place, and over several."""

    values: dict[str, float]

    def value(self, measure: str, system: str) -> float:
        return self.values[f"{measure}, {system}"]

    def series(self, measure: str, system: str) -> tuple[Floats, Floats]:
        return np.arange(3.0), np.array([2.0, 7.0, 3.0]) * self.value(measure, system)


FOUND = Measured({"hit_ratio, ours": 0.5, "hit_ratio, theirs": 0.25, "queue, ours": 0.0})
OURS, THEIRS = at("hit_ratio", "ours"), at("hit_ratio", "theirs")


@pytest.mark.parametrize(
    ("quantity", "value", "unit"),
    [
        (OURS, 0.5, SHARE),
        (OURS / THEIRS, 2.0, RATIO),
        (OURS - THEIRS, 0.25, SHARE),
        (THEIRS.or_more(OURS), 0.5, SHARE),
        (OURS / at("queue", "ours"), math.inf, RATIO),
        (OURS.over(at("queue", "ours"), 2.0), 0.25, RATIO),
        (first("hit_ratio", "ours"), 1.0, SHARE),
        (last("hit_ratio", "ours"), 1.5, SHARE),
        (least("hit_ratio", "ours"), 1.0, SHARE),
        (most("hit_ratio", "ours"), 3.5, SHARE),
    ],
)
def test_a_quantity_is_looked_up_or_computed(quantity: Quantity, value: float, unit: str) -> None:
    assert (quantity.of(FOUND), quantity.unit) == (value, unit)


@pytest.mark.parametrize(
    ("measure", "unit"),
    [("delay_max_s", SECONDS), ("path_length_mean", HOPS), ("load_max", SHARE), ("queue", COUNT)],
)
def test_the_unit_follows_from_the_measure(measure: str, unit: str) -> None:
    assert at(measure, "ours").unit == unit


def test_a_statement_is_evaluated_with_the_rows_that_were_run() -> None:
    fixed = Statement("X1", "half", [Row("ours", OURS, "50 %", 0.4, 0.6)], "why", "a note")
    made = Statement(
        "X2",
        "twice",
        lambda found: [Row("ratio", found.value("hit_ratio", "ours") * 4, "2", high=1.5)],
        lambda found: f"of {len(found.values)}",
    )
    holding, differing = check_claims([fixed, made], FOUND)
    assert (holding.verdict, differing.verdict) == ("holds", "differs")
    assert holding.measured == "ours 50.0 %"
    assert holding.reason == "every value is within its bounds. a note"
    assert differing.reason == "ratio 2.00 (paper: 2; accepted: at most 1.50). of 3"


def test_a_row_may_name_another_unit() -> None:
    check = Row("left", 3, "none", 0.0, 0.0, COUNT).check(FOUND)
    assert (check.measured(), check.holds) == ("left 3", False)
