"""The log of a run against a list that is sorted whole, and what it refuses."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim import message
from gossamer.sim.custom import tally as tallies
from gossamer.sim.custom.tally import EventLog
from gossamer.sim.errors import ScenarioError, SimulationError
from gossamer.sim.studies.custom.rehearsal import scenario_of
from gossamer.sim.studies.custom.simulation import simulate_custom
from support.own_protocols import protocol_file

Heard: Any = message("Heard", number=int, share=float, late=bool)
FLOATS = st.floats(allow_nan=True, allow_infinity=True)
WHOLE = st.integers(-(1 << 62), 1 << 62)
ENTRIES = st.tuples(
    st.integers(0, 30), st.integers(0, 4), st.builds(Heard, WHOLE, FLOATS, st.booleans())
)


def bits(number: float) -> object:
    return struct.pack("<d", number) if isinstance(number, float) else number


@given(st.lists(st.tuples(ENTRIES, st.booleans())))
def test_entries_are_in_order_of_time_node_and_writing(entries: list[Any]) -> None:
    """Whenever it is read on the way, and after it was kept and gone on with."""
    log = EventLog()
    written: list[tuple[int, int, Any]] = []
    for (tick, node, entry), read in entries:
        log.write(tick, node, entry)
        written.append((tick, node, entry))
        if read:
            log = EventLog(log.kept())
    table = log.table(Heard, 10)
    expected = sorted(written, key=lambda each: each[:2])
    assert table["round"].tolist() == [tick // 10 for tick, _, _ in expected]
    assert table["time_s"].tolist() == [tick / 1000 for tick, _, _ in expected]
    assert table["node"].tolist() == [node for _, node, _ in expected]
    for name in ("number", "late", "share"):
        found = [bits(one) for one in table[name].tolist()]
        assert found == [bits(getattr(entry, name)) for _, _, entry in expected]


def test_a_table_of_nothing_has_all_columns() -> None:
    table = EventLog().table(Heard, 1000)
    kinds = dict.fromkeys(("round", "node", "number"), "int64")
    kinds |= {"time_s": "float64", "share": "float64", "late": "bool"}
    assert {name: values.dtype.name for name, values in table.items()} == kinds
    assert all(len(values) == 0 for values in table.values())


def test_what_a_reader_changes_is_not_that_of_the_log() -> None:
    log = EventLog()
    log.write(3, 1, Heard(1, 0.5, True))
    for values in log.table(Heard, 1000).values():
        values[:] = 0
    assert log.table(Heard, 1000)["node"].tolist() == [1]
    assert log.table(Heard, 1000)["share"].tolist() == [0.5]


def test_messages_of_one_name_are_refused() -> None:
    log = EventLog()
    log.write(0, 0, Heard(1, 0.5, True))
    other: Any = message("Heard", number=int)
    with pytest.raises(ScenarioError, match="Heard is logged twice, expected another name"):
        log.write(0, 0, other(1))


LOGGING = """
class Own(Protocol):
    tick = Timer(rounds=1)

    def on_tick(self, me, net):
        for number in range(10):
            Word.log(net, number)
"""


@pytest.mark.parametrize("engine", ["event", "windows"])
@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.campaign)])
def test_entries_without_room_end_the_run(
    compiled: bool, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Never are some lost in silence; what fits in one round fits in each."""
    keys = {"nodes": 20, "rounds": 5, "engine": engine}
    keys["network"] = {"latency": "constant", "latency_s": 0.1}
    name = protocol_file(tmp_path, f"logging_{engine}_{compiled}", LOGGING)
    monkeypatch.setattr(tallies, "_ENTRY_WORDS_A_NODE", 0)
    with use_compiled(compiled):
        monkeypatch.setattr(tallies, "_ENTRY_WORDS", 20 * 10 * 6)
        (system,) = simulate_custom(scenario_of(name, folder=tmp_path, **keys)).systems.values()
        assert system.logs["word"]["number"].tolist() == [*range(10)] * 20 * 5
        monkeypatch.setattr(tallies, "_ENTRY_WORDS", 20 * 10 * 6 - 1)
        with pytest.raises(SimulationError, match="nodes log more than 1199 words in a round"):
            simulate_custom(scenario_of(name, folder=tmp_path, **keys))


def test_rows_of_rules_and_objects_of_nodes_are_one_order() -> None:
    log = EventLog()
    log.add(Heard, np.array([[5, 2, 1, 0, 1], [5, 0, 2, 0, 0]]))
    log.write(4, 9, Heard(3, 0.0, False))
    assert log.table(Heard, 1000)["number"].tolist() == [3, 2, 1]
