"""Models of latency between sites, from whichever file says what they are."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import numpy as np

from gossamer.sim.engine.latency import (
    LONGEST_TICKS,
    Floats,
    Int64s,
    Latency,
    coordinate_latency,
    drawn_sites,
    matrix_latency,
)
from gossamer.sim.engine.latency_files.matrices import read_matrix
from gossamer.sim.engine.latency_files.text_files import (
    WHOLE,
    Table,
    is_numbered,
    read_table,
    without_names,
)
from gossamer.sim.errors import ScenarioError

if TYPE_CHECKING:
    from gossamer.sim.engine.latency_files.topologies import RouterTopology


# Coordinates of sites, between which messages take the Euclidean distance.
#
# A line a site, a number a dimension, as network coordinates are published (Vivaldi: Dabek, Cox,
# Kaashoek, Morris, SIGCOMM 2004). A first line of names of dimensions is passed over, and so is a
# column of names under an empty cell or before the first name.

WHAT: Final = "the coordinates"
MOST_DIMENSIONS: Final = 16
_AXES: Final = (["x"], ["x", "y"], ["x", "y", "z"])


def read_coordinates(path: Path) -> Floats:
    """Read coordinates: float64[m, d], in the file's unit.

    Raises:
        ScenarioError: the file cannot be read, a line has another number of numbers than the
            first or something else than numbers, or what may be names may be numbers; names the
            line.
    """
    whole = read_table(path, WHAT)
    check_first_line(whole)
    table, above, before = without_names(whole, numbers=False)
    if above and not before:
        _check_axes(whole, list(above))
    dimensions = len(table.lines[0].cells)
    if dimensions > MOST_DIMENSIONS:
        place = table.place(table.lines[0])
        raise ScenarioError(place, "number of columns", dimensions, f"at most {MOST_DIMENSIONS}")
    table.check_columns(dimensions)
    if not above:
        _check_first_column(table)
    columns = range(1, dimensions + 1)
    rows = [[table.number(line, i, f"coordinate {i}") for i in columns] for line in table.lines]
    return np.array(rows)


def check_first_line(table: Table) -> None:
    """Check that the first line is not 0, 1, 2 and so on, which pandas writes above columns.

    Raises:
        ScenarioError: it is, so that it may be names or numbers.
    """
    first = table.lines[0]
    width = len(table.lines[-1].cells)
    if first.cells[0] == "0" and is_numbered(first.cells) and len(first.cells) == width > 1:
        expected = 'numbers such as 0.0, or names of columns after a "#"'
        raise ScenarioError(table.place(first), "the line", " ".join(first.cells), expected)


def _check_axes(table: Table, names: list[str]) -> None:
    """Check that names are those of dimensions: of what others name, a column may be no number."""
    plain = [name.lower() for name in names]
    stem = plain[0].rstrip("0123456789")
    counted = is_numbered([name.removeprefix(stem) for name in plain])
    if plain not in _AXES and not counted:
        expected = "x, y, z or one name with numbers in order (x1, x2), or a file without names"
        place = table.place(table.lines[0])
        raise ScenarioError(place, "the names of columns", ", ".join(names), expected)


def _check_first_column(table: Table) -> None:
    """Check that the first column does not number the sites, as pandas does without names."""
    first = [line.cells[0] for line in table.lines]
    others = [cell for line in table.lines for cell in line.cells[1:]]
    if len(first) > 2 and is_numbered(first) and not all(map(WHOLE.fullmatch, others)):
        place = table.place(table.lines[0], 1)
        expected = f"coordinates such as {first[0]}.0, as these may be the numbers of sites"
        raise ScenarioError(place, "the column", ", ".join(first[:3]), expected)


MATRIX, TOPOLOGY, COORDINATES = "matrix", "topology", "coordinates"
MODELS: Final = (MATRIX, TOPOLOGY, COORDINATES)
DRAWN, IN_ORDER = "drawn", "in order"
PLACINGS: Final = (DRAWN, IN_ORDER)
TICKS_A_SECOND: Final = 1000
# Sites that nodes of one run may stand at: a matrix of them takes a gigabyte.
MOST_SITES: Final = 16_384


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
            return coordinate_latency(found * unit, round(access), site)
        except ScenarioError as error:
            raise attrs.evolve(error, file=str(file.path)) from None
    if file.model == MATRIX:
        ticks = np.rint(found * unit + access).astype(np.int64)
        return matrix_latency(ticks, _sites(file, len(found), nodes, seed))
    return _over_links(file, found, nodes, seed)


@functools.lru_cache(maxsize=2)
def _over_links(file: SiteFile, found: RouterTopology, nodes: int, seed: int) -> Latency:
    """The model of a topology; found once for all systems of a run."""
    from gossamer.sim.engine.latency_files.router_files import ways_between

    unit, access = file.unit_s * TICKS_A_SECOND, 2 * file.access_s * TICKS_A_SECOND
    stands = found.stands[_sites(file, len(found.stands), nodes, seed)]
    used, site = np.unique(stands, return_inverse=True)
    if len(used) > MOST_SITES:
        expected = f"at most {MOST_SITES:,}, for a matrix of them takes a gigabyte"
        raise ScenarioError(str(file.path), "number of sites with nodes", len(used), expected)
    ways = ways_between(found.file, found.sites, found.ends, found.latency, used, unit)
    return matrix_latency(ways + round(access), site.astype(np.int64))


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
    from gossamer.sim.engine.latency_files.router_files import fill_unmeasured

    most = LONGEST_TICKS / (file.unit_s * TICKS_A_SECOND)
    return fill_unmeasured(str(file.path), read_matrix(file.path, file.form, most))[0]
