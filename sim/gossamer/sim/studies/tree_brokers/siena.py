"""SIENA's workload, as the incremental paper uses it for its mobile scenario (Sec. V-B).

Subscriptions have 1 to 10 constraints, publications 1 to 19 attributes. Names are chosen from 1,000
words by Zipf's law, operators are 60 % equality, 20 % less-than and 20 % greater-than, and values
come from 100 numbers.

The paper does not give the exponent of Zipf's law, but says that 200,000 subscriptions have about
1,600 roots: they have 1,814 with 1.2 and 1,209 with 1.4, so 1.25 is taken. A name comes once in a
subscription: twice, most would contradict themselves, and such filters are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Final

import attrs
import numpy as np

from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.filters.constraint import Constraint
from gossamer.protocol.content.filters.predicates import constraint_of
from gossamer.protocol.content.grammar import Comparison, Operator
from gossamer.protocol.content.matching.index import MatchingIndex
from gossamer.sim.errors import ScenarioError
from gossamer.sim.study.draws import Int64s, choices, distinct_ranks, uniform

# The seed's streams.
_LENGTHS, _NAMES, _OPERATORS, _VALUES = 201, 202, 203, 204
_SIZES, _ATTRIBUTES, _CONTENTS = 205, 206, 207

OPERATORS: Final = (Operator.EQUAL, Operator.LESS, Operator.GREATER)


@attrs.frozen(kw_only=True)
class Siena:
    """Draws subscriptions and publications; row numbers are theirs alone, each kind from 0.

    Attributes:
        seed: of all draws.
        names: words that there are.
        exponent: of Zipf's law of the words.
        values: numbers that there are, from 0.
        most_constraints: of a subscription, which has at least one.
        most_attributes: of a publication, which has at least one.
        shares: of equality, less-than and greater-than.
    """

    seed: int = 1
    names: int = 1_000
    exponent: float = 1.25
    values: int = 100
    most_constraints: int = 10
    most_attributes: int = 19
    shares: tuple[float, float, float] = (0.6, 0.2, 0.2)

    def __attrs_post_init__(self) -> None:
        for name in ("most_constraints", "most_attributes"):
            number = getattr(self, name)
            if not 1 <= number <= self.names:
                expected = f"from 1 to the number of names, {self.names}"
                raise ScenarioError(None, f"workload.{name}", number, expected)
        if not 0 <= self.exponent <= 100:
            expected = "a number from 0 to 100"
            raise ScenarioError(None, "workload.exponent", self.exponent, expected)
        if self.values < 1:
            raise ScenarioError(None, "workload.values", self.values, "at least 1")
        if min(self.shares) < 0 or abs(sum(self.shares) - 1) > 1e-9:
            raise ScenarioError(None, "workload.shares", self.shares, "shares that add up to 1")

    def words(self) -> list[str]:
        """All attribute names, the most popular first."""
        return [self.word(rank) for rank in range(self.names)]

    def word(self, rank: int) -> str:
        """The name of a rank."""
        return f"w{rank:03}"

    def subscription_rows(self, rows: Int64s) -> tuple[Int64s, Int64s, Int64s]:
        """Words, operators and numbers of these subscriptions: int64[rows, most constraints].

        Words are ranks, -1 beyond the last constraint of a row; operators are places in
        `OPERATORS`.
        """
        lengths = 1 + choices(self.seed, _LENGTHS, rows, 0, self.most_constraints)
        bounds = np.cumsum(self.shares)
        operators = [
            np.searchsorted(bounds[:2], uniform(self.seed, _OPERATORS, rows, i), side="right")
            for i in range(self.most_constraints)
        ]
        words = self._ranks(_NAMES, rows, lengths, self.most_constraints)
        numbers = self._numbers(_VALUES, rows, self.most_constraints)
        return words, np.stack(operators, axis=1), numbers

    def subscriptions(self, rows: Int64s) -> list[Filter]:
        """The subscriptions of these rows."""
        named, operators, values = (part.tolist() for part in self.subscription_rows(rows))
        return [
            Filter.from_constraints(
                {
                    self.word(rank): _constraint(operator, value)
                    for rank, operator, value in zip(ranks, chosen, numbers, strict=True)
                    if rank >= 0
                }
            )
            for ranks, chosen, numbers in zip(named, operators, values, strict=True)
        ]

    def publication_rows(self, rows: Int64s) -> tuple[Int64s, Int64s]:
        """Words and numbers of these publications: int64[rows, most attributes].

        Words are ranks, -1 beyond the last attribute of a row.
        """
        sizes = 1 + choices(self.seed, _SIZES, rows, 0, self.most_attributes)
        words = self._ranks(_ATTRIBUTES, rows, sizes, self.most_attributes)
        return words, self._numbers(_CONTENTS, rows, self.most_attributes)

    def publications(self, rows: Int64s) -> list[dict[str, int]]:
        """The publications of these rows."""
        named, values = (part.tolist() for part in self.publication_rows(rows))
        return [
            {
                self.word(rank): value
                for rank, value in zip(ranks, numbers, strict=True)
                if rank >= 0
            }
            for ranks, numbers in zip(named, values, strict=True)
        ]

    def _ranks(self, stream: int, rows: Int64s, numbers: Int64s, most: int) -> Int64s:
        found = distinct_ranks(
            self.seed, stream, rows, numbers, places=self.names, exponent=self.exponent
        )
        return np.pad(found, ((0, 0), (0, most - found.shape[1])), constant_values=-1)

    def _numbers(self, stream: int, rows: Int64s, columns: int) -> Int64s:
        drawn = [choices(self.seed, stream, rows, i, self.values) for i in range(columns)]
        return np.stack(drawn, axis=1)


@cache
def _constraint(operator: int, value: int) -> Constraint:
    # The name does not matter; sharing constraints saves most of the time and memory.
    return constraint_of(Comparison("value", OPERATORS[operator], value))


# How much the subscriptions of a workload cover each other.
#
# "The covering degree ... is the average number of new root subscriptions triggered by an
# unsubscribe operation", over all roots (selective paper, Sec. V-A).


@attrs.frozen(eq=False)
class CoveringDegree:
    """What covers what among subscriptions; equal ones count as one root.

    Attributes:
        roots: the root subscriptions' filters.
        covered: int64[roots], subscriptions that each covers, those equal to it not counted.
        triggered: int64[roots], |NRS(S)|: different filters that become roots when one root
            subscription is taken back; 0 where another is equal to it.
    """

    roots: tuple[Filter, ...]
    covered: Int64s
    triggered: Int64s

    @property
    def degree(self) -> float:
        """*CovDeg*, the mean of ``triggered``."""
        return float(np.mean(self.triggered))


def covering_degree(subscriptions: Iterable[Filter], *, compiled: bool = False) -> CoveringDegree:
    """Measure the covering degree of subscriptions, exactly where covering is decided exactly.

    Args:
        subscriptions: at least one.
        compiled: for more than some thousand.
    """
    numbers = Counter(subscriptions)
    index = MatchingIndex(compiled=compiled, covering=False)
    held = [(index.add(wanted).id, wanted) for wanted in numbers]
    above = {id_: [one for one in index.covering(wanted) if one != id_] for id_, wanted in held}
    roots = {id_: place for place, id_ in enumerate(id_ for id_, _ in held if not above[id_])}
    covered, triggered = np.zeros(len(roots), np.int64), np.zeros(len(roots), np.int64)
    alone = {id_ for id_, wanted in held if numbers[wanted] == 1}
    for id_, wanted in held:
        for coverer in above[id_]:
            if coverer in roots:
                covered[roots[coverer]] += numbers[wanted]
        if len(above[id_]) == 1 and above[id_][0] in alone:
            triggered[roots[above[id_][0]]] += 1
    return CoveringDegree(tuple(wanted for id_, wanted in held if id_ in roots), covered, triggered)
