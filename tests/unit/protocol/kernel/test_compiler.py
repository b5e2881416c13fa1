"""What the compiler refuses is named in one sentence, and its private parts are as they were."""

from __future__ import annotations

import gc
import inspect
import operator
import os
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numba.core.codegen
import numba.core.errors
import numba.core.event
import numba.core.postproc
import numba.core.registry
import numba.core.types
import numpy as np
import pytest

from gossamer.protocol.kernel import keyed_code
from gossamer.protocol.kernel.compile_errors import explain_failures
from gossamer.protocol.kernel.errors import RuleCompilationError
from gossamer.protocol.kernel.quicker_compiler import answers_kept
from gossamer.protocol.kernel.rules import Rule, rule
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from gossamer.sim.engine.event_engine import EventEngine
from support.ping_protocol import TICK, make_pings

LIMITS = {"most": 3}


def plain(value: int) -> int:
    return value


@rule
def give_one() -> int:
    return 1


def rule_of(code: str) -> Callable[..., Any]:
    names = {"np": np, **globals()}
    lines = "\n".join(f"    {line}" for line in code.split("\n"))
    exec(compile(f"def body(s, p):\n{lines}\n", "wrong.py", "exec"), names)
    made = names["body"]
    assert inspect.isfunction(made)
    return made


def step_around(fault: Callable[..., Any]) -> Rule:
    inner = rule(fault)

    @rule
    def step(state: Any, p: int, now: int, words: Any, at: int, out: Any) -> None:  # noqa: ARG001
        inner(state, p)

    return step


# Faults of which the compiler does not tell the line; that of the rule is named.
NO_OBJECTS = "it makes or returns a new array, list, text or other object, and rules"
STAYS_OUTSIDE = "and of what stands outside of it a rule may use rules,"
CANNOT_DO, CANNOT_HAVE = "compiled code cannot do", "that compiled code cannot have"
CUT_OFF = "an array of int64, where fractions are cut off; int(...)"
UNPACK, MAY_BE_NONE = "a statement (UNPACK_EX)", "what may be None to an array of int64"
NEEDS_PYTHON = "needs Python's interpreter, which compiled rules cannot reach; in a"


@pytest.mark.parametrize("engine", [CycleEngine, EventEngine])
@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        # The statements; the line of the fault, unless the compiler does not tell it.
        ("s.fired[p] = s.missing[p]", 2, "Unknown attribute 'missing' of type Struct"),
        ("s.fired[p] = np.zeros(3)[p]", 2, NO_OBJECTS),
        ("s.fired[p] = len([p])", 2, NO_OBJECTS),
        ("return s.fired[:p]", None, "it returns an array or a part of one, which compiled rules"),
        ("s.fired[p] = LIMITS['most']", None, f"it uses LIMITS, {STAYS_OUTSIDE}"),
        ("s.fired[p] = plain(p)", None, f"it uses plain, {STAYS_OUTSIDE}"),
        ("s.fired[p] = s.taken[p, 1]", 2, f"{CANNOT_DO} getitem(array(int64, 1d, C), Tuple(int64"),
        ("give_one(s, p)", 2, "it calls give_one, which takes (): too many positional arguments"),
        ("if s.fired[p] > 5:\n    raise ValueError(p)", 3, NO_OBJECTS),
        ("s.fired[p] = p / 2", 2, f"it writes a float to {CUT_OFF}"),
        ("import math\ns.fired[p] = int(math.sqrt(4.0))", 2, f"it has an import {CANNOT_HAVE}"),
        ("first, *_others = (p, p, p)\ns.fired[p] = first", 2, f"it has {UNPACK} {CANNOT_HAVE}"),
        ("x = None\nif p < 20:\n    x = 1\ns.fired[p] = x", 5, f"it writes {MAY_BE_NONE}"),
        ("s.fired[p] = round(number=2.5)", None, "Keyword arguments are not supported, yet"),
        ("s.fired[p] += 1\nprint('row', p)", 3, f"print {NEEDS_PYTHON}"),
    ],
)
def test_the_sentence_names_the_fault(engine: Any, code: str, line: int | None, words: str) -> None:
    step = step_around(rule_of(code))
    with pytest.raises(RuleCompilationError) as caught:
        engine(make_pings(2), step, (TICK,), make_network(2), 1).run_cycle()
    error = caught.value
    assert (error.rule, error.file, line or error.line) == ("body", "wrong.py", error.line)
    assert error.reason.startswith(words)
    assert "\n" not in str(error)
    assert str(error).startswith(f"rule body (wrong.py, line {error.line}) cannot be co")
    assert error.__cause__ is not None


PRINTING = """
import sys
import numpy as np
from gossamer.protocol.kernel.rules import rule
from gossamer.protocol.kernel.struct import Struct
from gossamer.sim.engine.cycle_engine import CycleEngine, make_network
from gossamer.sim.engine.event_engine import EventEngine

class Seen(Struct):
    count: np.ndarray

@rule
def step(state, p, now, words, at, out):
    {statement}
    state.count[p] += 1

engine = {{"cycle": CycleEngine, "event": EventEngine}}[sys.argv[1]]
engine(Seen(count=np.zeros(2)), step, (1,), make_network(2), 1).run_cycle()
"""


def run_script(
    path: Path, program: str, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    path.write_text(program)
    command, environment = [sys.executable, str(path), *arguments], {**os.environ, **variables}
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=120, check=False
    )


@pytest.mark.parametrize(
    ("engine", "printed"),
    [
        ("cycle", "'row', state.count[p], now"),
        pytest.param("event", "p", marks=pytest.mark.campaign),
        pytest.param("cycle", "p", marks=pytest.mark.campaign),
        pytest.param("event", "'row', state.count[p], now", marks=pytest.mark.campaign),
    ],
)
def test_a_script_that_prints_in_a_rule_ends(tmp_path: Path, engine: str, printed: str) -> None:
    """Twice: compiled code that the first run left behind must not print either."""
    script, program = tmp_path / "printing.py", PRINTING.format(statement=f"print({printed})")
    for _ in range(2):
        done = run_script(script, program, engine, GOSSAMER_CACHE=str(tmp_path / "cache"))
        assert (done.returncode, done.stdout) == (1, "")
        last = done.stderr.strip().splitlines()[-1]
        assert f"rule step ({script}, line 14) cannot be compiled: print needs" in last


def test_codes_for_terminals_are_left_out() -> None:
    """The compiler puts them into its errors wherever colorama is installed."""

    class Failing:
        def _compile_for_args(self) -> None:
            text = "\x1b[1m\x1b[31mUnknown attribute\x1b[0m of s\x1b[0m"
            raise numba.core.errors.TypingError(text)

    with pytest.raises(RuleCompilationError) as caught:
        explain_failures(Failing(), plain)._compile_for_args()
    assert caught.value.reason == "Unknown attribute of s"


ADVICE = (
    "look at gossamer/protocol/kernel/quicker_compiler.py, which extends and swaps private parts "
    f"of numba, here {numba.__version__}, and at the bound on numba in pyproject.toml; until they "
    "fit, GOSSAMER_PLAIN_COMPILATION=1 compiles without them"
)
LIBRARY: Any = getattr(numba.core.codegen, "JITCodeLibrary", None)
CPU = numba.core.registry.cpu_target
# What `asked_once` swaps, with its parameters.
SWAPPED: dict[str, tuple[Any, list[str]]] = {
    "get_call_type": (numba.core.types.Function, ["self", "context", "args", "kws"]),
    "run": (numba.core.postproc.PostProcessor, ["self", "emit_dels", "extend_lifetimes"]),
    "install_timer": (numba.core.event, ["kind", "callback"]),
    "get_abi_sizeof": (CPU.target_context, ["ty"]),
}
# What `LinkedLaterLibrary` overrides or calls, and what it reads and writes of its instances.
EXTENDED = {
    "get_pointer_to_function": (LIBRARY, ["self", "name"]),
    **dict.fromkeys(("finalize", "_get_module_for_linking"), (LIBRARY, ["self"])),
    "_raise_if_finalized": (LIBRARY, ["self"]),
}
ATTRIBUTES = ("_codegen", "_final_module", "_finalized", "_linking_libraries", "_shared_module")
# Of the private class: what `LinkedLaterLibrary` overrides or calls, with its parameters.
# What it reads and writes of its instances.
# What `asked_once` swaps, with its parameters.
RULES = """
from gossamer.protocol.kernel.rules import rule

@rule
def half(x):
    return x // 2

@rule
def steps(x):
    count = 0
    while x > 1:
        x = half(x)
        count += 1
    return count

import sys
assert steps.compiled(1 << 40) == steps.interpreted(1 << 40) == 40
print("gossamer.protocol.kernel.quicker_compiler" in sys.modules)
"""


@pytest.mark.parametrize("name", [*SWAPPED, *EXTENDED])
def test_what_is_swapped_or_extended_is_as_it_was(name: str) -> None:
    holder, parameters = {**SWAPPED, **EXTENDED}[name]
    private = getattr(holder, name, None)
    found = None if private is None else list(inspect.signature(private).parameters)
    assert found == parameters, f"{name} takes {found}, expected {parameters}: {ADVICE}"


def test_code_is_made_in_the_class_that_is_extended() -> None:
    generator = CPU.target_context.codegen()
    chosen = getattr(generator, "_library_class", None)
    assert chosen is LIBRARY is not None, f"code is made in {chosen}: {ADVICE}"
    made = generator.create_library("looked at")
    missing = [name for name in ATTRIBUTES if not hasattr(made, name)]
    assert not missing, f"there is no {', '.join(missing)}: {ADVICE}"


@pytest.mark.parametrize("name", SWAPPED)
def test_what_is_asked_once_is_put_back(name: str) -> None:
    holder, _ = SWAPPED[name]
    before = getattr(holder, name)
    with answers_kept():
        within = getattr(holder, name)
        assert within != before
        with answers_kept():
            assert getattr(holder, name) == within
        assert getattr(holder, name) == within
    assert getattr(holder, name) == before


def test_sizes_and_types_that_are_kept_are_those_that_are_found() -> None:
    context, typing = CPU.target_context, CPU.typing_context
    typing.refresh()  # as compiling begins
    kinds = [numba.int8, numba.float64, numba.int64[:, ::1]]
    add = typing.resolve_value_type(operator.add)
    pairs = [(one, other) for one in kinds[:2] for other in kinds[:2]]

    def ask() -> list[Any]:
        sizes = [context.get_abi_sizeof(context.get_data_type(kind)) for kind in kinds]
        return [*sizes, *(typing.resolve_function_type(add, pair, {}) for pair in pairs)]

    found = ask()
    assert found[:2] == [1, 8]
    with answers_kept():
        assert ask() == ask() == found


@pytest.mark.parametrize(("plain", "swapped"), [("1", "False"), ("", "True")])
def test_rules_compile_without_the_private_class(plain: str, swapped: str, tmp_path: Path) -> None:
    done = run_script(tmp_path / "script.py", RULES, GOSSAMER_PLAIN_COMPILATION=plain)
    assert (done.stdout.strip(), done.returncode) == (swapped, 0), done.stderr


def test_what_callers_call_stays_although_it_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The compiler refers to it weakly; of code that has no key each caller gets one of its own."""
    monkeypatch.setattr(keyed_code, "code_key", lambda _: None)
    called = rule(plain)
    first = weakref.ref(called.callee)
    assert called.callee is not first()
    gc.collect()
    assert first() is not None
