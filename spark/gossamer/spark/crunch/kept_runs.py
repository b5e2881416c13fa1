"""What is kept of runs that were crunched, so that others can be added to them.

runs.json    every run: where it was, its digest, seed, scenario and systems, and who crunched it

Measures and curves of earlier runs are read back from the tables. What a condition is depends on
all runs, and is found anew.
"""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.sim.errors import ResultsError, ScenarioError
from gossamer.sim.figures.common.claims import write_claims
from gossamer.sim.results.intervals import Comparison, condition_of, flattened
from gossamer.sim.results.storage.place import Place
from gossamer.sim.study.records import MEASURE, Measure, versions
from gossamer.spark.crunch.curves import CURVES_FILE, condition_text
from gossamer.spark.crunch.deliveries import ROW_SCHEMA
from gossamer.spark.crunch.folders import OTHERS, ConditionColumns, Run
from gossamer.spark.storage.folders import is_there
from gossamer.spark.storage.frames import numbered_owners, partition_folder, read_split

if TYPE_CHECKING:
    from gossamer.spark.crunch.claims import CheckedClaim
    from gossamer.spark.crunch.crunching import Crunched


RUNS_FILE: Final = "runs.json"
MEASURES: Final = "measures"
# What tells the systems of runs apart besides the keys of scenarios.
_COLUMNS: Final = ("system", "seed")
_FORMAT: Final = 1
# Found anew by every command.
_NUMBER: Final = "number"


@attrs.frozen(kw_only=True)
class KnownSystem:
    """A system of a run: its number among all, and what its tables are and lack."""

    number: int
    system: str
    kind: str
    lacking: tuple[str, ...]


@attrs.frozen(kw_only=True)
class KnownRun:
    """A run that was crunched, now or before.

    Attributes:
        name: its folder below what was named.
        digest: SHA-256 of the file that describes it.
        seed, scenario: of its summary.
        crunched_by: the version of gossamer that did.
        systems: its systems.
    """

    name: str
    digest: str
    seed: int
    scenario: Mapping[str, Any]
    crunched_by: str
    systems: tuple[KnownSystem, ...]


def known(runs: Iterable[Run]) -> list[KnownRun]:
    """What is kept of runs that are crunched now."""
    return [
        KnownRun(
            name=run.name,
            digest=run.digest,
            seed=run.summary["seed"],
            scenario=run.summary["scenario"],
            crunched_by=versions()["gossamer"],
            systems=tuple(
                KnownSystem(
                    number=one.number, system=one.system, kind=one.kind, lacking=one.lacking
                )
                for one in run.systems
            ),
        )
        for run in runs
    ]


@attrs.frozen
class Kept:
    """Results of earlier commands.

    Attributes:
        folder: the whole folder; None: there are none.
        partition_by: keys of the partitions of its tables.
        runs: those that were crunched, their systems numbered from ``first`` on.
    """

    folder: Place | None = None
    partition_by: tuple[str, ...] = ()
    runs: tuple[KnownRun, ...] = ()

    def numbered(self, first: int) -> Kept:
        """The same with systems numbered from ``first`` on."""
        runs = []
        for run in self.runs:
            systems = tuple(
                attrs.evolve(one, number=first + place) for place, one in enumerate(run.systems)
            )
            first += len(systems)
            runs.append(attrs.evolve(run, systems=systems))
        return attrs.evolve(self, runs=tuple(runs))

    def without_known(self, runs: Sequence[Run]) -> list[Run]:
        """Those of these runs that are not among the earlier ones.

        Raises:
            ResultsError: one has the name of an earlier one, and is another.
        """
        names = {run.name: run.digest for run in self.runs}
        for run in runs:
            if names.get(run.name, run.digest) != run.digest:
                expected = "expected the same run, or a new name for another"
                raise ResultsError(
                    run.path, f"has changed since {self.folder} took it in, {expected}"
                )
        digests = set(names.values())
        return [run for run in runs if run.digest not in digests]

    def measures(self) -> Iterator[pa.Table]:
        """The measures, as tables of `ROW_SCHEMA`."""
        for rows in self._rows(MEASURES, ("measure", "value", "method")):
            count = len(rows)
            told = [
                rows["number"],
                pa.repeat(pa.scalar(MEASURE), count),
                rows["measure"],
                pa.array([0.0] * count),
                rows["value"],
                rows["method"],
            ]
            yield pa.table(told, names=ROW_SCHEMA.names).cast(ROW_SCHEMA)

    def curves(self) -> Iterator[pa.Table]:
        """Distributions and series, as tables of `ROW_SCHEMA`."""
        for rows in self._rows(Path(CURVES_FILE).stem, ("part", "name", "x", "value")):
            method = pa.nulls(len(rows), pa.string())
            told = [rows["number"], *(rows[one] for one in ("part", "name", "x", "value")), method]
            yield pa.table(told, names=ROW_SCHEMA.names).cast(ROW_SCHEMA)

    def _rows(self, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
        """The rows of a table with the numbers of their systems."""
        if self.folder is None:
            return
        numbers = {(run.name, one.system): one.number for run in self.runs for one in run.systems}
        for rows in read_split(self.folder, name, ("run", "system", *columns)):
            owners, places = numbered_owners(rows)
            try:
                of_owners = pa.array([numbers[one] for one in owners], pa.int32())
            except KeyError as error:
                run, system = error.args[0]
                reason = f"has {name} of {system} of {run}, which {RUNS_FILE} does not know"
                raise ResultsError(
                    self.folder, f"{reason}, expected tables of one command"
                ) from None
            yield rows.append_column("number", of_owners.take(pa.array(places)))


def write_runs(runs: Sequence[KnownRun], partition_by: Sequence[str], folder: Path) -> None:
    """Write what is kept of runs into a new folder."""
    told = {
        "format": _FORMAT,
        "partition_by": list(partition_by),
        "runs": [attrs.asdict(run, filter=lambda field, _: field.name != _NUMBER) for run in runs],
    }
    (folder / RUNS_FILE).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def read_kept(folder: Place) -> Kept:
    """What is kept in a folder of crunched results.

    Raises:
        ResultsError: it holds other things, or is of a version that keeps something else.
    """
    file = folder / RUNS_FILE
    try:
        told = json.loads(file.read_bytes())
        found = told["format"]
        runs = tuple(map(_run, told["runs"])) if found == _FORMAT else ()
        keys = tuple(map(str, told["partition_by"]))
    except FileNotFoundError:
        expected = f"expected crunched results with {RUNS_FILE}"
        raise ResultsError(folder, f"cannot be appended to, {expected}") from None
    except (ValueError, TypeError, KeyError) as error:
        raise ResultsError(file, f"is no list of crunched runs ({error!r})") from error
    if found != _FORMAT:
        expected = f"expected {_FORMAT}; crunch all runs into a new folder"
        raise ResultsError(file, f"is of format {found}, {expected}")
    return Kept(folder, keys, runs)


def check_is_appendable(out: Place, runs: Sequence[Run], asked: Sequence[str] | None) -> None:
    """See whether runs could be added to a folder: before something long is begun.

    Raises:
        ResultsError, ScenarioError: they could not, see `read_kept`, `chosen_keys`,
            `folders_of` and `Kept.without_known`.
    """
    kept = read_kept(out) if is_there(out) else Kept()
    keys = chosen_keys(kept, asked)
    folders_of([*kept.runs, *known(kept.without_known(runs))], keys)


def _run(told: Mapping[str, Any]) -> KnownRun:
    systems = tuple(
        KnownSystem(**{**one, _NUMBER: place, "lacking": tuple(one["lacking"])})
        for place, one in enumerate(told["systems"])
    )
    return KnownRun(**{**told, "systems": systems})


def chosen_keys(kept: Kept, asked: Sequence[str] | None) -> tuple[str, ...]:
    """The keys of the partitions: those of earlier results, where there are such.

    Args:
        kept: earlier results.
        asked: on the command line; None: nothing was.

    Raises:
        ResultsError: they are others.
    """
    keys = tuple(dict.fromkeys(asked or ()))
    if kept.folder is None:
        return keys
    if asked is not None and keys != kept.partition_by:
        found = f"by {', '.join(kept.partition_by)}" if kept.partition_by else "by nothing"
        expected = "expected the same --partition-by, none, or another folder"
        raise ResultsError(kept.folder, f"is partitioned {found}, {expected}")
    return kept.partition_by


def folders_of(runs: Sequence[KnownRun], keys: Sequence[str]) -> dict[tuple[str, str], str]:
    """The partition of each run and system.

    Raises:
        ScenarioError: no scenario has a key.
    """
    values = {
        (run.name, one.system): values_by_key(run, one) for run in runs for one in run.systems
    }
    for key in keys:
        if not any(key in one for one in values.values()):
            expected = "system, seed, or a key of the scenarios such as nodes"
            raise ScenarioError(None, "--partition-by", key, expected)
    return {
        owner: partition_folder({key: one.get(key) for key in keys})
        for owner, one in values.items()
    }


def values_by_key(run: KnownRun, one: KnownSystem) -> dict[str, Any]:
    """System, seed, and the values of the scenario by key."""
    own = dict(zip(_COLUMNS, (one.system, run.seed), strict=True))
    return dict(flattened(condition_of(run.scenario, one.system))) | own


def notes_on(runs: Sequence[KnownRun]) -> list[str]:
    """Sentences on what the tables of these runs do not tell, and who crunched them."""
    systems = [system for run in runs for system in run.systems]
    notes = []
    lacking: dict[str, int] = {}
    for system in systems:
        for column in system.lacking:
            lacking[column] = lacking.get(column, 0) + 1
    notes += [
        f"{count} of {len(systems)} tables have no column {column}: "
        "what hangs on it is left out for them."
        for column, count in lacking.items()
    ]
    others = sum(system.kind == OTHERS for system in systems)
    if others:
        notes.append(f"The measures of {others} systems are those of their summaries alone.")
    several = sorted({run.crunched_by for run in runs})
    if len(several) > 1:
        notes.append(f"Crunched by several versions of gossamer: {', '.join(several)}.")
    return notes


# Tables of what was crunched, as Parquet and CSV, in memory that does not grow with their rows.


CRUNCH_FILE: Final = "crunch.json"
# Rows that are held as rows.
_PORTION: Final = 20_000

Rows = Iterable[Mapping[str, Any]]


# Measures that no study has in its summary.
_OWN: Final = (
    Measure("load_gini", "Gini coefficient of load", "fine", "lower", "How uneven the load is."),
    Measure(
        "handled_gini",
        "Gini coefficient of messages handled",
        "fine",
        "lower",
        "How uneven the work of brokers is.",
    ),
)


def known_measures() -> dict[str, Measure]:
    """Measures that have names for people, by key."""
    # Workers import this module as well, and have no use for all that the simulator has.
    from gossamer.sim.results.tables import measures_by_key

    return {one.key: one for one in _OWN} | measures_by_key()


def better_of(measure: Measure | None) -> str:
    """Which values of a measure are better, higher or lower; nothing where none are known to."""
    return (measure and measure.better) or ""


def write_tables(found: Crunched, folder: Path) -> None:
    """Write all but curves, plots and page."""
    columns = ConditionColumns(one.condition for one in found.values)
    for name, several in (
        ("measures", found.values),
        ("intervals", found.intervals),
        ("comparisons", found.comparisons),
    ):
        _write_rows(_WithConditions(several, columns), folder / name)
    if found.checked:
        write_claims([one.claim for one in found.checked], folder)
        _write_rows([row for one in found.checked for row in _checks(one)], folder / "checks")
    told = {
        "runs": found.runs,
        "notes": list(found.notes),
        "versions": versions(),
        "methods": sorted({one.method for one in found.values}),
    }
    (folder / CRUNCH_FILE).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def _checks(checked: CheckedClaim) -> Iterator[dict[str, Any]]:
    """The checks of a claim with their intervals."""
    for check, low, high in checked.rows():
        yield {
            "claim": checked.claim.id,
            "check": check.name,
            "unit": check.unit,
            "seeds": checked.seeds,
            "value": check.value,
            "low": low,
            "high": high,
            "paper": check.paper,
            "accepted": check.bounds(),
            "holds": check.holds,
        }


@attrs.frozen
class _WithConditions:
    """Values, intervals or comparisons as rows, the condition as text and as columns."""

    several: Sequence[Any]
    columns: ConditionColumns

    def __iter__(self) -> Iterator[dict[str, Any]]:
        known = known_measures()
        for one in self.several:
            fields = attrs.asdict(one, recurse=False)
            fields["condition"] = condition_text(one.condition)
            if isinstance(one, Comparison):
                fields["better"] = better_of(known.get(one.measure))
            yield fields | self.columns.of(one.condition)


def _write_rows(rows: Rows, stem: Path) -> None:
    """The same rows as Parquet and CSV; no file where there are none.

    Args:
        rows: gone through several times.
        stem: of the files' names.
    """
    first = next(iter(rows), None)
    if first is None:
        return
    # Types come from all rows, as some have nothing in columns where others have numbers.
    schema = pa.unify_schemas([one.schema for one in _portions(rows)], promote_options="permissive")
    with pq.ParquetWriter(stem.with_suffix(".parquet"), schema, compression="zstd") as writer:
        for table in _portions(rows, schema):
            writer.write_table(table)
    with stem.with_suffix(".csv").open("w", newline="", encoding="utf-8") as stream:
        lines = csv.DictWriter(stream, fieldnames=list(first))
        lines.writeheader()
        lines.writerows(rows)


def _portions(rows: Rows, schema: pa.Schema | None = None) -> Iterator[pa.Table]:
    left = iter(rows)
    while portion := list(itertools.islice(left, _PORTION)):
        yield pa.Table.from_pylist(portion, schema=schema)
