"""Timers that are cancelled, and the log of a run: as in both forms, so on any number of threads.

The log of alarms that are set and cancelled at random is held against a slow oracle.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from gossamer.sim.results.results import read_results, result_hash
from gossamer.sim.studies.custom.records import CustomRecord
from gossamer.sim.studies.custom.rehearsal import first_difference, scenario_of
from gossamer.sim.studies.custom.simulation import simulate_custom
from gossamer.sim.study.contract import Execution
from support.draws import Draws, few_or_many, larger
from support.own_protocols import PROTOCOLS
from support.sim_commands import sim

BOTH: Final = ("alarms.py:Alarms", "alarms_nodes.py:Alarms")
LINKS: Final = {"latency": "constant", "latency_s": 0.05}
ORDER: Final = {
    name: i for i, name in enumerate(("came_up", "left", "chosen", "cancelled", "rang"))
}


def alarms(*protocols: str, **keys: Any) -> Any:
    given = {"nodes": 12, "rounds": 8, "network": LINKS, **keys}
    return scenario_of(*(protocols or BOTH), folder=PROTOCOLS, **given)


def tables_equal(one: CustomRecord, other: CustomRecord) -> None:
    """Every column of every table is the same to the bit, and of the same type."""
    assert [name for name, _ in one.tables()] == [name for name, _ in other.tables()]
    for (name, first), (_, second) in zip(one.tables(), other.tables(), strict=True):
        assert list(first) == list(second)
        for column, values in first.items():
            assert values.dtype == second[column].dtype, (name, column)
            assert values.tobytes() == second[column].tobytes(), (name, column)


@pytest.mark.parametrize("engine", ["event", "windows"])
def test_nodes_and_interpreted_rules_set_cancel_and_take_the_same(engine: str) -> None:
    scenario = alarms(nodes=larger(6, 12), rounds=larger(4, 8), engine=engine)
    assert first_difference(scenario, interpreted=True) is None


@pytest.mark.parametrize("engine", ["event", "windows"])
def test_nodes_and_compiled_rules_log_and_measure_the_same(engine: str) -> None:
    scenario = alarms(nodes=40, rounds=12, engine=engine, clock_drift=0.02)
    assert first_difference(scenario) is None
    rules, nodes = simulate_custom(scenario).systems.values()
    tables_equal(rules, nodes)
    assert rules.rounds["rang"][-1] == len(rules.logs["rang"]["node"]) > 1000
    assert rules.logs["cancelled"]["was_pending"].sum() > 50
    assert (~rules.logs["cancelled"]["was_pending"]).sum() > 50
    assert rules.logs["left"]["pending"].any()


def entries_of(logs: Any) -> Iterator[tuple[int, list[tuple[int, str, int, float]]]]:
    """By node, the entries in order of time: when in ticks, of what, number and value."""
    rows = []
    for name, table in logs.items():
        number = table.get("number", np.zeros(len(table["node"]), np.int64))
        value = table.get("delay_s", table.get("was_pending", number))
        ticks = np.rint(table["time_s"] * 1000).astype(int)
        columns = zip(table["node"].tolist(), ticks.tolist(), number, value, strict=True)
        rows += [(node, tick, name, int(n), float(v)) for node, tick, n, v in columns]
    rows.sort(key=lambda row: (row[0], row[1]))
    for node, own in groupby(rows, key=lambda row: row[0]):
        yield node, [row[1:] for row in own]


def check_alarms(logs: Any, end: int) -> None:
    """The oracle: an alarm rings when it is due unless it was cancelled, or its node went down.

    Within one tick entries of different messages have no order between them: what is cancelled at
    the tick at which it is due may have rung before.
    """
    for node, entries in entries_of(logs):
        due: dict[int, int] = {}
        for tick, group in groupby(entries, key=lambda entry: entry[0]):
            at = sorted(group, key=lambda entry: ORDER[entry[1]])
            overdue = [number for number, when in due.items() if when < tick]
            gone = any(name == "came_up" for _, name, _, _ in at)
            assert gone or not overdue, f"node {node} misses alarms {overdue} at {tick}"
            if gone:
                due.clear()
            for _, name, number, value in at:
                if name == "chosen":
                    due[number] = tick + int(value * 1000 + 0.5)
                elif name == "cancelled" and value:
                    assert due.pop(number, -1) >= tick, f"node {node} cancels {number} at {tick}"
                elif name == "cancelled":
                    late = due.get(number, tick) == tick
                    assert late, f"node {node} cannot cancel {number} at {tick}"
                elif name == "rang":
                    assert due.pop(number, None) == tick, f"node {node} rings {number} at {tick}"
        assert all(when < end + 400 for when in due.values())


@few_or_many(3, 40)
def test_alarms_ring_when_they_are_due_unless_they_are_cancelled(count: int, draws: Draws) -> None:
    """Of plain nodes and of rules, with handles that were cancelled, rang, or are of a life ago."""
    for seed in draws.numbers(count):
        scenario = alarms(seed=seed, nodes=20, rounds=10)
        for system in simulate_custom(scenario).systems.values():
            check_alarms(system.logs, 10_000)


def test_the_oracle_finds_an_alarm_that_rings_although_it_was_cancelled() -> None:
    (system,) = simulate_custom(alarms(BOTH[1], seed=3)).systems.values()
    logs = system.logs
    check_alarms(logs, 8000)
    place = int(np.flatnonzero(~logs["cancelled"]["was_pending"])[5])
    logs["cancelled"]["was_pending"][place] = True
    with pytest.raises(AssertionError, match="cancels"):
        check_alarms(logs, 8000)


def test_a_log_is_the_same_with_any_number_of_threads() -> None:
    hashes = set()
    for workers in (1, 2, 3, 8):
        scenario = alarms(BOTH[0], nodes=70, rounds=6, engine="windows")
        run = simulate_custom(scenario, execution=Execution(workers=workers))
        (system,) = run.systems.values()
        assert len(system.logs["rang"]["node"]) > 500
        hashes.add(result_hash(run))
    assert len(hashes) == 1


def test_a_result_folder_has_a_table_of_each_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "alarms.toml"
    file.write_text(f'protocol = "{PROTOCOLS}/{BOTH[1]}"\nnodes = 10\nrounds = 5\n')
    assert sim("run", file, "--out", "r", "--no-plots") == 0
    table = read_results(Path("r")).table("alarms", "log_cancelled")
    assert list(table) == ["round", "time_s", "node", "number", "was_pending"]
    assert (np.diff(table["time_s"]) >= 0).all()
    assert (table["round"] == table["time_s"] // 1).all()
