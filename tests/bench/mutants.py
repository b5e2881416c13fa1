"""Which mutated rules the tests find.

Run it by hand in a clone of its own without changes: ``python tests/bench/mutants.py [--count 20]
[--seed 1] [--first 0] [--suite quick]``. Mutants are drawn from all comparisons and additions or
subtractions of 1 in the rules of the protocol: a comparison is turned (``<`` becomes ``<=``, ``==``
becomes ``!=``, ...), a ``+ 1`` or ``- 1`` is left out. One file is changed at a time, tests run
until the first that fails or takes too long, and the file is restored. ``quick`` is what `make
test` runs without the pipeline, ``all`` what `make test-all` does. What nothing finds is to be
judged by hand, as a mutant may compute the same.
"""

from __future__ import annotations

import ast
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import read_options

ROOT: Final = Path(__file__).parents[2]
RULES: Final = ROOT / "shared" / "gossamer" / "protocol"
# Cheap tests first: most mutants are found within a minute. With the minutes that they may take.
STAGES: Final = {
    "tests/unit/protocol tests/property": 8,
    "tests/unit tests/simulation tests/network tests/equivalence": 30,
}
TURNED: Final[dict[type[ast.cmpop], str]] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
}
FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


class Mutant(NamedTuple):
    """One change of one file: what takes the place of the bytes from ``begin`` to ``end``."""

    path: Path
    title: str
    begin: int
    end: int
    instead: str


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All mutants of the rules in a file."""
    source = path.read_bytes()
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef) and any(
            "rule" in ast.unparse(one) for one in function.decorator_list
        ):
            for node in ast.walk(function):
                if isinstance(node, ast.expr) and (instead := _mutated(node)) is not None:
                    assert node.end_lineno is not None
                    assert node.end_col_offset is not None
                    begin = begins[node.lineno - 1] + node.col_offset
                    end = begins[node.end_lineno - 1] + node.end_col_offset
                    text = " ".join(source[begin:end].decode().split())
                    title = f"{path.relative_to(RULES)}:{node.lineno}: {text} -> {instead}"
                    yield Mutant(path, title, begin, end, instead)


def _mutated(node: ast.expr) -> str | None:
    match node:
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in TURNED:
            return f"({ast.unparse(left)}) {TURNED[type(sign)]} ({ast.unparse(right)})"
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=1)):
            return f"({ast.unparse(left)})"
    return None


def find(mutant: Mutant, everything: bool) -> str:
    """The first test that fails with a mutant, or ""."""
    before = mutant.path.read_bytes()
    changed = before[: mutant.begin] + mutant.instead.encode() + before[mutant.end :]
    mutant.path.write_bytes(changed)
    try:
        for stage, most in STAGES.items():
            output = _failing(stage.split(), everything, 60 * most * (10 if everything else 1))
            if output is not None:
                failed = FAILED.search(output)
                return failed[1] if failed else "no end"
    finally:
        mutant.path.write_bytes(before)
    return ""


def _failing(tests: list[str], everything: bool, most_s: float) -> str | None:
    """What is printed of tests that fail, or that do not end; None where they pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "3", "--dist", "loadgroup"]
    with subprocess.Popen(
        [*command, *(["--all"] * everything), *tests],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            output, _ = running.communicate(timeout=most_s)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            return running.communicate()[0]
    return output if running.returncode != 0 else None


def main() -> None:
    asked = read_options(__doc__, count=20, first=0, seed=1, suite=("quick", "all"))
    unclean = ["git", "status", "--porcelain", "-uno"]
    if subprocess.run(unclean, cwd=ROOT, check=True, capture_output=True).stdout:
        sys.exit(f"{ROOT} has changes: run this in a clone of its own")
    every = [one for path in sorted(RULES.rglob("*.py")) for one in mutants_of(path)]
    drawn = random.Random(asked.seed).sample(every, asked.first + asked.count)
    missed = 0
    for mutant in drawn[asked.first :]:
        begin = time.monotonic()
        found = find(mutant, asked.suite == "all")
        missed += not found
        minutes = (time.monotonic() - begin) / 60
        print(f"{minutes:5.1f} min  {mutant.title}\n           {found or 'NOT FOUND'}", flush=True)
    print(f"{asked.count - missed} of {asked.count} found by {asked.suite}")


if __name__ == "__main__":
    main()
