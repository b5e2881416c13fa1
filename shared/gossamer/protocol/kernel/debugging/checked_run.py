"""Checked runs: the same rules, interpreted, with every index, record and written row checked.

A run takes hundreds of times longer than a compiled one and does the same, to the bit. Where a rule
does what rules may not, it ends with an error that names the rule, its line, the row, the time and
the record.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

import numpy as np

from gossamer.protocol.kernel.debugging.checked_arrays import (
    CheckedWords,
    OwnRow,
    RuleFault,
    UnknownPeer,
    checked_array,
    checked_words,
)
from gossamer.protocol.kernel.errors import RuleError
from gossamer.protocol.kernel.records import (
    BODY,
    FROM,
    KIND,
    LENGTH,
    OPEN,
    TAIL,
    TO,
    UNREACHABLE,
    Outbox,
    Words,
    close_record,
    drop_record,
    open_record,
)
from gossamer.protocol.kernel.rules import Rule, calls_are_compiled, use_compiled
from gossamer.protocol.kernel.struct import Struct

# The outbox as rules take it in a checked run.


class CheckedOutbox:
    """An outbox that checks every record that is opened, written and closed.

    Of its words a rule may touch those that it has written in this step, and the room of the
    record that is open.

    Args:
        out: the outbox behind it.
        population: how many peers there are.
    """

    def __init__(self, out: Outbox, population: int) -> None:
        self._out = out
        self._population = population
        self._room = 0
        self._opened_by = ("", "", 0)
        begin = int(out.cursor[TAIL])
        self.words: CheckedWords = checked_words(
            out.words, "out.words", begin, begin, "what this step has opened"
        )
        self.cursor = out.cursor

    # What `messages` calls instead of its rules.

    def open_record(self, kind: int, to: int, source: int, body_words: int) -> Any:
        """As `messages.open_record`."""
        self.check_closed("another is opened")
        if body_words < 0:
            raise RuleFault(f"it opens a record of {body_words} body words, expected 0 or more")
        self._check_header(kind, to, source)
        caller = sys._getframe(2)  # past the rule that `messages` has
        self._opened_by = (caller.f_code.co_name, caller.f_code.co_filename, caller.f_lineno)
        at = open_record.interpreted(self._out, kind, to, source, body_words)
        if at >= 0:
            self._room = body_words
            self.words.high = int(at) + BODY + body_words
        return at

    def close_record(self, at: int, body_words: int) -> None:
        """As `messages.close_record`."""
        self._check_open(at)
        if not 0 <= body_words <= self._room:
            raise RuleFault(
                f"it closes a record with {body_words} body words, "
                f"expected 0 to {self._room}, for which it was opened"
            )
        words = self._out.words
        self._check_header(int(words[at + KIND]), int(words[at + TO]), int(words[at + FROM]))
        close_record.interpreted(self._out, at, body_words)
        self.words.high = int(self._out.cursor[TAIL])

    def drop_record(self, at: int) -> None:
        """As `messages.drop_record`."""
        self._check_open(at)
        drop_record.interpreted(self._out, at)
        self.words.high = int(self._out.cursor[TAIL])

    def check_closed(self, by: str) -> None:
        """Refuse that a record is still open.

        Args:
            by: what happens by which it should have been closed.
        """
        if self._out.cursor[OPEN] != 0:
            at = int(self._out.cursor[OPEN]) - 1
            kind, to = self._out.words[at + KIND], self._out.words[at + TO]
            raise RuleFault(
                f"the record of kind {kind} to {to} that it opened is not closed when {by}, "
                "expected close_record or drop_record before",
                self._opened_by,
            )

    def _check_open(self, at: int) -> None:
        if at < 0:
            raise RuleFault(
                "it goes on with a record for which open_record found no room and gave -1, "
                "expected a return there or a larger reserve"
            )
        if self._out.cursor[OPEN] != at + 1:
            raise RuleFault(f"it closes a record at {at}, expected the one that it has opened")

    def _check_header(self, kind: int, to: int, source: int) -> None:
        if not 0 < kind < UNREACHABLE:
            raise RuleFault(f"it opens a record of kind {kind}, expected 1 to {UNREACHABLE - 1}")
        for name, peer in (("TO", to), ("FROM", source)):
            if not 0 <= peer < self._population:
                raise UnknownPeer(
                    f"it writes a record of kind {kind} whose {name} is {peer}, "
                    f"expected a peer from 0 to {self._population - 1}"
                )


# A protocol's state as rules take it in a checked run.


class CheckedStruct:
    """A struct's fields, its arrays checked."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self.__dict__.update(fields)
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> Any:
        raise RuleFault(f"it reads field {name} of {self._name}, which has no such field")

    def __setattr__(self, name: str, _value: Any) -> None:
        raise RuleFault(f"it sets field {name} of {self._name}, expected writes into arrays only")


def checked(value: Any, name: str, own: OwnRow, population: int, has_rows: bool = True) -> Any:
    """What rules take instead of ``value``, over the same memory.

    Args:
        value: a struct, an array, a tuple of such; anything else is taken as it is.
        name: what errors call it.
        own: which row may be written.
        population: how many peers there are: an array whose first axis is as long has a row a
            peer, unless its struct declares it as shared.
        has_rows: whether there can be such arrays in it.
    """
    if isinstance(value, Struct):
        prefix = f"{name}." if name else ""
        return CheckedStruct(
            type(value).__name__,
            {
                field: checked(
                    getattr(value, field),
                    prefix + field,
                    own,
                    population,
                    has_rows and not value.is_shared(field),
                )
                for field in value.field_names()
            },
        )
    if isinstance(value, np.ndarray):
        rows = has_rows and value.ndim > 0 and value.shape[0] == population
        return checked_array(value, name or "the state", own if rows else None)
    if isinstance(value, tuple):
        names = getattr(value, "_fields", range(len(value)))
        items = [
            checked(
                item,
                f"{name}.{at}" if isinstance(at, str) else f"{name}[{at}]",
                own,
                population,
                has_rows,
            )
            for at, item in zip(names, value, strict=True)
        ]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


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
