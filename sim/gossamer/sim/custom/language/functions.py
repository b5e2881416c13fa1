"""What marks functions of a protocol's class: measures, controls, observers, initialisers."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final, get_args

import attrs
import numpy as np

from gossamer.sim.custom.language.places import (
    check_arguments,
    declaration_error,
    place_of,
    place_of_caller,
)
from gossamer.sim.study.records import Kind

_BETTER: Final = ("higher", "lower", None)


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
        kind: how it is printed, see `gossamer.sim.study.records.Measure`.
        better: "higher", "lower" or None.
    """
    if callable(label):  # the decorator without parentheses
        marked: Any = measure()(label)
        return marked  # type: ignore[no-any-return]

    for what, given, known in (("kind", kind, get_args(Kind)), ("better", better, _BETTER)):
        if given not in known:
            expected = "one of " + ", ".join(map(repr, known))
            raise declaration_error(place_of_caller(), f"measure {what}", given, expected)

    def mark(function: Any) -> MeasureOf:
        plain = _function_of(function)
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
    return ControlOf(_function_of(function), 1, -1, 0, after=False)


def _timed(
    function: Any, every: int, begin: int, end: int | None, once: int | None, *, after: bool
) -> Any:
    given = {"every": every, "begin": begin, "end": end}
    if once is not None:
        if (every, begin, end) != (1, 0, None):
            fault = {"once": once, **given}
            expected = "once alone, or the others"
            raise declaration_error(place_of_caller(), "the schedule", fault, expected)
        given |= {"begin": once, "end": once}
    counts = [count for count in given.values() if count is not None]
    fits = all(type(count) is int and count >= 0 for count in counts) and every >= 1
    if not fits or not (function is None or callable(function)):
        words = given if function is None else function
        expected = "whole numbers of rounds by name, every from 1 and begin from 0"
        raise declaration_error(place_of_caller(), "the schedule", words, expected)
    if once is not None:
        begin, end = once, once + 1

    def mark(function: Any) -> ControlOf:
        return ControlOf(_function_of(function), every, begin, end, after)

    return mark if function is None else mark(function)


def _function_of(function: Any) -> Callable[..., Any]:
    inner: Callable[..., Any] = getattr(function, "__func__", function)
    check_arguments(inner, inner.__name__, ("self", "run"))
    return inner
