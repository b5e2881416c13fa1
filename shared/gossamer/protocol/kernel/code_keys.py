"""Code keys: what the machine code of a rule depends on, as one hash.

The compiler freezes into a rule's machine code whatever the rule refers to: constants among its
globals, what it closes over, defaults, the code of rules and helpers that it calls, and what these
refer to in turn. Two rules of one name are therefore the same rule only if all of that is the
same, wherever they stand. A code key is a hash over just that: it changes with everything that
could change the machine code, and with little else (not with comments, nor with the place of a
file, but where code raises, because what is raised names its line).

Imported only by hosts that compile, as the compiler is asked what it takes for a constant.
"""

from __future__ import annotations

import dis
import enum
import hashlib
import marshal
import pkgutil
import struct
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache
from typing import Any, NamedTuple

import llvmlite  # type: ignore[import-untyped]
import numba
import numba.core.compiler_lock
import numba.core.registry
import numba.core.types
import numba.core.typing.typeof
import numba.extending
import numpy as np

from gossamer.protocol.kernel.rules import (
    Rule,
    RuleClass,
    StandaloneRule,
    bounds_checks,
    plain_compilation,
)

_typeof: Any = numba.core.typing.typeof
_extending: Any = numba.extending
_target: Any = numba.core.registry.cpu_target
_lock: Any = numba.core.compiler_lock.global_compiler_lock

# Told apart by their versions and not by their contents.
_LIBRARIES = frozenset({"llvmlite", "numba", "numpy", *sys.stdlib_module_names}) - {"__main__"}

# These say what the compiler makes of rules and structs, and with which options.
_EXTENSIONS = (
    "code_keys.py",
    "compiler.py",
    "keyed_code.py",
    "prefetch.py",
    "quicker_compiler.py",
    "rules.py",
    "standalone.py",
    "struct.py",
)
_CHOICES = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "DEBUGINFO_DEFAULT")

_RAISING = frozenset(
    dis.opmap[name]
    for name in ("RAISE_VARARGS", "LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT")
    if name in dis.opmap
)
_MOST_CODE_OBJECTS = 8192


class Unkeyed(Exception):
    """A rule refers to something that the compiler takes and no key can be made of."""


class CodeKeys(NamedTuple):
    """What the machine code of a function depends on, keys of 64 hexadecimal digits.

    Attributes:
        own: on all but the code of standalone rules that it calls, which it knows by their names:
            its code is good for any version of these.
        whole: on those, too: what it computes.
        extent: how much `own` was made of; code takes the longer to make the more that is.
    """

    own: str
    whole: str
    extent: int


def code_keys(function: Callable[..., Any]) -> CodeKeys | None:
    """Hashes of all that the machine code of ``function`` depends on.

    Args:
        function: a rule, or a function that calls rules.

    Returns:
        None where the function refers to something whose content cannot be told (a pointer to
        foreign code, say), so that its code serves this process alone.
    """
    walk = _Walk()
    called: list[str] = []
    try:
        walk.value(function)
        own = walk.digest()
        waiting = list(walk.standalone)
        for rule in waiting:
            inside = _Walk()
            inside.value(rule.source)
            called.append(inside.digest())
            waiting += [one for one in inside.standalone if one not in waiting]
    except Unkeyed:
        return None
    return CodeKeys(own, _digest([own, *called]) if called else own, walk.extent())


def code_key(function: Callable[..., Any]) -> str | None:
    """A hash of all that ``function`` depends on, `CodeKeys.whole`."""
    keys = code_keys(function)
    return None if keys is None else keys.whole


@cache
def environment_key(bounds: bool, plain: bool) -> str:
    """A hash of what all machine code depends on: versions, the compiler's extensions and flags."""
    versions = (sys.version, sys.abiflags, numba.__version__, llvmlite.__version__, np.__version__)
    config: Any = numba.config
    choices = [str(getattr(config, name, None)) for name in _CHOICES]
    sources = [pkgutil.get_data("gossamer.protocol.kernel", name) for name in _EXTENSIONS]
    return _digest([*versions, *choices, str(bounds), str(plain), *sources])


class _Walk:
    """One walk over what a function depends on, in an order that is the same in every process."""

    def __init__(self) -> None:
        # Those met, in order; their code is not walked over.
        self.standalone: dict[StandaloneRule, None] = {}
        self._bounds = bounds_checks()
        self._said: list[str | bytes] = [environment_key(self._bounds, plain_compilation())]
        # By identity, what was walked over; kept, so that nothing else gets that identity.
        self._walked: dict[int, tuple[int, Any]] = {}
        self._modules: set[str] = set()

    def digest(self) -> str:
        return _digest(self._said)

    def extent(self) -> int:
        return len(self._said)

    def value(self, value: Any) -> None:
        """Add something that code refers to."""
        kind = type(value)
        if value is None or value is Ellipsis:
            self._token("singleton", repr(value))
        elif kind in (bool, int, str, bytes):
            self._token(kind.__name__, repr(value))
        elif kind is float:
            self._token("float", struct.pack("<d", value))
        elif kind is complex:
            self._token("complex", struct.pack("<dd", value.real, value.imag))
        elif isinstance(value, enum.Enum):
            self._token("member", value.name)
            self._class(kind)
        elif isinstance(value, tuple):
            self._class(kind)
            self._values("items", value)
        elif isinstance(value, frozenset):
            self._token("frozenset", *sorted(repr(item) for item in value))
        elif isinstance(value, np.generic | np.ndarray) and not value.dtype.hasobject:
            self._array(np.asarray(value), kind)
        elif isinstance(value, np.dtype):
            self._token("dtype", repr(value))
        elif isinstance(value, Rule):
            self._rule(value)
        elif isinstance(value, types.FunctionType):
            self._plain_function(value)
        elif isinstance(value, types.ModuleType):
            # What is read from a module of the user's is added with the code that reads it.
            self._token("module", value.__name__)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, _type_of_types):
            self._token("type", repr(value))
        elif isinstance(value, _dispatcher_type):
            self._token("dispatcher", repr(sorted(value.targetoptions.items())))
            self._function(value.py_func)
        elif isinstance(value, _intrinsic_type):
            self._token("intrinsic")
            self._function(value._defn)
        elif _stands_in_library(value):
            self._token("name", value.__module__, value.__name__)
        else:
            self._other(value)

    def _token(self, tag: str, *parts: str | bytes) -> None:
        self._said.append(tag)
        self._said.extend(parts)

    def _values(self, tag: str, values: Iterable[Any]) -> None:
        values = list(values)
        self._token(tag, str(len(values)))
        for value in values:
            self.value(value)

    def _is_walked(self, value: Any) -> bool:
        """Whether the walk came by before; if so, that is all there is to add."""
        if id(value) in self._walked:
            self._token("again", str(self._walked[id(value)][0]))
            return True
        self._walked[id(value)] = len(self._walked), value
        return False

    def _array(self, array: np.ndarray[Any, Any], kind: type) -> None:
        layout = (array.dtype, array.shape, array.strides, array.flags.writeable)
        self._token("array", kind.__name__, repr(layout), array.tobytes())

    def _class(self, value: type) -> None:
        """A class: what the compiler reads of it is its name, its members and its fields."""
        self._token("class", value.__module__, value.__qualname__)
        if self._is_walked(value):
            return
        if isinstance(value, RuleClass):
            # One class may have the name of another.
            for name, attribute in value.compiled_attributes().items():
                self._token("attribute", name)
                self.value(attribute)
        elif issubclass(value, enum.Enum):
            self._values("members", [(item.name, item.value) for item in value])
        elif issubclass(value, tuple) and hasattr(value, "_fields"):
            self._values("fields", [value._fields, *getattr(value, "_field_defaults", {}).items()])
        elif issubclass(value, BaseException) and value.__module__ == "__main__":
            # Compiled code holds a copy of such a class, which nothing else would catch.
            raise Unkeyed
        elif not issubclass(value, BaseException) and not _is_library(value.__module__):
            self._other(value)

    def _rule(self, rule: Rule) -> None:
        self._token("rule", type(rule).__module__, type(rule).__qualname__, str(rule.inline))
        function = rule.source
        if isinstance(rule, StandaloneRule) and not plain_compilation():
            self._token("standalone", function.__module__, function.__qualname__)
            self.standalone[rule] = None
            return
        assert isinstance(function, types.FunctionType)
        self._function(function)

    def _plain_function(self, function: types.FunctionType) -> None:
        if _is_library(function.__module__):
            self._token("name", function.__module__, function.__qualname__)
            return
        self._function(function)
        for overload in _overloads(function):
            self._token("overload")
            self._function(overload)

    def _function(self, function: types.FunctionType) -> None:
        if self._is_walked(function):
            return
        compiled = function.__code__
        code = _read_code(compiled, compiled.co_filename, self._bounds)
        self._token("function", code.text)
        self._values("defaults", function.__defaults__ or ())
        self._values("keywords", sorted((function.__kwdefaults__ or {}).items()))
        self._cells(function.__closure__ or ())
        for name in code.globals:
            self._token("global", name)
            self._global(function.__globals__, name, code.names)

    def _cells(self, cells: Iterable[types.CellType]) -> None:
        for cell in cells:
            try:
                held = cell.cell_contents
            except ValueError:
                self._token("empty cell")
            else:
                self._token("cell")
                self.value(held)

    def _global(self, names: dict[str, Any], name: str, attributes: tuple[str, ...]) -> None:
        if name not in names:
            self._token("builtin", name)
            return
        value = names[name]
        self.value(value)
        if isinstance(value, types.ModuleType):
            self._module(value, attributes)

    def _module(self, module: types.ModuleType, attributes: tuple[str, ...]) -> None:
        """What code may read from a module: all of its contents that the code names."""
        if _is_library(module.__name__) or module.__name__ in self._modules:
            return
        self._modules.add(module.__name__)
        for name in attributes:
            if name in vars(module):
                self._token("attribute", name)
                self._global(vars(module), name, attributes)
        self._modules.remove(module.__name__)

    def _other(self, value: Any) -> None:
        """A value that has no meaning to the compiler, or none that is known here."""
        try:
            _typeof.typeof(value, _typeof.Purpose.constant)
        except Exception:
            # It cannot stand in compiled code, so code does not depend on it.
            self._token("unused", type(value).__module__, type(value).__qualname__)
        else:
            raise Unkeyed


_dispatcher_type: Any = numba.core.registry.CPUDispatcher
_intrinsic_type: Any = _extending._Intrinsic
_type_of_types: Any = numba.core.types.Type


def _is_library(module: object) -> bool:
    """Whether a module is told apart by the version of what it belongs to."""
    return isinstance(module, str) and module.partition(".")[0] in _LIBRARIES


def _stands_in_library(value: Any) -> bool:
    """Whether a library offers this very value by its name, as it does its functions."""
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if not _is_library(module) or not isinstance(name, str):
        return False
    return getattr(sys.modules.get(str(module)), name, None) is value


def _overloads(function: types.FunctionType) -> Iterator[types.FunctionType]:
    """What the compiler was told to take in place of a function that is no rule."""
    context = _target.typing_context
    # What was registered since is taken over, as it is by every thread that compiles.
    with _lock:
        context.refresh()
        found = context._get_global_type(function)
    for template in getattr(found, "templates", ()):
        overload = getattr(template, "_overload_func", None)
        if isinstance(overload, types.FunctionType):
            yield overload


def _digest(parts: list[Any]) -> str:
    # This version of the format tells where parts end, and not which of them are one object.
    return hashlib.sha256(marshal.dumps(parts, 0)).hexdigest()


class _Code(NamedTuple):
    """What is known of the code of a function before it is bound to any values.

    Attributes:
        text: its instructions and constants, those of functions inside it as well.
        globals: the global names it loads, in order.
        names: all names in it, attributes among them.
    """

    text: bytes
    globals: tuple[str, ...]
    names: tuple[str, ...]


@lru_cache(_MOST_CODE_OBJECTS)
def _read_code(code: types.CodeType, file: str, lines: bool) -> _Code:
    """Read the code of a ``file``; with its ``lines``, or with them only where it raises."""
    walk = _Walk()
    instructions = list(_instructions(code.co_code))
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    walk._token("code", code.co_code, code.co_exceptiontable, repr(shape))
    walk._token("names", repr((code.co_names, code.co_varnames, code.co_freevars)))
    if lines or any(operation in _RAISING for operation, _ in instructions):
        walk._token("lines", file, str(code.co_firstlineno), code.co_linetable)
    loaded = [code.co_names[at >> 1] for operation, at in instructions if operation == _LOAD]
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inside = _read_code(constant, file, lines)
            walk._token("inside", inside.text)
            loaded += inside.globals
            names += inside.names
        else:
            walk.value(constant)
    return _Code(walk.digest().encode(), tuple(dict.fromkeys(loaded)), tuple(dict.fromkeys(names)))


_LOAD = dis.opmap["LOAD_GLOBAL"]


def _instructions(code: bytes) -> Iterator[tuple[int, int]]:
    """Operations with their arguments; the compiler, too, reads instructions of this form."""
    argument = 0
    for operation, low in zip(code[::2], code[1::2], strict=True):
        argument = argument << 8 | low
        if operation != dis.EXTENDED_ARG:
            yield operation, argument
            argument = 0
