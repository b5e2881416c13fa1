"""Tables as frames of Spark: by its connector for a storage where it has one, else by PyArrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.storage.place import Place
from gossamer.sim.results.storage.remote import RemotePlace, failure_text

_BATCH_ROWS: Final = 1 << 16
# The schemes by which Hadoop may know the same storage.
_KIN: Final = {"s3": ("s3", "s3a"), "s3a": ("s3a", "s3")}


def read_frame(session: Any, folder: Place, schema: pa.Schema) -> Any:
    """The rows of all Parquet files of a folder.

    Args:
        session: of Spark.
        folder: of the files, which workers see as well.
        schema: the columns wanted, which all files have.
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    address = folder_address(session, folder)
    if address is not None:
        return session.read.schema(from_arrow_schema(schema)).parquet(address)
    files = folder.tables()
    return by_tasks(session, files, lambda file: _rows(file, schema), schema, len(files))


def _rows(file: Place, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    with opened_table(file) as table:
        for rows in table.iter_batches(_BATCH_ROWS, columns=schema.names):
            yield rows.select(schema.names).cast(schema)


@attrs.frozen
class _Each:
    """Gives a function the things whose numbers a task gets."""

    things: Sequence[Any]
    function: Callable[[Any], Iterable[pa.RecordBatch]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self.function(self.things[number])


def by_tasks(
    session: Any,
    things: Sequence[Any],
    function: Callable[[Any], Iterable[pa.RecordBatch]],
    schema: pa.Schema,
    tasks: int,
) -> Any:
    """A frame of what a function makes of each of some things, by so many tasks at most."""
    from pyspark.sql.pandas.types import from_arrow_schema

    numbers = session.range(0, len(things), 1, max(min(len(things), tasks), 1))
    return numbers.mapInArrow(_Each(things, function), from_arrow_schema(schema))


def folder_address(session: Any, folder: Place, *, to_write: bool = False) -> str | None:
    """What Spark reads or writes a folder by; None where it has no connector for the storage.

    Args:
        session: of Spark.
        folder: the folder.
        to_write: whether it is written, so that no letter stands for a pattern.
    """
    escaped = str if to_write else _escaped
    if not isinstance(folder, RemotePlace):
        return "file://" + escaped(str(Path(str(folder)).absolute()))
    schemes = _KIN.get(folder.scheme, (folder.scheme,))
    known = next((scheme for scheme in schemes if has_connector(session, scheme)), None)
    return None if known is None else f"{known}://{folder.authority}/{escaped(folder.path)}"


def has_connector(session: Any, scheme: str) -> bool:
    """Whether Hadoop has a file system for a scheme, and its classes are there."""
    try:
        known = session._jvm.org.apache.hadoop.fs.FileSystem
        known.getFileSystemClass(scheme, session._jsc.hadoopConfiguration())
    except Exception:  # Java's own; and a Spark Connect session does not tell
        return False
    return True


def _escaped(path: str) -> str:
    return re.sub(r"([{}\[\]*?\\])", r"\\\1", path)


def opened_table(file: Place) -> Any:
    """A Parquet file, whose pages are checked as they are read.

    Raises:
        FileNotFoundError: there is none.
        pa.ArrowException, OSError: it is damaged.
        ResultsError: the storage fails.
    """
    return pq.ParquetFile(file.source(), page_checksum_verification=True)


def unreadable(file: Place, error: Exception, damaged: str) -> str:
    """Why a table cannot be read, in words: storage that fails is no damage.

    Args:
        file: the table.
        error: what PyArrow raised.
        damaged: what to say of a damaged one; the reason follows in brackets.
    """
    text = str(error).partition("\n")[0].rstrip(".")
    if isinstance(file, RemotePlace) and ("AWS Error" in text or "curlCode" in text):
        return failure_text(error, file)
    return f"{damaged} ({text})"


# Tables as Hive keeps them: a folder ``key=value`` for each value, in which the rows have no key.
#
# Spark, PyArrow, DuckDB and others read such a folder as one table with the keys as columns, and
# leave out folders that a query does not want.


# What Hive, and all that read its folders, take for no value.
_NO_VALUE: Final = "__HIVE_DEFAULT_PARTITION__"
# By which the folder of a row is known.
_OWNER: Final = ("run", "system")

Owner = tuple[str, str]


def partition_folder(values: Mapping[str, Any]) -> str:
    """The folder of rows that have these values, in their order."""
    return "/".join(f"{quote(key, safe='')}={_text(value)}" for key, value in values.items())


def _text(value: Any) -> str:
    if value is None or value == "":
        return _NO_VALUE
    if isinstance(value, bool):
        return str(value).lower()
    return quote(str(value), safe="")


def split_table(file: Path, keys: Sequence[str], folders: Mapping[Owner, str]) -> None:
    """Replace a table by a folder of its name without suffix, which has it by partitions.

    Args:
        file: of a table with columns ``run`` and ``system``; read a row group at a time.
        keys: those of the partitions, which no file has as a column.
        folders: of each run and system.
    """
    with pq.ParquetFile(file) as opened:
        for number in range(opened.num_row_groups):
            rows = opened.read_row_group(number)
            known, places = numbered_owners(rows)
            names = sorted({folders[one] for one in known})
            at = np.array([names.index(folders[one]) for one in known], np.int64)[places]
            for place, name in enumerate(names):
                chosen = rows.filter(pa.array(at == place))
                inside = file.with_suffix("") / name
                inside.mkdir(parents=True, exist_ok=True)
                kept = [one for one in chosen.column_names if one not in keys]
                pq.write_table(
                    chosen.select(kept),
                    inside / f"part-{number:05}.parquet",
                    compression="zstd",
                    write_page_checksum=True,
                )
    file.unlink()


def read_split(folder: Place, name: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """The rows of a table, a row group at a time, whether it is one file or in partitions.

    Args:
        folder: in which it is.
        name: the table's.
        columns: that are wanted; texts may be keys of the partitions.

    Raises:
        ResultsError: there is no such table, or a file is damaged.
    """
    whole = folder / f"{name}.parquet"
    below = [one.name for one in (folder / name).files() if one.name.endswith(".parquet")]
    files = [whole] if whole.exists() else [folder / name / one for one in below]
    if not files:
        raise ResultsError(whole, "does not exist, expected a table of crunched results")
    for file, place in zip(files, [""] if whole.exists() else below, strict=True):
        given = dict(part.split("=", 1) for part in place.split("/")[:-1])
        try:
            with opened_table(file) as opened:
                there = [one for one in columns if one in opened.schema_arrow.names]
                for number in range(opened.num_row_groups):
                    rows = opened.read_row_group(number, columns=there)
                    for lacking in set(columns) - set(there):
                        value = pa.scalar(unquote(given[lacking]), pa.string())
                        rows = rows.append_column(lacking, pa.repeat(value, len(rows)))
                    yield rows.select(list(columns))
        except (pa.ArrowException, OSError, KeyError) as error:
            raise ResultsError(file, unreadable(file, error, "is damaged")) from error


def numbered_owners(rows: pa.Table) -> tuple[list[Owner], Any]:
    """The runs and systems that a table is of, and the place of each row's among them."""
    runs, systems = (rows[name].combine_chunks().dictionary_encode() for name in _OWNER)
    width = max(len(systems.dictionary), 1)
    codes = runs.indices.to_numpy().astype(np.int64) * width + systems.indices.to_numpy()
    different, places = np.unique(codes, return_inverse=True)
    names = [one.dictionary.to_pylist() for one in (runs, systems)]
    return [(names[0][code // width], names[1][code % width]) for code in different], places
