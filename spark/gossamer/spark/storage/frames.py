"""Tables as frames of Spark: by its connector for a storage where it has one, else by PyArrow."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

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

    columns = from_arrow_schema(schema)
    address = folder_address(session, folder)
    if address is not None:
        return session.read.schema(columns).parquet(address)
    files = folder.tables()
    reader = _Reader(files, schema)
    numbers = session.range(0, len(files), 1, max(len(files), 1))
    return numbers.mapInArrow(reader, columns)


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


@attrs.frozen
class _Reader:
    """Reads the files whose numbers a task gets."""

    files: Sequence[Place]
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                with opened_table(self.files[number]) as table:
                    for rows in table.iter_batches(_BATCH_ROWS, columns=self.schema.names):
                        yield rows.select(self.schema.names).cast(self.schema)


def opened_table(file: Place) -> Any:
    """A Parquet file, whose pages are checked as they are read.

    Raises:
        FileNotFoundError: there is none.
        pa.ArrowException, OSError: it is damaged.
        PlaceError: the storage fails.
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
