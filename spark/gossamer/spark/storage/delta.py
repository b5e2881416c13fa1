"""Delta tables: appended in commits, read in snapshots by `deltalake`, DuckDB, Spark and others.

What happens at the same time is left to the format: a commit is there whole or not at all, readers
keep the snapshot that they have opened, and commits that add other rows go one after another. What
a commit adds has names, its application transactions, so that of two commits that add what has the
same name the second is refused. No folder is built beside another, and nobody waits for a lock.

The driver makes them by the library `deltalake`, which needs neither Java nor jars.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from gossamer.command.extras import install_hint
from gossamer.sim.errors import ResultsError, ScenarioError, SimulationError
from gossamer.sim.results.storage.place import Place
from gossamer.sim.results.storage.remote import RemotePlace

if TYPE_CHECKING:
    from deltalake import DeltaTable

_LOG: Final = "_delta_log/00000000000000000000.json"
# Arguments of PyArrow's file system as options of `deltalake`.
_OF_S3: Final = {
    "access_key": "AWS_ACCESS_KEY_ID",
    "secret_key": "AWS_SECRET_ACCESS_KEY",
    "session_token": "AWS_SESSION_TOKEN",
    "endpoint_override": "AWS_ENDPOINT_URL",
    "region": "AWS_REGION",
}


def is_delta(asked: str | None) -> bool:
    """Whether an option ``--format`` asks for Delta tables.

    Raises:
        ScenarioError: it is no format.
        SimulationError: what makes Delta tables is not installed.
    """
    if asked not in (None, "parquet", "delta"):
        raise ScenarioError(None, "--format", asked, "parquet or delta")
    if asked == "delta" and importlib.util.find_spec("deltalake") is None:
        needed = "`--format delta` needs deltalake, which is not installed"
        raise SimulationError(f'{needed}: "{install_hint("delta")}"')
    return asked == "delta"


def is_table(place: Place) -> bool:
    """Whether a folder is a Delta table."""
    return (place / _LOG).exists()


def opened_delta(place: Place, schema: pa.Schema, partition_by: Sequence[str]) -> DeltaTable:
    """A snapshot of the table at a place, made without rows where there is none.

    Raises:
        ResultsError: the storage fails, or refuses.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    address, options = _reached(place)
    with _storage_errors(place, "cannot be a Delta table"):
        if not is_table(place):
            with suppress(DeltaError):  # another process may make it meanwhile
                DeltaTable.create(
                    address, schema, partition_by=[*partition_by], storage_options=options
                )
        return DeltaTable(address, storage_options=options)


def append_to(
    place: Place,
    table: DeltaTable,
    rows: pa.RecordBatchReader,
    names: Iterable[str],
    told: Mapping[str, str],
) -> None:
    """Add rows to a table by one commit.

    Args:
        place: of the table.
        table: as it was when it had none of the names.
        rows: of its columns.
        names: of what is added.
        told: kept in its history.

    Raises:
        ResultsError: another process has added one of the names since then, or the storage fails;
            no row of these is in the table.
    """
    from deltalake import CommitProperties, Transaction, write_deltalake
    from deltalake.exceptions import CommitFailedError

    transactions = [Transaction(one, 1) for one in names]
    properties = CommitProperties(custom_metadata=dict(told), app_transactions=transactions)
    try:
        with _storage_errors(place, "was not appended to"):
            write_deltalake(table, rows, mode="append", commit_properties=properties)
    except ResultsError as error:
        if isinstance(error.__cause__, CommitFailedError):
            meanwhile = "got some of these runs from another process meanwhile"
            raise ResultsError(place, f"{meanwhile}; the same command adds the others") from error
        raise


def as_delta(folder: Place) -> None:
    """Make a Delta table of a folder of Parquet files, which stay as they are.

    Raises:
        ResultsError: the storage fails, or refuses.
    """
    from deltalake import convert_to_deltalake

    address, options = _reached(folder)
    with _storage_errors(folder, "cannot be a Delta table"):
        convert_to_deltalake(address, storage_options=options)


def _reached(place: Place) -> tuple[str, dict[str, str] | None]:
    """The address of a place, and options of its storage, in the words of `deltalake`."""
    if not isinstance(place, RemotePlace):
        return str(place.absolute()), None
    if not place.scheme.startswith("s3"):
        return place.shown(), None
    given = place.access.of_s3(place.authority)
    options = {name: given[key] for key, name in _OF_S3.items() if key in given}
    plain = str(given.get("endpoint_override")).startswith("http://")
    return place.shown(), options | ({"AWS_ALLOW_HTTP": "true"} if plain else {})


@contextmanager
def _storage_errors(place: Place, what: str) -> Iterator[None]:
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise ResultsError(place, f"{what} ({reason})") from error
