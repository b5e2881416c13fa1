"""Rules: functions that run compiled or interpreted with the same result.

A rule is a function of struct-of-arrays state, a row ``p`` and a message; it reads and writes
row ``p`` only. ``@rule`` makes it callable either way: hosts that drive one peer call it as plain
Python and never load the compiler, the simulator asks for the compiled form. Which of the two a
direct call takes is a switch of the process (`use_compiled`), so tests run both side by side.

The compiler meets rules as global names inside other rules; module `compiler` tells it what such a
name stands for. A host that never compiles takes ``.linked``, in which such a name stands for a
plain function: without a look at the switch at every call, rules take half the time.
"""

from __future__ import annotations

import functools
import importlib
import os
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from gossamer.protocol.kernel.errors import RuleCompilationError

# Whether calls take the compiled form; None: those of rules by hand do not, those of loops do.
_compiled_calls: bool | None = None


class CodeStore(Protocol):
    """Where a host keeps machine code."""

    def load(self, name: str) -> bytes | None:
        """What was saved under a name, or None."""

    def save(self, name: str, code: bytes) -> None:
        """Keep ``code`` under a name; a store that cannot does nothing."""

    def making(self, name: str, *, waits: bool = True) -> AbstractContextManager[bool]:
        """Let no other process make what is kept under a name; tells whether one did or does."""

    def make_beside(self, called: bytes) -> None:
        """Let other processes make standalone rules (pickled), if there are processors for it."""


code_store: CodeStore | None = None


def keep_code_in(store: CodeStore | None) -> None:
    """Keep machine code that is made from now on in a host's store; None keeps it nowhere."""
    global code_store
    code_store = store


class Rule:
    """A protocol rule: call it, or take ``.compiled`` to hand it to a compiled loop."""

    def __init__(
        self, function: Callable[..., Any], source: Callable[..., Any], inline: bool
    ) -> None:
        functools.update_wrapper(self, function)
        self.interpreted = function
        self.source = source
        self.inline = inline
        self._dispatcher: Any = None
        # The compiler itself only has weak references to them.
        self._callees: dict[int, Any] = {}

    def __call__(self, *args: Any) -> Any:
        if _compiled_calls:
            return self.compiled(*args)
        return self.interpreted(*args)

    def run(self, *args: Any) -> Any:
        """Call it as engines do: compiled, unless within ``use_compiled(False)``."""
        return (self.interpreted if _compiled_calls is False else self.compiled)(*args)

    def __reduce__(self) -> tuple[Callable[[str, str], Rule], tuple[str, str]]:
        # By name: the rule of that name in the process that reads it.
        return find_rule, (self.source.__module__, self.source.__qualname__)

    @functools.cached_property
    def linked(self) -> Callable[..., Any]:
        """The interpreted form, with the interpreted forms of all rules that it calls."""
        return _link(self.interpreted)

    @property
    def callee(self) -> Any:
        """The form that compiled rules and loops call; it becomes part of their code.

        It is asked for whenever a caller is compiled, and made of what the rule then refers to.
        """
        teach_compiler()
        from gossamer.protocol.kernel.compiler import make_callee

        made = make_callee(self.source, self.inline)
        self._callees[id(made)] = made
        return made

    @property
    def compiled(self) -> Any:
        """The form that Python calls, compiled (or read from where the host keeps code) at once.

        What the rule refers to is part of it, as it was when this was first asked for.
        """
        if self._dispatcher is None:
            teach_compiler()
            from gossamer.protocol.kernel.keyed_code import make_entry

            self._dispatcher = make_entry(self.source)
        return self._dispatcher


class StandaloneRule(Rule):
    """A rule that is compiled by itself, once, and that compiled code calls by its address.

    Its machine code is no part of its callers': a loop over it compiles in the time that the loop
    itself takes, and is not compiled anew where only the rule has changed. It stands in a module
    under its own name.
    """

    @property
    def compiled(self) -> Any:
        """The form that Python calls: a call of the compiled rule."""
        if self._dispatcher is None:
            teach_compiler()
            from gossamer.protocol.kernel.keyed_code import make_entry

            self._dispatcher = make_entry(_caller_of(self))
        return self._dispatcher


def _caller_of(called: Rule) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return called(*args)

    return call


def bounds_checks() -> bool:
    """Whether compiled rules check their indices, which is for tests and costs time."""
    return bool(os.environ.get("GOSSAMER_BOUNDS_CHECKS"))


def plain_compilation() -> bool:
    """Whether rules are compiled without a private class of the compiler (`linked_later`).

    That takes several times as long, computes the same, and works with any version of the compiler.
    """
    return bool(os.environ.get("GOSSAMER_PLAIN_COMPILATION"))


def find_rule(module: str, name: str) -> Rule:
    """The rule of this name in a module."""
    found = getattr(importlib.import_module(module), name)
    assert isinstance(found, Rule)
    return found


# By the identity of a module's global names: these names for linked rules, and the names
# themselves, so that no others get that identity.
_linked_names: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}


def _link(function: Callable[..., Any]) -> Callable[..., Any]:
    """A copy of ``function`` for which the rules among its globals are plain functions."""
    assert isinstance(function, types.FunctionType)
    whole = function.__globals__
    if id(whole) not in _linked_names:
        # Entered before it is filled: rules may call each other in circles.
        names = dict(whole)
        _linked_names[id(whole)] = names, whole
        rules = {name: value for name, value in names.items() if isinstance(value, Rule)}
        names |= {name: value.linked for name, value in rules.items()}
    names, _ = _linked_names[id(whole)]
    cells = tuple(map(_link_cell, function.__closure__ or ()))
    linked = types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, cells
    )
    linked.__kwdefaults__ = function.__kwdefaults__
    return linked


def _link_cell(cell: types.CellType) -> types.CellType:
    held = cell.cell_contents
    if isinstance(held, Rule):
        return types.CellType(held.linked)
    if isinstance(held, dict) and all(isinstance(value, Rule) for value in held.values()):
        return types.CellType({key: value.linked for key, value in held.items()})
    return cell


def rule(function: Callable[..., Any]) -> Rule:
    """Mark ``function`` as a protocol rule."""
    return Rule(function, function, inline=False)


def standalone_rule(function: Callable[..., Any]) -> Rule:
    """Mark a rule that is compiled by itself and called by its address.

    Raises:
        RuleCompilationError: it is made within a function, so that no other process finds it.
    """
    if "<locals>" in function.__qualname__:
        code = function.__code__
        raise RuleCompilationError(
            function.__qualname__,
            code.co_filename,
            code.co_firstlineno,
            "a standalone rule stands in a module under its own name; mark it with `rule`",
        )
    return StandaloneRule(function, function, inline=False)


def inline_rule(function: Callable[..., Any]) -> Rule:
    """Mark a small rule that the compiler is to place into its callers."""
    return Rule(function, function, inline=True)


def rule_with_interpreted_form(
    interpreted: Callable[..., Any], *, inline: bool = True
) -> Callable[[Callable[..., Any]], Rule]:
    """Mark a rule that has a second source, for the interpreter.

    64-bit wrap-around arithmetic needs this, as Python integers do not wrap; and what searches and
    copies rows of words deserves it, as an interpreter does that many times faster through NumPy.
    Nothing with a meaning for the protocol is written twice. Tests hold both forms equal.
    """

    def mark(function: Callable[..., Any]) -> Rule:
        return Rule(interpreted, function, inline=inline)

    return mark


def calls_are_compiled() -> bool:
    """Whether rules that are called by hand take their compiled form."""
    return _compiled_calls is True


@contextmanager
def use_compiled(enabled: bool = True) -> Iterator[None]:
    """Let calls of rules take their compiled (or interpreted) form inside the block.

    Outside of such a block rules that are called by hand are interpreted, and engines run compiled
    loops. ``use_compiled(False)`` reaches these as well, so that a debugger can step through rules.
    """
    global _compiled_calls
    before = _compiled_calls
    _compiled_calls = enabled
    try:
        yield
    finally:
        _compiled_calls = before


def teach_compiler() -> Any:
    """Import the compiler, taught what rules and structs are, and return it."""
    from gossamer.protocol.kernel import compiler

    return compiler.numba


# Classes whose rules and numbers other rules may read by name, such as a message's ``send``.


class RuleClass(type):
    """The class of such classes; compiled code takes what they hold when it is made."""

    def compiled_attributes(cls) -> Mapping[str, Rule | int]:
        """The rules and whole numbers of the class itself, by name, in order of their names."""
        held = {name: vars(cls)[name] for name in sorted(vars(cls)) if name[0] != "_"}
        return {
            name: value
            for name, value in held.items()
            if isinstance(value, Rule) or type(value) is int
        }
