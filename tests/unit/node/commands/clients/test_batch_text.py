"""Batch files are read as editors of any system save them."""

from __future__ import annotations

from pathlib import Path

import pytest

from gossamer.node.commands.clients.batch_text import read_batch

BATCH = '# first\nsubscribe cheap price < 120.5\npublish symbol = "IBM", price = 81.5\n'


@pytest.mark.parametrize("text", [BATCH, BATCH.partition("\n")[2]])
def test_a_byte_order_mark_is_passed_over(text: str, tmp_path: Path) -> None:
    path = tmp_path / "batch"
    found = []
    for encoding in ("utf-8", "utf-8-sig"):
        path.write_bytes(text.encode(encoding))
        found.append([operation.line for operation in read_batch(path)])
    assert found[0] == found[1]
    assert len(found[0]) == 2
