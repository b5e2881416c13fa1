"""What a checked run finds in a rule, and how debuggers reach rules."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gossamer.protocol.kernel import records
from gossamer.protocol.kernel.debugging.checked_run import CheckedRun
from gossamer.protocol.kernel.errors import RuleError, StructError
from gossamer.protocol.kernel.rules import Rule, rule, use_compiled
from gossamer.protocol.kernel.struct import Rows, Struct
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from gossamer.sim.engine.event_engine import EventEngine
from support.ping_protocol import TICK, make_pings, ping_step, send_command

TURN, NEWS = records.USER, records.USER + 1
PEERS = 4

ENGINES = pytest.mark.parametrize("engine", [CycleEngine, EventEngine])


class Pair(NamedTuple):
    left: np.ndarray
    right: np.ndarray


class Inner(Struct):
    numbers: np.ndarray


class Scratch(Struct, shared=True):
    """As long as there are peers, and yet no row a peer."""

    spare: np.ndarray


class Everything(Struct, shared=("shelf",)):
    count: np.ndarray
    table: np.ndarray
    inner: Inner
    scratch: Scratch
    pair: tuple[np.ndarray, int]
    named: Pair
    shelf: np.ndarray
    free: np.ndarray
    column: np.ndarray
    block: np.ndarray


def make_everything() -> Everything:
    numbers = np.zeros(PEERS, np.int64)
    return Everything(
        Rows(PEERS, {"column": (), "block": (2, 3)}),
        count=numbers.copy(),
        table=np.zeros((PEERS, 3)),
        inner=Inner(numbers=numbers.copy()),
        scratch=Scratch(spare=numbers.copy()),
        pair=(numbers.copy(), 7),
        named=Pair(numbers.copy(), numbers.copy()),
        shelf=numbers.copy(),
        free=np.zeros(9),
    )


def step_around(body: Callable[..., Any]) -> Rule:
    inner = rule(body)

    @rule
    def step(state: Any, p: int, now: int, words: Any, at: int, out: Any) -> None:  # noqa: ARG001
        if words[at + records.KIND] == TURN and p == 2:
            inner(state, p, words, at, out)

    return step


def run(engine: Any, body: Callable[..., Any]) -> Any:
    """A checked cycle in which peer 2 does something; returns the engine."""
    state, network = make_everything(), make_network(PEERS)
    made = engine(state, step_around(body), (TURN,), network, 1, debug=True)
    made.run_cycle()
    return made


WRONG = {
    # What peer 2 does with the state s, and what is said of it.
    "s.count[1] = 5": "it writes row 1 of count, expected its own row 2 only",
    "s.count[1] += 5": "it writes row 1 of count, expected its own row 2 only",
    "s.count[:] = 5": "it writes row 0 of count, expected its own row 2 only",
    "s.count[1:3] = 5": "it writes row 1 of count, expected its own row 2 only",
    "s.count[2:4] = 5": "it writes row 3 of count, expected its own row 2 only",
    "s.table[:, 1] = 5": "it writes row 0 of table, expected its own row 2 only",
    "s.table[3][1] = 5": "it writes row 3 of table, expected its own row 2 only",
    "s.table[:, 1][0] = 5": "it writes row 0 of table, expected its own row 2 only",
    "s.table[[2, 3]] = 5": "it writes row 3 of table, expected its own row 2 only",
    "s.inner.numbers[p + 1] = 5": "it writes row 3 of inner.numbers, expected its own row 2 on",
    "s.pair[0][0] = 5": "it writes row 0 of pair[0], expected its own row 2 only",
    "s.named.right[0] = 5": "it writes row 0 of named.right, expected its own row 2 only",
    "s.column[0] = 5": "it writes row 0 of column, expected its own row 2 only",
    "s.block[3, 1, 2] = 5": "it writes row 3 of block, expected its own row 2 only",
    "s.block[p + 1][1][:] = 5": "it writes row 3 of block, expected its own row 2 only",
    "row = s.table[3]; row += 1": "it writes row 3 of table, expected its own row 2 only",
    "s.count[p] = 2.5": "it writes the float 2.5 to count, of int64, where fractions are cut off",
    "s.count[p] += s.table[p, 0]": "it writes the float 0.0 to count, of int64, where fractions",
    "s.block[p, 1] = s.table[p]": "it writes floats to block, of int64, where fractions are cut",
    "s.table[3].fill(1)": "assignment destination is read-only",
    "s.count[-1] = 5": "index -1 of axis 0 of count, expected 0 to 3",
    "s.count[p] = s.free[-2]": "index -2 of axis 0 of free, expected 0 to 8",
    "s.count[p] = s.free[9]": "index 9 of axis 0 of free, expected 0 to 8",
    "s.table[p, 3] = 1": "index 3 of axis 1 of table, expected 0 to 2",
    "s.block[p, 1, -1] = 1": "index -1 of axis 2 of block, expected 0 to 2",
    "s.count[p] = s.missing[p]": "it reads field missing of Everything, which has no such field",
    "s.count = 3": "it sets field count of Everything, expected writes into arrays only",
    "s.count[p] = words[at + 4]": "word 4 of words, expected 0 to 3, which are the record",
    "s.count[p] = words[at - 1]": "word -1 of words, expected 0 to 3, which are the record",
    "s.count[p] = sum(words)": "it goes through all of words, expected the record only",
    "open_record(out, NEWS, 3, p, 1)": "the record of kind 129 to 3 that it opened is not close",
    "open_record(out, NEWS, 4, p, 1)": "it writes a record of kind 129 whose TO is 4, expected ",
    "open_record(out, NEWS, -1, p, 1)": "it writes a record of kind 129 whose TO is -1, expected",
    "open_record(out, NEWS, 1, 9, 1)": "it writes a record of kind 129 whose FROM is 9, expected",
    "open_record(out, 0, 1, p, 1)": "it opens a record of kind 0, expected 1 to 1048575",
    "open_record(out, 1 << 20, 1, p, 1)": "it opens a record of kind 1048576, expected 1 to 1048",
    "open_record(out, NEWS, 1, p, -1)": "it opens a record of -1 body words, expected 0 or more",
    "open_record(out, NEWS, 1, p, 1); open_record(out, NEWS, 1, p, 1)": "the record of kind 129",
    "r = open_record(out, NEWS, 1, p, 1); out.words[r + BODY + 1] = 3": "word ",
    "r = open_record(out, NEWS, 1, p, 1); close_record(out, r, 2)": "it closes a record with 2 b",
    "r = open_record(out, NEWS, 1, p, 1); close_record(out, r, -1)": "it closes a record with -1",
    "r = open_record(out, NEWS, 1, p, 1); close_record(out, r + 1, 1)": "it closes a record at ",
    "r = open_record(out, NEWS, 1, p, 1); out.words[r + TO] = 7; close_record(out, r, 0)": "it wr",
    "r = open_record(out, NEWS, 1, p, 1 << 40); close_record(out, r, 1)": "it goes on with a recor",
    "out.words[out.cursor[TAIL]] = 3": "word ",
}


def body_of(code: str) -> Callable[..., Any]:
    names = {"NEWS": NEWS, **vars(records)}
    lines = "\n".join(f"    {statement}" for statement in code.split("; "))
    exec(compile(f"def body(s, p, words, at, out):\n{lines}\n", "wrong.py", "exec"), names)
    made = names["body"]
    assert inspect.isfunction(made)
    made.__module__ = __name__
    return made


@ENGINES
@pytest.mark.parametrize("code", WRONG)
def test_what_is_wrong_is_told_with_rule_line_row_time_and_record(engine: Any, code: str) -> None:
    with pytest.raises(RuleError) as caught:
        run(engine, body_of(code))
    error = caught.value
    assert error.fault.startswith(WRONG[code])
    assert (error.rule, error.file, error.row) == ("body", "wrong.py", 2)
    assert 2 <= error.line <= 1 + len(code.split("; "))
    assert error.record == (TURN, 2, 2)
    assert error.when.startswith("cycle 0" if engine is CycleEngine else "tick ")
    assert error.when.endswith("cycle 0")
    assert str(error) == (
        f"rule body (wrong.py, line {error.line}), row 2, {error.when}, "
        f"record of kind {TURN} from 2 to 2: {error.fault}"
    )


def do_what_is_right(s: Any, p: int, words: Any, at: int, out: Any) -> None:
    s.count[p] += 1
    s.count[p : p + 1] = 2
    s.table[p, 1] = 3
    s.table[p][2] = 4
    row = s.table[p]
    row += 1
    s.table[:, 0][p] = 5
    s.inner.numbers[p] = 6
    s.pair[0][p] = s.pair[1]
    s.named.left[p] = 8
    s.scratch.spare[0] = 9
    s.shelf[0] = 10
    s.free[8] = 11
    s.column[p] = 12
    s.block[p, 1] = 13
    words[at + records.KIND] = NEWS
    given_up = records.open_record(out, NEWS, 1, p, 1)
    records.drop_record(out, given_up)
    news = records.open_record(out, NEWS, 1, p, 2)
    out.words[news + records.BODY] = len(s.count) + s.table.shape[1]
    records.close_record(out, news, 1)


@ENGINES
def test_what_is_right_is_done_and_observers_write_their_collectors_only(engine: Any) -> None:
    made = run(engine, do_what_is_right)
    s = made.state
    assert type(s.count) is np.ndarray
    assert [s.count[2], s.inner.numbers[2], s.pair[0][2], s.named.left[2]] == [2, 6, 7, 8]
    assert s.table[2].tolist() == [5, 4, 5]
    assert [s.scratch.spare[0], s.shelf[0], s.free[8], s.column[2]] == [9, 10, 11, 12]
    assert (s.block[2].tolist(), s.count.tolist()) == ([[0, 0, 0], [13, 13, 13]], [0, 0, 2, 0])
    assert made.network.counts[0] == PEERS + 1
    parts = (make_pings(PEERS), ping_step, (TICK,), make_network(PEERS), 1)
    made = engine(*parts, observe=write_from_outside, debug=True)
    with pytest.raises(RuleError, match="it writes row 0 of fired, expected no write at all here"):
        made.run_cycle()


@rule
def write_from_outside(_collector: Any, state: Any, _words: Any, _at: int, _now: int) -> None:
    state.fired[0] += 1


def test_a_field_to_share_is_one_of_the_struct() -> None:
    with pytest.raises(StructError, match=r"^field spares of struct Mine: there is no such field"):
        type("Mine", (Struct,), {"__annotations__": {"spare": int}}, shared=("spares",))


@ENGINES
@pytest.mark.parametrize(("value", "checked"), [("1", True), ("0", False), ("", False)])
def test_the_environment_decides_where_the_engine_is_not_told(
    engine: Any, value: str, checked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOSSAMER_DEBUG", value)
    steps = []
    monkeypatch.setattr(CheckedRun, "step", lambda _run, _rule, p, *_: steps.append(p))
    parts = (make_pings(PEERS), ping_step, (TICK,), make_network(PEERS), 1)
    engine(*parts).run_cycle()
    assert sorted(steps) == (list(range(PEERS)) if checked else [])
    engine(*parts, debug=False).run_cycle()
    assert len(steps) == (PEERS if checked else 0)


@ENGINES
def test_engines_run_interpreted_where_rules_are_not_to_be_compiled(engine: Any) -> None:
    """Seen by a rule that no compiler takes."""
    seen: list[int] = []

    @rule
    def step(state: Any, p: int, now: int, words: Any, at: int, out: Any) -> None:  # noqa: ARG001
        seen.append(int(p))

    made = engine(make_pings(PEERS), step, (TICK,), make_network(PEERS), 1)
    with use_compiled(False):
        made.run_cycle()
        made.inject(send_command(3, 1))
    assert sorted(seen) == [0, 1, 2, 3, 3]


STEPPED = """
import numpy as np
from gossamer.protocol.kernel.rules import rule, use_compiled
from gossamer.protocol.kernel.struct import Struct
from {module} import {engine}
from gossamer.sim.engine.cycle_engine import make_network

class Seen(Struct):
    count: np.ndarray

@rule
def raise_count(state, p):
    state.count[p] += 10

@rule
def step(state, p, now, words, at, out):
    if p == 1:
        breakpoint()
    raise_count(state, p)
    print("row", p)

engine = {engine}(Seen(count=np.zeros(2)), step, (1,), make_network(2), 1{argument})
{block}
    engine.run_cycle()
print("end", engine.state.count.tolist())
"""


@ENGINES
@pytest.mark.parametrize(
    ("argument", "block", "variable"),
    [
        ("", "with use_compiled(False):", "0"),
        (", debug=True", "if True:", "0"),
        ("", "if True:", "1"),
    ],
)
def test_a_debugger_steps_through_a_rule_and_print_prints(
    tmp_path: Path, engine: Any, argument: str, block: str, variable: str
) -> None:
    script = tmp_path / "stepped.py"
    names = {"module": engine.__module__, "engine": engine.__name__}
    script.write_text(STEPPED.format(argument=argument, block=block, **names))
    done = subprocess.run(
        [sys.executable, str(script)],
        input="!print('row is', p)\nstep\nstep\nstep\nwhere\nup\np state.count[p]\ncontinue\n",
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "GOSSAMER_DEBUG": variable, "GOSSAMER_CACHE": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for words in ("row is 1", "raise_count(state, p)", "row 0", "row 1"):
        assert words in done.stdout
    assert done.stdout.rstrip().endswith("end [10.0, 10.0]")
