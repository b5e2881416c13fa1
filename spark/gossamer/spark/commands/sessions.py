"""Sessions as the options of a command ask for them; Spark is imported when one is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gossamer.sim.results.storage.place import Place
    from gossamer.spark.session import SessionSettings


@contextmanager
def session_for(out: Place, settings: SessionSettings, *, is_new: bool = True) -> Iterator[Any]:
    """A session for work on a folder; what refuses a new one does so before Spark starts."""
    from gossamer.spark.jobs import disk_errors, job_errors
    from gossamer.spark.session import runs_here, slots, spark_session
    from gossamer.spark.shipping.sending import send_files
    from gossamer.spark.shipping.versions import require_same_versions
    from gossamer.spark.storage.folders import check_is_free

    with disk_errors(out):
        if is_new:
            check_is_free(out)
        with spark_session(settings) as session:
            with job_errors("sending files to executors"):
                send_files(session, settings.py_files, settings.archives)
            if not runs_here(session):
                require_same_versions(session, slots(session))
            yield session


def session_settings(
    master: str | None,
    memory: str | None,
    patience: float,
    log_level: str,
    conf: Sequence[str] | None,
    py_files: Sequence[str] | None,
    archives: Sequence[str] | None,
) -> SessionSettings:
    """What session the command line asks for."""
    from gossamer.spark.options import log_level_of, memory_of, option_of
    from gossamer.spark.session import SessionSettings
    from gossamer.spark.shipping.sending import check_files

    check_files("--py-files", py_files or ())
    check_files("--archives", archives or ())
    return SessionSettings(
        master=master,
        memory_bytes=memory_of(memory),
        patience_s=patience,
        log_level=log_level_of(log_level),
        options=dict(map(option_of, conf or [])),
        py_files=tuple(py_files or ()),
        archives=tuple(archives or ()),
    )
