"""What rules of a user's file do that no compiled rule may, found before any of them runs."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator, Set
from types import ModuleType
from typing import Any, Final

import attrs

from gossamer.protocol.kernel.rules import Rule
from gossamer.sim.custom.declarations import Declarations
from gossamer.sim.custom.messages import MessageClass
from gossamer.sim.custom.places import declaration_error
from gossamer.sim.custom.protocol import parts_of

_OURS: Final = "gossamer."
_DRAWS: Final = "draw, draw_below or draw_float, which depend on the seed"
_SENDING: Final = ("send", "after")
_CONSTANTS: Final = "rules, numbers, tuples or arrays, or a column of the state"


def check_code(declared: Declarations) -> None:
    """Check the handlers of a stack of rules, and the rules that they call.

    Raises:
        ScenarioError: one of them writes a global name, uses a list or the like from outside,
            calls itself, draws without the seed, sends a message that no handler of the stack
            takes, or is a generator; names file and line.
    """
    parts = [part.declared for part in parts_of(declared) if part.declared is not None]
    taken = {message for each in parts for message in each.messages.values()}
    for each in parts:
        for handler in each.handlers.values():
            _check_function(handler, taken, ())


def _check_function(
    function: Callable[..., Any], taken: Set[MessageClass], calling: tuple[Any, ...]
) -> None:
    if (function.__module__ or "").startswith(_OURS):
        return
    name, code = f"rule {function.__name__}", function.__code__
    place = code.co_filename, code.co_firstlineno
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        kind = "a generator" if inspect.isgeneratorfunction(function) else "asynchronous"
        raise declaration_error(place, name, None, "a plain function", found=kind)
    for line, what, value in _outside(function):
        at = code.co_filename, line
        if isinstance(value, _SendingOf) and value.message not in taken:
            expected = f"a handler on_{value.message.name} in a class of the stack"
            fault = f"one that sends a {value.message.__name__}, which nobody takes"
            raise declaration_error(at, name, None, expected, found=fault)
        if what.startswith("writes "):
            expected = "a column of the state, as what a rule refers to is constant"
            raise declaration_error(at, name, None, expected, found=f"one that {what}")
        if isinstance(value, list | dict | set):
            kind = type(value).__name__
            raise declaration_error(at, name, None, _CONSTANTS, found=f"one that {what}, a {kind}")
        if isinstance(value, ModuleType) and value.__name__ in ("random", "numpy.random"):
            raise declaration_error(at, name, None, _DRAWS, found=f"one that {what}")
        if isinstance(value, Rule) and value in calling:
            expected = "a loop, as rules cannot call themselves"
            raise declaration_error(
                at, name, None, expected, found=f"one that {what} within itself"
            )
        if isinstance(value, Rule):
            _check_function(value.source, taken, (*calling, value))


@attrs.frozen
class _SendingOf:
    """The rule by which a message is sent."""

    message: MessageClass


def _outside(function: Callable[..., Any]) -> Iterator[tuple[int, str, Any]]:
    """What a function uses of its module: the line, in words, and the value."""
    line, held = function.__code__.co_firstlineno, None
    closed_over = inspect.getclosurevars(function).nonlocals
    for step in dis.get_instructions(function):
        if step.positions is not None and step.positions.lineno is not None:
            line = step.positions.lineno
        if step.opname == "STORE_GLOBAL":
            yield line, f"writes the global name {step.argval}", None
        elif step.opname == "LOAD_GLOBAL":
            held = function.__globals__.get(step.argval)
            yield line, f"uses {step.argval}", held
        elif step.opname == "LOAD_DEREF":
            held = closed_over.get(step.argval)
            yield line, f"uses {step.argval}", held
        elif step.argval in _SENDING and isinstance(held, MessageClass):
            yield line, f"uses {held.__name__}.{step.argval}", _SendingOf(held)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(held, ModuleType):
            held = getattr(held, step.argval, None)
            yield line, f"uses {step.argval}", held
        elif step.opname not in ("PUSH_NULL", "PRECALL", "CACHE"):
            held = None
