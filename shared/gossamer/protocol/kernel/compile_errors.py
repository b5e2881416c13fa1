"""Why a rule cannot be compiled: one sentence with its name, file and line.

The compiler tells it in some forty lines, in terms of its own; they stay as the cause of the error.
Imported only by hosts that compile.
"""

from __future__ import annotations

import dis
import re
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numba.core.errors
import numba.core.ir
import numba.core.types

from gossamer.protocol.kernel.errors import RuleCompilationError

# The compiler's own modules are only partly typed.
numba_errors: Any = numba.core.errors
numba_ir: Any = numba.core.ir
numba_types: Any = numba.core.types

# What compiled code calls before it asks anything of the interpreter.
_ASKS_INTERPRETER = "numba_gil_ensure"

# What the compiler raises about a function: not all of it is of its own kind.
_REFUSALS = (
    numba_errors.NumbaError,
    numba_errors.UnsupportedBytecodeError,
    NotImplementedError,
    AssertionError,
    AttributeError,
)

_PLACE = re.compile(r" (?:at|from) (?P<file>[^\n]+?) \((?P<line>\d+)\)$", re.MULTILINE)
_UNSUPPORTED = re.compile(r"Use of unsupported opcode \((\w+)\) found")
_IMPORTS = "IMPORT_NAME"
_CANDIDATES = re.compile(r"No implementation of function .*? found for signature:\s*>>> (.*)")
_UNTYPED = re.compile(r"Untyped global name '(\w+)'")
_CALL = re.compile(
    r"to signature '(?P<takes>\(.*?\))(?: -> .*?)?' due to \"TypeError: (?P<why>.*?)\"\."
    r"\nDuring: resolving callee type: type\(CPUDispatcher\(<function (?P<called>\w+) "
)
_EMPHASIS = re.compile(r"\x1b\[[0-9;]*m")
_HEADINGS = ("Failed in ", "During: ", "- Resolution failure")
_NEEDS_MEMORY = ("NRT required", "_ol_array_allocate", "Only accept returning of array")
# Of a rule itself; further down it is of what makes an array for it.
_RETURNS_ARRAY = re.compile(r"(Failed in [^\n]*\n)?Only accept returning of array")
_LONGEST = 200
# The compiler compiles what a function calls while it compiles the function, at some sixty frames
# of the interpreter a call, and a peer's rules call each other some sixteen deep.
_FRAMES = 10_000


# What failed while a loop is compiled, innermost first. The compiler makes new errors of those of
# inner functions, and lets some of them pass.
_noted: ContextVar[list[tuple[Exception, Any]] | None] = ContextVar("_noted", default=None)


def note_failure(error: Exception, function: Callable[..., Any]) -> None:
    """Remember which rule an error of the compiler is about."""
    noted = _noted.get()
    if noted is not None:
        noted.append((error, function))


def check_interpreter_is_not_asked(library: Any, function: Any) -> None:
    """Refuse the code of a rule that would ask something of the interpreter.

    Such a rule is linked into a loop that has let go of the interpreter's lock, and has no
    environment there: it would take the lock, fail, and leave the process to wait for itself.

    Args:
        library: the code, not yet linked.
        function: what it was made of.

    Raises:
        UnsupportedError: (the compiler's) it would.
    """
    if all(each.name != _ASKS_INTERPRETER for each in library._final_module.functions):
        return
    prints = [step for step in dis.get_instructions(function) if step.argval == "print"]
    place = prints[0].positions if prints else None
    line = place.lineno if place is not None else function.__code__.co_firstlineno
    raise numba_errors.UnsupportedError(
        f"{'print' if prints else 'something in it'} needs Python's interpreter, which compiled "
        "rules cannot reach; in a checked run (GOSSAMER_DEBUG=1, or debug=True of an engine) it "
        "works",
        numba_ir.Loc(function.__code__.co_filename, line),
    )


def check_nothing_is_cut_off(overload: Any) -> None:
    """Refuse a rule that writes a float where whole numbers are kept, which the compiler rounds.

    A value that may be None, which would end the process's run without a place, is refused as well.

    Args:
        overload: of a function object of the compiler, made in this process.

    Raises:
        UnsupportedError: (the compiler's) it does; names the line.
    """
    found = overload.type_annotation
    kinds = found.typemap
    for block in found.blocks.values():
        for step in block.body:
            if not isinstance(step, numba_ir.SetItem | numba_ir.StaticSetItem):
                continue
            target, value = kinds[step.target.name], kinds[step.value.name]
            kept = getattr(target, "dtype", None)
            whole = isinstance(kept, numba_types.Integer | numba_types.Boolean)
            if isinstance(value, numba_types.Optional | numba_types.NoneType):
                raise numba_errors.UnsupportedError(
                    f"it writes what may be None to an array of {kept}", step.loc
                )
            if whole and isinstance(getattr(value, "dtype", value), numba_types.Float):
                raise numba_errors.UnsupportedError(
                    f"it writes a float to an array of {kept}, where fractions are cut off; "
                    "int(...) says so",
                    step.loc,
                )


def explain_failures(dispatcher: Any, function: Callable[..., Any]) -> Any:
    """Let a function object of the compiler say in one sentence why it cannot be compiled.

    Returns:
        ``dispatcher``, which from now on raises `RuleCompilationError` with the compiler's error
        as its cause. What the function itself raises when it runs, passes as it is.
    """
    compile_for = dispatcher._compile_for_args

    def compile_or_explain(*args: Any, **named: Any) -> Any:
        noted: list[tuple[Exception, Any]] = []
        before = _noted.set(noted)
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, _FRAMES))
        try:
            return compile_for(*args, **named)
        except _REFUSALS as error:
            noted.append((error, function))
            text = _plain(error)
            innermost = next(each for each in noted if _plain(each[0]) in text)
            raise _explained(*innermost) from error
        finally:
            sys.setrecursionlimit(limit)
            _noted.reset(before)

    dispatcher._compile_for_args = compile_or_explain
    return dispatcher


def _explained(error: Exception, function: Any) -> RuleCompilationError:
    code = function.__code__
    text = _plain(error)
    places = [(found["file"], int(found["line"])) for found in _PLACE.finditer(text)]
    if (place := getattr(error, "loc", None)) is not None:
        places.insert(0, (place.filename, place.line))
    if _RETURNS_ARRAY.match(text):
        places.clear()  # which are its callers'
    # The first may be in the compiler's own functions.
    inside = [place for place in places if place[0] == code.co_filename]
    file, line = inside[0] if inside else (code.co_filename, code.co_firstlineno)
    return RuleCompilationError(function.__name__, file, line, _reason(text))


def _plain(error: Exception) -> str:
    """What an error says, without the codes for terminals that stand in it beside colorama."""
    return _EMPHASIS.sub("", str(error)).strip()


def _reason(text: str) -> str:
    """What is wrong, in one sentence."""
    if _RETURNS_ARRAY.match(text):
        return (
            "it returns an array or a part of one, which compiled rules cannot; it may return "
            "where the part begins and ends, for its caller to slice"
        )
    if any(sign in text for sign in _NEEDS_MEMORY):
        return (
            "it makes or returns a new array, list, text or other object, and rules allocate "
            "nothing; room for it may be an array of the struct"
        )
    if found := _UNTYPED.search(text):
        return (
            f"it uses {found[1]}, and of what stands outside of it a rule may use rules, numbers, "
            "tuples and arrays"
        )
    if found := _UNSUPPORTED.search(text):
        what = "an import" if found[1] == _IMPORTS else f"a statement ({found[1]})"
        return f"it has {what} that compiled code cannot have"
    if found := _CALL.search(text):
        return f"it calls {found['called']}, which takes {found['takes']}: {found['why']}"
    if found := _CANDIDATES.search(text):
        return f"compiled code cannot do {_shortened(found[1])}"
    lines = (line.strip() for line in text.splitlines())
    said = next((line for line in lines if line and not line.startswith(_HEADINGS)), text)
    return _shortened(said)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
