"""What the body of a protocol's class holds: settings, columns, attributes, timers, layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final

import attrs

from gossamer.protocol.peer.settings.config import MAX_VIEW_SIZE, SAMPLERS
from gossamer.sim.custom.language.messages import kind_of_name
from gossamer.sim.custom.language.places import declaration_error, place_of_caller
from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.scenarios import to_whole

# What scenarios may write, by the kind of a setting.
TYPES: Final = {bool: "true or false", int: "a whole number", float: "a number"}
_LARGEST: Final = (1 << 62) - 1
MOST_WIDTH: Final = 1 << 20

# How many items a column has: a number, the name of a setting, or a function of all settings.
Width = int | str | Callable[[Any], int] | None


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
        elif self.kind is int:
            value = to_whole(value)
        fits = type(value) is self.kind and (self.kind is bool or self.low <= value <= self.high)
        if not fits or (self.kind is int and abs(value) > _LARGEST):
            raise ScenarioError(None, field, value, self.expected)
        return value

    @property
    def expected(self) -> str:
        """What scenarios may write, in words."""
        words = TYPES[self.kind]
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
    """What `column` declares."""

    kind: type
    width: Width = None
    initial: Any = 0


def column(kind: type, width: Width = None, *, initial: Any = 0) -> Any:
    """State of a node: ``value = column(float)``, or ``view = column(int, 20, initial=-1)``.

    Args:
        kind: bool, int or float.
        width: items of a node, the name of the setting that says how many, or a function of the
            settings, ``column(int, lambda own: 160 * own.k)``; None for one value.
        initial: of all nodes.
    """
    return Column(kind, width, initial)


@attrs.define
class AttributeOf:
    """What `attribute` declares."""

    kind: type
    default: Any = None


def attribute(kind: type, default: Any = None) -> Any:
    """What a node is, by the scenario's [attributes]: ``capacity = attribute(float)``.

    Args:
        kind: bool, int or float.
        default: where a scenario says nothing, and as in one: a number, a list of numbers to draw
            from, or a table with a distribution, such as ``{"uniform": [1, 5]}``.
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

    @property
    def period(self) -> float | str | None:
        """From one firing to the next, in rounds or seconds."""
        return self.seconds if self.rounds is None else self.rounds

    def check_cycle(self) -> None:
        """Refuse a timer that the cycle engine does not know; raises `ScenarioError`."""
        if self.rounds != 1 or self.jitter > 0:
            expected = f"event, as timer {self.name} is not of one round"
            raise ScenarioError(None, "engine", "cycle", expected)

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
        place, size, shuffle = place_of_caller(), self.view_size, self.shuffle_length
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


def size_from(size: int | str | Callable[[Any], int], settings: Mapping[str, Any]) -> int:
    """A size that is a number, the name of a setting, or a function of settings by name."""
    if callable(size):
        return size(SimpleNamespace(**settings))
    return int(settings[size]) if isinstance(size, str) else size


def is_width(width: object) -> bool:
    """Whether a column may have so many items."""
    return type(width) is int and 1 <= width <= MOST_WIDTH
