"""Coordinates of sites, between which messages take the Euclidean distance.

A line a site, a number a dimension, as network coordinates are published (Vivaldi: Dabek, Cox,
Kaashoek, Morris, SIGCOMM 2004). Blanks, commas and semicolons separate; blank lines and what
follows a "#" are passed over.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from gossamer.sim.engine.latency_files.text_files import lines_of, number_at, read_text
from gossamer.sim.errors import ScenarioError

WHAT: Final = "the coordinates"
MOST_DIMENSIONS: Final = 16


def read_coordinates(path: Path) -> npt.NDArray[np.float64]:
    """Read coordinates: float64[m, d], in the file's unit.

    Raises:
        ScenarioError: the file cannot be read, or a line has another number of numbers than the
            first or something else than numbers; names the line.
    """
    lines = list(lines_of(read_text(path, WHAT)))
    if not lines:
        raise ScenarioError(str(path), WHAT, None, "at least one line", "empty")
    dimensions = len(lines[0].words)
    rows = []
    for line in lines:
        if len(line.words) != dimensions or dimensions > MOST_DIMENSIONS:
            expected = f"{min(dimensions, MOST_DIMENSIONS)}"
            place = f"{path}, line {line.number}"
            raise ScenarioError(place, "number of coordinates", len(line.words), expected)
        rows.append([number_at(path, line, i, f"coordinate {i}") for i in range(1, dimensions + 1)])
    return np.array(rows)
