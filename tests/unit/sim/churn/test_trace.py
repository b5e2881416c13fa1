"""Churn traces in memory, and churn drawn node by node and fitted to a trace."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.sim.churn import ChurnTrace, FlashCrowd, Pareto, Weibull, read_trace
from gossamer.sim.churn.by_row import DAY_S, ChurnByRow, Turn
from gossamer.sim.churn.fitting import fit_churn
from gossamer.sim.errors import ScenarioError, TraceError
from support.checkout import ROOT


def trace_of(
    *sessions: tuple[int, float, float], names: str = "abc", end: float = 10
) -> ChurnTrace:
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
    assert renamed.names == ("x", "y", "z")
    assert sessions_of(renamed) == sessions_of(trace)
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
        trace_of((0, 0, 1), (1, 2, 4)),
        trace_of((0, 0, 1), (1, 2.5, 3)),
        trace_of((0, 0, 1), (2, 2, 3)),
        trace_of((0, 0, 1), (1, 2, 3), end=11),
        trace_of((0, 0, 1), (1, 2, 3), names="abd"),
        trace_of((0, 0, 1), (1, 2, 3)).renamed(["ab", "c", "d"]),
        trace_of((0, 0, 1), (1, 2, 3)).renamed(["a", "bc", "d"]),
    ]
    assert len({other.fingerprint() for other in [trace, *others]}) == len(others) + 1
    assert trace_of((1, 2, 3), (0, -0.0, 1)).fingerprint() == trace.fingerprint()
    fingerprint = trace_of((0, 0, 1.5), (1, 2, 3)).fingerprint()
    assert fingerprint == "07f630b392e9d2e1d845f32e788d6af5c0df5b87c36a5463ddd781a984c968ff"


def test_errors_keep_their_parts_and_survive_pickling() -> None:
    error = TraceError("t.avt", "start_s", "x" * 500, "a number", line=7)
    again = pickle.loads(pickle.dumps(error))
    assert (again.file, again.line, again.value) == ("t.avt", 7, "x" * 500)
    assert str(again) == str(error)
    assert str(error).startswith("t.avt, line 7: start_s is 'xxx")
    assert len(str(error)) < 150
    assert str(ScenarioError(None, "nodes", 0, "at least 1")) == "nodes is 0, expected at least 1"


REAL = ROOT.parent / "shared" / "data" / "skype.avt.gz"


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
    assert apart[1].tolist() == start[chosen].tolist()
    assert apart[2].tolist() == end[chosen].tolist()
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
    wanted = made(
        sessions=kind(7_200.0, shapes[0]),
        absences=kind(10_800.0, shapes[1]),
        rhythm=0.5,
        peak_s=DAY_S / 3,
        duration_s=14 * DAY_S,
    )
    found = fit_churn(wanted.trace(), 2, distribution).spec
    assert found.availability == pytest.approx(wanted.availability, abs=0.02)
    assert found.sessions.mean_s == pytest.approx(7_200.0, rel=0.1)
    assert found.rhythm == pytest.approx(0.4, abs=0.2)  # absences end in the rhythm, joins lag
    assert abs(found.peak_s - DAY_S / 3) < DAY_S / 8
    assert found.turns == ()


def test_a_fit_finds_a_flash_crowd() -> None:
    crowd = FlashCrowd(nodes=800, at_s=3 * DAY_S, within_s=1_800.0, stay=Weibull(3_600.0, 1.0))
    trace = made(crowds=(crowd,)).trace()
    found = fit_churn(trace, 1).spec
    (turn,) = found.turns
    assert (turn.at_s, turn.joins) == (3 * DAY_S, True)
    around = np.array([3 * DAY_S - 1.0, 3 * DAY_S + 3_600.0])
    before, after = trace.population(around)
    refitted = found.trace().population(around)
    assert refitted[1] - refitted[0] == pytest.approx(after - before, rel=0.3)


def test_turns_bring_nodes_back_and_take_them_away() -> None:
    turns = (
        Turn(at_s=2 * DAY_S, within_s=60.0, joins=False, share=0.5),
        Turn(at_s=3 * DAY_S, within_s=60.0, joins=True, share=1.0),
    )
    moments = np.array([2 * DAY_S, 2 * DAY_S + 61, 3 * DAY_S + 61])
    whole, half, everybody = made(turns=turns).trace().population(moments)
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
    trace = read_trace(REAL)
    fit = fit_churn(trace, 1)
    again = fit.spec.trace()
    hours = np.arange(1.0, trace.duration_s / 3600) * 3600.0
    seen, remade = trace.population(hours).mean(), again.population(hours).mean()
    assert remade == pytest.approx(seen, rel=0.15)
    crowds = {round(turn.at_s / 3600) for turn in fit.spec.turns if turn.joins}
    assert {3, 147, 252} <= crowds
    assert fit.ks_sessions < 0.3
