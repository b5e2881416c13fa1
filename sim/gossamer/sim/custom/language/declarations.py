"""What a protocol declares in its class, collected from it and those it derives from.

Both ways of writing, `Protocol` and `Node`, declare alike.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs

from gossamer.protocol.kernel.errors import choice
from gossamer.sim.custom.language.functions import ControlOf, MeasureOf
from gossamer.sim.custom.language.members import (
    MOST_WIDTH,
    TYPES,
    AttributeOf,
    Column,
    Layer,
    Sampler,
    Setting,
    Timer,
    is_width,
    size_from,
)
from gossamer.sim.custom.language.messages import MOST_WORDS, MessageClass
from gossamer.sim.custom.language.places import (
    Place,
    check_arguments,
    declaration_error,
    place_of,
    place_of_caller,
)
from gossamer.sim.custom.language.record_rules import Items
from gossamer.sim.errors import ScenarioError

_BY_NAME: Final = {kind.__name__: kind for kind in TYPES}


@attrs.define(eq=False)
class Declarations:
    """All that a class declares, by name, in the order in which it does.

    Attributes:
        handlers: functions ``on_<message or timer>``, by the name behind ``on_``.
        messages: those that have a handler, by name.
    """

    owner: type
    place: Place
    settings: dict[str, Setting] = attrs.field(factory=dict)
    columns: dict[str, Column] = attrs.field(factory=dict)
    attributes: dict[str, AttributeOf] = attrs.field(factory=dict)
    timers: dict[str, Timer] = attrs.field(factory=dict)
    samplers: dict[str, Sampler] = attrs.field(factory=dict)
    layers: dict[str, Layer] = attrs.field(factory=dict)
    measures: dict[str, MeasureOf] = attrs.field(factory=dict)
    controls: dict[str, ControlOf] = attrs.field(factory=dict)
    handlers: dict[str, Callable[..., Any]] = attrs.field(factory=dict)
    messages: dict[str, MessageClass] = attrs.field(factory=dict)

    def error(self, what: str, value: object, expected: str, found: str | None = None) -> Exception:
        """The error about something that the class declares."""
        return declaration_error(
            self.place, f"{self.owner.__name__}.{what}", value, expected, found
        )


@attrs.frozen
class ConfiguredProtocol:
    """A protocol and some of its settings, which is what a call of its class gives.

    Attributes:
        owner: the class.
        settings: those that were given, by name.
    """

    owner: Any
    settings: Mapping[str, Any]


class ProtocolType(type):
    """The type of classes of protocols: nodes are made by whoever runs them, not by a call."""

    _declarations: Declarations

    @property
    def declared(cls) -> Declarations:
        """What the class declares, whatever it calls one of its columns."""
        return cls._declarations

    def __call__(cls, **settings: Any) -> ConfiguredProtocol:
        """The protocol with these settings; raises `ScenarioError` about what it has not."""
        settings_with(cls.declared, settings, f"{cls.__name__}.")
        return ConfiguredProtocol(cls, settings)


def layer(protocol: type, **settings: Any) -> Any:
    """Run another protocol on every node: ``ring = layer(TMan, view_size=10)``."""
    if not isinstance(getattr(protocol, "declared", None), Declarations):
        expected = "a class derived from Protocol or Node"
        raise declaration_error(place_of_caller(), "layer", protocol, expected)
    return Layer(protocol, settings)


_KEPT: Final = (
    (Column, "columns"),
    (AttributeOf, "attributes"),
    (Timer, "timers"),
    (Sampler, "samplers"),
    (Layer, "layers"),
    (MeasureOf, "measures"),
    (ControlOf, "controls"),
)
SPECIAL: Final = ("start", "leave", "unreachable")


def declarations_of(owner: type, base: type, special: tuple[str, ...] = SPECIAL) -> Declarations:
    """What a class declares, checked.

    Args:
        owner: the class.
        base: what it derives from, `Protocol` or `Node`.
        special: handlers that are of no message or timer.

    Raises:
        ScenarioError: something that it declares is impossible; names file and line.
    """
    found = Declarations(owner, _place_of_class(owner))
    for each in reversed(owner.__mro__):
        if issubclass(each, base) and each is not base:
            _collect(found, each)
    _find_messages(found, special)
    for name, one in found.attributes.items():
        if one.kind not in TYPES:
            raise found.error(name, one.kind, "an attribute of bool, int or float")
    return found


def _collect(found: Declarations, owner: type) -> None:
    annotations = inspect.get_annotations(owner)
    for name, value in vars(owner).items():
        for kind, kept in _KEPT:
            if isinstance(value, kind):
                _forget(found, name)
                getattr(found, kept)[name] = value
        if inspect.isfunction(value) and name.startswith("on_"):
            found.handlers[name.removeprefix("on_")] = value
        if name in annotations and not name.startswith("_"):
            found.settings |= _setting_of(found, name, value, annotations[name])


def _forget(found: Declarations, name: str) -> None:
    """What a class above declared under a name, of whatever kind, is declared anew."""
    for kept in (*(kept for _, kept in _KEPT), "settings"):
        getattr(found, kept).pop(name, None)


def _setting_of(found: Declarations, name: str, value: Any, annotation: Any) -> dict[str, Setting]:
    kind = _BY_NAME.get(annotation, annotation)
    if kind not in TYPES:
        return {}
    given = value if isinstance(value, Setting) else Setting(value)
    one = attrs.evolve(given, name=name, kind=kind)
    try:
        one.default = one.checked(name, one.default)
    except ScenarioError as error:
        raise found.error(name, error.value, error.expected) from None
    return {name: one}


def _find_messages(found: Declarations, special: tuple[str, ...]) -> None:
    """The message of every handler, from what its module has, or that of a class above its own."""
    modules = (sys.modules.get(each.__module__) for each in found.owner.__mro__[1:-1])
    above = [vars(module) for module in modules if module is not None]
    for name, handler in found.handlers.items():
        if name in special or name in found.timers:
            continue
        known = {
            held.name: held
            for names in (*reversed(above), handler.__globals__)
            for held in names.values()
            if isinstance(held, MessageClass)
        }
        if name not in known:
            choices = ", ".join(f"on_{each}" for each in sorted({*known, *found.timers, *special}))
            raise declaration_error(
                place_of(handler),
                f"{found.owner.__name__}.on_{name}",
                None,
                f"one of {choices}",
                found="a handler of no message or timer of this file",
            )
        found.messages[name] = known[name]


def settings_with(found: Declarations, given: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """All settings, those that are given in place of defaults.

    Raises:
        ScenarioError: one is unknown, or its value impossible; ``prefix`` is before its name.
    """
    for name in given:
        if name not in found.settings:
            known = choice(name, found.settings) if found.settings else "none of it, as it has none"
            raise ScenarioError(None, f"{prefix}{name}", given[name], known, found="no setting")
    settings = {
        name: one.checked(f"{prefix}{name}", given[name]) if name in given else one.default
        for name, one in found.settings.items()
    }
    for column_name, column_of in found.columns.items():
        if isinstance(column_of.width, str) and settings.get(column_of.width, 1) < 1:
            expected = f"from 1, as column {column_name} has that width"
            width = column_of.width
            raise ScenarioError(None, f"{prefix}{width}", settings[width], expected)
        if callable(column_of.width) and not is_width(size_from(column_of.width, settings)):
            wide = size_from(column_of.width, settings)
            expected = f"settings by which it is from 1 to {MOST_WIDTH}"
            raise ScenarioError(None, f"{prefix}width of column {column_name}", wide, expected)
    for message, size in sized_items(found):
        most = MOST_WORDS - len(message.fields)
        if not 1 <= settings[size] <= most:
            expected = f"from 1 to {most}, as {message.__name__} has so many items"
            raise ScenarioError(None, f"{prefix}{size}", settings[size], expected)
    for timer in found.timers.values():
        period = timer.period
        if isinstance(period, str) and not 0 < settings[period] < 1e9:
            expected = f"above 0, as timer {timer.name} has that period"
            raise ScenarioError(None, f"{prefix}{period}", settings[period], expected)
    return settings


def sized_items(found: Declarations) -> Iterator[tuple[MessageClass, str]]:
    """Messages that have as many items as a setting says, each with the name of the setting."""
    for message in found.messages.values():
        for field in message.fields:
            if isinstance(field.kind, Items) and isinstance(field.kind.most, str):
                yield message, field.kind.most


def delays_in_cycles(found: Declarations) -> ScenarioError:
    """The error about a protocol that asks the cycle engine for delays."""
    file, line = found.place
    expected = 'event, as the cycle engine knows no delays and the protocol uses "after"'
    return ScenarioError(f"{file}, line {line}", "engine", "cycle", expected)


def _place_of_class(owner: type) -> Place:
    lines: Iterator[Place] = (
        place_of(value) for value in vars(owner).values() if inspect.isfunction(value)
    )
    module: Any = sys.modules.get(owner.__module__)
    try:
        return inspect.getsourcefile(owner) or "", inspect.getsourcelines(owner)[1]
    except (OSError, TypeError):
        return next(lines, (getattr(module, "__file__", "<script>"), 1))


# What is impossible in the declarations of a class, found when its class statement ends.

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
