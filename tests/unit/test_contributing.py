"""What CONTRIBUTING.md names is there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
TEXT: Final = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
SOURCES: Final = [ROOT / folder for folder in ("shared", "node", "sim", "spark")]
ROWS: Final = re.findall(r"(?m)^\| .* \| `([\w/]+\.py)` \| `(\w+)` \|$", TEXT)


def test_the_table_of_the_papers_has_at_least_thirty_rows() -> None:
    assert len(ROWS) >= 30


@pytest.mark.parametrize(("file", "name"), ROWS)
def test_every_rule_of_the_table_is_where_it_says(file: str, name: str) -> None:
    assert re.search(rf"(?m)^(def|class) {name}\b", (ROOT / file).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(gossamer(?:\.\w+)+)`", TEXT))))
def test_every_module_that_is_named_exists(name: str) -> None:
    *package, last = name.split(".")
    folders = [source.joinpath(*package) for source in SOURCES]
    assert any(
        (folder / f"{last}.py").is_file()
        or (folder / last).is_dir()
        or ((folder / "__init__.py").is_file() and last in (folder / "__init__.py").read_text())
        for folder in folders
    )


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:tests|shared|node|sim|spark|examples)/[\w/.]*)`", TEXT)))
)
def test_every_path_that_is_named_exists(path: str) -> None:
    assert (ROOT / path).exists()
