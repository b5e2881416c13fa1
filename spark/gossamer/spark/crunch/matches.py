"""How many subscriptions each event of a workload matches, found by executors.

With one attribute, an event matches the ranges that have begun at its value and have not ended
before it. Ends of ranges and values of events in one order, a running sum of begun less ended
ranges tells that of every event. Executors count equal points first, sort parts of the order each
for itself, and the driver sees a number a part. With more attributes a sample of events is held
against all subscriptions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

# Different points of a part, about: what one task sorts.
_PART_POINTS: Final = 1_000_000
_MOST_PARTS: Final = 256
# Error of the ranks that parts are cut at, of a part.
_CUT_ERROR: Final = 0.1
# In the order of points at the same value: ranges hold both their ends.
_BEGIN, _EVENT, _END = 0, 1, 2

Ints = npt.NDArray[np.int64]


@contextmanager
def matched_by_all(subscriptions: Any, events: Any) -> Iterator[Any]:
    """A frame of Spark with the matches of every event in its column ``value``.

    Its rows are in no order. Executors keep them until the end.

    Args:
        subscriptions: ranges ``low_0`` to ``high_0``, both ends included.
        events: of the values ``value_0``.
    """
    points = _points(subscriptions, events).persist()
    try:
        cuts = _cuts(points)
        parts = points.selectExpr(f"{_part_of(cuts)} as part", "at", "kind", "times")
        begun = _begun(parts) if cuts else {0: 0}

        def matched_in(part: pa.Table) -> pa.Table:
            return matched_in_part(part, begun[part["part"][0].as_py()])

        matched = parts.groupBy("part").applyInArrow(matched_in, "value long").persist()
        try:
            yield matched
        finally:
            matched.unpersist()
    finally:
        points.unpersist()


def _points(subscriptions: Any, events: Any) -> Any:
    """Every different point with its kind, and how often it comes."""
    found = [
        frame.selectExpr(f"{column} as at", f"{kind} as kind")
        for frame, column, kind in (
            (subscriptions, "low_0", _BEGIN),
            (events, "value_0", _EVENT),
            (subscriptions, "high_0", _END),
        )
    ]
    together = found[0].unionAll(found[1]).unionAll(found[2])
    return together.groupBy("at", "kind").count().withColumnRenamed("count", "times")


def _cuts(points: Any) -> list[int]:
    """The values after which parts end, so that these are about equally large."""
    parts = min(-(-points.count() // _PART_POINTS), _MOST_PARTS)
    if parts < 2:
        return []
    shares = [part / parts for part in range(1, parts)]
    found = points.approxQuantile("at", shares, _CUT_ERROR / parts)
    return sorted({int(value) for value in found})


def _part_of(cuts: Sequence[int]) -> str:
    """The number of a point's part, in Spark's SQL."""
    return " + ".join(["0", *(f"cast(at > {cut} as int)" for cut in cuts)])


def _begun(parts: Any) -> dict[int, int]:
    """By part the ranges that have begun before it, and not ended."""
    weight = f"case kind when {_BEGIN} then times when {_END} then -times else 0 end"
    told = parts.selectExpr("part", f"{weight} as more").groupBy("part").sum("more").collect()
    begun, found = 0, {}
    for part, more in sorted((row["part"], row["sum(more)"]) for row in told):
        found[part] = begun
        begun += more
    return found


def matched_in_part(points: pa.Table, begun: int) -> pa.Table:
    """The matches of each event among the points of one part.

    Args:
        points: of the columns ``at``, ``kind`` and ``times``.
        begun: ranges that have begun before the part, and not ended.
    """
    at, kind, times = (points[name].to_numpy() for name in ("at", "kind", "times"))
    order = np.lexsort((kind, at))
    kind, times = kind[order], times[order]
    inside = begun + np.cumsum(np.where(kind == _BEGIN, times, np.where(kind == _END, -times, 0)))
    events = kind == _EVENT
    return pa.table({"value": np.repeat(inside[events], times[events]).astype(np.int64)})


@attrs.frozen(eq=False)
class Matcher:
    """Counts by event the subscriptions of a task that it matches.

    Attributes:
        points: int64[events, A], hashed.
    """

    points: Ints

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        matched = np.zeros(len(self.points), np.int64)
        for batch in batches:
            inside = np.ones((len(self.points), len(batch)), np.bool_)
            for a in range(self.points.shape[1]):
                values = self.points[:, a, np.newaxis]
                inside &= values >= batch[f"low_{a}"].to_numpy()
                inside &= values <= batch[f"high_{a}"].to_numpy()
            matched += inside.sum(axis=1)
        places = np.arange(len(matched), dtype=np.int64)
        yield pa.RecordBatch.from_pydict({"place": places, "matched": matched})


def matched_by_some(subscriptions: Any, points: Ints) -> Ints:
    """int64[events]: how many subscriptions each of some events matches.

    Args:
        subscriptions: ranges ``low_a`` to ``high_a`` of every attribute ``a``.
        points: int64[events, A], hashed.
    """
    counts = subscriptions.mapInArrow(Matcher(points), "place long, matched long")
    added = counts.groupBy("place").sum("matched").toArrow()
    matched = np.zeros(len(points), np.int64)
    matched[added["place"].to_numpy()] = added["sum(matched)"].to_numpy()
    return matched
