"""How much the subscriptions of a workload cover each other.

"The covering degree ... is the average number of new root subscriptions triggered by an unsubscribe
operation", over all roots (selective paper, Sec. V-A).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import attrs
import numpy as np

from gossamer.protocol.content.filters import Filter
from gossamer.protocol.content.matching.index import MatchingIndex
from gossamer.sim.study.draws import Int64s


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
