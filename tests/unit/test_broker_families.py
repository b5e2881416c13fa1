"""Who knows a family of brokers: its own folders, and the tables that name all of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from support.folder_graph import imported_modules, modules, parsed

# What parses all sources runs in one process, which parses them once.
pytestmark = pytest.mark.xdist_group("sources")

# By family: its folders, below `gossamer`.
FOLDERS = {
    "tree": (
        "protocol.brokers.tree",
        "brokers",  # what applications embed
        "node.broker.families.tree",
        "sim.studies.tree_brokers",
        "sim.figures.covering",
    ),
    "scot": (
        "protocol.brokers.scot",
        "node.broker.families.scot",
        "sim.studies.scot",
        "sim.figures.scot",
    ),
    "graph": (
        "protocol.brokers.graph",
        "node.broker.families.graph",
        "sim.studies.dissemination",
        "sim.figures.dissemination",
    ),
}
# Most files elsewhere whose code says "scot": tables of what there is.
MOST = 6
CORE = "gossamer.protocol.brokers.core."


def is_own(module: str, family: str) -> bool:
    folders = [f"gossamer.{folder}" for folder in FOLDERS[family]]
    return any(module == folder or module.startswith(f"{folder}.") for folder in folders)


def words(tree: ast.AST) -> Iterator[str]:
    """Names and texts in code: all but docstrings and the help of the command line."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.keyword) and node.arg == "help":
            continue
        for field in ("id", "attr", "arg", "name", "asname", "module", "value"):
            if isinstance(text := getattr(node, field, None), str):
                yield text
        yield from words(node)


def names_of(path: Path) -> str:
    return " ".join(words(parsed(path))).lower()


def says(path: Path, word: str) -> bool:
    """Whether the code of a file says a word; what its text does not say is not parsed."""
    return word in path.read_text(encoding="utf-8").lower() and word in names_of(path)


def test_scot_is_named_in_few_files_besides_its_own() -> None:
    others = {name: path for name, path in modules().items() if not is_own(name, "scot")}
    found = {name for name, path in others.items() if says(path, "scot")}
    assert len(found) <= MOST, sorted(found)
    # A test that finds nothing would find nothing wrong.
    assert "gossamer.node.config.families" in found


@cache
def arrows() -> list[tuple[str, str]]:
    return [(module, other) for module in modules() for other in imported_modules(module)]


@pytest.mark.parametrize("family", FOLDERS)
def test_a_family_is_imported_by_its_own_folders_alone_and_never_by_the_core(family: str) -> None:
    found = [
        f"{module} imports {other}"
        for module, other in arrows()
        if is_own(other, family) and not is_own(module, family)
        if module.startswith(CORE) or other.startswith(("gossamer.protocol", "gossamer.node"))
    ]
    assert found == []


def test_families_of_nodes_are_no_names_to_the_host_of_brokers() -> None:
    host = "gossamer.node.broker."
    shared = [
        path
        for name, path in modules().items()
        if name.startswith(host) and not name.startswith(f"{host}families.")
    ]
    assert len(shared) > 10
    for path in shared:
        assert set(names_of(path).split()).isdisjoint(FOLDERS), path
