"""What the doors offer is what the reference describes; all else may change between versions."""

from __future__ import annotations

import ast
import json
import re
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest

from support.checkout import ROOT
from support.folder_graph import modules, parsed

DOORS: Final = (
    *("gossamer.brokers", "gossamer.client", "gossamer.node", "gossamer.protocol", "gossamer.sim"),
)
PAGES: Final = sorted((ROOT / "docs" / "reference").glob("*.md"))
EXAMPLES: Final = sorted((ROOT / "examples").rglob("*.py"))


def described(door: str) -> list[str]:
    """Names of a door on the pages of the reference: members of it, or with a section of their own.

    Such as ``::: gossamer.node`` with a list of members, and ``::: gossamer.node.Peer``.
    """
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    members = rf"(?m)^::: {re.escape(door)}\n    options:\n      members: \[([^]]*)\]"
    own = re.findall(rf"(?m)^::: {re.escape(door)}\.(\w+)$", text)
    return own + [name for found in re.findall(members, text) for name in re.findall(r"\w+", found)]


def typed(door: str) -> list[str]:
    """Names that type checkers see, which do not run the door."""
    blocks = [
        node
        for node in parsed(modules()[door]).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    found = [one for block in blocks for one in block.body if isinstance(one, ast.ImportFrom)]
    return [alias.asname or alias.name for one in found for alias in one.names]


@pytest.mark.parametrize("door", DOORS)
def test_the_reference_describes_what_a_door_offers(door: str) -> None:
    offered = import_module(door).__all__
    assert sorted(described(door)) == sorted(offered)


@pytest.mark.parametrize("door", DOORS)
def test_what_a_door_offers_is_there_and_typed(door: str) -> None:
    module = import_module(door)
    assert sorted(typed(door)) == sorted(module.__all__)
    assert all(getattr(module, name) is not None for name in module.__all__)
    with pytest.raises(AttributeError, match=f"module '{door}' has no attribute 'nothing'"):
        _ = module.nothing


def imports(path: Path) -> set[str]:
    """Modules of ours that a script, a notebook or the code of a page imports."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return set(re.findall(r"(?m)^ *(?:>>> )?(?:from|import) (gossamer[\w.]*)", text))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_come_in_by_the_doors(path: Path) -> None:
    assert imports(path) <= set(DOORS)


def test_pages_and_notebooks_come_in_by_the_doors() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    notebooks = list((ROOT / "examples").rglob("*.ipynb"))
    found = {path.relative_to(ROOT).as_posix(): imports(path) for path in [*pages, *notebooks]}
    assert notebooks
    assert sum("gossamer.sim" in modules for modules in found.values()) > 5
    assert {path: more for path, modules in found.items() if (more := modules - set(DOORS))} == {}
