"""The push-sum example, and what `protocol_run` gives to scripts."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from gossamer.sim.engine.event_engine import EventEngine
from gossamer.sim.engine.latency import uniform_latency
from gossamer.sim.engine.link_conditions import make_link_conditions
from gossamer.sim.engine.protocol_run import Engine, ProtocolRun, Schedule, once
from gossamer.sim.errors import ScenarioError
from support.checkout import ROOT
from support.ping_protocol import TICK, make_pings, ping_step

SCRIPT = ROOT / "examples" / "push_sum" / "push_sum.py"


@pytest.fixture(scope="module")
def push_sum() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("push_sum", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["push_sum"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["push_sum"]


def test_push_sum_finds_the_average_and_after_a_change_the_new_one(
    push_sum: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    """Variance falls at least by a fifth each cycle; values and weights are conserved."""
    run = push_sum.main(nodes=1000, cycles=60)
    variance = np.array(run.columns["variance"])
    assert run.columns["cycle"] == list(range(61))
    assert variance[0] > 0.05
    assert variance[30] < variance[0] * 0.8**30
    assert variance[31] > 0.01
    assert variance[60] < variance[31] * 0.8**29
    state = run.engine.state
    average = np.random.default_rng(1).random(1000).mean() + 334 / 1000
    assert np.allclose(state.total / state.weight, average, atol=1e-3)
    assert np.isclose(state.weight.sum(), 1000, rtol=1e-12)
    assert "variance" in capsys.readouterr().out


def test_push_sum_runs_under_the_event_engine(push_sum: ModuleType) -> None:
    """Messages under way hold a part of the sum, and nothing of it is lost."""
    nodes = 500
    state = push_sum.Shares(total=np.arange(nodes, dtype=float), weight=np.ones(nodes))
    links = make_link_conditions(nodes, latency=uniform_latency(0, 400))
    timers = (push_sum.TURN,)
    engine = EventEngine(state, push_sum.step, timers, make_network(nodes), 1, links=links)
    run = ProtocolRun(engine, observers={"variance": push_sum.variance})
    variance = run.run(40)["variance"]
    assert variance[40] < 1e-3 * variance[0]
    assert 0.5 * nodes < state.weight.sum() <= nodes


def test_the_script_stays_under_40_lines_of_code() -> None:
    source = SCRIPT.read_text()
    documentation = ast.get_docstring(ast.parse(source), clean=False) or ""
    lines = source.replace(f'"""{documentation}"""', "").splitlines()
    assert 20 < sum(bool(line.strip()) for line in lines) < 40


def test_a_schedule_names_its_cycles() -> None:
    for schedule, cycles in (
        (Schedule(), [0, 1, 2, 3, 4, 5, 6, 7]),
        (Schedule(every=3), [0, 3, 6]),
        (Schedule(every=3, begin=2, end=8), [2, 5]),
        (once(4), [4]),
    ):
        assert [cycle for cycle in range(8) if cycle in schedule] == cycles
    for field, wrong in (("every", 0), ("begin", -1)):
        with pytest.raises(ScenarioError, match=rf"schedule\.{field} is "):
            Schedule(**{field: wrong})


def test_initialisers_controls_and_observers_take_their_turns() -> None:
    """Initialisers once, controls before the cycles due, observers after the cycles due."""
    calls: list[tuple[str, int]] = []

    def called(name: str) -> Any:
        def call(engine: Engine) -> float:
            calls.append((name, engine.cycle))
            return engine.state.fired.sum()  # type: ignore[no-any-return]

        return call

    engine = CycleEngine(make_pings(3), ping_step, (TICK,), make_network(3), 1)
    run = ProtocolRun(
        engine,
        initialisers=[called("initialiser")],
        controls=[(called("control"), Schedule(every=2, begin=1))],
        observers={"fired": called("observer")},
        observe_when=Schedule(every=2),
    )
    columns = run.run(4)
    assert calls == [
        *(("initialiser", 0), ("observer", 0), ("control", 1)),
        *(("observer", 2), ("control", 3), ("observer", 4)),
    ]
    assert columns["cycle"] == [0, 2, 4]
    assert columns["fired"] == [0, 6, 12]
