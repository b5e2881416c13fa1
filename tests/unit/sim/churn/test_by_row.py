"""Churn drawn node by node, and fitted to a trace."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.sim.churn import FlashCrowd, Pareto, Weibull, read_trace
from gossamer.sim.churn.by_row import DAY_S, ChurnByRow, Turn
from gossamer.sim.churn.fitting import fit_churn
from gossamer.sim.churn.trace import ChurnTrace
from gossamer.sim.errors import ScenarioError
from support.checkout import ROOT

REAL = ROOT.parent / "shared" / "data" / "skype.avt.gz"


def made(**changes: object) -> ChurnByRow:
    """A week of 2,000 nodes."""
    fields: dict[str, object] = {
        "seed": 1,
        "nodes": 2_000,
        "duration_s": 7 * DAY_S,
        "sessions": Weibull(14_400.0, 0.6),
        "absences": Weibull(28_800.0, 0.7),
    }
    return ChurnByRow(**(fields | changes))  # type: ignore[arg-type]


@given(seed=st.integers(0, 2**40), rhythm=st.floats(0, 0.9), first=st.integers(0, 30))
def test_the_sessions_of_a_node_hang_on_its_number_alone(
    seed: int, rhythm: float, first: int
) -> None:
    crowd = FlashCrowd(nodes=10, at_s=DAY_S, within_s=3600.0, stay=Pareto(3600.0))
    spec = made(seed=seed, nodes=30, rhythm=rhythm, crowds=(crowd,))
    node, start, end = spec.sessions_of(np.arange(40))
    chosen = node == first
    apart = spec.sessions_of(np.array([first]))
    assert apart[1].tolist() == start[chosen].tolist()
    assert apart[2].tolist() == end[chosen].tolist()
    assert (start == np.rint(start)).all()


def test_sessions_make_a_sound_trace_of_the_asked_availability() -> None:
    spec = made()
    trace = spec.trace()  # which refuses sessions that overlap or are empty
    online = (trace.end_s - trace.start_s).sum() / (spec.nodes * spec.duration_s)
    assert online == pytest.approx(spec.availability, abs=0.02)


def test_with_a_rhythm_more_nodes_come_by_day() -> None:
    _, start, _ = made(rhythm=0.8, peak_s=DAY_S / 2, sessions=Weibull(1_800.0, 1.0)).sessions_of(
        np.arange(2_000)
    )
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
    always = ChurnTrace(("a",), [0], [0.0], [100.0], 100.0)
    with pytest.raises(ScenarioError, match="availability of the trace is 1"):
        fit_churn(always, 1)
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
