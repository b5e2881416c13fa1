"""How often values come: counted by tasks, added up by Spark, told without the values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import attrs
import numpy as np
import numpy.typing as npt
import pyarrow as pa

COUNTED: Final = "name string, value long, times long"
# Counts of batches that are kept before they are added up.
_MOST_KEPT: Final = 64

Ints = npt.NDArray[np.int64]
Counts = tuple[npt.NDArray[Any], Ints]


@attrs.frozen(eq=False)
class Tallies:
    """How often things were chosen, without the things: few numbers of however many things.

    Attributes:
        counts: int64[k], ascending and different.
        times: int64[k], how many things were chosen so often.
    """

    counts: Ints
    times: Ints

    @property
    def different(self) -> int:
        """How many things were chosen at all."""
        return int(self.times.sum())

    @property
    def choices(self) -> int:
        """How many choices there were."""
        return int(self.counts @ self.times)

    def of_ranks(self, ranks: Ints) -> Ints:
        """How often the things of these ranks were chosen; the most popular has rank 1."""
        last = np.cumsum(self.times[::-1])
        return np.asarray(self.counts[::-1][np.searchsorted(last, ranks)], np.int64)

    def gini(self) -> float:
        """Gini's coefficient of how often each thing was chosen, see `statistics.gini`."""
        last = np.cumsum(self.times).tolist()
        # In Python's numbers, which do not overflow: the sum of ranks times counts.
        ranked = sum(
            count * ((end - times + 1 + end) * times // 2)
            for count, times, end in zip(
                self.counts.tolist(), self.times.tolist(), last, strict=True
            )
        )
        different = self.different
        return float(2 * ranked / (different * self.choices) - (different + 1) / different)


def tallies_of(counts: Any) -> Tallies:
    """The tallies of a frame of Spark with a row a thing, and its ``count``."""
    found = counts.groupBy("count").agg({"*": "count"}).toArrow().sort_by("count")
    return Tallies(*(found[name].to_numpy() for name in ("count", "count(1)")))


def added_up(parts: Sequence[Counts]) -> Counts:
    """Values in order, and how often each comes in all parts together.

    Args:
        parts: values, and how often each comes; the same value may be in several.
    """
    values, times = (np.concatenate(one) for one in zip(*parts, strict=True))
    different, places = np.unique(values, return_inverse=True)
    added = np.zeros(len(different), np.int64)
    np.add.at(added, places, times)
    return different, added


def _counts_of(values: npt.NDArray[Any]) -> Counts:
    """The different values of some, ascending, and how often each comes."""
    if len(values):
        least, largest = int(values.min()), int(values.max())
        if largest - least <= len(values):
            # So close together that counting places is quicker than sorting.
            counts = np.bincount(values.astype(np.int64) - least)
            hit = np.flatnonzero(counts)
            return hit + least, counts[hit]
    return np.unique(values, return_counts=True)


def count_columns(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """How often each value comes in each column of a task's rows: whole numbers, none null."""
    found: dict[str, list[Counts]] = {}
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            kept = found.setdefault(name, [])
            kept.append(_counts_of(column.to_numpy()))
            if len(kept) > _MOST_KEPT:
                found[name] = [added_up(kept)]
    for name, kept in found.items():
        values, times = added_up(kept)
        names = pa.array([name] * len(values), pa.string())
        columns = [names, pa.array(values.astype(np.int64)), pa.array(times)]
        yield pa.RecordBatch.from_arrays(columns, ["name", "value", "times"])
