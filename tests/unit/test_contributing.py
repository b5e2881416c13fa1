"""What CONTRIBUTING.md names is there."""

from __future__ import annotations

import re
from typing import Final

import pytest

from support.checkout import ROOT

TEXT: Final = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ROWS: Final = re.findall(r"(?m)^\| .* \| `([\w/]+\.py)` \| `(\w+)` \|$", TEXT)


def test_the_table_of_the_papers_has_at_least_thirty_rows() -> None:
    assert len(ROWS) >= 30


@pytest.mark.parametrize(("file", "name"), ROWS)
def test_every_rule_of_the_table_is_where_it_says(file: str, name: str) -> None:
    assert re.search(rf"(?m)^(def|class) {name}\b", (ROOT / file).read_text(encoding="utf-8"))
