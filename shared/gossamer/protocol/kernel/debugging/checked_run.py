"""Checked runs: the same rules, interpreted, with every index, record and written row checked.

A run takes hundreds of times longer than a compiled one and does the same, to the bit. Where a rule
does what rules may not, it ends with an error that names the rule, its line, the row, the time and
the record.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import numpy as np

from gossamer.protocol.kernel.debugging.checked_arrays import OwnRow, RuleFault, checked_words
from gossamer.protocol.kernel.debugging.checked_outbox import CheckedOutbox
from gossamer.protocol.kernel.debugging.checked_structs import checked
from gossamer.protocol.kernel.errors import RuleError
from gossamer.protocol.kernel.records import FROM, KIND, LENGTH, TO, Outbox, Words
from gossamer.protocol.kernel.rules import Rule, calls_are_compiled, use_compiled

VARIABLE = "GOSSAMER_DEBUG"

_NO_ROW = -1
# Functions of these folders are nobody's rules, nor are those that are made of text.
_PASSED_OVER = (
    __file__.removesuffix("checked_run.py"),
    np.__file__.removesuffix("__init__.py"),
    "<",
)


def is_wanted(debug: bool | None) -> bool:
    """Whether a run is to be checked: as asked for, or else as the environment says."""
    if debug is not None:
        return debug
    return os.environ.get(VARIABLE, "0") not in ("", "0")


class CheckedRun:
    """What the rules of one engine take in a checked run.

    Loops hand it on in place of the state; the rules made by `checked_step` and its like take
    from it what the protocol's own rules take.

    Args:
        state: the protocol's.
        collector: what the observer writes.
        population: how many peers there are.
        when: tells what time it is, in words.
        side_by_side: whether a compiled run of the engine runs several rows at a time, so that
            rules may not read of other rows what rules write.
    """

    def __init__(
        self,
        state: Any,
        collector: Any,
        population: int,
        when: Callable[[], str],
        *,
        side_by_side: bool = False,
    ) -> None:
        self._own = OwnRow(side_by_side)
        self._state = checked(state, "", self._own, population)
        self._collector = checked(collector, "collector", self._own, population, has_rows=False)
        self._population = population
        self._when = when

    def step(self, rule: Rule, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
        """Let the protocol's step take a record as row ``p``."""
        outbox = CheckedOutbox(out, self._population)
        with self._running(rule, p, _header(words, at)):
            rule.interpreted(self._state, p, now, _record(words, at), at, outbox)
            outbox.check_closed("the step ends")

    def observe(self, rule: Rule, words: Words, at: int, now: int) -> None:
        """Let the observer see a record; it writes no row."""
        with self._running(rule, _NO_ROW, _header(words, at)):
            rule.interpreted(self._collector, self._state, _record(words, at), at, now)

    def hint(self, rule: Rule, *args: int) -> None:
        """Let a rule bring memory near; it writes no row."""
        with self._running(rule, _NO_ROW, None):
            rule.interpreted(self._state, *args)

    @contextmanager
    def _running(self, rule: Rule, row: int, header: tuple[int, ...] | None) -> Iterator[None]:
        self._own.row = row
        interpreted = use_compiled(False) if calls_are_compiled() else nullcontext()
        try:
            # As compiled code reckons: without a word where a number is too large.
            with np.errstate(all="ignore"), interpreted:
                yield
        except (RuleFault, IndexError) as error:
            raise self._error(rule, row, header, error) from error
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            raise self._error(rule, row, header, error) from error
        finally:
            self._own.row = _NO_ROW

    def _error(
        self, rule: Rule, row: int, header: tuple[int, ...] | None, error: Exception
    ) -> RuleError:
        place = error.place if isinstance(error, RuleFault) else None
        code = rule.source.__code__
        name, file, line = (
            place or _place(error) or (code.co_name, code.co_filename, code.co_firstlineno)
        )
        return RuleError(name, file, line, row, self._when(), header, str(error))


def _place(error: Exception) -> tuple[str, str, int] | None:
    """The innermost function of a rule on the way to where an error was raised."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_PASSED_OVER) and frame.name != "__call__"
    ]
    inside = frames[-1] if frames else None
    return inside and (inside.name, inside.filename, inside.lineno or 0)


def _header(words: Words, at: int) -> tuple[int, ...]:
    return int(words[at + KIND]), int(words[at + FROM]), int(words[at + TO])


def _record(words: Words, at: int) -> Words:
    return checked_words(words, "words", int(at), int(at + words[at + LENGTH]), "the record")


class CheckedRule(Rule):
    """A rule that hands what it is called with to a `CheckedRun`; loops over it interpret."""


def _checked_rule(rule: Rule, form: Callable[..., None]) -> CheckedRule:
    return CheckedRule(form, rule.source, inline=False)


@cache
def checked_step(rule: Rule) -> Rule:
    """The checked form of a protocol's step."""

    def step(run: CheckedRun, p: int, now: int, words: Words, at: int, out: Outbox) -> None:
        run.step(rule, p, now, words, at, out)

    return _checked_rule(rule, step)


@cache
def checked_observer(rule: Rule) -> Rule:
    """The checked form of an engine's observer."""

    def observe(_collector: Any, run: CheckedRun, words: Words, at: int, now: int) -> None:
        run.observe(rule, words, at, now)

    return _checked_rule(rule, observe)


@cache
def checked_hint(rule: Rule) -> Rule:
    """The checked form of a rule that brings memory near."""

    def hint(run: CheckedRun, *args: int) -> None:
        run.hint(rule, *args)

    return _checked_rule(rule, hint)
