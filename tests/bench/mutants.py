"""Which mutated rules the tests find.

Run it by hand in a clone of its own without changes: ``python tests/bench/mutants.py [--count 20]
[--seed 1] [--first 0] [--suite quick]``. Mutants are drawn from all comparisons and additions or
subtractions of 1 in the rules of the protocol: a comparison is turned (``<`` becomes ``<=``, ``==``
becomes ``!=``, ...), a ``+ 1`` or ``- 1`` is left out. One file is changed at a time, tests run
until the first that fails, and the file is restored. Tests that a mutant keeps from ending for long
have found it. ``quick`` is what `make test` runs without the pipeline, ``all`` what `make test-all`
does. The table names each mutant, the test that found it and the minutes that took; what nothing
finds is to be judged by hand, as a mutant may compute the same.
"""

from __future__ import annotations

import argparse
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
from typing import Final

import attrs

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


@attrs.frozen
class Mutant:
    """One change of one file.

    Attributes:
        path: of the file.
        line: where, from 1 on.
        text: the expression as it stands.
        instead: what takes its place.
        span: offsets of the expression in the file, in bytes.
    """

    path: Path
    line: int
    text: str
    instead: str
    span: tuple[int, int]

    @property
    def title(self) -> str:
        """Where it is and what changes."""
        return f"{self.path.relative_to(RULES)}:{self.line}: {self.text} -> {self.instead}"

    def content(self, before: bytes) -> bytes:
        """The file with the change."""
        return before[: self.span[0]] + self.instead.encode() + before[self.span[1] :]


def mutants_of(path: Path) -> Iterator[Mutant]:
    """All mutants of the functions in a file."""
    source = path.read_bytes()
    begins = [0]
    for line in source.splitlines(keepends=True):
        begins.append(begins[-1] + len(line))
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef) and _is_rule(function):
            for node in ast.walk(function):
                if isinstance(node, ast.expr) and (instead := _mutated(node)) is not None:
                    assert node.end_lineno is not None
                    assert node.end_col_offset is not None
                    begin = begins[node.lineno - 1] + node.col_offset
                    end = begins[node.end_lineno - 1] + node.end_col_offset
                    text = " ".join(source[begin:end].decode().split())
                    yield Mutant(path, node.lineno, text, instead, (begin, end))


def _is_rule(function: ast.FunctionDef) -> bool:
    return any("rule" in ast.unparse(one) for one in function.decorator_list)


def _mutated(node: ast.expr) -> str | None:
    """What takes the place of an expression, or None."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in TURNED:
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        return f"({left}) {TURNED[type(node.ops[0])]} ({right})"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        added = node.right
        if isinstance(added, ast.Constant) and added.value == 1:
            return f"({ast.unparse(node.left)})"
    return None


def find(mutant: Mutant, everything: bool) -> tuple[str, float]:
    """The first test that fails with a mutant, or "", and the minutes until then."""
    before = mutant.path.read_bytes()
    begin = time.monotonic()
    mutant.path.write_bytes(mutant.content(before))
    try:
        for stage, most in STAGES.items():
            output = _failing(stage.split(), everything, 60 * most * (10 if everything else 1))
            if output is not None:
                failed = FAILED.search(output)
                return failed[1] if failed else "no end", (time.monotonic() - begin) / 60
    finally:
        mutant.path.write_bytes(before)
    return "", (time.monotonic() - begin) / 60


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
    """Draw mutants, let the tests run, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--suite", choices=["quick", "all"], default="quick")
    asked = parser.parse_args()
    changed = subprocess.run(
        ["git", "status", "--porcelain", "-uno"], cwd=ROOT, check=True, capture_output=True
    )
    if changed.stdout:
        sys.exit(f"{ROOT} has changes: run this in a clone of its own")
    paths = sorted(RULES.rglob("*.py"))
    drawn = random.Random(asked.seed).sample(
        [one for path in paths for one in mutants_of(path)], asked.first + asked.count
    )
    missed = 0
    for mutant in drawn[asked.first :]:
        found, minutes = find(mutant, asked.suite == "all")
        missed += not found
        print(f"{minutes:5.1f} min  {mutant.title}\n           {found or 'NOT FOUND'}", flush=True)
    print(f"{asked.count - missed} of {asked.count} found by {asked.suite}")


if __name__ == "__main__":
    main()
