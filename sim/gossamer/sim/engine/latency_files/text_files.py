"""Text files of numbers, line by line: what is common to matrices, topologies and coordinates."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from gossamer.sim.errors import ScenarioError

_BETWEEN: Final = re.compile(r"[\s,;]+")
# How files write that something was not measured.
_UNMEASURED: Final = frozenset({"-", "-1", "-1.0", "x", "na", "nan", "none", "null", "inf"})


class Line(NamedTuple):
    """A line with something in it.

    Attributes:
        number: in the file, from 1 on.
        words: what blanks, commas and semicolons separate.
    """

    number: int
    words: list[str]


def read_text(path: Path, what: str) -> str:
    """The text of a file that holds ``what``; raises `ScenarioError` where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ScenarioError(str(path), what, None, "a readable file", reason) from None
    except UnicodeDecodeError:
        raise ScenarioError(str(path), what, None, "a text file", "not UTF-8") from None


def lines_of(text: str) -> Iterator[Line]:
    """The lines of a text that are not blank, without what follows a "#"."""
    for number, line in enumerate(text.splitlines(), start=1):
        words = _BETWEEN.split(line.partition("#")[0].strip(" \t\r,;"))
        if words != [""]:
            yield Line(number, words)


def measured(path: Path, line: Line, position: int, most: float, what: str = "latency") -> float:
    """The word at a position from 1 on as a number from 0 to ``most``, NaN if not measured.

    Raises:
        ScenarioError: it is neither.
    """
    word = line.words[position - 1]
    if word.lower() in _UNMEASURED:
        return math.nan
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not 0 <= value <= most:
        expected = f"a number from 0 to {most:g}, or -1 where nothing was measured"
        raise ScenarioError(f"{path}, line {line.number}", f"{what} {position}", word, expected)
    return value


def number_at(path: Path, line: Line, position: int, what: str) -> float:
    """The word at a position from 1 on as a finite number; raises `ScenarioError`."""
    word = line.words[position - 1]
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ScenarioError(f"{path}, line {line.number}", what, word, "a finite number")
    return value
