"""One seed fixes a run to the bit: whatever the hash seed, the thread count, or an interruption."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.summary import result_hash
from gossamer.sim.studies.peers.inputs import scenario as peers
from gossamer.sim.studies.peers.measuring.records import RunRecord
from gossamer.sim.studies.peers.simulation import simulate
from support.checkout import ROOT
from support.draws import with_campaigns
from support.sim_commands import printed_by, simulated_in_parts

ROUNDS = 40


def scenario(seed: int = 5, engine: str = "cycle") -> peers.Scenario:
    """A small run through the flash crowd of the bundled trace, three systems."""
    return peers.Scenario(
        name="determinism",
        nodes=150,
        rounds=ROUNDS,
        seed=seed,
        engine=engine,
        systems=(
            peers.System(name="resilient"),
            peers.System(name="kindred", preset="kindred"),
            peers.System(name="baseline", preset="baseline"),
        ),
        subscriptions=peers.Subscriptions(attributes=2, width=0.3),
        events=peers.Events(per_round=2, warm_up_rounds=5),
        churn=peers.Churn(trace=ROOT / "traces" / "flash_crowd.avt.gz", start_s=2400.0),
    )


@pytest.fixture(scope="module")
def uninterrupted() -> RunRecord:
    return simulate(scenario(), threads=1)


def test_threads_change_nothing_in_a_run_worth_comparing_but_seeds(
    uninterrupted: RunRecord,
) -> None:
    for system in uninterrupted.systems.values():
        assert len(system.deliveries["event"]) > 100
        assert len(set(system.cycles["population"])) > 5
        assert not system.events["duplicates"].any()
    assert result_hash(simulate(scenario(), threads=2)) == result_hash(uninterrupted)
    assert result_hash(simulate(scenario(seed=6))) != result_hash(uninterrupted)


@with_campaigns("hash_seed", ["4711"], ["0"])
def test_the_hash_seed_changes_nothing(uninterrupted: RunRecord, hash_seed: str) -> None:
    program = "from simulation.test_determinism import *; print(result_hash(simulate(scenario())))"
    assert printed_by(program, hash_seed) == result_hash(uninterrupted)


@with_campaigns("stop_at", [17], [1, ROUNDS - 1])
@pytest.mark.parametrize("engine", ["cycle", "event"])
def test_an_interrupted_run_goes_on_where_it_was(
    tmp_path: Path, uninterrupted: RunRecord, engine: str, stop_at: int
) -> None:
    whole = uninterrupted if engine == "cycle" else simulate(scenario(engine=engine))
    resumed = simulated_in_parts(scenario(engine=engine), tmp_path, stop_at, threads=1, then=2)
    assert result_hash(resumed) == result_hash(whole)


def test_a_killed_run_goes_on_from_a_checkpoint(tmp_path: Path, uninterrupted: RunRecord) -> None:
    """And no other run does; there was a checkpoint after every round."""

    class Killed(BaseException):
        """Stands in for a signal that lets nothing clean up."""

    def kill(_system: str, done: int, _total: int) -> None:
        if done == 23:
            raise Killed

    with pytest.raises(Killed):
        simulate(scenario(), progress=kill, checkpoint=tmp_path, checkpoint_every_s=0.0, threads=1)
    assert not list(tmp_path.glob("*.tmp"))
    with pytest.raises(ScenarioError, match="checkpoint"):
        simulate(scenario(seed=6), checkpoint=tmp_path, resume=True)
    resumed = simulate(scenario(), checkpoint=tmp_path, resume=True)
    assert result_hash(resumed) == result_hash(uninterrupted)
