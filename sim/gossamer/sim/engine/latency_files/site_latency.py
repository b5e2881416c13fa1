"""Models of latency between sites, from whichever file says what they are."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np
import numpy.typing as npt

from gossamer.sim.engine.latency import (
    LONGEST_TICKS,
    Latency,
    coordinate_latency,
    drawn_sites,
    matrix_latency,
)
from gossamer.sim.engine.latency_files.coordinates import read_coordinates
from gossamer.sim.engine.latency_files.matrices import read_matrix
from gossamer.sim.errors import ScenarioError

# Graphs are imported where a file has one: most runs need none of their libraries.
if TYPE_CHECKING:
    from gossamer.sim.engine.latency_files.topologies import RouterTopology

MATRIX, TOPOLOGY, COORDINATES = "matrix", "topology", "coordinates"
MODELS: Final = (MATRIX, TOPOLOGY, COORDINATES)
DRAWN, IN_ORDER = "drawn", "in order"
PLACINGS: Final = (DRAWN, IN_ORDER)
TICKS_A_SECOND: Final = 1000
# Sites that nodes of one run may stand at: a matrix of them takes a gigabyte.
MOST_SITES: Final = 16_384

Int64s = npt.NDArray[np.int64]


@attrs.frozen
class SiteFile:
    """A file of latencies, and how it is to be read.

    Attributes:
        model: MATRIX, TOPOLOGY or COORDINATES.
        path: of the file.
        unit_s: seconds that 1 in the file stands for.
        access_s: seconds that the way between a node and its site takes, at either end.
        placing: of nodes at sites: DRAWN, or IN_ORDER, one after another and again from the first.
        form: of a matrix, see `read_matrix`.
        edge_latency: of a topology, see `read_topology`.
    """

    model: str
    path: Path
    unit_s: float = 0.001
    access_s: float = 0.0
    placing: str = DRAWN
    form: str | None = None
    edge_latency: str | None = None


def site_latency(file: SiteFile, nodes: int, seed: int) -> Latency:
    """The model of latency that a file asks for.

    Memory is what the distinct sites take at which nodes stand, however many nodes there are.

    Raises:
        ScenarioError: the file cannot be read, has no way between two sites, or has more sites than
            there is room for.
    """
    unit, access = file.unit_s * TICKS_A_SECOND, 2 * file.access_s * TICKS_A_SECOND
    found = _read(file, file.path.stat().st_mtime_ns if file.path.exists() else 0)
    if file.model == COORDINATES:
        site = _sites(file, len(found), nodes, seed)
        try:
            return coordinate_latency(found * unit, round(access), nodes, seed, site)
        except ScenarioError as error:
            raise attrs.evolve(error, file=str(file.path)) from None
    if file.model == MATRIX:
        ticks = np.rint(found * unit + access).astype(np.int64)
        return matrix_latency(ticks, nodes, seed, _sites(file, len(found), nodes, seed))
    return _over_links(file, found, nodes, seed)


@functools.lru_cache(maxsize=2)
def _over_links(file: SiteFile, found: RouterTopology, nodes: int, seed: int) -> Latency:
    """The model of a topology; found once for all systems of a run."""
    from gossamer.sim.engine.latency_files.shortest_ways import ways_between

    unit, access = file.unit_s * TICKS_A_SECOND, 2 * file.access_s * TICKS_A_SECOND
    stands = found.stands[_sites(file, len(found.stands), nodes, seed)]
    used, site = np.unique(stands, return_inverse=True)
    if len(used) > MOST_SITES:
        expected = f"at most {MOST_SITES:,}, for a matrix of them takes a gigabyte"
        raise ScenarioError(str(file.path), "number of sites with nodes", len(used), expected)
    ways = ways_between(found.file, found.sites, found.ends, found.latency, used, unit)
    return matrix_latency(ways + round(access), nodes, seed, site.astype(np.int64))


def _sites(file: SiteFile, sites: int, nodes: int, seed: int) -> Int64s:
    return np.arange(nodes) % sites if file.placing == IN_ORDER else drawn_sites(sites, nodes, seed)


@functools.lru_cache(maxsize=2)
def _read(file: SiteFile, _changed: int) -> Any:
    """What a file holds, read once for all systems of a run."""
    if file.model == COORDINATES:
        return read_coordinates(file.path)
    if file.model == TOPOLOGY:
        from gossamer.sim.engine.latency_files.topologies import read_topology

        return read_topology(file.path, file.edge_latency)
    from gossamer.sim.engine.latency_files.shortest_ways import fill_unmeasured

    most = LONGEST_TICKS / (file.unit_s * TICKS_A_SECOND)
    return fill_unmeasured(str(file.path), read_matrix(file.path, file.form, most))[0]
