"""What a protocol declares in its class: settings, columns, timers, layers, measures, controls.

Both ways of writing, `Protocol` and `Node`, declare in the same words. `Declarations` collects them
from a class and those it derives from.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, get_args

import attrs
import numpy as np

from gossamer.protocol.peer.settings.config import MAX_VIEW_SIZE, SAMPLERS
from gossamer.sim.custom.messages import MessageClass, kind_of_name
from gossamer.sim.custom.places import Place, check_arguments, declaration_error, place_of
from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.measure import Kind

_TYPES: Final = {bool: "true or false", int: "a whole number", float: "a number"}
_BY_NAME: Final = {kind.__name__: kind for kind in _TYPES}
_LARGEST: Final = (1 << 62) - 1
_BETTER: Final = ("higher", "lower", None)


@attrs.define
class Setting:
    """A value that scenarios may set.

    Attributes:
        kind: bool, int or float; decides what scenarios may write.
        default: of that kind.
        low, high: the least and the greatest value.
        name: of the class's attribute.
    """

    default: Any
    low: float = -math.inf
    high: float = math.inf
    name: str = ""
    kind: Any = int

    def checked(self, field: str, value: Any) -> Any:
        """``value`` as the setting takes it; raises `ScenarioError` about ``field``."""
        if self.kind is float and type(value) is int:
            value = float(value)
        fits = type(value) is self.kind and (self.kind is bool or self.low <= value <= self.high)
        if not fits or (self.kind is int and abs(value) > _LARGEST):
            raise ScenarioError(None, field, value, self.expected)
        return value

    @property
    def expected(self) -> str:
        """What scenarios may write, in words."""
        words = _TYPES[self.kind]
        if self.low > -math.inf:
            words += f" from {self.low:g}"
        if self.high < math.inf:
            words += f"{',' if self.low > -math.inf else ''} at most {self.high:g}"
        return words


def setting(default: Any, *, low: float = -math.inf, high: float = math.inf) -> Any:
    """A setting with bounds: ``fanout: int = setting(3, low=1)``; ``fanout: int = 3`` has none."""
    return Setting(default, low, high)


@attrs.define
class Column:
    """A value that every node has in the state of a `Protocol`, or an array of such.

    Attributes:
        kind: bool, int or float.
        width: items of a node, or the name of the setting that says how many; None for one value.
        initial: of all nodes.
    """

    kind: type
    width: int | str | None = None
    initial: Any = 0


def column(kind: type, width: int | str | None = None, *, initial: Any = 0) -> Any:
    """State of a node: ``value = column(float)``, or ``view = column(int, 20, initial=-1)``."""
    return Column(kind, width, initial)


@attrs.define
class AttributeOf:
    """A value of every node that the scenario says, or the protocol where it does not.

    Attributes:
        kind: bool, int or float.
        default: of nodes where a scenario says nothing; None if it has to.
    """

    kind: type
    default: Any = None


def attribute(kind: type, default: Any = None) -> Any:
    """What a node is, by the scenario's [attributes]: ``capacity = attribute(float)``.

    Args:
        kind: bool, int or float.
        default: as in a scenario: a number, a list of numbers to draw from, or a table with a
            distribution, such as ``{"uniform": [1, 5]}``.
    """
    return AttributeOf(kind, default)


@attrs.define
class Timer:
    """What fires at every node again and again while it is up, handled by ``on_<name>``.

    Give either ``rounds`` or ``seconds``: a number, or the name of a setting. In the cycle engine
    timers are of one round and fire in their order in a node's turn.

    Attributes:
        rounds, seconds: from one firing to the next, by the node's clock.
        phase: from a node's start to the first firing, as a share of the period; drawn from [0, 1)
            by each node if None.
        jitter: each period is drawn evenly from this share of itself less to as much more.
        name, kind: given by the class that declares it.
    """

    rounds: float | str | None = None
    seconds: float | str | None = None
    phase: float | None = attrs.field(default=None, kw_only=True)
    jitter: float = attrs.field(default=0.0, kw_only=True)
    name: str = attrs.field(default="", init=False)
    kind: int = attrs.field(default=0, init=False)

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.kind = kind_of_name(f"timer {owner.__name__}.{name}")


@attrs.define
class Sampler:
    """A layer that samples peers by a protocol of gossamer.

    Attributes:
        name: "cyclon", "newscast", "hyparview", ...; see docs/samplers.md.
        view_size: descriptors that a node holds, or the name of a setting.
        shuffle_length: descriptors of an exchange; half of the view if None.
    """

    name: str
    view_size: int | str = 20
    shuffle_length: int | None = None

    def __attrs_post_init__(self) -> None:
        place, size, shuffle = _place_of_caller(), self.view_size, self.shuffle_length
        if self.name not in SAMPLERS:
            raise declaration_error(place, "Sampler", self.name, "one of " + ", ".join(SAMPLERS))
        named = isinstance(size, str)
        if not named and not (type(size) is int and 1 <= size <= MAX_VIEW_SIZE):
            expected = f"1 to {MAX_VIEW_SIZE}, or the name of a setting"
            raise declaration_error(place, "Sampler view_size", size, expected)
        most = MAX_VIEW_SIZE if isinstance(size, str) else size
        if shuffle is not None and not (type(shuffle) is int and 1 <= shuffle <= most):
            expected = f"1 to the view size, {most}"
            raise declaration_error(place, "Sampler shuffle_length", shuffle, expected)


@attrs.define
class Layer:
    """Another `Protocol` that runs on every node, below the one that declares it.

    Attributes:
        protocol: its class.
        settings: values that differ from its defaults.
    """

    protocol: Any
    settings: Mapping[str, Any]


def layer(protocol: type, **settings: Any) -> Any:
    """Run another protocol on every node: ``ring = layer(TMan, view_size=10)``."""
    if not isinstance(getattr(protocol, "declared", None), Declarations):
        expected = "a class derived from Protocol or Node"
        raise declaration_error(_place_of_caller(), "layer", protocol, expected)
    return Layer(protocol, settings)


@attrs.define
class MeasureOf:
    """What is measured after every round. See `measure`."""

    take: Callable[..., float]
    label: str
    kind: Kind
    better: Any
    meaning: str

    def __call__(self, subject: Any, run: Any) -> float:
        """What it is of a state, or a class of nodes: for measures of the protocol above."""
        return self.take(subject, run)


def measure(
    label: str = "",
    *,
    kind: Kind = "fine",
    better: Any = None,
) -> Callable[[Any], Any]:
    """Mark a function ``(self, run)`` of numbers as a measure, taken before and after every round.

    ``self`` is the state of a `Protocol`, or the class of a `Node` below ``classmethod``. The
    summary has the value after the last round.

    Args:
        label: for people; that of the function if empty.
        kind: how it is printed, see `gossamer.sim.study.measure.Measure`.
        better: "higher", "lower" or None.
    """

    if callable(label):  # the decorator without parentheses
        marked: Any = measure()(label)
        return marked  # type: ignore[no-any-return]

    for what, given, known in (("kind", kind, get_args(Kind)), ("better", better, _BETTER)):
        if given not in known:
            expected = "one of " + ", ".join(map(repr, known))
            raise declaration_error(_place_of_caller(), f"measure {what}", given, expected)

    def mark(function: Any) -> MeasureOf:
        plain = _function_of(function)
        check_arguments(plain, plain.__name__, ("self", "run"))
        words = label or plain.__name__.replace("_", " ")
        meaning = (inspect.getdoc(plain) or f"{words.capitalize()} after the round.").split("\n")[0]
        return MeasureOf(plain, words, kind, better, meaning)

    return mark


@attrs.define
class ControlOf:
    """What happens before some rounds, or after them. See `control` and `observer`."""

    act: Callable[..., Any]
    every: int
    begin: int
    end: int | None
    after: bool

    def act_on(self, subject: Any, run: Any) -> None:
        """Act on a state, or a class of nodes.

        Raises:
            ScenarioError: the function returns True, by which a run is not ended here.
        """
        if isinstance(returned := self.act(subject, run), bool | np.bool_) and returned:
            expected = 'nothing: run.stop("why") ends a run'
            raise declaration_error(
                place_of(self.act), f"what {self.act.__name__} returns", True, expected
            )

    def is_due(self, now: int) -> bool:
        """Whether it acts in this round."""
        on_beat = now >= self.begin and (now - self.begin) % self.every == 0
        return on_beat and (self.end is None or now < self.end)


def control(
    function: Any = None,
    /,
    *,
    every: int = 1,
    begin: int = 0,
    end: int | None = None,
    once: int | None = None,
) -> Any:
    """Mark a function ``(self, run)`` that interferes before the rounds begin, begin + every, ...

    Args:
        every: rounds from one time to the next.
        begin: the first round, from 0 on.
        end: the round before which it ends; none if None.
        once: the one round before which it acts, in place of the others.
        function: what is marked, where there are no parentheses.
    """
    return _timed(function, every, begin, end, once, after=False)


def observer(
    function: Any = None,
    /,
    *,
    every: int = 1,
    begin: int = 0,
    end: int | None = None,
    once: int | None = None,
) -> Any:
    """Mark a function ``(self, run)`` that looks at nodes after rounds; may end the run.

    Args: as `control`.
    """
    return _timed(function, every, begin, end, once, after=True)


def initialiser(function: Any = None, /) -> Any:
    """Mark a function ``(self, run)`` that sets nodes up before anything happens."""
    if function is None:  # the decorator with parentheses
        return initialiser
    plain = _function_of(function)
    check_arguments(plain, plain.__name__, ("self", "run"))
    return ControlOf(plain, 1, -1, 0, after=False)


def _timed(
    function: Any, every: int, begin: int, end: int | None, once: int | None, *, after: bool
) -> Any:
    given = {"every": every, "begin": begin, "end": end}
    if once is not None:
        if (every, begin, end) != (1, 0, None):
            fault = {"once": once, **given}
            expected = "once alone, or the others"
            raise declaration_error(_place_of_caller(), "the schedule", fault, expected)
        given |= {"begin": once, "end": once}
    counts = [count for count in given.values() if count is not None]
    fits = all(type(count) is int and count >= 0 for count in counts) and every >= 1
    if not fits or not (function is None or callable(function)):
        words = given if function is None else function
        expected = "whole numbers of rounds by name, every from 1 and begin from 0"
        raise declaration_error(_place_of_caller(), "the schedule", words, expected)
    if once is not None:
        begin, end = once, once + 1

    def mark(function: Any) -> ControlOf:
        plain = _function_of(function)
        check_arguments(plain, plain.__name__, ("self", "run"))
        return ControlOf(plain, every, begin, end, after)

    return mark if function is None else mark(function)


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
        if one.kind not in _TYPES:
            raise found.error(name, one.kind, "an attribute of bool, int or float")
    return found


def _collect(found: Declarations, owner: type) -> None:
    annotations = inspect.get_annotations(owner)
    for name, value in vars(owner).items():
        for kind, kept in _KEPT:
            if isinstance(value, kind):
                getattr(found, kept)[name] = value
        if inspect.isfunction(value) and name.startswith("on_"):
            found.handlers[name.removeprefix("on_")] = value
        if name in annotations and not name.startswith("_"):
            found.settings |= _setting_of(found, name, value, annotations[name])


def _setting_of(found: Declarations, name: str, value: Any, annotation: Any) -> dict[str, Setting]:
    kind = _BY_NAME.get(annotation, annotation)
    if kind not in _TYPES:
        return {}
    given = value if isinstance(value, Setting) else Setting(value)
    one = attrs.evolve(given, name=name, kind=kind)
    try:
        one.default = one.checked(name, one.default)
    except ScenarioError as error:
        raise found.error(name, error.value, error.expected) from None
    return {name: one}


def _find_messages(found: Declarations, special: tuple[str, ...]) -> None:
    """The message of every handler, from what its module has under that name."""
    for name, handler in found.handlers.items():
        if name in special or name in found.timers:
            continue
        known = {
            held.name: held
            for held in handler.__globals__.values()
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
            known = ", ".join(found.settings) or "none, as the protocol has no settings"
            raise ScenarioError(
                None, f"{prefix}{name}", given[name], f"one of {known}", found="no setting"
            )
    settings = {
        name: one.checked(f"{prefix}{name}", given[name]) if name in given else one.default
        for name, one in found.settings.items()
    }
    for column_name, column_of in found.columns.items():
        if isinstance(column_of.width, str) and settings.get(column_of.width, 1) < 1:
            expected = f"from 1, as column {column_name} has that width"
            width = column_of.width
            raise ScenarioError(None, f"{prefix}{width}", settings[width], expected)
    for timer in found.timers.values():
        period = timer.rounds if timer.rounds is not None else timer.seconds
        if isinstance(period, str) and not 0 < settings[period] < 1e9:
            expected = f"above 0, as timer {timer.name} has that period"
            raise ScenarioError(None, f"{prefix}{period}", settings[period], expected)
    return settings


def delays_in_cycles(found: Declarations) -> ScenarioError:
    """The error about a protocol that asks the cycle engine for delays."""
    file, line = found.place
    expected = 'event, as the cycle engine knows no delays and the protocol uses "after"'
    return ScenarioError(f"{file}, line {line}", "engine", "cycle", expected)


def size_from(size: int | str, settings: Mapping[str, Any]) -> int:
    """A size that is a number or the name of a setting."""
    return int(settings[size]) if isinstance(size, str) else size


def _function_of(function: Any) -> Callable[..., Any]:
    inner: Callable[..., Any] = getattr(function, "__func__", function)
    return inner


def _place_of_class(owner: type) -> Place:
    lines: Iterator[Place] = (
        place_of(value) for value in vars(owner).values() if inspect.isfunction(value)
    )
    module: Any = sys.modules.get(owner.__module__)
    try:
        return inspect.getsourcefile(owner) or "", inspect.getsourcelines(owner)[1]
    except (OSError, TypeError):
        return next(lines, (getattr(module, "__file__", "<script>"), 1))


def _place_of_caller() -> Place:
    """File and line of whoever called what calls this, outside of this module and attrs."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_code.co_filename == __file__ or frame.f_code.co_filename.startswith("<attrs")
    ):
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
