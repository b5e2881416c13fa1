"""What rules refer to, read from their instructions."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, ModuleType
from typing import Any, Final

import attrs

from gossamer.protocol.kernel.rules import Rule
from gossamer.sim.custom.language.declarations import Declarations
from gossamer.sim.custom.language.messages import MessageClass, refuse_logging
from gossamer.sim.custom.language.places import declaration_error

_SENDING: Final = ("send", "after")
_LOGGING: Final = "log"


@attrs.frozen
class Use:
    """A rule of a message that is used: it is sent, or logged."""

    message: MessageClass
    sends: bool


def steps(code: CodeType) -> Iterator[tuple[int, dis.Instruction]]:
    """The instructions of a function and of the comprehensions in it, each with its line."""
    line = code.co_firstlineno
    for step in dis.get_instructions(code):
        if step.positions is not None and step.positions.lineno is not None:
            line = step.positions.lineno
        yield line, step
        inner = step.argval
        if isinstance(inner, CodeType) and inner.co_name.endswith("comp>"):
            yield from steps(inner)


def outside(function: Callable[..., Any]) -> Iterator[tuple[int, str, Any]]:
    """What a function uses of its module: the line, in words, and the value."""
    held = None
    closed_over = inspect.getclosurevars(function).nonlocals
    for line, step in steps(function.__code__):
        if step.opname == "STORE_GLOBAL":
            yield line, f"writes the global name {step.argval}", None
        elif step.opname == "LOAD_GLOBAL":
            held = function.__globals__.get(step.argval)
            yield line, f"uses {step.argval}", held
        elif step.opname == "LOAD_DEREF":
            held = closed_over.get(step.argval)
            yield line, f"uses {step.argval}", held
        elif isinstance(held, MessageClass) and step.argval in (*_SENDING, _LOGGING):
            use = Use(held, step.argval in _SENDING)
            yield line, f"uses {held.__name__}.{step.argval}", use
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(held, ModuleType):
            held = getattr(held, step.argval, None)
            yield line, f"uses {step.argval}", held
        elif step.opname not in ("PUSH_NULL", "PRECALL", "CACHE"):
            held = None


def logged_by(parts: Iterable[Declarations]) -> dict[int, MessageClass]:
    """By kind, the messages that the rules of a stack log.

    Raises:
        ScenarioError: one cannot be logged, or two have one kind.
    """
    found: dict[int, MessageClass] = {}
    handlers = [handler for part in parts for handler in part.handlers.values()]
    for message in _logged_within(handlers, set()):
        refuse_logging(message)
        other = found.setdefault(message.kind, message)
        if other is not message:
            raise declaration_error(
                message.place,
                message.__name__,
                None,
                "another name, or a kind of its own: class Heard(Message, kind=200)",
                found=f"logged beside {other.__name__}, whose records are of the same kind",
            )
    return found


def _logged_within(functions: Iterable[Any], seen: set[Any]) -> Iterator[MessageClass]:
    for function in functions:
        if function in seen:
            continue
        seen.add(function)
        used = [value for _, _, value in outside(function)]
        yield from (use.message for use in used if isinstance(use, Use) and not use.sends)
        called = (value.source for value in used if isinstance(value, Rule))
        yield from _logged_within(called, seen)
