"""What `gossamer.sim` offers is light to import, and is described as it is."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Final

import pytest

import gossamer.sim as gs
from gossamer.sim.study.records import Measure
from gossamer.sim.study.scenarios import study_of_kind
from support.checkout import ROOT
from support.sim_commands import printed_by

REFERENCE: Final = ROOT / "docs" / "reference" / "simulator.md"
# What only some of the names need, and nobody waits for before they are asked for.
HEAVY: Final = ("matplotlib", "networkx", "numba", "pandas", "pyspark", "scipy")
MEASURES: Final = study_of_kind("peers").measures


def test_what_type_checkers_see_is_what_is_loaded() -> None:
    tree = ast.parse(inspect.getsource(gs))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert (seen, sorted(seen)) == (gs._MODULES, sorted(gs.__all__))


def test_another_name_is_refused_with_what_is_meant() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'simulat', did you mean 'simulate'\?"):
        _ = gs.simulat
    assert not hasattr(gs, "__wrapped__")


def test_the_door_and_what_most_scripts_need_load_nothing_heavy() -> None:
    program = (
        "import sys, gossamer.sim as gs;"
        "gs.simulate, gs.sweep, gs.load, gs.compare, gs.Scenario, gs.System, gs.Churn, gs.Protocol;"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    assert printed_by(program, "0").splitlines()[-1] == "[]"


def table_of_measures(measures: tuple[Measure, ...]) -> str:
    rows = [f"| `{one.key}` | {one.unit} | {one.meaning} |" for one in measures]
    return "\n".join(["| attribute | unit | definition |", "|---|---|---|", *rows])


def test_the_measures_of_peers_are_those_of_their_table() -> None:
    names = [name for name, kind in gs.PeersResult.__annotations__.items() if kind == "float"]
    assert names == [one.key for one in MEASURES]
    page = REFERENCE.read_text(encoding="utf-8")
    found = re.search(r"(?s)<!-- measures of peers -->\n(.*)<!-- end -->", page)
    assert found is not None
    assert found[1] == table_of_measures(MEASURES) + "\n"


def test_the_keys_of_simulate_are_those_of_scenarios() -> None:
    assert set(inspect.signature(gs.Scenario).parameters) <= set(gs.ScenarioKeys.__annotations__)
