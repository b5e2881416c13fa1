"""Who knows whom under a protocol: the views of its samplers, and what classes say themselves.

A class says it by a function ``overlay(self, run)``, of a `Node` below ``classmethod``: it returns
pairs of rows, the first of which knows the second, or such pairs by the name of their kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gossamer.protocol.peer.sampling.sampler import EMPTY, handle_of
from gossamer.sim.custom.language.declarations import Declarations
from gossamer.sim.custom.language.places import declaration_error, place_of
from gossamer.sim.engine.latency import Int64s

OVERLAY: Final = "overlay"
_UNNAMED: Final = "link"


def links_in(view: npt.ArrayLike) -> Int64s:
    """Pairs (row, entry) of a column of rows: int64[n] or int64[n, k], with -1 for none.

    For a function ``overlay``: ``return {"ring": links_in(self.successor)}``.
    """
    entries = np.asarray(view, np.int64)
    entries = entries.reshape(len(entries), -1)
    source, place = np.nonzero(entries >= 0)
    return np.column_stack((source, entries[source, place]))


def links_of_views(views: Int64s) -> Int64s:
    """Pairs (row, peer) of the views of a sampler: int64[n, c] of descriptors."""
    source, place = np.nonzero(views != EMPTY)
    return np.column_stack((source, handle_of.interpreted(views[source, place])))


def declared_links(declared: Declarations, subject: Any, run: Any) -> Iterator[tuple[str, Int64s]]:
    """What a class says of its overlay: pairs of rows by kind, nothing where it says nothing.

    Raises:
        ScenarioError: it returns something else; names its file and line.
    """
    function = getattr(declared.owner, OVERLAY, None)
    if function is None:
        return
    plain = getattr(function, "__func__", function)
    found = plain(subject, run)
    by_kind = found if isinstance(found, Mapping) else {_UNNAMED: found}
    for kind, given in by_kind.items():
        try:
            pairs = np.asarray(given if isinstance(given, np.ndarray) else list(given))
        except TypeError:
            pairs = np.asarray(given)
        if pairs.size == 0:
            yield str(kind), np.empty((0, 2), np.int64)
            continue
        whole = np.issubdtype(pairs.dtype, np.integer)
        rows = len(run.alive)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not whole:
            raise _wrong(declared, plain, kind, str(pairs.dtype) + str(list(pairs.shape)))
        if pairs.min() < 0 or pairs.max() >= rows:
            wrong = pairs[((pairs < 0) | (pairs >= rows)).any(axis=1)][0].tolist()
            raise _wrong(declared, plain, kind, wrong)
        yield str(kind), pairs.astype(np.int64)


def _wrong(declared: Declarations, function: Any, kind: object, value: object) -> Exception:
    expected = "pairs of rows, from 0 to nodes - 1"
    name = f"{declared.owner.__name__}.{OVERLAY} of kind {kind!r}"
    return declaration_error(place_of(function), name, value, expected)
