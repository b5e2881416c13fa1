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
        (
            "s.fired[p] = s.taken[p, 1]",
            2,
            "compiled code cannot do getitem(array(int64, 1d, C), Tuple(int64",
        ),
        ("give_one(s, p)", 2, "it calls give_one, which takes (): too many positional arguments"),
        ("if s.fired[p] > 5:\n    raise ValueError(p)", 3, NO_OBJECTS),
        (
            "s.fired[p] = p / 2",
            2,
            "it writes a float to an array of int64, where fractions are cut off; int(...)",
        ),
        (
            "import math\ns.fired[p] = int(math.sqrt(4.0))",
            2,
            "it has an import that compiled code cannot have",
        ),
        (
            "first, *_others = (p, p, p)\ns.fired[p] = first",
            2,
            "it has a statement (UNPACK_EX) that compiled code cannot have",
        ),
        (
            "x = None\nif p < 20:\n    x = 1\ns.fired[p] = x",
            5,
            "it writes what may be None to an array of int64",
        ),
        ("s.fired[p] = round(number=2.5)", None, "Keyword arguments are not supported, yet"),
        (
            "s.fired[p] += 1\nprint('row', p)",
            3,
            "print needs Python's interpreter, which compiled rules cannot reach; in a",
        ),
    ],
)
def test_the_sentence_names_the_fault(engine: Any, code: str, line: int | None, words: str) -> None:
    step = step_around(rule_of(code))
    with pytest.raises(RuleCompilationError) as caught:
        engine(make_pings(2), step, (TICK,), make_network(2), 1).run_cycle()
    error = caught.value
    assert (error.rule, error.file) == ("body", "wrong.py")
    assert line in (None, error.line)
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


@pytest.mark.parametrize(
    ("engine", "statement"),
    [
        ("cycle", "print('row', state.count[p], now)"),
        pytest.param("event", "print(p)", marks=pytest.mark.campaign),
        pytest.param("cycle", "print(p)", marks=pytest.mark.campaign),
        pytest.param("event", "print('row', state.count[p], now)", marks=pytest.mark.campaign),
    ],
)
def test_a_script_that_prints_in_a_rule_ends(tmp_path: Path, engine: str, statement: str) -> None:
    """Twice: compiled code that the first run left behind must not print either."""
    script = tmp_path / "printing.py"
    script.write_text(PRINTING.format(statement=statement))
    environment = {**os.environ, "GOSSAMER_CACHE": str(tmp_path / "cache")}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(script), engine],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment,
            check=False,
        )
        assert done.returncode == 1
        assert done.stdout == ""
        last = done.stderr.strip().splitlines()[-1]
        assert f"rule step ({script}, line 14) cannot be compiled: print needs" in last


def test_codes_for_terminals_are_left_out() -> None:
    """The compiler puts them into its errors wherever colorama is installed."""

    class Failing:
        def _compile_for_args(self) -> None:
            raise numba.core.errors.TypingError(
                "\x1b[1m\x1b[31mUnknown attribute\x1b[0m of s\x1b[0m"
            )

    with pytest.raises(RuleCompilationError) as caught:
        explain_failures(Failing(), plain)._compile_for_args()
    assert caught.value.reason == "Unknown attribute of s"


ADVICE = (
    "look at gossamer/protocol/kernel/quicker_compiler.py, which extends numba's "
    "private class JITCodeLibrary, and at the bound on numba in pyproject.toml; until they fit, "
    "GOSSAMER_PLAIN_COMPILATION=1 compiles without it"
)
# Of the private class: what `LinkedLaterLibrary` overrides or calls, with its parameters.
METHODS = {
    "finalize": ["self"],
    "get_pointer_to_function": ["self", "name"],
    "_get_module_for_linking": ["self"],
    "_raise_if_finalized": ["self"],
}
# What it reads and writes of its instances.
ATTRIBUTES = ("_codegen", "_final_module", "_finalized", "_linking_libraries", "_shared_module")
# What `asked_once` swaps, with its parameters.
SWAPPED: dict[str, tuple[Any, list[str]]] = {
    "get_call_type": (numba.core.types.Function, ["self", "context", "args", "kws"]),
    "run": (numba.core.postproc.PostProcessor, ["self", "emit_dels", "extend_lifetimes"]),
    "install_timer": (numba.core.event, ["kind", "callback"]),
    "get_abi_sizeof": (numba.core.registry.cpu_target.target_context, ["ty"]),
}
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


def test_the_private_class_that_is_swapped_is_as_it_was() -> None:
    private = getattr(numba.core.codegen, "JITCodeLibrary", None)
    assert private is not None, f"numba {numba.__version__} has no JITCodeLibrary: {ADVICE}"
    for name, parameters in METHODS.items():
        method = getattr(private, name, None)
        found = None if method is None else list(inspect.signature(method).parameters)
        assert found == parameters, (
            f"{name} of JITCodeLibrary in numba {numba.__version__} takes {found}, "
            f"expected {parameters}: {ADVICE}"
        )
    generator = numba.core.registry.cpu_target.target_context.codegen()
    chosen = getattr(generator, "_library_class", None)
    assert chosen is private, (
        f"numba {numba.__version__} makes code in {chosen}, expected JITCodeLibrary: {ADVICE}"
    )
    made = generator.create_library("looked at")
    missing = [name for name in ATTRIBUTES if not hasattr(made, name)]
    assert not missing, f"numba {numba.__version__} has no {', '.join(missing)}: {ADVICE}"


@pytest.mark.parametrize("name", SWAPPED)
def test_what_is_asked_once_is_as_it_was_and_is_put_back(name: str) -> None:
    holder, parameters = SWAPPED[name]
    found = list(inspect.signature(getattr(holder, name)).parameters)
    assert found == parameters, (
        f"{name} in numba {numba.__version__} takes {found}, expected {parameters}: look at "
        "gossamer/protocol/kernel/quicker_compiler.py, and at the bound on numba in "
        "pyproject.toml"
    )
    before = getattr(holder, name)
    with answers_kept():
        within = getattr(holder, name)
        assert within != before
        with answers_kept():
            assert getattr(holder, name) == within
        assert getattr(holder, name) == within
    assert getattr(holder, name) == before


def test_sizes_and_types_that_are_kept_are_those_that_are_found() -> None:
    context = numba.core.registry.cpu_target.target_context
    typing = numba.core.registry.cpu_target.typing_context
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
    script = tmp_path / "script.py"
    script.write_text(RULES)
    environment = {**os.environ, "GOSSAMER_PLAIN_COMPILATION": plain}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == swapped


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
