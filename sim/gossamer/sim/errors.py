"""The simulator's errors about what its user gave it.

Each message is one sentence that names the file, the field, its value and what was expected;
the parts are kept as attributes. No input file is ever changed by a failure to read it.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable

import attrs

from gossamer.protocol.kernel.errors import choice, expectation

_BRIEF = reprlib.Repr()
_BRIEF.maxstring = _BRIEF.maxother = 80


class SimulationError(Exception):
    """Base of all errors of the simulator."""


@attrs.define
class ScenarioError(SimulationError):
    """An input of the simulation is impossible; nothing was built from it.

    Attributes:
        file: the file at fault, None for Python objects.
        field: name of the setting or column.
        value: what was given, in full (the message shortens it).
        expected: what would have been accepted, in words.
        found: words to print in place of the value, such as "missing".
    """

    file: str | None
    field: str
    value: object
    expected: str
    found: str | None = None

    def _place(self) -> str:
        return self.file or ""

    def __str__(self) -> str:
        place = self._place()
        found = self.found or " ".join(_BRIEF.repr(self.value).split())
        expected = expectation(self.expected)
        return f"{place}{': ' if place else ''}{self.field} is {found}, {expected}"


@attrs.define
class TraceError(ScenarioError):
    """A churn trace is impossible or unreadable; no trace was built.

    Attributes:
        line: 1-based position of the fault in the file, None for the file as a whole.
        unit: what `line` counts: "line" of a text file, "row" of a table, "session" in memory.
    """

    line: int | None = None
    unit: str = "line"

    def _place(self) -> str:
        line = None if self.line is None else f"{self.unit} {self.line}"
        return ", ".join(part for part in (self.file, line) if part)


class ResultsError(SimulationError):
    """A folder of results, a workload or their storage cannot be read or written as asked.

    Attributes:
        place: the folder or file at fault.
        reason: what is wrong with it, and what was expected, in words.
    """

    def __init__(self, place: object, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(f"{place} {reason}")


class UnknownNameError(SimulationError, AttributeError, KeyError):
    """A result has nothing of that name: no such system, measure, table or plot.

    Attributes:
        what: was asked for, such as "a plot".
        asked: its name.
        known: the names that there are.
    """

    def __init__(self, what: str, asked: str, known: Iterable[str]) -> None:
        self.what, self.asked, self.known = what, asked, tuple(known)
        super().__init__(what, asked)

    def __str__(self) -> str:
        return f"{self.asked!r} is no {self.what}, {expectation(choice(self.asked, self.known))}"


class SweepStopped(SimulationError):
    """A sweep cannot go on, by no fault of a point; points that were finished are kept."""
