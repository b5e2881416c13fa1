"""What `gossamer.sim` offers: listed once, as the reference has it, light to import, and enough."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import gossamer.sim as gs
from gossamer.sim.study.measure import Measure
from gossamer.sim.study.registry import study_of_kind
from support.checkout import ROOT
from support.sim_commands import printed_by

REFERENCE: Final = ROOT / "docs" / "reference" / "simulator.md"
# Packages of which nothing but what they offer is imported by scripts and documents.
DOORS: Final = ("gossamer.sim", "gossamer.client", "gossamer.brokers")
# What only some of the names need, and nobody waits for before they are asked for.
HEAVY: Final = ("matplotlib", "networkx", "numba", "pandas", "pyspark", "scipy")
MEASURES: Final = study_of_kind("peers").measures


def reference_names() -> list[str]:
    text = REFERENCE.read_text(encoding="utf-8")
    lists = re.findall(
        r"(?m)^::: gossamer\.sim\n    options:\n      members:((?: .*|\n {8}- .*)+)", text
    )
    return [name for one in lists for name in re.findall(r"\w+", one)]


def test_every_name_that_is_offered_is_there_and_in_the_reference_once() -> None:
    assert sorted(reference_names()) == sorted(gs.__all__)
    assert len(set(gs.__all__)) == len(gs.__all__)
    assert set(gs.__all__) <= set(dir(gs))
    missing = [name for name in gs.__all__ if getattr(gs, name, None) is None]
    assert missing == []


def test_what_type_checkers_see_is_what_is_loaded() -> None:
    tree = ast.parse(inspect.getsource(gs))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == gs._MODULES
    assert sorted(seen) == sorted(gs.__all__)


def test_another_name_is_refused_with_what_is_meant() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'simulat', did you mean 'simulate'\?"):
        _ = gs.simulat
    assert not hasattr(gs, "__wrapped__")


def test_the_door_and_what_most_scripts_need_load_nothing_heavy() -> None:
    program = (
        "import sys, gossamer.sim as gs; before = len(sys.modules);"
        "gs.simulate, gs.sweep, gs.load, gs.compare, gs.Scenario, gs.System, gs.Churn, gs.Protocol;"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    assert printed_by(program, "0").splitlines()[-1] == "[]"


def imports_of(path: Path) -> Iterator[str]:
    """Modules that a script, a notebook or the code of a page imports."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    for found in re.finditer(r"(?m)^(?: {4})?(?:>>> )?(?:from|import) (gossamer[\w.]*)", text):
        yield found[1]


def test_scripts_and_documents_import_from_doors_alone() -> None:
    scripts = [*ROOT.glob("examples/**/*.py"), *ROOT.glob("examples/**/*.ipynb")]
    paths = [*scripts, ROOT / "README.md", *ROOT.glob("docs/**/*.md")]
    found = {path: set(imports_of(path)) for path in paths}
    assert sum("gossamer.sim" in modules for modules in found.values()) > 30
    deep = {
        f"{path.relative_to(ROOT)}: {module}"
        for path, modules in found.items()
        for module in modules
        if module.startswith(tuple(f"{door}." for door in DOORS))
    }
    assert deep == set()


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
    fields = set(inspect.signature(gs.Scenario).parameters)
    assert fields <= set(gs.ScenarioKeys.__annotations__)
