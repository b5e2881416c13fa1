"""What the key of a rule's machine code depends on, and what it does not."""

from __future__ import annotations

import ctypes
import enum
import math
import subprocess
import sys
import types
from collections.abc import Callable
from typing import Any

import numba
import numba.core.compiler_lock
import numba.core.registry
import numba.extending
import numpy as np
import pytest

from gossamer.protocol.kernel.code_keys import code_key
from gossamer.protocol.kernel.prefetch import prefetch
from gossamer.protocol.kernel.rules import Rule, inline_rule, rule
from gossamer.protocol.peer import step as peer
from gossamer.sim.engine.cycle_engine import approach_nobody, give_no_hint, make_turns
from gossamer.sim.engine.event_loop import make_run
from gossamer.sim.studies.peers.running.collector import observe


def function(source: str, **names: Any) -> Any:
    space = {"__name__": "__main__", **names}
    exec(source, space)
    return space["f"]


def keys_of(source: str, name: str, values: tuple[Any, ...]) -> list[str | None]:
    """The keys of a function for which a global name has one value or another."""
    return [code_key(function(source, **{name: value})) for value in values]


class Near(enum.Enum):
    ONE = 1


class Far(enum.Enum):
    ONE = 2


Far.__qualname__ = Near.__qualname__
ADDRESS = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(math.sqrt)


@pytest.mark.parametrize(
    "values",
    [
        (1, 2),
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("a", b"a"),
        ((1, 2), (1, 3)),
        ((1, 2), ((1,), 2)),
        (np.int32(1), np.int64(1)),
        (np.array([1, 2]), np.array([1, 3])),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.zeros((2, 3)), np.zeros((2, 3), order="F")),
        (np.dtype("i4"), np.dtype("i8")),
        (Near, Far),
        (Near.ONE, Far.ONE),
        (math.sin, math.cos),
        (np.sin, np.cos),
        (numba.types.int32, numba.types.int64),
        (len, abs),
    ],
    ids=repr,
)
def test_a_key_tells_values_of_globals_apart(values: tuple[Any, Any]) -> None:
    one, other = keys_of("def f(): return g", "g", values)
    assert None not in (one, other)
    assert one != other
    assert one == keys_of("def f(): return g", "g", values[:1])[0]


def test_only_names_that_code_loads_are_part_of_its_key() -> None:
    source = "def f(x): return x.total + g"
    assert code_key(function(source, g=1, total=1)) == code_key(function(source, g=1, total=2))
    inner = "def f(x):\n    def inside(): return g\n    return inside()"
    assert code_key(function(inner, g=1)) != code_key(function(inner, g=2))


def test_defaults_and_keywords_are_part_of_the_key() -> None:
    sources = ["def f(x, y=1): return y", "def f(x, y=2): return y"]
    sources += ["def f(x, *, y=1): return y", "def f(x, *, y=2): return y"]
    assert len({code_key(function(source)) for source in sources}) == len(sources)


def test_what_a_module_of_ones_own_holds_is_part_of_the_key() -> None:
    outer, inner = types.ModuleType("own_outer"), types.ModuleType("own_inner")
    vars(outer).update(inner=inner)
    vars(inner).update(outer=outer, RATE=1, unused=ADDRESS)
    source = "def f(): return g.inner.RATE"
    before = code_key(function(source, g=outer))
    vars(inner).update(RATE=2)
    assert before is not None
    assert code_key(function(source, g=outer)) not in (before, None)


def test_rules_that_call_each_other_in_a_circle_have_keys() -> None:
    def circle(step: int) -> Rule:
        source = f"def f(x): return other(x - {step}) if x > 0 else 0"
        first = Rule(made := function(source), made, inline=False)
        second = rule(function("def f(x): return first(x)", first=first))
        made.__globals__["other"] = second
        return first

    assert code_key(circle(1)) == code_key(circle(1))
    assert code_key(circle(1)) != code_key(circle(2))


def test_whether_a_called_rule_is_placed_into_its_callers_is_part_of_the_key() -> None:
    callee = function("def f(): return 1")
    one, other = keys_of("def f(): return g()", "g", (rule(callee), inline_rule(callee)))
    assert one != other


def test_what_the_compiler_takes_in_place_of_a_function_is_part_of_the_key() -> None:
    def caller(value: int) -> Callable[[], int]:
        def replaced() -> int:
            return 0

        numba.extending.overload(replaced)(lambda: lambda: value)
        made: Callable[[], int] = function("def f(): return g()", g=replaced)
        return made

    assert code_key(caller(1)) != code_key(caller(2))


def test_the_compiler_is_asked_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    context: Any = numba.core.registry.cpu_target.typing_context
    lock: Any = numba.core.compiler_lock.global_compiler_lock
    alone = []
    monkeypatch.setattr(context, "refresh", lambda: alone.append(lock.is_locked()))
    held = function("def f(): return 1")
    assert code_key(function("def f(): return g()", g=held)) is not None
    assert alone
    assert all(alone)


def test_functions_compiled_by_the_compiler_itself_are_part_of_the_key() -> None:
    compiled = [numba.njit(function("def f(): return g", g=value)) for value in (1, 2)]
    one, other = keys_of("def f(): return g()", "g", tuple(compiled))
    assert one != other


def test_what_is_raised_names_its_line_and_all_else_may_move() -> None:
    assert code_key(function("def f(): return 1")) == code_key(function("\n\ndef f(): return 1"))
    raising = "def f(): raise ValueError('no')"
    assert code_key(function(raising)) != code_key(function("\n\n" + raising))


def test_code_that_depends_on_an_address_has_no_key() -> None:
    assert keys_of("def f(x): return g(x)", "g", (ADDRESS,)) == [None]
    assert code_key(rule(function("def f(x): return g(x)", g=ADDRESS))) is None


def test_what_compiled_code_cannot_hold_does_not_take_the_key() -> None:
    assert keys_of("def f(): return g", "g", (object(),)) != [None]


def test_all_shipped_loops_have_keys_which_are_the_same_in_every_process() -> None:
    found = [code_key(peer.step), code_key(prefetch), code_key(observe)]
    found.append(code_key(make_turns(peer.step, observe, give_no_hint, approach_nobody)))
    found.append(code_key(make_run(peer.step, observe, give_no_hint)))
    assert None not in found
    program = (
        "from gossamer.protocol.peer.step import step;"
        "from gossamer.protocol.kernel.code_keys import code_key; print(code_key(step))"
    )
    printed = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", program],
        env={"PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout.strip() == found[0]
