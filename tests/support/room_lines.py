"""How large the rooms of the sources are, beside what they are to have: `make lines` prints it.

A room is a folder with all that lies below it. Lines are told apart as code, imports, docstrings,
comments and blank ones.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table

ROOT: Final = Path(__file__).parents[2]
KINDS: Final = ("code", "imports", "docstrings", "comments", "blank")
# The lines that each is to have; where there are more, somebody has to find what can go.
AIMS: Final = {
    "shared/gossamer/protocol/kernel": 3_000,
    "shared/gossamer/protocol/content": 6_000,
    "shared/gossamer/protocol/dissemination": 3_200,
    "shared/gossamer/protocol/peer": 11_000,
    "shared/gossamer/protocol/brokers": 10_800,
    "shared/gossamer/protocol/patterns": 1_100,
    "shared/gossamer/command": 1_100,
    "node/gossamer/client": 2_500,
    "node/gossamer/node/transport": 3_200,
    "node/gossamer/node/security": 3_400,
    "node/gossamer/node/store": 1_500,
    "node/gossamer/node/peer": 8_500,
    "node/gossamer/node/broker": 4_200,
    "node/gossamer/node/local": 2_600,
    "node/gossamer/replay": 1_600,
    "sim/gossamer/sim/engine": 4_800,
    "sim/gossamer/sim/custom": 3_600,
    "sim/gossamer/sim/churn": 1_700,
    "sim/gossamer/sim/study": 2_200,
    "sim/gossamer/sim/studies": 12_500,
    "sim/gossamer/sim/results": 4_200,
    "sim/gossamer/sim/figures": 5_600,
    "spark/gossamer/spark": 7_200,
}
IN_ALL: Final = {"shared": 36_000, "node": 38_000, "sim": 38_000, "spark": 7_200, "tests": 75_000}


def lines_of(text: str) -> Counter[str]:
    kinds = ["code" if line.strip() else "blank" for line in text.splitlines()]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        row, column = token.start
        if token.type == tokenize.COMMENT and not token.line[:column].strip():
            kinds[row - 1] = "comments"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            _mark(kinds, node, "imports")
        elif (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            _mark(kinds, node, "docstrings")
    return Counter(kinds)


def _mark(kinds: list[str], node: ast.stmt, kind: str) -> None:
    last = node.end_lineno or node.lineno
    kinds[node.lineno - 1 : last] = [kind] * (last - node.lineno + 1)


def rows() -> list[tuple[str, int, int, Counter[str]]]:
    """Of every room: its name, its files, the lines that it is to have, and its lines by kind."""
    found = []
    for room, aim in (AIMS | IN_ALL).items():
        files = sorted((ROOT / room).rglob("*.py"))
        counts: Counter[str] = Counter()
        for one in files:
            counts += lines_of(one.read_text(encoding="utf-8"))
        name = room.partition("gossamer/")[2] or room
        found.append((name, len(files), aim, counts))
    return found


def main() -> None:
    table = Table("room", box=box.SIMPLE)
    for heading in ("files", "lines", "aim", *KINDS):
        table.add_column(heading, justify="right")
    for room, files, aim, counts in rows():
        numbers = (files, counts.total(), aim, *(counts[kind] for kind in KINDS))
        table.add_row(room, *(f"{number:,}" for number in numbers))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
