"""Synthetic churn: distributions against their formulas, models against their specifications."""

from __future__ import annotations

import runpy
import zlib
from collections.abc import Callable
from pathlib import Path

import attrs
import numpy as np
import pytest

from gossamer.sim.churn import (
    ChurnSpec,
    ChurnTrace,
    CorrelatedFailure,
    FlashCrowd,
    Lifetimes,
    Pareto,
    StationaryChurn,
    Weibull,
    generate,
    read_trace,
)
from gossamer.sim.churn.synthetic import make_turnover
from gossamer.sim.errors import ScenarioError
from support.checkout import ROOT
from support.sim_commands import printed_by

TRACES = ROOT / "traces"
LIFETIMES: list[Lifetimes] = [
    *(Weibull(100.0, shape) for shape in (0.5, 1.0, 2.0)),
    Pareto(100.0, 3.0),
]
CHURN = StationaryChurn(2000, Weibull(3000.0, 0.6), Pareto(2000.0, 3.0))


def online_at(trace: ChurnTrace, time_s: float) -> set[int]:
    chosen = (trace.start_s <= time_s) & (time_s < trace.end_s)
    return set(trace.node[chosen].tolist())


@pytest.mark.parametrize("lifetimes", LIFETIMES)
def test_lengths_have_their_mean_and_residual_lives_the_equilibrium(lifetimes: Lifetimes) -> None:
    """P(residual <= x) = integral of P(length > t) over [0, x], divided by the mean."""
    u = (np.arange(1_000_000) + 0.5) / 1_000_000
    lengths_s = lifetimes.length_s(u)
    assert np.mean(lengths_s) == pytest.approx(100.0, rel=0.01)
    for share in (0.1, 0.5, 0.9):
        x = float(lifetimes.residual_s(np.array([share]))[0])
        assert np.minimum(lengths_s, x).mean() / 100.0 == pytest.approx(share, abs=0.005)


def test_lengths_begin_at_zero_and_grow_with_the_draw() -> None:
    u = np.linspace(0, 1, 1000, endpoint=False)
    endless: Lifetimes = Pareto(1.0, 1.001)
    for lifetimes in [*LIFETIMES, endless]:
        for lengths_s in (lifetimes.length_s(u), lifetimes.residual_s(u)):
            assert lengths_s[0] == 0.0
            assert (lengths_s[1:] >= lengths_s[:-1]).all()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_stationary_churn_is_stationary_from_the_first_instant(seed: int) -> None:
    trace = generate(ChurnSpec(20_000, [CHURN]), seed)
    expected = CHURN.nodes * CHURN.availability
    deviation = np.sqrt(expected * (1 - CHURN.availability))
    population = trace.population([0, 10, 100, 1000, 5000, 19_999])
    assert (abs(population - expected) < 4.5 * deviation).all(), f"seed {seed}: {population}"


def test_sessions_have_the_mean_of_their_distribution() -> None:
    churn = StationaryChurn(300, Weibull(100.0, 0.7), Weibull(50.0, 0.7))
    trace = generate(ChurnSpec(20_000, [churn], resolution_s=0.001), seed=4)
    # A window of starts far from the end leaves out neither long nor short sessions.
    chosen = (trace.start_s > 0) & (trace.start_s < 15_000)
    mean_s = (trace.end_s - trace.start_s)[chosen].mean()
    assert mean_s == pytest.approx(100.0, rel=0.05), "seed 4"


def test_a_flash_crowd_joins_within_its_interval_and_part_of_it_stays() -> None:
    crowd = FlashCrowd(1000, at_s=600, within_s=120, stay=Weibull(300.0, 1.0), remain=0.4)
    trace = generate(ChurnSpec(7200, [crowd]), seed=5)
    assert trace.session_count == np.unique(trace.node).size == 1000
    assert 600 <= trace.start_s.min() <= trace.start_s.max() <= 720
    remain = np.count_nonzero(trace.end_s == 7200)
    assert 330 < remain < 470, "seed 5"
    at_once = FlashCrowd(50, at_s=600, within_s=0, stay=Weibull(300.0), remain=1.0)
    trace = generate(ChurnSpec(7200, [at_once]), seed=5)
    assert set(trace.start_s.tolist()) == {600.0}
    assert set(trace.end_s.tolist()) == {7200.0}


def test_failures_take_their_fractions_at_once_and_return_exactly_those_in_order_of_time() -> None:
    crowd = FlashCrowd(1000, at_s=0, within_s=0, stay=Weibull(1.0), remain=1.0)
    failure = CorrelatedFailure(at_s=1000, fraction=0.3, back_after_s=250)
    trace = generate(ChurnSpec(7200, [crowd], [failure]), seed=6)
    times_s = [999, 1000, 1249, 1250, 7199]
    assert trace.population(times_s).tolist() == [1000, 700, 700, 1000, 1000]
    late = CorrelatedFailure(at_s=1100, fraction=0.5, back_after_s=100)
    early = CorrelatedFailure(at_s=1000, fraction=0.5, back_after_s=1000)
    trace = generate(ChurnSpec(7200, [crowd], [late, early]), seed=8)
    assert trace.population([999, 1000, 1100, 1200, 2000]).tolist() == [1000, 500, 250, 500, 1000]


def test_a_failure_suspends_lives_and_leaves_others_alone() -> None:
    spec = ChurnSpec(20_000, [CHURN])
    failure = CorrelatedFailure(at_s=8000, fraction=0.5, back_after_s=600)
    calm = generate(spec, seed=7)
    struck = generate(attrs.evolve(spec, failures=[failure]), seed=7)
    assert calm.cut(0, 8000) == struck.cut(0, 8000)
    online = online_at(calm, 8000)
    victims = online - online_at(struck, 8000)
    assert len(victims) == round(0.5 * len(online))
    assert victims <= online_at(struck, 8600)
    for time_s in (8000, 9000, 15_000, 19_000):
        assert online_at(calm, time_s) - victims == online_at(struck, time_s) - victims
        assert online_at(calm, time_s) & victims == online_at(struck, time_s + 600) & victims


def test_a_part_changes_no_draw_of_another_and_times_are_multiples_of_the_resolution() -> None:
    crowd = FlashCrowd(100, at_s=600, within_s=120, stay=Weibull(300.0))
    alone = generate(ChurnSpec(7200, [CHURN]), seed=9)
    together = generate(ChurnSpec(7200, [CHURN, crowd]), seed=9)
    assert together.limited(CHURN.nodes) == alone
    trace = generate(ChurnSpec(1000.3, [CHURN], resolution_s=0.25), seed=10)
    inner = trace.end_s[trace.end_s < 1000.3]
    for times_s in (trace.start_s, inner):
        assert (times_s % 0.25 == 0).all()
    assert trace.end_s.max() == 1000.3


def test_a_seed_fixes_the_trace_and_the_hash_seed_of_python_changes_nothing() -> None:
    spec = ChurnSpec(7200, [CHURN])
    assert generate(spec, seed=1) == generate(spec, seed=1) != generate(spec, seed=2)
    program = (
        "from gossamer.sim.churn import *;"
        "crowd = FlashCrowd(99, 600, 120, Pareto(300.0), 0.4);"
        "spec = ChurnSpec(7200, [crowd], [CorrelatedFailure(900, 0.3, 250)]);"
        "print(generate(spec, 3).fingerprint())"
    )
    assert printed_by(program, "1") == printed_by(program, "2")


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: Weibull(0.0), "mean_s"),
        (lambda: Weibull(float("inf")), "mean_s"),
        (lambda: Weibull(1.0, 0.05), "shape"),
        (lambda: Pareto(1.0, 1.0), "shape"),
        (lambda: StationaryChurn(0, Weibull(1.0), Weibull(1.0)), "nodes"),
        (lambda: FlashCrowd(5, -1, 0, Weibull(1.0)), "at_s"),
        (lambda: FlashCrowd(5, 0, float("nan"), Weibull(1.0)), "within_s"),
        (lambda: FlashCrowd(5, 0, 0, Weibull(1.0), 1.5), "remain"),
        (lambda: CorrelatedFailure(0, -0.1, 5), "fraction"),
        (lambda: CorrelatedFailure(0, 0.1, 0), "back_after_s"),
        (lambda: ChurnSpec(100, []), "populations"),
        (lambda: ChurnSpec(0, [CHURN]), "duration_s"),
        (lambda: ChurnSpec(100, [CHURN], resolution_s=200), "resolution_s"),
        (lambda: ChurnSpec(100, [CHURN], [CorrelatedFailure(100, 0.1, 5)]), "at_s of Corr"),
        (lambda: ChurnSpec(100, [FlashCrowd(5, 200, 0, Weibull(1.0))]), "at_s of FlashCrowd"),
        (lambda: generate(ChurnSpec(100, [CHURN]), -1), "seed"),
    ],
)
def test_an_impossible_specification_is_named(build: Callable[[], object], field: str) -> None:
    with pytest.raises(ScenarioError, match=f"^{field}.* is .*, expected "):
        build()


@pytest.mark.parametrize("name", ["flash_crowd.avt.gz", "weibull_day.avt.gz"])
def test_the_script_makes_the_bundled_traces_again(name: str, tmp_path: Path) -> None:
    script = runpy.run_path(str(TRACES / "make_traces.py"))
    made = script["bundled"]()[name]
    bundled = read_trace(TRACES / name)
    assert made == bundled
    script["write_trace"](made, tmp_path / name)
    if "ng" in zlib.ZLIB_RUNTIME_VERSION:
        pytest.skip("zlib-ng compresses the same text to other bytes; the content is equal")
    assert (tmp_path / name).read_bytes() == (TRACES / name).read_bytes()


def test_the_bundled_traces_are_what_their_notes_say() -> None:
    trace = read_trace(TRACES / "flash_crowd.avt.gz")
    assert (len(trace.names), trace.duration_s) == (1000, 6 * 3600)
    before, after = trace.population([3600 - 1, 3600 + 300])
    assert after > 2 * before
    minutes = trace.population(np.arange(3600 + 300, 6 * 3600, 60))
    assert np.mean((minutes >= 550) & (minutes <= 700)) > 0.9
    whole, struck, returned = trace.population([4 * 3600 - 1, 4 * 3600, 4 * 3600 + 601])
    assert struck < 0.8 * whole < returned
    day = read_trace(TRACES / "weibull_day.avt.gz")
    assert (len(day.names), day.duration_s) == (1000, 24 * 3600)
    population = day.population(np.arange(0, 24 * 3600, 600))
    assert 530 < population.min() <= population.max() < 670


HOUR_S = 3600.0


@pytest.mark.parametrize("share", [0.1, 0.5, 3.0])
def test_as_many_are_replaced_as_asked_for_and_as_many_stay_online(share: float) -> None:
    trace = make_turnover(400, 10 * HOUR_S, share, seed=3)
    times = np.linspace(0, 10 * HOUR_S, 997, endpoint=False)
    assert (trace.population(times) == 200).all()
    replaced = trace.session_count - 200
    assert replaced == pytest.approx(share * 200 * 10, rel=0.02)
    leaves = np.sort(trace.end_s[trace.end_s < trace.duration_s])
    assert (leaves == np.sort(trace.start_s[trace.start_s > 0])).all()
    assert leaves.mean() == pytest.approx(5 * HOUR_S, rel=0.1)
    one, same, other = (make_turnover(50, HOUR_S, 0.5, seed) for seed in (1, 1, 2))
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()


def test_a_trace_played_backwards_has_the_same_sessions_the_other_way_round() -> None:
    trace = ChurnTrace(["a", "b"], [0, 0, 1], [0.0, 5.0, 2.0], [1.0, 10.0, 4.0], 10.0)
    back = trace.backwards()
    assert back.node.tolist() == [0, 1, 0]
    assert back.start_s.tolist() == [0.0, 6.0, 9.0]
    assert back.end_s.tolist() == [5.0, 8.0, 10.0]
    assert back.backwards() == trace
