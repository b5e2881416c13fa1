"""One seed fixes a run to the bit: whatever hash seed, threads, engine, or interruption."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from gossamer.sim.engine.event_engine import EventEngine
from gossamer.sim.engine.windows.window_engine import WindowEngine
from gossamer.sim.errors import ScenarioError
from gossamer.sim.results.results import result_hash
from gossamer.sim.studies.peers.inputs import scenario as peers
from gossamer.sim.studies.peers.measuring.records import RunRecord
from gossamer.sim.studies.peers.running import driver
from gossamer.sim.studies.peers.running.system_run import SystemRun
from gossamer.sim.studies.peers.study import simulate
from gossamer.sim.studies.worlds.network import Link
from gossamer.sim.study.contract import Execution
from support.checkout import ROOT
from support.draws import with_campaigns
from support.sim_commands import printed_by, simulated_in_parts

ROUNDS = 40
ROUND_S = 60.0


def simulated(run: peers.Scenario, threads: int) -> RunRecord:
    return simulate(run, execution=Execution(workers=threads))


def scenario(*presets: str, **fields: Any) -> peers.Scenario:
    """A small run through the flash crowd of the bundled trace, by default of three systems."""
    given: dict[str, Any] = {
        "nodes": 150,
        "rounds": ROUNDS,
        "round_s": ROUND_S,
        "seed": 5,
        "systems": tuple(
            peers.System(name=one, preset=one)
            for one in presets or ("resilient", "kindred", "baseline")
        ),
        "subscriptions": peers.Subscriptions(attributes=2, width=0.3),
        "events": peers.Events(per_round=2, warm_up_rounds=5),
        "churn": peers.Churn(trace=ROOT / "traces" / "flash_crowd.avt.gz", start_s=2400.0),
    }
    return peers.Scenario(**given | fields)


@pytest.fixture(scope="module")
def uninterrupted() -> RunRecord:
    return simulated(scenario(), 1)


def test_threads_change_nothing_in_a_run_worth_comparing_but_seeds(
    uninterrupted: RunRecord,
) -> None:
    for system in uninterrupted.systems.values():
        assert len(system.deliveries["event"]) > 100
        assert len(set(system.cycles["population"])) > 5
        assert not system.events["duplicates"].any()
    assert result_hash(simulated(scenario(), 2)) == result_hash(uninterrupted)
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

    how = Execution(progress=kill, checkpoint=tmp_path, workers=1)
    with pytest.raises(Killed):
        simulate(scenario(), "", how, checkpoint_every_s=0.0)
    assert not list(tmp_path.glob("*.tmp"))
    with pytest.raises(ScenarioError, match="checkpoint"):
        simulate(scenario(seed=6), execution=Execution(checkpoint=tmp_path, resume=True))
    resumed = simulate(scenario(), execution=Execution(checkpoint=tmp_path, resume=True))
    assert result_hash(resumed) == result_hash(uninterrupted)


# Rows of a system that run at the same time, in windows


def windowed(preset: str = "resilient", latency_s: float = 5.0) -> peers.Scenario:
    """Over bad links."""
    link = Link(
        latency="uniform", latency_s=latency_s, loss=0.01, duplication=0.01, event_capacity=40
    )
    return scenario(preset, rounds=24, engine="event", network=link)


@pytest.fixture(scope="module")
def alone() -> RunRecord:
    return simulated(windowed(), 1)


def test_the_run_is_worth_comparing_and_its_traffic_adds_up(alone: RunRecord) -> None:
    """It was the windows engine, events were delivered, and nodes came and went."""
    assert makes(windowed()) is WindowEngine
    system = alone.systems["resilient"]
    assert len(system.deliveries["event"]) > 100
    assert len(set(system.cycles["population"])) > 5
    assert system.events["uninterested"].any()
    traffic = alone.systems["resilient"].traffic
    assert traffic is not None
    total = traffic.messages["size_bytes"].sum()
    assert total == traffic.rounds["size_bytes"].sum() == traffic.nodes["sent_bytes"].sum()
    assert total == traffic.nodes["received_bytes"].sum() > 0
    assert traffic.messages["count"].sum() == traffic.rounds["messages"].sum()
    assert (traffic.messages["size_bytes"] >= 32 * traffic.messages["count"]).all()
    assert (traffic.messages["size_bytes"] % 8 == 0).all()
    assert {"event", "install", "tman_request"} <= set(traffic.messages["message"].tolist())


def makes(run: peers.Scenario) -> type:
    made = SystemRun(attrs.evolve(run, churn=None), run.systems[0], None)
    assert isinstance(made.engine, driver.EventDriver)
    return type(made.engine._engine)


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_within_a_system_change_nothing(alone: RunRecord, threads: int) -> None:
    assert result_hash(simulated(windowed(), threads)) == result_hash(alone)


@pytest.mark.parametrize("preset", ["paper", "kindred", "baseline"])
def test_every_system_is_the_same_on_two_threads(preset: str) -> None:
    hashes = {result_hash(simulated(windowed(preset), threads)) for threads in (1, 2)}
    assert len(hashes) == 1


@pytest.mark.campaign
def test_the_wheel_gives_the_same_run(alone: RunRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other event engine, taking by sender, under the whole protocol and its collector."""

    def wheel(*args: Any, approach: Any, collectors: Any, **options: Any) -> EventEngine:
        del approach, collectors
        return EventEngine(*args, by_sender=True, **options)

    monkeypatch.setattr(driver, "WindowEngine", wheel)
    monkeypatch.setattr(driver.EventDriver, "use_cores", lambda _self, _cores: None)
    assert result_hash(simulated(windowed(), 1)) == result_hash(alone)


def test_a_run_interrupted_on_two_threads_goes_on_on_one(tmp_path: Path, alone: RunRecord) -> None:
    resumed = simulated_in_parts(windowed(), tmp_path, 12, threads=2)
    assert result_hash(resumed) == result_hash(alone)


def test_synchronous_cycles_are_the_same_on_two_threads_and_form_the_overlay() -> None:
    """The ring comes right and all is delivered, as with nodes in turn, but not the same way."""
    run = peers.Scenario(
        name="synchronous",
        nodes=300,
        rounds=34,
        engine="synchronous",
        systems=(peers.System(name="resilient", preset="resilient"),),
        subscriptions=peers.Subscriptions(attributes=2, width=0.3),
        events=peers.Events(per_round=2, warm_up_rounds=30),
    )
    assert makes(run) is WindowEngine
    one, two = (simulated(run, threads) for threads in (1, 2))
    assert result_hash(one) == result_hash(two)
    cycles = one.systems["resilient"].cycles
    in_turn = simulate(attrs.evolve(run, engine="cycle")).systems["resilient"].cycles
    assert cycles["ring_correct"][-1] == in_turn["ring_correct"][-1] == 1.0
    assert cycles["ring_correct"].tolist() != in_turn["ring_correct"].tolist()
    events = one.systems["resilient"].events
    assert events["delivered"].sum() >= 0.95 * events["expected"].sum() > 0


@pytest.mark.parametrize(
    ("latency_s", "engine"), [(ROUND_S / 25, WindowEngine), (ROUND_S / 26, EventEngine)]
)
def test_the_engine_follows_from_the_least_latency(latency_s: float, engine: type) -> None:
    """Uniform latency is half of its mean at least, and a fiftieth of a round is enough."""
    assert makes(windowed(latency_s=latency_s)) is engine


def world(tmp_path: Path, **network: Any) -> peers.Scenario:
    """The run between places, over narrow links that are parted and lossy for a while."""
    places = tmp_path / "places.txt"
    places.write_text("0 0\n900 100\n300 2000\n1500 1500\n")
    link = Link(
        latency="coordinates",
        coordinates=places,
        access_s=1.0,
        up_rate=[40, 4000],
        down_rate=60,
        up_queue=1500,
        down_queue=1500,
        loss_period=[{"begin_s": 300, "end_s": 500, "loss": 0.3}],  # type: ignore[arg-type]
        partition=[{"begin_s": 600, "end_s": 900, "shares": [0.3]}],  # type: ignore[arg-type]
        **network,
    )
    return attrs.evolve(windowed(), network=link)


def traffic_of(record: RunRecord) -> dict[str, Any]:
    (system,) = record.systems.values()
    assert system.traffic is not None
    tables = (system.traffic.messages, system.traffic.rounds, system.traffic.nodes)
    return {name: column.tolist() for table in tables for name, column in table.items()}


def test_narrow_links_and_traffic_are_the_same_on_two_threads_and_resumed(tmp_path: Path) -> None:
    run = world(tmp_path)
    assert makes(run) is WindowEngine
    one, two = (simulated(run, threads) for threads in (1, 2))
    assert result_hash(one) == result_hash(two)
    assert traffic_of(one) == traffic_of(two)
    fates = one.systems["resilient"].traffic.fates  # type: ignore[union-attr]
    assert two.systems["resilient"].traffic.fates == fates  # type: ignore[union-attr]
    assert min(fates[name] for name in ("lost", "parted", "up_overflowed", "down_overflowed")) > 50
    resumed = simulated_in_parts(run, tmp_path / "kept", 11, threads=2)
    assert result_hash(resumed) == result_hash(one)
    assert traffic_of(resumed) == traffic_of(one)
