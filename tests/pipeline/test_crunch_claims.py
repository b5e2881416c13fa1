"""Claims checked over seeds: the verdicts of the figures, with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from gossamer.sim.errors import ScenarioError
from gossamer.sim.figures.vinifera.studies import BASELINE, RANDOM, SKEWED, VINIFERA
from gossamer.sim.results.intervals import Value, half_width
from gossamer.sim.results.storage.place import LocalPlace
from gossamer.spark.crunch.claims import check_claims, check_names
from gossamer.spark.crunch.folders import Run

SIZES = (500, 1000)
# What overhead is without chance, such that V3 holds.
OVERHEADS = {
    (BASELINE, RANDOM): 0.82,
    (VINIFERA, RANDOM): 0.6,
    (BASELINE, SKEWED): 0.41,
    (VINIFERA, SKEWED): 0.1,
}


def swept(folder: Path, seeds: Sequence[int]) -> tuple[list[Run], list[Value]]:
    """Runs of a sweep over sizes, kinds, systems and seeds, with their overheads."""
    draw = np.random.default_rng(1)
    runs, values = [], []
    for seed, nodes, ((system, kind), overhead) in product(seeds, SIZES, OVERHEADS.items()):
        path = folder / f"{seed}-{nodes}-{system}-{kind}"
        path.mkdir()
        preset = "baseline" if system == BASELINE else "paper"
        (path / "scenario.toml").write_text(
            f"nodes = {nodes}\nrounds = 20\nseed = {seed}\n"
            f'[subscriptions]\nkind = "{kind}"\n'
            f'[[system]]\nname = "{system}"\npreset = "{preset}"\n'
        )
        runs.append(Run(name=path.name, path=LocalPlace(path), summary={}, systems=(), digest=""))
        value = overhead + float(draw.normal(0, 0.005))
        of_run: dict[str, Any] = {"run": path.name, "condition": (), "seed": seed, "system": system}
        values.append(Value(**of_run, measure="traffic_overhead", value=value, method="exact"))
    return runs, values


def test_a_claim_is_judged_with_student_s_interval_of_a_mean(tmp_path: Path) -> None:
    runs, values = swept(tmp_path, seeds=(1, 2, 3, 4, 5))
    (checked,) = check_claims(["V3"], runs, values)
    assert (checked.claim.id, checked.claim.verdict, checked.seeds) == ("V3", "holds", 5)
    rows = {check.name: (check, low, high) for check, low, high in checked.rows()}
    there = np.array([one.value for one in values if "-1000-baseline-random" in one.run])
    check, low, high = rows["baseline, random at 1,000 nodes"]
    assert check.value == pytest.approx(there.mean())
    assert (low, high) == pytest.approx(
        (there.mean() - half_width(there), there.mean() + half_width(there))
    )
    skewed = np.array([one.value for one in values if "-1000-baseline-skewed" in one.run])
    check, low, high = rows["baseline, skewed over random at 1,000 nodes"]
    assert check.value == pytest.approx(skewed.mean() / there.mean())
    assert low < check.value < high


def test_a_value_out_of_bounds_decides(tmp_path: Path) -> None:
    runs, values = swept(tmp_path, seeds=(1, 2))
    high = [attrs.evolve(one, value=0.9) if "vinifera-random" in one.run else one for one in values]
    (checked,) = check_claims(["V3"], runs, high)
    assert checked.claim.verdict == "differs"
    assert "Vinifera, random at 1,000 nodes 90.0 %" in checked.claim.reason
    assert "nan" not in checked.claim.reason


def test_one_seed_has_no_interval(tmp_path: Path) -> None:
    (checked,) = check_claims(["V3"], *swept(tmp_path, seeds=(1,)))
    assert checked.seeds == 1
    assert all(math.isnan(end) for ends in checked.ends for end in ends)


def test_runs_that_decide_have_to_be_there(tmp_path: Path) -> None:
    runs, values = swept(tmp_path, seeds=(1,))
    some = [one for one in values if "baseline-skewed" not in one.run]
    expected = r"--claim is 'V6', expected runs of baseline \(skewed\) among"
    with pytest.raises(ScenarioError, match=expected):
        check_claims(["V6"], runs, some)
    with pytest.raises(ScenarioError, match="--claim is 'V9', expected one of V3, V6"):
        check_names(["V3", "V9"])
