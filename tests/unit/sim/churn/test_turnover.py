"""Turnover, and traces played backwards."""

from __future__ import annotations

import numpy as np
import pytest

from gossamer.sim.churn import ChurnTrace
from gossamer.sim.churn.turnover import make_turnover

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


def test_turnover_is_decided_by_its_seed() -> None:
    one, same, other = (make_turnover(50, HOUR_S, 0.5, seed) for seed in (1, 1, 2))
    assert one.fingerprint() == same.fingerprint() != other.fingerprint()


def test_a_trace_played_backwards_has_the_same_sessions_the_other_way_round() -> None:
    trace = ChurnTrace(["a", "b"], [0, 0, 1], [0.0, 5.0, 2.0], [1.0, 10.0, 4.0], 10.0)
    back = trace.backwards()
    assert back.node.tolist() == [0, 1, 0]
    assert back.start_s.tolist() == [0.0, 6.0, 9.0]
    assert back.end_s.tolist() == [5.0, 8.0, 10.0]
    assert back.backwards() == trace
