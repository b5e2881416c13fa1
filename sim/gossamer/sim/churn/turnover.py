"""Turnover: a population of constant size whose members are replaced one by one.

Half of the nodes are online at a time. At the moment one of them leaves, without a word, one that
has been away joins. So nothing varies but how fast: half of all peers replaced in an hour is a
share of 0.5.
"""

from __future__ import annotations

import numpy as np

from gossamer.sim.churn.trace import ChurnTrace
from gossamer.sim.study.draws import rows_from, uniform

_HOUR_S = 3600.0
# The streams of the draws of when nodes are replaced, which, and by whom.
_WHEN, _WHO, _BY_WHOM = 120, 121, 122


def make_turnover(nodes: int, duration_s: float, share: float, seed: int) -> ChurnTrace:
    """A trace in which so large a share of those online is replaced in an hour, at any time.

    Args:
        nodes: in all, at least 2; the first half of them is online at the beginning.
        duration_s: of the trace.
        share: of the nodes online, in an hour.
        seed: of all draws.
    """
    online, away = list(range(nodes // 2)), list(range(nodes // 2, nodes))
    rows = rows_from(0, round(share * len(online) * duration_s / _HOUR_S))
    times = np.sort(uniform(seed, _WHEN, rows, 0)) * duration_s
    leaving, joining = uniform(seed, _WHO, rows, 0), uniform(seed, _BY_WHOM, rows, 0)
    began = dict.fromkeys(online, 0.0)
    sessions: list[tuple[int, float, float]] = []
    for time_s, who, by_whom in zip(times.tolist(), leaving, joining, strict=True):
        i, j = int(who * len(online)), int(by_whom * len(away))
        if time_s > began[online[i]]:
            sessions.append((online[i], began.pop(online[i]), time_s))
            online[i], away[j] = away[j], online[i]
            began[online[i]] = time_s
    sessions += [(node, begin, duration_s) for node, begin in began.items() if begin < duration_s]
    node, start_s, end_s = zip(*sessions, strict=True)
    names = tuple(f"n{number}" for number in range(nodes))
    return ChurnTrace(names, node, start_s, end_s, duration_s)
