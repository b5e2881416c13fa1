"""The one place where a Spark session is made or joined.

In this order: a session that is active already is joined and left running; one is made where
`spark-submit` or the address of a Spark Connect server says; one is made for ``--master``; and
otherwise one of this machine alone, small enough for a laptop. What is made here is quiet, keeps
its files in a temporary folder of its own, and is gone at the end.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import signal
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import attrs

from gossamer.command.extras import install_hint
from gossamer.command.signals import ending_first
from gossamer.command.waiting import waiting
from gossamer.sim.errors import SimulationError
from gossamer.spark.configuration import (
    JAVA_SCRATCH,
    LOG_FILE,
    check_nothing_is_asked,
    configure_running,
    is_submitted,
    make_log_folder,
    options_at_start,
    python_of,
    remote_of,
)
from gossamer.spark.errors import CONNECT, EXTRA, JobError, no_session
from gossamer.spark.gateway import find_java_home, own_java, start_java
from gossamer.spark.internals import STOPPED, message_of, quiet_counters
from gossamer.spark.jobs import java_may_be_gone, job_errors
from gossamer.spark.masters import (
    NO_MASTER,
    check_is_connect,
    check_is_master,
    check_reachable,
    workers_watched,
)

PATIENCE_S: Final = 120.0
_MIB: Final = 2**20
# More than there are slots anywhere.
_ROWS_TO_SPREAD: Final = 1 << 17
_LEAST_SCRATCH: Final = 64 * _MIB

_LOGGING: Final = """rootLogger.level = {level}
rootLogger.appenderRef.console.ref = console
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{{HH:mm:ss}} %p %c{{1}}: %m%n%ex
"""


@attrs.frozen(kw_only=True)
class SessionSettings:
    """What session is wanted.

    Attributes:
        master: address of a cluster, such as ``spark://HOST:7077``, ``local[4]`` or
            ``sc://HOST:15002`` (Spark Connect); None for this machine, or what is there already.
        memory_bytes: of the Java process on this machine; a quarter of what the machine has, from
            1 to 4 GiB, if None.
        log_level: of Spark's log on standard error.
        options: any further options of Spark; those without effect are refused.
        patience_s: how long a job waits for workers where a cluster has none.
        py_files, archives: sent to executors, see `gossamer.spark.shipping.versions`.
    """

    master: str | None = None
    memory_bytes: int | None = None
    log_level: str = "off"
    options: Mapping[str, str] = attrs.field(factory=dict)
    patience_s: float = PATIENCE_S
    py_files: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether a session that is made for these runs its tasks on this machine only."""
        if self.master is None:
            return remote_of(self) is None and not is_submitted(self)
        return self.master.startswith("local")


@contextmanager
def spark_session(settings: SessionSettings | None = None) -> Iterator[Any]:
    """A Spark session, stopped at the end if it was made here.

    Raises:
        SimulationError: Spark or Java is not installed, the master does not answer, or its address
            is none.
        ScenarioError: an option has no effect on that session.
        JobError: there is no room for temporary files.
    """
    settings = settings or SessionSettings()
    require_spark()
    from pyspark.sql import SparkSession

    joined = SparkSession.getActiveSession()
    if joined is not None and settings.master is None:
        check_nothing_is_asked(settings)
        yield joined
        return
    with (
        ending_first(),
        _temporary_folder() as folder,
        _environment(settings, folder),
        _quiet_bridge(),
        own_java(),
        _own_interrupts() as restore,
    ):
        with waiting("starting Spark"):
            session = _make(settings, folder)
        restore()
        try:
            with workers_watched(session, settings.patience_s):
                yield session
        finally:
            _stop(session)


def _stop(session: Any) -> None:
    """Stop a session, whose Java may have been ended by what ends us."""
    with java_may_be_gone(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM", RuntimeWarning)
        session.stop()


def require_spark() -> None:
    """Raise `SimulationError` unless Spark is installed."""
    if importlib.util.find_spec("pyspark") is None:
        hint = install_hint(EXTRA)
        raise SimulationError(f'`gossamer spark` needs Spark, which is not installed: "{hint}"')


def runs_here(session: Any) -> bool:
    """Whether the tasks of a session share this machine, and its memory."""
    try:
        return bool(session.sparkContext.master.startswith("local"))
    except Exception:  # a Spark Connect session has no context, and says so in many ways
        return False


def slots(session: Any) -> int:
    """How many tasks run at a time, as far as the session tells."""
    try:
        return max(1, int(session.sparkContext.defaultParallelism))
    except Exception:  # a Spark Connect session has no context, and says so in many ways
        return _slots_of_server(session)


@lru_cache(maxsize=4)
def _slots_of_server(session: Any) -> int:
    """As many tasks as a server of Spark Connect makes of rows when nobody says how many."""
    from pyspark.sql.functions import spark_partition_id

    rows = session.range(_ROWS_TO_SPREAD).select(spark_partition_id()).distinct()
    with job_errors("asking the server how many tasks run at a time"):
        return max(1, int(rows.count()))


@contextmanager
def _own_interrupts() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C do what it did before; yields what to call when there is a session.

    A session sets a handler that speaks to Java from within whatever else speaks to it.
    """
    before = signal.getsignal(signal.SIGINT)

    def restore() -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)

    yield restore


@contextmanager
def _quiet_bridge() -> Iterator[None]:
    """Let the bridge to Java raise and not log: it logs interrupts, and Java's end, at length."""
    root, bridge = logging.getLogger(), logging.getLogger("py4j")
    level = bridge.level
    root.addFilter(_not_of_the_bridge)
    bridge.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        bridge.setLevel(level)
        root.removeFilter(_not_of_the_bridge)


def _not_of_the_bridge(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def _make(settings: SessionSettings, folder: Path) -> Any:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    remote = remote_of(settings)
    builder = SparkSession.builder.appName("gossamer")
    options: dict[str, str] = {}
    if remote is not None:
        check_reachable(remote)
        check_is_connect(remote)
        builder = builder.remote(remote)
    else:
        options = options_at_start(settings, folder)
        if settings.master is not None:
            check_reachable(settings.master)
        make_log_folder(settings.options)
    for key, value in options.items():
        builder = builder.config(key, value)
    try:
        if remote is None:
            start_java(options, folder / "complaints" if settings.log_level == "off" else None)
            if settings.master is not None:
                check_is_master(settings.master, options)
        session = builder.getOrCreate()
        if remote is None:
            quiet_counters(session)
        else:
            _configured(session, settings)
        return session
    except ImportError as error:
        reason = f'but Spark Connect is not installed ({error.name or error}): "{CONNECT}"'
        raise no_session(remote or "", reason) from None
    except (PySparkException, RuntimeError, OSError) as error:
        reason = f"where no session can be had ({_first_line(error)})"
        raise no_session(settings.master or "local[*]", reason) from error
    except Exception as error:  # Java's own exceptions, whose class belongs to the bridge to Java
        if not type(error).__module__.startswith("py4j"):
            raise
        reason = f"where no session can be had ({_first_line(error)})"
        raise no_session(settings.master or "local[*]", reason) from error


def _configured(session: Any, settings: SessionSettings) -> None:
    """Give a session of Spark Connect its options, or stop it again."""
    try:
        configure_running(session, settings)
    except BaseException:
        session.stop()
        raise


def _first_line(error: BaseException) -> str:
    """What an error says, Java's class names left out."""
    text = message_of(error)
    if STOPPED in text:
        return NO_MASTER
    return text.strip().partition("\n")[0].rstrip(".") or type(error).__name__


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    above = Path(tempfile.gettempdir())
    free = shutil.disk_usage(above).free
    if free < _LEAST_SCRATCH:
        # Spark waits without end for a Java that cannot write where it is to be found.
        expected = f"expected {_LEAST_SCRATCH // _MIB} MiB for Spark's files (TMPDIR)"
        raise JobError(f"{above} has room for {free // _MIB} MiB more, {expected}")
    folder = Path(tempfile.mkdtemp(prefix="gossamer-spark-"))
    (folder / JAVA_SCRATCH).mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _environment(settings: SessionSettings, folder: Path) -> Iterator[None]:
    """Where Spark's processes find Java and this Python; as it was, at the end."""
    (folder / LOG_FILE).write_text(_LOGGING.format(level=settings.log_level))
    # Spark itself heeds the option of this name only where `spark-submit` starts Python.
    wanted = {"PYSPARK_PYTHON": python_of(settings)}
    if settings.is_local:
        # Else Spark looks the host's name up, which may fail, and warns of what it finds.
        wanted["SPARK_LOCAL_HOSTNAME"] = os.environ.get("SPARK_LOCAL_HOSTNAME", "localhost")
        # Its pages are for this machine alone.
        wanted["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    if remote_of(settings) is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        wanted["JAVA_HOME"] = str(find_java_home(folder))
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
