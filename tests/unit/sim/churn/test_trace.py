"""Churn traces in memory; churn drawn by models, node by node, and fitted to a trace."""

from __future__ import annotations

import pickle
import runpy
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.sim import churn
from gossamer.sim.churn import ChurnSpec, ChurnTrace, FlashCrowd, Pareto, Weibull, generate
from gossamer.sim.churn.by_row import DAY_S, ChurnByRow, Turn, fit_churn
from gossamer.sim.churn.synthetic import make_turnover
from gossamer.sim.errors import ScenarioError, TraceError
from support.checkout import ROOT, SHARED_DATA
from support.sim_commands import printed_by

REAL = SHARED_DATA / "skype.avt.gz"
Session = tuple[int, float, float]


def trace_of(*sessions: Session, names: str = "abc", end: float = 10) -> ChurnTrace:
    node, start_s, end_s = zip(*sessions, strict=True) if sessions else ((), (), ())
    return ChurnTrace(tuple(names), node, start_s, end_s, end)


def sessions_of(trace: ChurnTrace) -> list[tuple[int, float, float]]:
    columns = (trace.node.tolist(), trace.start_s.tolist(), trace.end_s.tolist())
    return list(zip(*columns, strict=True))


def test_a_trace_prints_as_one_line() -> None:
    assert repr(trace_of((1, 0, 4), (0, 5, 9))) == (
        "ChurnTrace(3 nodes, 2 sessions, duration_s=10.0)"
    )


def test_columns_are_sorted_by_start_then_node_typed_and_read_only() -> None:
    trace = trace_of((2, 5, 6), (1, 0, 4), (0, 5, 9))
    assert sessions_of(trace) == [(1, 0.0, 4.0), (0, 5.0, 9.0), (2, 5.0, 6.0)]
    columns = (trace.node, trace.start_s, trace.end_s)
    assert [column.dtype.name for column in columns] == ["int32", "float64", "float64"]
    with pytest.raises(ValueError, match="read-only"):
        trace.start_s[0] = 1.0
    start_s = np.array([1.0])
    ChurnTrace(("a",), [0], start_s, [2.0], 3.0)
    start_s[0] = 9.0  # the caller's array stays writeable
    assert start_s[0] == 9.0


@pytest.mark.parametrize(
    ("sessions", "field", "value"),
    [
        ([(0, -1, 2)], "start_s", -1.0),
        ([(0, float("nan"), 2)], "start_s", None),
        ([(0, 1, float("inf"))], "end_s", float("inf")),
        ([(0, 1, float("nan"))], "end_s", None),
        ([(0, 4, 3)], "end_s", 3.0),
        ([(0, 4, 4)], "end_s", 4.0),
        ([(0, 0, 5), (0, 4, 6)], "start_s", 4.0),
        ([(3, 0, 5)], "node", 3),
        ([(-1, 0, 5)], "node", -1),
        ([(0, 0, 11)], "duration_s", 10.0),
    ],
)
def test_an_impossible_session_is_named(sessions: Any, field: str, value: float | None) -> None:
    with pytest.raises(TraceError) as caught:
        trace_of(*sessions)
    assert caught.value.field == field
    assert value is None or caught.value.value == value


def test_names_are_present_distinct_and_text_and_columns_of_one_length() -> None:
    for names in ((), ("a", "a"), ("a", ""), ("a", "\ud800")):
        with pytest.raises(TraceError, match="expected"):
            ChurnTrace(names, [], [], [], 1.0)
    with pytest.raises(TraceError, match="one length"):
        ChurnTrace(("a",), [0], [1.0, 2.0], [3.0], 5.0)


def test_population_has_the_shape_of_its_instants() -> None:
    trace = trace_of((0, 0, 5), (1, 2, 5), (2, 5, 10))
    assert trace.population([[0, 2], [5, 10]]).tolist() == [[1, 2], [1, 0]]
    assert trace.population(2).shape == ()


def test_at_one_instant_leaves_come_before_joins_and_nodes_in_order() -> None:
    transitions = trace_of((1, 0, 5), (0, 0, 5), (2, 5, 7), (0, 5, 6)).transitions()
    at_five = transitions.time_s == 5
    changes = zip(transitions.node[at_five].tolist(), transitions.up[at_five].tolist(), strict=True)
    assert list(changes) == [(0, False), (1, False), (0, True), (2, True)]


def test_cut_clips_sessions_and_sets_the_clock_to_zero() -> None:
    trace = trace_of((0, 0, 5), (1, 2, 4), (2, 4, 10), (1, 6, 7)).cut(4, 6)
    assert sessions_of(trace) == [(0, 0.0, 1.0), (2, 0.0, 2.0)]
    assert (trace.names, trace.duration_s) == (("a", "b", "c"), 2.0)


def test_loop_joins_sessions_across_the_seam_only_and_never_overlaps() -> None:
    trace = trace_of((0, 0, 10), (1, 0, 3), (1, 3, 4), (1, 8, 10), (2, 1, 10)).looped(2)
    assert sessions_of(trace) == [
        *((0, 0.0, 20.0), (1, 0.0, 3.0), (2, 1.0, 10.0), (1, 3.0, 4.0), (1, 8.0, 13.0)),
        *((2, 11.0, 20.0), (1, 13.0, 14.0), (1, 18.0, 20.0)),
    ]
    assert sessions_of(trace_of((0, 0, 0.1), end=0.1).looped(1000)) == [(0, 0.0, 100.0)]


def test_renamed_changes_names_only_and_scaled_leaves_out_sessions_of_nothing() -> None:
    trace = trace_of((0, 1, 2))
    renamed = trace.renamed("xyz")
    assert (renamed.names, sessions_of(renamed)) == (("x", "y", "z"), sessions_of(trace))
    with pytest.raises(TraceError, match="number of names is 2, expected 3"):
        trace.renamed("xy")
    trace = trace_of((0, 1, np.nextafter(1.0, 2.0)), (1, 0, 10))
    assert sessions_of(trace.scaled(2.0**-1060)) == [(1, 0.0, 10 * 2.0**-1060)]


def test_impossible_scale_factors_windows_and_counts_are_refused() -> None:
    trace, nan = trace_of((0, 0, 1)), float("nan")
    for factor in (0, -1, nan, float("inf"), 1e308):
        with pytest.raises(ScenarioError, match="scale factor is"):
            trace.scaled(factor)
    for window in ((-1, 5), (5, 5), (6, 5), (0, 11), (0, nan)):
        with pytest.raises(ScenarioError, match="window of the cut is"):
            trace.cut(*window)
    with pytest.raises(ScenarioError, match="number of loops is 0, expected"):
        trace.looped(0)
    for nodes in (0, 4):
        with pytest.raises(ScenarioError, match=f"number of nodes is {nodes}, expected 1 to 3"):
            trace.limited(nodes)


def test_the_fingerprint_tells_every_part_of_the_content_on_every_platform() -> None:
    trace = trace_of((0, 0, 1), (1, 2, 3))
    others = [
        *(trace_of((0, 0, 1), other) for other in [(1, 2, 4), (1, 2.5, 3), (2, 2, 3)]),
        trace_of((0, 0, 1), (1, 2, 3), end=11),
        *(trace.renamed(names) for names in [["a", "b", "d"], ["ab", "c", "d"], ["a", "bc", "d"]]),
    ]
    assert len({other.fingerprint() for other in [trace, *others]}) == len(others) + 1
    assert trace_of((1, 2, 3), (0, -0.0, 1)).fingerprint() == trace.fingerprint()
    fingerprint = trace_of((0, 0, 1.5), (1, 2, 3)).fingerprint()
    assert fingerprint == "07f630b392e9d2e1d845f32e788d6af5c0df5b87c36a5463ddd781a984c968ff"


def test_errors_keep_their_parts_and_survive_pickling() -> None:
    error = TraceError("t.avt", "start_s", "x" * 500, "a number", line=7)
    again = pickle.loads(pickle.dumps(error))
    assert (again.file, again.line, again.value, str(again)) == ("t.avt", 7, "x" * 500, str(error))
    assert str(error).startswith("t.avt, line 7: start_s is 'xxx")
    assert len(str(error)) < 150
    assert str(ScenarioError(None, "nodes", 0, "at least 1")) == "nodes is 0, expected at least 1"


# Churn of nodes that are asked for one by one, and what is fitted to a trace


def made(**changes: object) -> ChurnByRow:
    """A week of 2,000 nodes."""
    fields: dict[str, object] = {"seed": 1, "nodes": 2_000, "duration_s": 7 * DAY_S}
    lives = {"sessions": Weibull(14_400.0, 0.6), "absences": Weibull(28_800.0, 0.7)}
    return ChurnByRow(**(fields | lives | changes))  # type: ignore[arg-type]


@given(seed=st.integers(0, 2**40), rhythm=st.floats(0, 0.9), first=st.integers(0, 30))
def test_sessions_of_a_node_hang_on_its_number_alone(seed: int, rhythm: float, first: int) -> None:
    crowd = FlashCrowd(nodes=10, at_s=DAY_S, within_s=3600.0, stay=Pareto(3600.0))
    spec = made(seed=seed, nodes=30, rhythm=rhythm, crowds=(crowd,))
    node, start, end = spec.sessions_of(np.arange(40))
    chosen = node == first
    apart = spec.sessions_of(np.array([first]))
    assert (apart[1].tolist(), apart[2].tolist()) == (start[chosen].tolist(), end[chosen].tolist())
    assert (start == np.rint(start)).all()


def test_sessions_make_a_sound_trace_of_the_asked_availability_and_rhythm() -> None:
    spec = made()
    trace = spec.trace()  # which refuses sessions that overlap or are empty
    online = (trace.end_s - trace.start_s).sum() / (spec.nodes * spec.duration_s)
    assert online == pytest.approx(spec.availability, abs=0.02)
    daily = made(rhythm=0.8, peak_s=DAY_S / 2, sessions=Weibull(1_800.0, 1.0))
    _, start, _ = daily.sessions_of(np.arange(2_000))
    begun = start[start > 0] % DAY_S
    by_day = ((begun > DAY_S / 4) & (begun < 3 * DAY_S / 4)).sum()
    assert by_day > 1.5 * (len(begun) - by_day)


@pytest.mark.parametrize("distribution", ["weibull", "pareto"])
def test_a_fit_finds_what_a_trace_was_made_of(distribution: str) -> None:
    kind = Weibull if distribution == "weibull" else Pareto
    shapes = (0.7, 0.8) if kind is Weibull else (3.5, 4.0)
    lives = {"sessions": kind(7_200.0, shapes[0]), "absences": kind(10_800.0, shapes[1])}
    wanted = made(**lives, rhythm=0.5, peak_s=DAY_S / 3, duration_s=14 * DAY_S)
    found = fit_churn(wanted.trace(), 2, distribution)
    assert found.availability == pytest.approx(wanted.availability, abs=0.02)
    assert found.sessions.mean_s == pytest.approx(7_200.0, rel=0.1)
    assert found.rhythm == pytest.approx(0.4, abs=0.2)  # absences end in the rhythm, joins lag
    assert abs(found.peak_s - DAY_S / 3) < DAY_S / 8
    assert found.turns == ()


def test_a_fit_finds_a_flash_crowd() -> None:
    crowd = FlashCrowd(nodes=800, at_s=3 * DAY_S, within_s=1_800.0, stay=Weibull(3_600.0, 1.0))
    trace = made(crowds=(crowd,)).trace()
    found = fit_churn(trace, 1)
    (turn,) = found.turns
    assert (turn.at_s, turn.joins) == (3 * DAY_S, True)
    around = np.array([3 * DAY_S - 1.0, 3 * DAY_S + 3_600.0])
    before, after = trace.population(around)
    refitted = found.trace().population(around)
    assert refitted[1] - refitted[0] == pytest.approx(after - before, rel=0.3)


def test_turns_bring_nodes_back_and_take_them_away() -> None:
    half_leave = Turn(at_s=2 * DAY_S, within_s=60.0, joins=False, share=0.5)
    all_join = Turn(at_s=3 * DAY_S, within_s=60.0, joins=True, share=1.0)
    moments = np.array([2 * DAY_S, 2 * DAY_S + 61, 3 * DAY_S + 61])
    whole, half, everybody = made(turns=(half_leave, all_join)).trace().population(moments)
    assert half == pytest.approx(whole / 2, rel=0.1)
    assert everybody > 1_900  # of those who come, one in twenty stays less than a minute


def test_what_never_comes_or_goes_is_refused() -> None:
    with pytest.raises(ScenarioError, match="availability of the trace is 1"):
        fit_churn(trace_of((0, 0, 10), names="a"), 1)
    with pytest.raises(ScenarioError, match="weibull or pareto"):
        fit_churn(made(nodes=5).trace(), 1, "normal")


@pytest.mark.shared_data
@pytest.mark.skipif(not REAL.exists(), reason="needs skype.avt.gz in shared/data")
def test_a_fit_to_the_real_trace_has_its_population_and_crowds() -> None:
    trace = churn.read_trace(REAL)
    fit = fit_churn(trace, 1)
    again = fit.trace()
    hours = np.arange(1.0, trace.duration_s / 3600) * 3600.0
    seen, remade = trace.population(hours).mean(), again.population(hours).mean()
    assert remade == pytest.approx(seen, rel=0.15)
    assert {3, 147, 252} <= {round(turn.at_s / 3600) for turn in fit.turns if turn.joins}
    whole = (trace.start_s > 0) & (trace.end_s < trace.duration_s)
    lengths = np.sort((trace.end_s - trace.start_s)[whole])
    shares = np.arange(1, 200) / 200
    below = np.searchsorted(lengths, fit.sessions.length_s(shares), side="right") / len(lengths)
    assert np.abs(below - shares).max() < 0.3


# Churn drawn by models, against formulas and specifications

TRACES = ROOT / "traces"
WEIBULL = [Weibull(100.0, shape) for shape in (0.5, 1.0, 2.0)]
LIFETIMES: list[churn.Lifetimes] = [*WEIBULL, Pareto(100.0, 3.0)]
CHURN = churn.StationaryChurn(2000, Weibull(3000.0, 0.6), Pareto(2000.0, 3.0))


def online_at(trace: ChurnTrace, time_s: float) -> set[int]:
    return set(trace.node[(trace.start_s <= time_s) & (time_s < trace.end_s)].tolist())


@pytest.mark.parametrize("lifetimes", LIFETIMES)
def test_lengths_have_their_mean_and_residual_lives_the_equilibrium(
    lifetimes: churn.Lifetimes,
) -> None:
    """P(residual <= x) = integral of P(length > t) over [0, x], divided by the mean."""
    lengths_s = lifetimes.length_s((np.arange(1_000_000) + 0.5) / 1_000_000)
    assert np.mean(lengths_s) == pytest.approx(100.0, rel=0.01)
    for share in (0.1, 0.5, 0.9):
        x = float(lifetimes.residual_s(np.array([share]))[0])
        assert np.minimum(lengths_s, x).mean() / 100.0 == pytest.approx(share, abs=0.005)


def test_lengths_begin_at_zero_and_grow_with_the_draw() -> None:
    u = np.linspace(0, 1, 1000, endpoint=False)
    for lifetimes in [*LIFETIMES, Pareto(1.0, 1.001)]:  # whose mean nearly has no end
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
    stationary = churn.StationaryChurn(300, Weibull(100.0, 0.7), Weibull(50.0, 0.7))
    trace = generate(ChurnSpec(20_000, [stationary], resolution_s=0.001), seed=4)
    # A window of starts far from the end leaves out neither long nor short sessions.
    mean_s = (trace.end_s - trace.start_s)[(trace.start_s > 0) & (trace.start_s < 15_000)].mean()
    assert mean_s == pytest.approx(100.0, rel=0.05), "seed 4"


def test_a_flash_crowd_joins_within_its_interval_and_part_of_it_stays() -> None:
    crowd = FlashCrowd(1000, at_s=600, within_s=120, stay=Weibull(300.0, 1.0), remain=0.4)
    trace = generate(ChurnSpec(7200, [crowd]), seed=5)
    assert trace.session_count == np.unique(trace.node).size == 1000
    assert 600 <= trace.start_s.min() <= trace.start_s.max() <= 720
    assert 330 < np.count_nonzero(trace.end_s == 7200) < 470, "seed 5"
    at_once = FlashCrowd(50, at_s=600, within_s=0, stay=Weibull(300.0), remain=1.0)
    trace = generate(ChurnSpec(7200, [at_once]), seed=5)
    assert (set(trace.start_s.tolist()), set(trace.end_s.tolist())) == ({600.0}, {7200.0})


def test_failures_take_their_fractions_at_once_and_return_exactly_those_in_order_of_time() -> None:
    crowd = FlashCrowd(1000, at_s=0, within_s=0, stay=Weibull(1.0), remain=1.0)
    failure = churn.CorrelatedFailure(at_s=1000, fraction=0.3, back_after_s=250)
    trace = generate(ChurnSpec(7200, [crowd], [failure]), seed=6)
    assert trace.population([999, 1000, 1249, 1250, 7199]).tolist() == [1000, 700, 700, 1000, 1000]
    late = churn.CorrelatedFailure(at_s=1100, fraction=0.5, back_after_s=100)
    early = churn.CorrelatedFailure(at_s=1000, fraction=0.5, back_after_s=1000)
    trace = generate(ChurnSpec(7200, [crowd], [late, early]), seed=8)
    assert trace.population([999, 1000, 1100, 1200, 2000]).tolist() == [1000, 500, 250, 500, 1000]


def test_a_failure_suspends_lives_and_leaves_others_alone() -> None:
    spec = ChurnSpec(20_000, [CHURN])
    failure = churn.CorrelatedFailure(at_s=8000, fraction=0.5, back_after_s=600)
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
    assert generate(ChurnSpec(7200, [CHURN, crowd]), seed=9).limited(CHURN.nodes) == alone
    trace = generate(ChurnSpec(1000.3, [CHURN], resolution_s=0.25), seed=10)
    for times_s in (trace.start_s, trace.end_s[trace.end_s < 1000.3]):
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
        (lambda: churn.StationaryChurn(0, Weibull(1.0), Weibull(1.0)), "nodes"),
        (lambda: FlashCrowd(5, -1, 0, Weibull(1.0)), "at_s"),
        (lambda: FlashCrowd(5, 0, float("nan"), Weibull(1.0)), "within_s"),
        (lambda: FlashCrowd(5, 0, 0, Weibull(1.0), 1.5), "remain"),
        (lambda: churn.CorrelatedFailure(0, -0.1, 5), "fraction"),
        (lambda: churn.CorrelatedFailure(0, 0.1, 0), "back_after_s"),
        (lambda: ChurnSpec(100, []), "populations"),
        (lambda: ChurnSpec(0, [CHURN]), "duration_s"),
        (lambda: ChurnSpec(100, [CHURN], resolution_s=200), "resolution_s"),
        (lambda: ChurnSpec(100, [CHURN], [churn.CorrelatedFailure(100, 0.1, 5)]), "at_s of Corr"),
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
    assert made == churn.read_trace(TRACES / name)
    script["write_trace"](made, tmp_path / name)
    if "ng" in zlib.ZLIB_RUNTIME_VERSION:
        pytest.skip("zlib-ng compresses the same text to other bytes; the content is equal")
    assert (tmp_path / name).read_bytes() == (TRACES / name).read_bytes()


def test_the_bundled_traces_are_what_their_notes_say() -> None:
    trace = churn.read_trace(TRACES / "flash_crowd.avt.gz")
    assert (len(trace.names), trace.duration_s) == (1000, 6 * 3600)
    before, after = trace.population([3600 - 1, 3600 + 300])
    assert after > 2 * before
    minutes = trace.population(np.arange(3600 + 300, 6 * 3600, 60))
    assert np.mean((minutes >= 550) & (minutes <= 700)) > 0.9
    whole, struck, returned = trace.population([4 * 3600 - 1, 4 * 3600, 4 * 3600 + 601])
    assert struck < 0.8 * whole < returned
    day = churn.read_trace(TRACES / "weibull_day.avt.gz")
    assert (len(day.names), day.duration_s) == (1000, 24 * 3600)
    population = day.population(np.arange(0, 24 * 3600, 600))
    assert 530 < population.min() <= population.max() < 670


HOUR_S = 3600.0


@pytest.mark.parametrize("share", [0.1, 0.5, 3.0])
def test_as_many_are_replaced_as_asked_for_and_as_many_stay_online(share: float) -> None:
    trace = make_turnover(400, 10 * HOUR_S, share, seed=3)
    assert (trace.population(np.linspace(0, 10 * HOUR_S, 997, endpoint=False)) == 200).all()
    assert trace.session_count - 200 == pytest.approx(share * 200 * 10, rel=0.02)
    leaves = np.sort(trace.end_s[trace.end_s < trace.duration_s])
    assert (leaves == np.sort(trace.start_s[trace.start_s > 0])).all()
    assert leaves.mean() == pytest.approx(5 * HOUR_S, rel=0.1)
    one, same, other = (make_turnover(50, HOUR_S, 0.5, seed).fingerprint() for seed in (1, 1, 2))
    assert one == same != other


def test_a_trace_played_backwards_has_the_same_sessions_the_other_way_round() -> None:
    trace = ChurnTrace(["a", "b"], [0, 0, 1], [0.0, 5.0, 2.0], [1.0, 10.0, 4.0], 10.0)
    back = trace.backwards()
    assert (back.node.tolist(), back.start_s.tolist()) == ([0, 1, 0], [0.0, 6.0, 9.0])
    assert (back.end_s.tolist(), back.backwards()) == ([5.0, 8.0, 10.0], trace)
