"""`gossamer spark stream`: live nodes followed until somebody ends it, and resumed exactly.

Two queries read the same files, each with a checkpoint of its own: one keeps every line, the other
tells windows. Spark repeats a batch that it does not know to be done, with the same files and from
the same state; as a batch writes one folder of its number, whatever was there of it before, nothing
is lost and nothing counted twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

import attrs
import pyarrow as pa
import pyarrow.parquet as pq

from gossamer.sim.errors import ResultsError
from gossamer.sim.results.held import held
from gossamer.sim.results.storage.place import Place
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.spark.jobs import java_may_be_gone, job_errors
from gossamer.spark.session import slots
from gossamer.spark.storage.folders import MARKER, claimed, local_of
from gossamer.spark.storage.frames import folder_address
from gossamer.spark.storage.lineage import lineage_of, write_lineage
from gossamer.spark.stream.due import DUE_COLUMNS, Due, WindowSettings, subscribers_of, windowed

# The folder of a stream that is followed.
#
# stream.json               what is followed, and how; the same when it is resumed
# deliveries/batch=N/       every line as it came, those that are none as `damaged`
# windows/batch=N/          windows that changed; of each the latest batch counts
# _checkpoint/              Spark's own, from which it resumes
# lineage.json              what made it, see `gossamer.spark.storage.lineage`
#
# A batch that a killed process left half-written is written anew by the next, as the same batch:
# its folder is whole when its ``_SUCCESS`` is there.


STREAM_FILE: Final = "stream.json"
DELIVERIES, WINDOWS, CHECKPOINT = "deliveries", "windows", "_checkpoint"
_KEY: Final = ("begin", "subscriber")


def was_begun(out: Place, told: Mapping[str, Any]) -> bool:
    """Whether the same was followed in a folder before; if not it is empty, or not there.

    Raises:
        ResultsError: it follows something else or otherwise, or holds other things.
    """
    file = out / STREAM_FILE
    if not file.exists():
        there = [one.name for one in out.files() if not one.name.rpartition("/")[2].startswith(".")]
        if there:
            expected = f"expected a new folder, or one with {STREAM_FILE}"
            raise ResultsError(out, f"holds files ({there[0]}), {expected}")
        return False
    try:
        before = json.loads(file.read_bytes())
    except ValueError as error:
        raise ResultsError(file, f"is not the description of a stream ({error})") from error
    for name, value in told.items():
        if not isinstance(before, dict) or before.get(name) != value:
            found = before.get(name) if isinstance(before, dict) else before
            expected = "expected the same to go on, or another folder"
            raise ResultsError(out, f"was begun with {name} {found!r}, not {value!r}; {expected}")
    return True


def describe(out: Place, told: Mapping[str, Any]) -> None:
    """Say in a new folder what is followed."""
    (out / STREAM_FILE).write_bytes(json.dumps(told, indent=2).encode() + b"\n")


def batches_of(out: Place, part: str) -> dict[int, list[Place]]:
    """The files of each whole batch, by its number."""
    files: dict[int, list[Place]] = {}
    whole = set()
    for one in (out / part).files():
        batch, _, name = one.name.partition("/")
        number = int(batch.removeprefix("batch="))
        if name == MARKER:
            whole.add(number)
        elif name.endswith(".parquet"):
            files.setdefault(number, []).append(out / part / one.name)
    return {number: files.get(number, []) for number in sorted(whole)}


def windows_of(out: Place) -> pa.Table | None:
    """The windows as they are now, in the order of their beginnings; None if there are none."""
    latest: dict[tuple[Any, ...], dict[str, Any]] = {}
    schema = None
    for files in batches_of(out, WINDOWS).values():
        for file in files:
            table = pq.ParquetFile(file.source()).read()
            schema = table.schema
            for row in table.to_pylist():
                latest[tuple(row[name] for name in _KEY)] = row
    if schema is None:
        return None
    rows = [latest[key] for key in sorted(latest)]
    return pa.Table.from_pylist(rows, schema=schema)


# Lines of `gossamer sub --into` as frames that grow with the files.
#
# Files appear whole, by a rename, and are never changed: Spark's checkpoint tells which have been
# read, so that each is read once.


# Of a subscriber's folder.
_FILES: Final = "*/*.jsonl"
# Text that is no such line is kept as it came, and counted.
DAMAGED: Final = "damaged"
_COLUMNS: Final = (
    "id string, subscriber string, publisher string, published_at double, received_at double, "
    f"values string, {DAMAGED} string"
)


def growing_lines(session: Any, folder: Place, files_a_batch: int) -> Any:
    """All lines below a folder, as they come; what is no JSON object has only `DAMAGED`.

    Args:
        session: of Spark. All its workers need to see the folder.
        folder: that of ``--into``.
        files_a_batch: that are read at a time, at most.

    Raises:
        ResultsError: Spark has no connector for the storage, or the name holds letters that stand
            for patterns.
    """
    address = folder_address(session, folder)
    if address is None:
        raise ResultsError(folder, "cannot be followed, expected storage that Spark has a jar for")
    # Spark reads such files twice, although it takes their names for what they are.
    if "\\" in address:
        raise ResultsError(folder, "cannot be followed, expected a name without any of {}[]*?\\")
    source = session.readStream.schema(_COLUMNS).option("columnNameOfCorruptRecord", DAMAGED)
    return source.option("maxFilesPerTrigger", files_a_batch).json(f"{address}/{_FILES}")


def require_files(folder: Place) -> None:
    """See whether a folder is one that subscribers write into.

    Raises:
        ResultsError: it is not there, or nothing is in it.
    """
    if not folder.files():
        expected = "expected files of a subscriber, as 'gossamer sub --into' writes them"
        raise ResultsError(folder, f"holds nothing to follow, {expected}")


def sound(lines: Any, *needed: str) -> Any:
    """Lines that have what is needed of an event."""
    wanted = " and ".join(f"{name} is not null" for name in ("id", "published_at", *needed))
    return lines.where(f"{DAMAGED} is null and {wanted}")


_LOOKING_S: Final = 1
_SHUFFLE: Final = "spark.sql.shuffle.partitions"
_STATE: Final = "spark.sql.streaming.stateStore"
# What is known of all events of the last `late_s` seconds lies on disk: a million of them took more
# than a gigabyte of Java's memory. A checkpoint keeps what it began with.
_STATE_ON_DISK: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"{_STATE}.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
        f"{_STATE}.rocksdb.boundedMemoryUsage": "true",
        f"{_STATE}.rocksdb.maxMemoryUsageMB": "256",
        f"{_STATE}.rocksdb.trackTotalNumberOfRows": "false",
    }
)


@attrs.frozen(kw_only=True)
class StreamSettings:
    """What is followed, and how.

    Attributes:
        deliveries: the folder that subscribers write into.
        published: one that has all that was published, in the same form; None: not known.
        windows: see there.
        every_s: seconds between batches.
        once: whether to end when all that is there has been read.
        files_a_batch: that are read at a time, at most, of each folder.
    """

    deliveries: Place
    published: Place | None
    windows: WindowSettings
    every_s: float = 10.0
    once: bool = False
    files_a_batch: int = 1_000

    def check(self, out: Place) -> None:
        """See whether there is what is to be followed, and ``out`` of it; raises `ResultsError`."""
        require_files(self.deliveries)
        if self.published is not None:
            require_files(self.published)
        was_begun(out, self.recorded())

    def recorded(self) -> dict[str, Any]:
        """What has to be the same when the stream is resumed."""
        published = None if self.published is None else self.published.absolute().shown()
        followed = {"deliveries": self.deliveries.absolute().shown(), "published": published}
        return followed | attrs.asdict(self.windows)


def follow_stream(session: Any, settings: StreamSettings, out: Place) -> pa.Table | None:
    """Follow a stream until it is ended, or all is read; the windows as they are then.

    Args:
        session: of Spark. All its workers need to see the folders.
        settings: what is followed.
        out: a new folder, or one in which the same was followed before.

    Raises:
        ResultsError: the folder holds something else, Spark has no connector for a storage, there
            is nothing to follow, or another process is at work on the folder.
        JobError: Spark failed; the next call resumes.
        KeyboardInterrupt: it was ended; the next call resumes.
    """
    settings.check(out)
    address = folder_address(session, out, to_write=True)
    if address is None:
        raise ResultsError(out, "cannot be written to, expected storage that Spark has a jar for")
    with _alone(out), job_errors("following the stream"), _configured(session):
        lines = growing_lines(session, settings.deliveries, settings.files_a_batch)
        due = _due(session, settings)
        if not was_begun(out, settings.recorded()):
            describe(out, settings.recorded())
            write_lineage(out, lineage_of(session, [], []))
        windows = windowed(sound(lines, "subscriber", "received_at"), due, settings.windows)
        queries: list[Any] = []
        try:
            for part, frame, mode in ((DELIVERIES, lines, "append"), (WINDOWS, windows, "update")):
                queries.append(_started(frame, mode, part, address, settings))
            _wait(queries)
        finally:
            with java_may_be_gone():
                for query in queries:
                    query.stop()
    return windows_of(out)


@contextmanager
def _alone(out: Place) -> Iterator[None]:
    """Be the only one who works on a folder."""
    if isinstance(out, RemotePlace):
        with claimed(out):
            yield
        return
    path = local_of(out)
    path.mkdir(parents=True, exist_ok=True)
    with held(path / "_following"):
        yield


@contextmanager
def _configured(session: Any) -> Iterator[None]:
    """As many parts of the state as tasks run at a time, and these on disk."""
    wanted = {_SHUFFLE: slots(session), **_STATE_ON_DISK}
    before = {name: session.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        with java_may_be_gone():
            for name, value in before.items():
                if value is None:
                    session.conf.unset(name)
                else:
                    session.conf.set(name, value)


def _due(session: Any, settings: StreamSettings) -> Any | None:
    if settings.published is None:
        return None
    subscribers = subscribers_of(settings.deliveries)
    published = growing_lines(session, settings.published, settings.files_a_batch)
    events = sound(published, "values").select("id", "published_at", "values")
    return events.mapInArrow(Due(subscribers), DUE_COLUMNS)


def _started(frame: Any, mode: str, part: str, address: str, settings: StreamSettings) -> Any:
    """A query that writes each batch into a folder of its own."""

    def write(batch: Any, number: int) -> None:
        folder = f"{address}/{part}/batch={number}"
        batch.coalesce(1).write.mode("overwrite").parquet(folder)

    writer = frame.writeStream.outputMode(mode).foreachBatch(write)
    writer = writer.option("checkpointLocation", f"{address}/{CHECKPOINT}/{part}")
    if settings.once:
        return writer.trigger(availableNow=True).start()
    return writer.trigger(processingTime=f"{settings.every_s} seconds").start()


def _wait(queries: list[Any]) -> None:
    """Wait until all queries have ended; raises what ended one."""
    waiting = list(queries)
    while waiting:
        waiting = [query for query in waiting if not query.awaitTermination(_LOOKING_S)]
