"""What is impossible in the declarations of a class, found when its class statement ends."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any, Final

from gossamer.sim.custom.language.declarations import Declarations, settings_with, sized_items
from gossamer.sim.custom.language.members import is_width, size_from
from gossamer.sim.custom.language.messages import MessageClass
from gossamer.sim.custom.language.places import check_arguments
from gossamer.sim.errors import ScenarioError

# Measures that every protocol has.
_MEASURED: Final = (
    *("round", "time_s", "population", "messages", "size_bytes", "by_message", "stopped"),
    *("messages_per_node_and_round", "bytes_per_node_and_second", "rounds_run"),
    *("population_final", "totals", "settings"),
)
# What handlers of plain nodes take that are of no message.
_NODE_ARGUMENTS: Final = {
    "start": ("contact",),
    "leave": (),
    "unreachable": ("to", "message"),
    "timer": ("name",),
    "message": ("sender", "message"),
}


def check_declared(found: Declarations, base: type) -> None:
    """Check what both ways of writing declare.

    Raises:
        ScenarioError: something is impossible; names file and line.
    """
    _check_timers(found)
    _check_samplers(found)
    _check_widths(found)
    for message, size in sized_items(found):
        known = found.settings.get(size)
        if known is None or known.kind is not int or known.default < 1:
            expected = f"a setting that is a whole number from 1, as {message.__name__} names it"
            value = None if known is None else known.default
            raise found.error(size, value, expected, found=None if known else "no setting")
    for name, below in found.layers.items():
        if not issubclass(below.protocol, base):
            expected = f"a layer derived from {base.__name__}, as the class itself"
            raise found.error(name, below.protocol.__name__, expected)
        try:
            settings_with(below.protocol.declared, below.settings, f"{name}.")
        except ScenarioError as error:
            error.file = "{}, line {}".format(*found.place)
            raise
    for name in found.measures:
        if name in _MEASURED:
            raise found.error(name, None, "another name", found="a measure that all protocols have")


def check_node(owner: Any) -> None:
    """Check what the handlers of a plain node take; raises `ScenarioError`."""
    declared: Declarations = owner.declared
    for name, handler in declared.handlers.items():
        usual = () if name in declared.timers else ("sender", "message")
        expected = ("self", *_NODE_ARGUMENTS.get(name, usual))
        check_arguments(handler, f"{owner.__name__}.on_{name}", expected)
    if inspect.isfunction(owner.__init__):
        check_arguments(owner.__init__, f"{owner.__name__}.__init__", ("self",))


def check_annotations(found: Declarations) -> None:
    """Refuse annotated names that nothing is declared by, as rules would not find them."""
    declared = found.settings.keys() | found.columns.keys() | found.attributes.keys()
    declared |= found.timers.keys() | found.samplers.keys() | found.layers.keys()
    for name in inspect.get_annotations(found.owner):
        if not name.startswith("_") and name not in declared:
            fault = "of another type" if name in vars(found.owner) else "without a value"
            expected = "a setting: bool, int or float with a default, such as k: int = 3"
            raise found.error(name, None, expected, found=fault)


def _check_timers(found: Declarations) -> None:
    for name, timer in found.timers.items():
        if name not in found.handlers and "timer" not in found.handlers:
            raise found.error(name, None, f"a method on_{name}", found="a timer without a handler")
        given = [each for each in (timer.rounds, timer.seconds) if each is not None]
        if len(given) != 1:
            raise found.error(name, given, "either rounds or seconds from one firing to the next")
        handler = found.handlers.get(name)
        if handler is not None and _message_called(name, handler):
            fault = "a timer that has the name of a message of this file"
            raise found.error(name, None, "another name", found=fault)
        _check_period(found, name, given[0])
        if timer.phase is not None and not (_is_number(timer.phase) and 0 <= timer.phase < 1e6):
            raise found.error(name, timer.phase, "a phase from 0")
        if not (_is_number(timer.jitter) and 0 <= timer.jitter <= 1):
            raise found.error(name, timer.jitter, "a jitter from 0 to 1")


def _check_period(found: Declarations, name: str, period: Any) -> None:
    if isinstance(period, str):
        one = found.settings.get(period)
        if one is None or one.kind is bool:
            expected = "a number, or the name of a setting of the class that is one"
            raise found.error(name, period, expected)
        if not 0 < one.default < 1e9:
            raise found.error(period, one.default, f"above 0, as timer {name} has that period")
    elif not (_is_number(period) and 0 < period < 1e9):
        raise found.error(name, period, "a period above 0")


def _message_called(name: str, handler: Any) -> bool:
    held = handler.__globals__.values()
    return any(isinstance(each, MessageClass) and each.name == name for each in held)


def _check_widths(found: Declarations) -> None:
    defaults = {name: one.default for name, one in found.settings.items()}
    for name, one in found.columns.items():
        if callable(one.width):
            try:
                width: object = size_from(one.width, defaults)
            except Exception as error:
                told = f"a width that cannot be computed ({error})"
                raise found.error(name, None, "a function of the settings", told) from error
            if not is_width(width):
                raise found.error(name, width, "a width from 1 by the settings' defaults")
            continue
        known = found.settings.get(one.width) if isinstance(one.width, str) else None
        if known is not None and (known.kind is not int or known.default < 1):
            expected = f"a whole number from 1, as column {name} has that width"
            raise found.error(known.name, known.default, expected)


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _check_samplers(found: Declarations) -> None:
    for name, sampler in found.samplers.items():
        size = sampler.view_size
        known = found.settings.get(size) if isinstance(size, str) else None
        if isinstance(size, str) and (known is None or known.kind is not int):
            raise found.error(name, size, "a view size: a whole number, or the name of a setting")
    several = list(_samplers_of(found))
    if len(several) > 1:
        said = " and ".join(several)
        raise found.error("layers", None, "one for a node", found=f"a stack of samplers {said}")


def _samplers_of(found: Declarations) -> Iterator[str]:
    for name, below in found.layers.items():
        yield from (f"{name}.{each}" for each in _samplers_of(below.protocol.declared))
    yield from found.samplers
