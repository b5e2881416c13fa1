"""Who may import whom, and that names are the field's words, read off the sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import networkx as nx
import pytest

from support.checkout import ROOT
from support.folder_graph import (
    DOCUMENT,
    DRAWN,
    drawing,
    folder_graph,
    imported_modules,
    marked,
    modules,
    parsed,
    parts_of,
    rooms,
)

# What parses all sources runs in one process, which parses them once.
pytestmark = pytest.mark.xdist_group("sources")
OUTSIDE: Final = "asyncio io os.path pathlib pyspark random socket ssl tempfile threading time trio"
NAMES: Final = {path: name for name, path in modules().items()}


def import_statements(tree: ast.AST, everywhere: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in parts_of(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        deferred = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        typing = isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        if (everywhere or not deferred) and not typing:
            yield from import_statements(node, everywhere)


@cache
def imports(path: Path, everywhere: bool = True) -> set[str]:
    found = set()
    for node in import_statements(parsed(path), everywhere):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            assert node.level == 0, f"{path.name} imports by a relative name"
            found.add(str(node.module))
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def found_imports(paths: Iterable[Path], packages: set[str]) -> list[str]:
    return [
        f"{NAMES[path]} imports {name}"
        for path in paths
        for name in sorted(imports(path))
        if any(f"{name}.".startswith(f"{package}.") for package in packages)
    ]


HOSTS: Final = {name.split(".")[1] for name in modules()}


@pytest.mark.parametrize("package", sorted(HOSTS))
def test_arrows_between_hosts_run_downward(package: str) -> None:
    above = {"gossamer.node", "gossamer.replay"} if package == "spark" else {"gossamer.spark"}
    if package not in ("replay", "spark"):  # the replay stands above the hosts, Spark above sim
        above |= {f"gossamer.{host}" for host in ("node", "sim", "replay") if host != package}
    inside = [path for path, name in NAMES.items() if name.split(".")[1] == package]
    assert inside
    assert found_imports(inside, above) == []


def test_the_protocol_knows_no_clock_socket_file_or_framework() -> None:
    inside = [path for path in NAMES if "protocol" in path.parts]
    assert found_imports(inside, set(OUTSIDE.split())) == []
    calls = [
        f"{NAMES[path]} calls {node.func.id}"
        for path in inside
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id in ("open", "print", "input")
    ]
    assert calls == []


def test_no_module_imports_itself_through_others() -> None:
    """Imports at the top of modules make no circle."""
    graph = nx.DiGraph()
    for name, path in modules().items():
        found = imports(path, False) & modules().keys()
        # A module taken from a package is what is imported, not all that the package offers.
        parents = {other.rpartition(".")[0] for other in found}
        graph.add_edges_from((name, other) for other in found - parents)
    assert list(nx.simple_cycles(graph)) == []


def test_folders_and_rooms_import_from_each_other_in_no_circle() -> None:
    """Whole folders, by what their own modules import anywhere."""
    graph = folder_graph()
    for circle in nx.simple_cycles(graph):
        ends = zip(circle, [*circle[1:], circle[0]], strict=True)
        arrows = [f"{a} -> {b}: {graph.edges[a, b]['examples'][0]}" for a, b in ends]
        pytest.fail("\n".join(arrows))
    # Folders with all that lies below them, at every depth.
    packages = {
        ".".join(folder.split(".")[:depth])
        for folder in folder_graph()
        for depth in range(1, folder.count(".") + 1)
    }
    circles = [circle for one in sorted(packages) for circle in nx.simple_cycles(rooms(one))]
    assert circles == []


@pytest.mark.parametrize(("package", "most"), [("protocol", 6), ("node", 14), ("sim", 11)])
def test_a_package_has_few_rooms(package: str, most: int) -> None:
    assert len(rooms(f"gossamer.{package}")) <= most


def test_no_folder_has_more_than_fifteen_files() -> None:
    folders = {path.parent for path in NAMES}
    sizes = {folder: len([one for one in folder.iterdir() if one.is_file()]) for folder in folders}
    assert {folder: size for folder, size in sizes.items() if size > 15} == {}
    of_units = [path for path in (ROOT / "tests" / "unit").rglob("*") if path.is_dir()]
    assert [folder for folder in of_units if len(list(folder.glob("*.py"))) > 15] == []


def test_a_file_is_read_in_one_go() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in NAMES}
    assert {path: lines for path, lines in lengths.items() if lines > 450} == {}
    assert max(name.count(".") for name in NAMES.values()) <= 6


def test_every_folder_has_a_note_and_tests_are_laid_out_as_folders() -> None:
    """At least a line of what lives there and, where it is no leaf, where to begin."""
    folders = {path.parent for path in NAMES}
    silent = [one for one in folders if not ast.get_docstring(parsed(one / "__init__.py"))]
    assert silent == []
    # A test's folder is that of what it tests; what is about the whole checkout is beside this.
    units = ROOT / "tests" / "unit"
    tested = {path.parent.relative_to(units) for path in units.rglob("test_*.py")} - {Path(".")}
    folders = {
        Path(*name.split(".")[1:]) for path, name in NAMES.items() if path.name == "__init__.py"
    }
    assert tested - folders == set()


@pytest.mark.parametrize("package", DRAWN)
def test_folders_are_drawn_as_they_are(package: str) -> None:
    """`python tests/support/folder_graph.py` draws them anew."""
    found = marked(package).search(DOCUMENT.read_text(encoding="utf-8"))
    assert found is not None
    assert found[1] == drawing(package) + "\n"


@pytest.mark.parametrize("folder", ["engine", "study", "results", "churn", "commands"])
def test_what_all_studies_share_imports_none(folder: str) -> None:
    root = ROOT / "sim/gossamer/sim"
    found = {
        f"{NAMES[path]} imports {name}"
        for path in (root / folder).rglob("*.py")
        for name in imports(path)
        if name.startswith("gossamer.sim.studies.")
    }
    # `gossamer sim replay` is a command of peers alone.
    assert {one for one in found if "peers.inputs.scenario_file" not in one} == set()


def test_the_sources_were_found_and_their_namespace_has_no_initialiser() -> None:
    known = {"protocol.peer.step", "sim.engine.cycle_engine", "node.peer.peer"}
    assert {f"gossamer.{name}" for name in known} <= modules().keys()
    assert not list(ROOT.glob("*/gossamer/__init__.py"))


# What no name has in it: the field has another word for it.
NOWHERE: Final = """
caretaker conductor crew custody desk judge judged judging letter letters linger mail
notebook outlet owed plays prompt scans staircase stead storm storms stranded vouching
"""
# What is no class and no module, as it says too little: other names may be that short, where their
# class says what is meant (`words` of a record, `rounds` of a run).
TOO_SHORT: Final = """
absence book budgets causes charge chart contacts found gone hands interfaces keeping
machine news notes office part parts recovery retention rounds seen spreading told took
twice unwrap words
"""
# Names that are right where they are.
EXCEPTIONS = {
    "Part": "of a pattern, of a composite filter, of a layout: what the whole is made of",
    "_Part": "the same, of a line of a batch file",
}


def words_of(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def names_in(path: Path) -> Iterator[tuple[str, bool]]:
    """Names of a module, its classes, functions and attributes; whether of a class or module."""
    yield path.stem, True
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.ClassDef):
            yield node.name, True
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, False
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, False
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, False


def is_poor(name: str, *, is_type: bool) -> bool:
    words = words_of(name)
    too_short = is_type and len(words) == 1 and words[0] in TOO_SHORT.split()
    return too_short or not set(words).isdisjoint(NOWHERE.split())


def test_no_name_is_a_word_that_readers_stumble_over() -> None:
    poor = ["JoinDesk", "_send_letter", "mail_until", "Parts", "_Seen", "judge_all"]
    good = ["remaining", "Partition", "JoinServer", "first_words"]
    assert [name for name in [*poor, *good] if is_poor(name, is_type=True)] == poor
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in modules().values()
        for name, is_type in names_in(path)
        if name not in EXCEPTIONS and is_poor(name, is_type=is_type)
    ]
    assert found == []


# Who knows a family of brokers: its own folders, and the tables that name all of them.


# By family: its folders and modules, below `gossamer`.
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
        "brokers",
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
    return any(module == one or module.startswith((f"{one}.", f"{one}_")) for one in folders)


def words_in(tree: ast.AST) -> Iterator[str]:
    """Names and texts in code: all but docstrings and the help of the command line."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.keyword) and node.arg == "help":
            continue
        for field in ("id", "attr", "arg", "name", "asname", "module", "value"):
            if isinstance(text := getattr(node, field, None), str):
                yield text
        yield from words_in(node)


def text_of(path: Path) -> str:
    return " ".join(words_in(parsed(path))).lower()


def says(path: Path, word: str) -> bool:
    return word in path.read_text(encoding="utf-8").lower() and word in text_of(path)


def test_scot_is_named_in_few_files_besides_its_own() -> None:
    others = {name: path for name, path in modules().items() if not is_own(name, "scot")}
    found = {name for name, path in others.items() if says(path, "scot")}
    assert len(found) <= MOST, sorted(found)
    # A test that finds nothing would find nothing wrong.
    assert "gossamer.node.config.broker" in found


@pytest.mark.parametrize("family", FOLDERS)
def test_a_family_is_imported_by_its_own_folders_alone_and_never_by_the_core(family: str) -> None:
    found = [
        f"{module} imports {other}"
        for module in modules()
        for other in imported_modules(module)
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
        assert set(text_of(path).split()).isdisjoint(FOLDERS), path
