"""Protocols of one's own on all cores: the same to the bit as tick by tick, and as plain classes.

Of random scenarios, some each time, and 20 of them, or as many as `--draws` says, as a campaign.
"""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, Final

import attrs
import numpy as np
import pytest

import gossamer.sim.custom.rule_driver
from gossamer.command.main import main
from gossamer.protocol.kernel.struct import Struct
from gossamer.sim.custom.simulation import Simulation
from gossamer.sim.results.results import result_hash
from gossamer.sim.studies.custom import simulation
from gossamer.sim.studies.custom.rehearsal import first_difference, scenario_of
from gossamer.sim.study.contract import Execution
from support.draws import Draws, few_or_many
from support.own_protocols import PROTOCOLS, protocol_file, scenario_file

SCENARIOS: Final = 20
RULES, PLAIN = "travellers.py:Travellers", "travellers_nodes.py:Travellers"
THREADS: Final = (1, 2, 3, 8)
# The protocol does something of its own in every round up to the tenth.
ROUNDS: Final = 12


def random_keys(seed: int, folder: Path) -> dict[str, Any]:
    """The keys of a scenario with everything in it that a coin says."""
    draws = np.random.default_rng([seed, 22])
    least_s = float(draws.choice([0.02, 0.05, 0.2, 0.7]))
    kind = str(draws.choice(["constant", "uniform", "coordinates"]))
    network: dict[str, Any] = {"latency": kind}
    if kind == "coordinates":
        places = draws.random((6, 2)) * 200
        (folder / "places.txt").write_text("".join(f"{x} {y}\n" for x, y in places))
        network |= {"coordinates": str(folder / "places.txt"), "access_s": least_s / 2}
    else:
        network["latency_s"] = least_s
    for name in ("loss", "duplication"):
        network[name] = float(draws.choice([0.0, 0.1]))
    network["reports_unreachable"] = bool(draws.integers(2))
    begin_s = float(draws.integers(1, 6))
    times = {"begin_s": begin_s, "end_s": begin_s + 3}
    if draws.integers(2):
        network["partition"] = [{**times, "by": "heavy"}, {**times, "shares": [0.3, 0.3]}]
    if draws.integers(2):
        network["loss_period"] = [{**times, "loss": 0.3}]
    for way in ("up", "down"):
        rate = [None, 3000, [1500, 9000, 1_000_000]][draws.integers(3)]
        if rate is not None:
            network |= {f"{way}_rate": rate, f"{way}_queue": [1500, 20_000][draws.integers(2)]}
    sessions = {"online_s": 5, "offline_s": 3} if draws.integers(2) else None
    keys = {
        "seed": seed,
        "nodes": int(draws.integers(2, 70)),
        "rounds": ROUNDS,
        "round_s": float(draws.choice([0.5, 1.0])),
        "clock_drift": float(draws.choice([0.0, 0.05])),
        "leaving": float(draws.choice([0.0, 0.5])),
        "attributes": {"weight": {"normal": [1, 0.2]}},
        "network": network,
    }
    return keys | ({"sessions": sessions} if sessions else {})


def scenario(seed: int, folder: Path, *protocols: str, engine: str = "windows") -> Any:
    return scenario_of(
        *protocols, folder=PROTOCOLS, engine=engine, **random_keys(seed, folder.resolve())
    )


def kept_in(state: Struct, path: str = "state") -> dict[str, np.ndarray[Any, Any]]:
    """All arrays of a state but for scratch space, which every thread has of its own."""
    found: dict[str, np.ndarray[Any, Any]] = {}
    for name in state.__annotations__:
        value = getattr(state, name)
        if isinstance(value, Struct):
            found |= kept_in(value, f"{path}.{name}")
        elif isinstance(value, np.ndarray) and not state.is_shared(name):
            found[f"{path}.{name}"] = value
    return found


class Run:
    """A run of the first system of a scenario, with threads and windows as is said."""

    def __init__(self, scenario: Any, threads: int, window: int | None = None) -> None:
        prepared, system = simulation.prepare(scenario), scenario.systems[0]
        conditions, changes = simulation.conditions_of(scenario, prepared, system)
        grown: Any = conditions.grown

        def with_windows(given: Any) -> Any:
            return attrs.evolve(given, window=window, grown=lambda more: with_windows(grown(more)))

        self.driver: Any = simulation.make_driver(system, with_windows(conditions))
        self.driver.use_cores([None] * threads)
        self.simulation = Simulation(self.driver, prepared.rounds, changes, scenario.leaving)
        self.begun = False

    def resume(self, kept: Any) -> Run:
        self.simulation.restore(pickle.loads(pickle.dumps(kept)))
        self.begun = True
        return self

    def go(self, rounds: int) -> Run:
        if not self.begun:
            self.simulation.begin()
            self.begun = True
        while self.simulation.round < rounds:
            self.simulation.run_round()
        return self

    def outcome(self) -> dict[str, Any]:
        traffic = self.driver.traffic()
        return {
            **kept_in(self.driver.state),
            **self.simulation.table(),
            **{
                one: getattr(traffic, one) for one in ("messages", "size_bytes", "sent", "received")
            },
            "counts": self.driver.counts(),
        }


def assert_same(one: dict[str, Any], other: dict[str, Any], told: str) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        np.testing.assert_equal(other[name], value, err_msg=f"{name}, {told}")


@pytest.mark.campaign
@few_or_many(2, SCENARIOS)
def test_windows_on_any_threads_equal_the_wheel(
    count: int, draws: Draws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 1, 2, 3 and 8 threads, shorter windows, and a run that is resumed in the middle."""
    for seed in draws.numbers(count):
        given = scenario(seed, tmp_path, RULES)
        with monkeypatch.context() as patch:
            patch.setattr(gossamer.sim.custom.rule_driver, "suits_windows", lambda *_: False)
            expected = Run(given, 1).go(ROUNDS).outcome()
        with monkeypatch.context() as patch:
            patch.setattr(gossamer.sim.custom.rule_driver, "suits_windows", lambda *_: True)
            drawn = np.random.default_rng([seed, 23])
            for threads in THREADS:
                window = int(drawn.integers(1, 11)) if threads > 1 else None
                found = Run(given, threads, window).go(ROUNDS).outcome()
                assert_same(expected, found, f"seed {seed}, {threads} threads, windows of {window}")
            first = Run(given, 2).go(int(drawn.integers(0, ROUNDS)))
            found = Run(given, 3, 7).resume(first.simulation.dynamic_state()).go(ROUNDS).outcome()
            told = f"seed {seed}, resumed after round {first.simulation.round}"
            assert_same(expected, found, told)


@few_or_many(1, SCENARIOS)
def test_plain_classes_do_the_same_by_record(count: int, draws: Draws, tmp_path: Path) -> None:
    for seed in draws.numbers(count)[::4]:
        assert first_difference(scenario(seed, tmp_path, RULES, PLAIN)) is None, f"seed {seed}"


@pytest.mark.campaign
def test_much_happens_in_the_scenarios(tmp_path: Path) -> None:
    """Every way that a message can go was gone, in the scenarios that always run."""
    total: dict[str, int] = {}
    carried, grown = 0.0, 0
    for seed in range(SCENARIOS):
        run = Run(scenario(seed, tmp_path, RULES), 1).go(ROUNDS)
        for name, count in run.driver.counts().items():
            total[name] = total.get(name, 0) + count
        carried += float(run.driver.state.carried.sum())
        grown += len(run.driver.alive)
    assert min(total.values()) > 20, total
    assert carried > 10_000
    assert grown > 20 * 15


def test_the_hash_of_a_result_is_that_of_any_number_of_threads(tmp_path: Path) -> None:
    """And of two systems side by side that is that of each."""
    given = scenario(3, tmp_path, RULES)
    hashes = {
        result_hash(simulation.simulate_custom(given, execution=Execution(workers=workers)))
        for workers in THREADS
    }
    assert len(hashes) == 1
    other = scenario(3, tmp_path, RULES, engine="event")
    assert result_hash(simulation.simulate_custom(other)) not in hashes


READERS = """
class Own(Protocol):
    value = column(int)
    place = column(int)
    near = column(int, 3)
    go = Timer(rounds=1)

    def on_go(self, me, net):
        other = draw_other(self, me)
        Word.send(net, other, {read})

    def on_word(self, me, net, sender, number):
        self.value[me] += number
        near = self.near[me]
        near[1] = number
"""


@pytest.mark.parametrize(
    ("name", "read", "engine", "is_refused"),
    [
        ("reads_another", "self.value[other]", "windows", True),
        ("reads_one_by_one", "self.value[other]", "event", False),
        ("reads_constants", "self.value[me] + self.place[other]", "windows", False),
        ("reads_a_row", "self.near[other][1]", "windows", True),
    ],
)
def test_a_rule_that_reads_what_other_rows_write_is_refused(
    name: str,
    read: str,
    engine: str,
    is_refused: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Where rows run at the same time; what nobody writes may be read of any row."""
    monkeypatch.chdir(tmp_path)
    protocol = protocol_file(tmp_path, name, READERS.format(read=read))
    keys = f'nodes = 20\nrounds = 3\nengine = "{engine}"\n'
    keys += '[network]\nlatency = "constant"\nlatency_s = 0.1\n'
    code = main(["sim", "check", str(scenario_file(tmp_path, protocol, keys))])
    told = capsys.readouterr().err
    if not is_refused:
        assert (code, told) == (0, "")
        return
    assert code == 2
    assert told.startswith(f"gossamer: rule on_go ({tmp_path}/{name}.py, line 17), row ")
    assert ", which rules write, expected its own row only, as other rows run" in told


def test_a_check_says_whether_threads_are_of_use(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where messages may take less than a fiftieth of a round, windows would be nearly empty."""
    name, keys = f"{PROTOCOLS}/errands.py:Errands", 'engine = "windows"\n[network]\n'
    for latency_s, said in ((0.02, "windows │"), (0.019, "windows, on one thread, as messages")):
        latency = f'latency = "constant"\nlatency_s = {latency_s}\n'
        assert main(["sim", "check", str(scenario_file(tmp_path, name, keys + latency))]) == 0
        assert said in " ".join(capsys.readouterr().out.split())
    file = scenario_file(tmp_path, name, keys + "loss = 0.1\n")
    assert main(["sim", "check", str(file)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"gossamer: {file}: engine is 'windows', expected \"event\", as ")
