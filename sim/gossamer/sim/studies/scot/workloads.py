"""What is published and subscribed to in the experiments of the SCOT paper (Sec. 7.1).

A workload has few different publications, which are published over and over, and as many different
subscriptions as are asked for, each of which matches the same share of the publications.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Final, Protocol

import attrs

from gossamer.protocol.content.filters import Filter, parse
from gossamer.protocol.content.filters import Publication as Values
from gossamer.protocol.content.grammar import Comparison, Operator
from gossamer.sim.errors import ScenarioError
from gossamer.sim.studies.stock_quotes import Quote, make_quotes, read_quotes

SELECTIVITY: Final = 0.02
"""Share of the publications that a subscription matches (Sec. 7.1)."""
SYMBOLS: Final = 500
"""Stock symbols of the paper's data (Sec. 7.1)."""

_RANGED: Final = ("open", "high", "low", "close", "volume", "change", "spread")


class Workload(Protocol):
    """Who says what, and who asks for what."""

    @property
    def contents(self) -> Sequence[Values]:
        """All that publishers publish."""

    @property
    def burst_content(self) -> Values:
        """What the publisher with a high rate publishes."""

    @property
    def burst_filter(self) -> Filter:
        """A subscription to that, and to nothing else."""

    def wanted(self, draw: Random) -> Filter:
        """A subscription, drawn."""


@attrs.frozen
class Topics:
    """Publications that name one of some topics; a subscription asks for one of them.

    Attributes:
        topics: 50 give the paper's selectivity.
    """

    topics: int = 50

    @property
    def contents(self) -> Sequence[Values]:
        """One for each topic."""
        return [{"topic": topic} for topic in range(self.topics)]

    @property
    def burst_content(self) -> Values:
        """A topic of its own."""
        return {"topic": -1}

    @property
    def burst_filter(self) -> Filter:
        """That topic."""
        return parse("topic == -1")

    def wanted(self, draw: Random) -> Filter:
        """Any of the other topics."""
        return parse(f"topic == {draw.randrange(self.topics)}")


@attrs.define(slots=False, frozen=True)
class Quotes:
    """Stock quotes with ten attributes; a subscription asks for a range of one of them.

    A range begins and ends anywhere between two neighbouring values that differ, so that it holds
    as many quotes as the selectivity says.

    Attributes:
        number: different quotes; a multiple of 50 gives the paper's selectivity exactly.
        seed: of the choice of quotes.
        file: quotes to choose from (see `read_quotes`); made-up ones of 500 symbols if None.
    """

    number: int = 100
    seed: int = 1
    file: Path | None = None

    @cached_property
    def contents(self) -> Sequence[Values]:
        """Quotes drawn from all."""
        quotes = (
            make_quotes(10 * SYMBOLS, self.seed, SYMBOLS)
            if self.file is None
            else read_quotes(self.file)
        )
        if self.number > len(quotes):
            expected = f"at most {len(quotes)}, which the file of quotes has"
            raise ScenarioError(str(self.file), "workload.quotes", self.number, expected)
        chosen = Random(self.seed).sample(range(len(quotes)), self.number)
        return [_with_ten_attributes(quotes[place]) for place in sorted(chosen)]

    @property
    def burst_content(self) -> Values:
        """An index, whose class no subscription to a range of a stock asks for."""
        return {"class": "index", "symbol": "HRP", "value": 1.0}

    @property
    def burst_filter(self) -> Filter:
        """That index."""
        return parse('symbol == "HRP"')

    def wanted(self, draw: Random) -> Filter:
        """A range of an attribute that is drawn."""
        name = draw.choice(self._ranged)
        values = self._sorted[name]
        first = draw.choice(self._firsts[name])
        low = _between(draw, values, first - 1, first)
        high = _between(draw, values, first + self._held - 1, first + self._held)
        return Filter.of(
            [Comparison(name, Operator.AT_LEAST, low), Comparison(name, Operator.AT_MOST, high)]
        )

    @property
    def _held(self) -> int:
        """Quotes in a range."""
        return max(1, round(SELECTIVITY * self.number))

    @cached_property
    def _sorted(self) -> dict[str, list[float]]:
        return {name: sorted(_number(quote[name]) for quote in self.contents) for name in _RANGED}

    @cached_property
    def _firsts(self) -> dict[str, list[int]]:
        """By attribute, where ranges can begin so that neither end parts equal values."""
        held = self._held
        return {
            name: [
                first
                for first in range(len(values) - held + 1)
                if (first == 0 or values[first - 1] < values[first])
                and (first + held == len(values) or values[first + held - 1] < values[first + held])
            ]
            for name, values in self._sorted.items()
        }

    @cached_property
    def _ranged(self) -> list[str]:
        return [name for name in _RANGED if self._firsts[name]]


def _with_ten_attributes(quote: Quote) -> Values:
    opened, closed = _number(quote["open"]), _number(quote["close"])
    spread = _number(quote["high"]) - _number(quote["low"])
    return {**quote, "change": round(closed - opened, 2), "spread": round(spread, 2)}


def _between(draw: Random, values: Sequence[float], below: int, above: int) -> float:
    """A number from between two neighbouring values; at the ends the value there."""
    if below < 0:
        return values[above]
    if above >= len(values):
        return values[below]
    return draw.uniform(values[below], values[above])


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)
