"""The parts that figures are made of: what is planned, what is measured, how it is judged."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from gossamer.sim.errors import ScenarioError, SimulationError
from gossamer.sim.figures.common import points as running
from gossamer.sim.figures.common.claims import (
    COUNT,
    RATIO,
    SECONDS,
    SHARE,
    Check,
    Claim,
    side_by_side,
    write_claims,
)
from gossamer.sim.figures.common.measurements import PATH, TREE, Measurements
from gossamer.sim.figures.common.points import kept_beside, run_kept_points
from gossamer.sim.figures.covering.readings import READINGS
from gossamer.sim.figures.kindred import studies as kindred
from gossamer.sim.figures.kindred.bounds import CLAIMS, check_bounds
from gossamer.sim.figures.kindred.figures import find_data, formatted
from gossamer.sim.figures.kindred.plots import plot_sweep
from gossamer.sim.figures.kindred.studies import KINDRED, SYSTEMS
from gossamer.sim.figures.vinifera import studies as vinifera
from gossamer.sim.figures.vinifera.claims import expected_lookup_hops
from gossamer.sim.results.plot_style import plot_style
from gossamer.sim.studies.peers.inputs import scenario as peers
from gossamer.sim.studies.worlds.network import Link
from gossamer.sim.study.checkpoints import source_fingerprint
from gossamer.sim.study.tasks import run_tasks
from support.checkout import ROOT, shared_file
from support.made_up_runs import made_up_system

# Claims and checks


def test_a_check_holds_within_its_bounds_only_and_names_them() -> None:
    def at(value: float) -> bool:
        return Check(name="n", value=value, unit=RATIO, paper="1", low=0.5, high=1.5).holds

    assert [at(value) for value in (0.49, 0.5, 1.5, 1.51)] == [False, True, True, False]
    assert not at(math.nan)
    check = Check(name="overhead", value=0.3, unit=SHARE, high=0.24)
    assert check.finding() == "overhead 30.0 % (accepted: at most 24.0 %)"


def test_a_claim_holds_if_all_of_its_checks_do() -> None:
    good = Check(name="fine", value=0.25, unit=SHARE, paper="a quarter", low=0.2, high=0.3)
    bad = Check(name="poor", value=2.0, unit=RATIO, paper="below 1", high=1.0)
    holding = Claim(id="V1", claim="c", checks=[good], explanation="because", note="n")
    differing = Claim(id="V1", claim="c", checks=[good, bad], explanation="because", note="n")
    skipped = Claim(id="K9", claim="c", checks=[], explanation="", skipped="not run: no trace")
    assert (holding.verdict, holding.reason) == ("holds", "every value is within its bounds. n")
    assert differing.verdict == "differs"
    assert differing.measured == "fine 25.0 %; poor 2.00"
    assert differing.reason == "poor 2.00 (paper: below 1; accepted: at most 1.00). because. n"
    assert Claim(id="V1", claim="c", checks=[], explanation="").verdict == "differs"
    assert (skipped.verdict, skipped.reason) == ("skipped", "not run: no trace")
    assert not skipped.holds


def test_what_could_not_be_measured_is_written_as_nothing(tmp_path: Path) -> None:
    check = Check(name="gone", value=math.nan, unit=SHARE, paper="1", low=0.5)
    write_claims([Claim(id="V1", claim="c", checks=[check], explanation="")], tmp_path)
    (written,) = json.loads((tmp_path / "checks.json").read_text())
    assert (written["value"], written["low"], written["high"]) == (None, 0.5, None)
    assert written["holds"] is False
    (claim,) = json.loads((tmp_path / "claims.json").read_text())
    assert claim["measured"] == "gone not measured"


def test_values_are_printed_with_their_unit_and_in_tables() -> None:
    for value, unit, shown in (
        (0.25, SECONDS, "0.25 s"),
        (4_400, SECONDS, "4,400 s"),
        (23_999.6, COUNT, "24,000"),
        (0.0038, SHARE, "0.38 %"),
        (0.0, SHARE, "0 %"),
        (math.inf, COUNT, "not measured"),
    ):
        assert Check(name="n", value=value, unit=unit, paper="").measured() == f"n {shown}"
    for value, how, text in (
        (0.1234, "%", "12.3 %"),
        (1.0, "%%", "100 %"),
        (0.99999, "%%", "99.9990 %"),
        (0.98, "%%", "98.0 %"),
        (4.123, ".1f", "4.1"),
        (1234.0, ".0f", "1,234"),
        (math.nan, "%", "-"),
    ):
        assert formatted(value, how) == text


def test_an_alternative_with_other_bounds_is_refused() -> None:
    def claim(high: float) -> Claim:
        checks = [Check(name="n", value=1.0, unit=COUNT, paper="", high=high)]
        return Claim(id="P1", claim="c", checks=checks, explanation="e")

    (paired,) = side_by_side([claim(2.0)], [claim(2.0)], READINGS)
    assert paired.alternative is not None
    assert paired.entry()["alternative"]["verdict"] == "holds"
    with pytest.raises(ValueError, match="claim P1 has other bounds"):
        side_by_side([claim(2.0)], [claim(3.0)], READINGS)


# Points: runs of peers that are measured


def tiny_point(seed: int) -> running.Point:
    scenario = peers.Scenario(
        nodes=60,
        rounds=30,
        seed=seed,
        systems=(peers.System(name="paper"),),
        events=peers.Events(per_round=2, warm_up_rounds=20),
    )
    return running.Point(study="tiny", system="paper", kind="skewed", x=0, scenario=scenario)


def test_a_point_measures_what_it_ran() -> None:
    outcome = running.measure(tiny_point(3))
    measures = outcome.measures
    assert measures["events"] == 20
    assert measures["messages_per_event"] == measures["received"] / 20
    assert len(outcome.load) == 60
    assert np.all(np.diff(outcome.load) >= 0)
    assert measures["load_max"] == outcome.load[-1]


@pytest.mark.campaign
def test_points_do_not_depend_on_the_process_they_run_in_and_are_counted() -> None:
    points = [tiny_point(seed) for seed in (3, 4)]
    told: list[tuple[str, int, int]] = []
    here = run_tasks(points, 1, lambda *news: told.append(news))
    assert told == [("figures", 0, 2), ("figures", 1, 2), ("figures", 2, 2)]
    elsewhere = run_tasks(points, 2)
    assert [outcome.point for outcome in elsewhere] == points
    for one, other in zip(here, elsewhere, strict=True):
        assert one.measures == other.measures
        np.testing.assert_array_equal(one.load, other.load)


@pytest.mark.parametrize("processes", [1, 2])
def test_a_point_that_fails_is_named(processes: int) -> None:
    scenario = peers.Scenario(
        systems=(peers.System(name="baseline"),), churn=peers.Churn(trace="nowhere.avt")
    )
    point = running.Point(study="churn", system="baseline", kind="random", x=2, scenario=scenario)
    with pytest.raises(SimulationError, match=r"churn 2, baseline, random, seed 1: .*nowhere"):
        run_tasks([point], processes)


def kindred_points(**changes: Any) -> list[running.Point]:
    """What is planned of kindred, without data beside the checkout but for what is there."""
    plan = attrs.evolve(kindred.FULL, **changes)
    return kindred.plan_points(plan, find_data(plan, ROOT))


def kept_points() -> list[running.Point]:
    """Three points that take no time."""
    plan = attrs.evolve(kindred.QUICK, nodes=40, events=20, seeds=(1, 2, 3))
    points = kindred.plan_points(plan, find_data(plan, ROOT))
    wanted = ("ablation", KINDRED, "random")
    chosen = [point for point in points if (point.study, point.system, point.kind) == wanted]
    assert len(chosen) == 3
    return chosen


def test_what_was_measured_before_an_interruption_is_not_measured_again(tmp_path: Path) -> None:
    points = kept_points()
    kept = kept_beside(tmp_path / "out")
    told: list[int] = []

    def interrupt(_name: str, done: int, total: int) -> None:
        assert total == 3
        told.append(done)
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_kept_points(points, 1, kept, interrupt)
    assert len(list(kept.iterdir())) == 2
    again: list[int] = []
    outcomes = run_kept_points(points, 1, kept, lambda _name, done, _total: again.append(done))
    assert (told, again) == ([0, 1, 2], [2, 3])
    for one, other in zip(outcomes, run_tasks(points, 1), strict=True):
        assert one.point == other.point
        assert one.measures == pytest.approx(other.measures, nan_ok=True, rel=0, abs=0)


def test_what_other_sources_measured_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = kept_points()[:1]
    run_kept_points(points, 1, tmp_path / "kept")
    monkeypatch.setattr(
        "gossamer.sim.study.checkpoints.source_fingerprint", lambda: source_fingerprint()[::-1]
    )
    with pytest.raises(ScenarioError, match="of another version, expected one of this version"):
        run_kept_points(points, 1, tmp_path / "kept")


def test_no_system_delivers_more_than_nodes_take_and_hours_add_up_to_the_run() -> None:
    """Who wants all of 4 + 2 events takes 3 a round, 5 of 6; most want nearly all."""
    everything = peers.Subscriptions(kind="random", width=1.0)
    narrow = peers.Scenario(nodes=10, subscriptions=everything, network=Link(event_capacity=3))
    assert 5 / 6 <= running.feasible_hit_ratio(narrow, np.array([7, 7, 7, 7, 8, 8])) < 1
    assert running.feasible_hit_ratio(peers.Scenario(nodes=10), np.array([7, 7, 7, 7])) == 1.0
    record = made_up_system("paper", seed=5, nodes=60, cycles=150, period_s=60.0)
    hours = running.hourly(record)
    assert len({len(column) for column in hours.values()}) == 1
    assert hours["expected"].sum() == record.cycles["expected"].sum()
    assert np.nanmax(hours["path_length"]) <= record.deliveries["hops"].max()


# Vinifera


def test_the_real_trace_beside_the_checkout_is_preferred(tmp_path: Path) -> None:
    file = shared_file(tmp_path, "skype.avt.gz")
    trace = vinifera.find_trace(vinifera.QUICK, tmp_path / "checkout")
    assert trace.churn.trace == file
    assert (trace.churn.start_s, trace.churn.end_s) == (250 * 3600.0, 256 * 3600.0)
    assert "hours 250 to 256 of the Skype trace" in trace.description


@pytest.mark.parametrize("plan", [vinifera.FULL, vinifera.QUICK])
def test_points_of_a_plan_pair_both_systems(plan: Any) -> None:
    points = vinifera.plan_points(plan, vinifera.find_trace(plan, ROOT))
    assert len({point.label for point in points}) == len(points)
    seen: dict[tuple[str, str], set[tuple[str, float, int]]] = defaultdict(set)
    for point in points:
        seen[point.study, point.system].add((point.kind, point.x, point.scenario.seed))
    for study in {point.study for point in points} - {"friends", "friends_10000"}:
        assert seen[study, "paper"] == seen[study, "baseline"]


def test_expected_lookup_solves_its_recursion() -> None:
    """T(d) = 1 + (1 - k d / N) T(d - 1) + k/N sum of T below d, the model behind the formula."""
    nodes, links = 4000, 8
    hops = np.zeros(nodes)
    total = 0.0
    for d in range(1, nodes):
        chance = min(1.0, links / nodes * d)
        hops[d] = 1 + (1 - chance) * hops[d - 1] + chance * total / d
        total += hops[d]
    assert hops[-1] == pytest.approx(expected_lookup_hops(nodes, links), rel=0.1)


# Kindred


def test_points_of_the_full_plan_are_distinct_and_say_which_preset_they_have() -> None:
    points = kindred_points()
    assert len({point.label for point in points}) == len(points)
    assert {point.system for point in points} == {*SYSTEMS, *kindred.WITHOUT} - (
        {"no-suspicion"} if find_data(kindred.FULL, ROOT).real is None else set()
    )
    for point in points:
        (system,) = point.scenario.systems
        ours = point.system == KINDRED or point.system in kindred.WITHOUT
        assert (system.preset == "kindred") == ours


def test_with_the_real_trace_the_month_is_played_both_ways_and_faster(tmp_path: Path) -> None:
    shared_file(tmp_path, "skype.avt.gz")

    def planned(plan: Any) -> list[running.Point]:
        return kindred.plan_points(plan, find_data(plan, tmp_path / "checkout"))

    points = planned(kindred.FULL)
    played = {point.study: point.scenario.churn for point in points}
    assert played["month"] is not None
    assert played["fast"] == attrs.evolve(played["month"], time_scale=0.25)
    assert played["backwards"] == attrs.evolve(played["month"], backwards=True)
    assert all(
        not point.scenario.network.reports_unreachable
        for point in points
        if point.study in ("silent", "ablation_silent")
    )
    assert {"month", "silent"}.isdisjoint(point.study for point in planned(kindred.QUICK))


def outcome_of(point: running.Point, value: float) -> running.Outcome:
    """What a point might have measured: one and the same of everything."""
    measures = {bound.measure: value for _, bounds in CLAIMS.values() for bound in bounds}
    return running.Outcome(point=point, measures=measures, load=np.empty(0), hours={})


def test_bounds_are_judged_at_their_own_sizes_by_means_of_all_seeds() -> None:
    wanted = ("sizes", KINDRED, 1000.0)
    points = [one for one in kindred_points() if (one.study, one.system, one.x) == wanted]
    assert len(points) == 6
    values = {1: 0.0, 2: 0.01, 3: 0.02}
    found = Measurements([outcome_of(one, values[one.scenario.seed]) for one in points])
    claims = {claim.id: claim for claim in check_bounds(found, real_trace=True)}
    assert list(claims) == [f"K{number}" for number in range(1, 13)]
    assert {name for name, claim in claims.items() if not claim.skipped} == {"K1"}
    assert claims["K1"].holds
    assert [check.value for check in claims["K1"].checks] == pytest.approx([0.01] * 12)
    assert "mean of 3 seeds" in claims["K1"].reason
    worse = Measurements([outcome_of(one, 30.0) for one in points])
    (first, *_) = check_bounds(worse, real_trace=True)
    assert first.verdict == "differs"
    assert not any(check.holds for check in first.checks)
    other_sizes = kindred_points(nodes=300, attribute_nodes=100)
    found = Measurements([outcome_of(point, 1.0) for point in other_sizes])
    claims = {claim.id: claim for claim in check_bounds(found, real_trace=True)}
    assert all(claims[name].skipped for name in ("K4", "K5", "K6", "K7", "K12"))
    assert not any(claims[name].skipped for name in ("K1", "K2", "K3", "K8"))


def test_both_panels_of_a_sweep_show_all_of_their_lines() -> None:
    points = [point for point in kindred_points() if point.study == "sizes"]
    values = {"random": 1.0, "skewed": 50.0}
    found = Measurements([outcome_of(point, values[point.kind]) for point in points])
    with plot_style():
        figure = plot_sweep(found, "sizes", [PATH, TREE], "Path length (hops)", "nodes")
    for axes in figure.axes:
        low, high = axes.get_ylim()
        assert 0.0 < low < 1.0
        assert high > 50.0
        assert len(axes.containers) == 2 * len(SYSTEMS)
