"""`gossamer spark stream`: live nodes followed until somebody ends it, and resumed exactly.

Two queries read the same files, each with a checkpoint of its own: one keeps every line, the other
tells windows. Spark repeats a batch that it does not know to be done, with the same files and from
the same state; as a batch writes one folder of its number, whatever was there of it before, nothing
is lost and nothing counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

import attrs
import pyarrow as pa

from gossamer.sim.results.held import held
from gossamer.sim.results.storage.place import Place, PlaceError
from gossamer.sim.results.storage.remote import RemotePlace
from gossamer.spark.jobs import java_may_be_gone, job_errors
from gossamer.spark.session import slots
from gossamer.spark.storage.claims import claimed
from gossamer.spark.storage.folders import local_of
from gossamer.spark.storage.frames import folder_address
from gossamer.spark.storage.lineage import lineage_of, write_lineage
from gossamer.spark.stream.due import DUE_COLUMNS, Due, subscribers_of
from gossamer.spark.stream.folder import (
    CHECKPOINT,
    DELIVERIES,
    WINDOWS,
    describe,
    was_begun,
    windows_of,
)
from gossamer.spark.stream.reading import growing_lines, require_files, sound
from gossamer.spark.stream.windows import WindowSettings, windowed

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
        """See whether there is what is to be followed, and ``out`` of it; raises `PlaceError`."""
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
        PlaceError: the folder holds something else, Spark has no connector for a storage, or
            there is nothing to follow.
        ResultsError: another process is at work on the folder.
        JobError: Spark failed; the next call resumes.
        KeyboardInterrupt: it was ended; the next call resumes.
    """
    settings.check(out)
    address = folder_address(session, out, to_write=True)
    if address is None:
        raise PlaceError(out, "cannot be written to, expected storage that Spark has a jar for")
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
