"""What is swapped of the compiler's private parts is there, and rules compile without it, too."""

from __future__ import annotations

import inspect
import operator
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numba.core.codegen
import numba.core.event
import numba.core.postproc
import numba.core.registry
import numba.core.types
import pytest

from gossamer.protocol.kernel.quicker_compiler.asked_once import answers_kept

ADVICE = (
    "look at gossamer/protocol/kernel/quicker_compiler/linked_later.py, which extends numba's "
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
print("gossamer.protocol.kernel.quicker_compiler.linked_later" in sys.modules)
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
        "gossamer/protocol/kernel/quicker_compiler/asked_once.py, and at the bound on numba in "
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
def test_rules_compile_with_and_without_the_private_class(
    plain: str, swapped: str, tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(RULES)
    environment = {**os.environ, "GOSSAMER_PLAIN_COMPILATION": plain}
    done = subprocess.run(
        [sys.executable, str(script)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == swapped
