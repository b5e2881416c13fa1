"""Which folders import from which, read off the sources, and drawn for `docs/architecture.md`.

A folder is the package that holds a module. ``python tests/support/folder_graph.py`` writes the
drawings in the document anew.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import networkx as nx

ROOT: Final = Path(__file__).parents[2]
TOPS: Final = ("shared", "node", "sim", "spark")
DOCUMENT: Final = ROOT / "docs" / "architecture.md"
# What is drawn: a package, with each folder right below it as one box.
DRAWN: Final = ("gossamer", "gossamer.protocol", "gossamer.node", "gossamer.sim", "gossamer.spark")


@cache
def modules() -> dict[str, Path]:
    """Every module of the sources by its dotted name; a package is its ``__init__``."""
    found = {}
    for top in TOPS:
        for path in sorted((ROOT / top).rglob("*.py")):
            parts = path.relative_to(ROOT / top).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def folder_of(module: str) -> str:
    """The package that holds a module, which is the module itself where it is a package."""
    return module if modules()[module].stem == "__init__" else module.rpartition(".")[0]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def parts_of(node: ast.AST) -> Iterator[ast.AST]:
    """The statements right inside a module or statement, and the arms that hold some."""
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
        yield from getattr(node, field, ())


def statements(node: ast.AST, *, typing: bool = True) -> Iterator[ast.AST]:
    """All statements of a module or statement, at any depth; without ``typing`` those that run."""
    for part in parts_of(node):
        if typing or not (isinstance(part, ast.If) and "TYPE_CHECKING" in ast.unparse(part.test)):
            yield part
            yield from statements(part, typing=typing)


def imported_modules(module: str) -> Iterator[str]:
    """The modules of the sources that one imports, anywhere in its text.

    What a package offers is none: its ``__init__`` names it for type checkers alone.
    """
    offers = modules()[module].name == "__init__.py"
    for node in statements(parsed(modules()[module]), typing=not offers):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules())
        elif isinstance(node, ast.ImportFrom) and node.module in modules():
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in modules() else node.module


@cache
def folder_graph() -> nx.DiGraph:
    """An arrow from each folder to those that its own modules import from.

    Every arrow has ``examples``: the pairs of modules behind it.
    """
    graph = nx.DiGraph()
    for module in modules():
        graph.add_node(folder_of(module))
        for other in imported_modules(module):
            ends = folder_of(module), folder_of(other)
            if ends[0] != ends[1]:
                graph.add_edge(*ends)
                graph.edges[ends].setdefault("examples", []).append((module, other))
    return graph


def rooms(package: str) -> nx.DiGraph:
    """The graph of what lies right below a package, each with all that lies below it."""
    depth = package.count(".") + 2
    room_of = {
        one: ".".join(one.split(".")[:depth])
        for one in folder_graph()
        if one.startswith(f"{package}.")
    }
    graph = nx.DiGraph()
    graph.add_nodes_from(room_of.values())
    for ends in folder_graph().edges:
        if room_of.keys() >= {*ends} and room_of[ends[0]] != room_of[ends[1]]:
            graph.add_edge(*map(room_of.__getitem__, ends))
    return graph


def drawing(package: str) -> str:
    """The rooms of a package as a Mermaid graph, without arrows that follow from others."""
    graph = rooms(package)
    reduced = nx.transitive_reduction(graph) if nx.is_directed_acyclic_graph(graph) else graph
    alone = [f"    {_name(room)}" for room in sorted(nx.isolates(graph))]
    arrows = [
        f"    {_name(room)} --> {' & '.join(map(_name, sorted(reduced[room])))}"
        for room in sorted(reduced)
        if reduced[room]
    ]
    return "\n".join(["```mermaid", "graph TD", *alone, *arrows, "```"])


def _name(room: str) -> str:
    return room.rpartition(".")[2]


def marked(package: str) -> re.Pattern[str]:
    """Where a drawing is in the document, its first group: between two comments."""
    begin, end = f"<!-- folders of {package} -->", "<!-- end -->"
    return re.compile(f"{re.escape(begin)}\n(.*?){re.escape(end)}", re.DOTALL)


def write_drawings() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    for package in DRAWN:
        found = marked(package).search(text)
        assert found is not None, f"{DOCUMENT.name} has no place for {package}"
        text = f"{text[: found.start(1)]}{drawing(package)}\n{text[found.end(1) :]}"
    DOCUMENT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_drawings()
