"""Latency models: how many ticks a message takes from one node to another."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gossamer.protocol.kernel.draws import below, mix
from gossamer.protocol.kernel.rules import inline_rule
from gossamer.sim.errors import ScenarioError

Int64s = npt.NDArray[np.int64]

LONGEST_TICKS = (1 << 31) - 2


class Latency(NamedTuple):
    """Ticks from node to node: by the sites they stand at, or drawn from an interval.

    Attributes:
        shortest, spread: ticks drawn evenly from [shortest, shortest + spread].
        site: int64[n], each node's row of ``matrix``; int64[0] where there is no matrix.
        matrix: int64[m, m], ticks between sites; int64[0, 0] for none.
    """

    shortest: int
    spread: int
    site: Int64s
    matrix: Int64s


def uniform_latency(shortest: int, longest: int) -> Latency:
    """Every message takes its own time, drawn evenly from [shortest, longest] ticks.

    Raises:
        ScenarioError: not 0 <= shortest <= longest < 2^31 - 1.
    """
    if not 0 <= shortest <= longest <= LONGEST_TICKS:
        expected = f"0 <= shortest <= longest <= {LONGEST_TICKS} ticks"
        raise ScenarioError(None, "latency", (shortest, longest), expected)
    no_sites = np.zeros((0, 0), np.int64)
    return Latency(shortest, longest - shortest, no_sites[:, 0:0].ravel(), no_sites)


def constant_latency(ticks: int) -> Latency:
    """Every message takes ``ticks`` ticks; raises `ScenarioError` as `uniform_latency`."""
    return uniform_latency(ticks, ticks)


def no_latency() -> Latency:
    """Every message arrives within the tick in which it is sent."""
    return constant_latency(0)


def matrix_latency(ticks: Int64s, nodes: int, seed: int) -> Latency:
    """Messages take the ticks between the sites of sender and addressee.

    Args:
        ticks: int64[m, m], from row to column; the diagonal is for nodes at one site.
        nodes: number of nodes, each placed at a site by a hash of seed and row.
        seed: of the placement.

    Raises:
        ScenarioError: the matrix is not square, has no row or an entry below 0.
    """
    if ticks.ndim != 2 or ticks.shape[0] != ticks.shape[1] or len(ticks) == 0:
        raise ScenarioError(None, "shape of the latency matrix", ticks.shape, "a square")
    if ticks.min() < 0 or ticks.max() > LONGEST_TICKS:
        wrong = int(ticks[(ticks < 0) | (ticks > LONGEST_TICKS)][0])
        expected = f"0 to {LONGEST_TICKS} ticks"
        raise ScenarioError(None, "entry of the latency matrix", wrong, expected)
    site = np.array([below(mix(seed, p, 0), len(ticks)) for p in range(nodes)], np.int64)
    return Latency(0, 0, site, np.ascontiguousarray(ticks, np.int64))


def read_latency_matrix(path: Path) -> npt.NDArray[np.float64]:
    """Read a triangular matrix of latencies between m sites.

    Line i holds the i latencies in milliseconds from site i to sites 1 to i, the last of them
    between nodes of one site; blank lines and what follows a "#" are ignored.

    Returns:
        float64[m, m] milliseconds, symmetric.

    Raises:
        ScenarioError: the file cannot be read or is no such matrix.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        reason = error.strerror or "unreadable"
        raise ScenarioError(
            str(path), "the latency matrix", None, "a readable file", reason
        ) from None
    except UnicodeDecodeError:
        raise ScenarioError(
            str(path), "the latency matrix", None, "a text file", "not UTF-8"
        ) from None
    rows: list[list[float]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        entries = line.partition("#")[0].split()
        if entries:
            rows.append(_read_row(f"{path}, line {number}", entries, len(rows) + 1))
    if not rows:
        raise ScenarioError(str(path), "the latency matrix", None, "at least one line", "empty")
    matrix = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        matrix[i, : i + 1] = row
        matrix[: i + 1, i] = row
    return matrix


def _read_row(place: str, entries: list[str], count: int) -> list[float]:
    if len(entries) != count:
        raise ScenarioError(place, "number of latencies", len(entries), f"{count}")
    row = []
    for position, entry in enumerate(entries, start=1):
        try:
            latency_ms = float(entry)
        except ValueError:
            latency_ms = math.nan
        if not 0 <= latency_ms <= LONGEST_TICKS:
            expected = f"a number of milliseconds from 0 to {LONGEST_TICKS}"
            raise ScenarioError(place, f"latency {position}", entry, expected)
        row.append(latency_ms)
    return row


@inline_rule
def trip_ticks(latency: Latency, source: int, to: int, seed: int, counter: int) -> Any:
    """Ticks from ``source`` to ``to`` for the message that (seed, source, counter) stands for."""
    if len(latency.matrix) > 0:
        return latency.matrix[latency.site[source], latency.site[to]]
    if latency.spread == 0:
        return latency.shortest
    return latency.shortest + below(mix(seed, source, counter), latency.spread + 1)
