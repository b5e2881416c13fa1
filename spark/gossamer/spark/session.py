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
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import attrs
import psutil

from gossamer.spark.errors import CONNECT, INSTALL, ClusterError, JobError, SparkMissing
from gossamer.spark.gateway import own_java, start_java
from gossamer.spark.java import find_java_home
from gossamer.spark.workers import workers_watched

PATIENCE_S: Final = 120.0
_DIALLING_S: Final = 5.0
_GIB: Final = 2**30
_MIB: Final = 2**20
_LEAST_SCRATCH: Final = 64 * _MIB
# Of a task that fails for no fault of its own, on one machine.
_ATTEMPTS: Final = 3

_JAVA_SCRATCH: Final = "java-scratch"
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
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
        options: any further options of Spark.
        patience_s: how long a job waits for workers where a cluster has none.
    """

    master: str | None = None
    memory_bytes: int | None = None
    log_level: str = "off"
    options: Mapping[str, str] = attrs.field(factory=dict)
    patience_s: float = PATIENCE_S

    @property
    def is_local(self) -> bool:
        """Whether tasks run on this machine only."""
        return self.master is None or self.master.startswith("local")


@contextmanager
def spark_session(settings: SessionSettings | None = None) -> Iterator[Any]:
    """A Spark session, stopped at the end if it was made here.

    Raises:
        SparkMissing: Spark or Java is not installed.
        ClusterError: the master does not answer, or its address is none.
        JobError: there is no room for temporary files.
    """
    settings = settings or SessionSettings()
    require_spark()
    from pyspark.sql import SparkSession

    joined = SparkSession.getActiveSession()
    if joined is not None and settings.master is None:
        yield joined
        return
    with (
        _temporary_folder() as folder,
        _environment(settings, folder),
        own_java(),
        _own_interrupts() as restore,
    ):
        session = _make(settings, folder)
        restore()
        try:
            with workers_watched(session, settings.patience_s):
                yield session
        finally:
            session.stop()


def require_spark() -> None:
    """Raise `SparkMissing` unless Spark is installed."""
    if importlib.util.find_spec("pyspark") is None:
        raise SparkMissing(f'`gossamer spark` needs Spark, which is not installed: "{INSTALL}"')


def slots(session: Any) -> int:
    """How many tasks run at a time, as far as the session tells."""
    try:
        return max(1, int(session.sparkContext.defaultParallelism))
    except Exception:  # a Spark Connect session has no context, and says so in many ways
        return max(1, int(session.conf.get("spark.sql.shuffle.partitions", "2")))


@contextmanager
def _own_interrupts() -> Iterator[Callable[[], None]]:
    """Let Ctrl-C do what it did before; yields what to call when there is a session.

    A session sets a handler that speaks to Java from within whatever else speaks to it, and the
    bridge to Java logs every interrupt with its traceback.
    """
    before = signal.getsignal(signal.SIGINT)
    root = logging.getLogger()
    root.addFilter(_not_of_the_bridge)

    def restore() -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)

    try:
        yield restore
    finally:
        root.removeFilter(_not_of_the_bridge)


def _not_of_the_bridge(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def readable_path(path: Path) -> str:
    """A path of this machine as Spark reads it, where some letters stand for patterns."""
    return "file://" + re.sub(r"([{}\[\]*?\\])", r"\\\1", str(path.absolute()))


def writable_path(path: Path) -> str:
    """A path of this machine as Spark writes it."""
    return f"file://{path.absolute()}"


def _make(settings: SessionSettings, folder: Path) -> Any:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    remote = _remote(settings)
    builder = SparkSession.builder.appName("gossamer")
    if remote is not None:
        check_reachable(remote)
        builder = builder.remote(remote)
    else:
        if settings.master is not None:
            check_reachable(settings.master)
    options = _options(settings, folder) if remote is None else {}
    for key, value in options.items():
        builder = builder.config(key, value)
    try:
        if remote is None:
            start_java(options, folder / "complaints" if settings.log_level == "off" else None)
        return builder.getOrCreate()
    except ImportError as error:
        reason = f'but Spark Connect is not installed ({error.name or error}): "{CONNECT}"'
        raise ClusterError(remote or "", reason) from None
    except (PySparkException, RuntimeError, OSError) as error:
        reason = f"where no session can be had ({_first_line(error)})"
        raise ClusterError(settings.master or "local[*]", reason) from error
    except Exception as error:  # Java's own exceptions, whose class belongs to the bridge to Java
        if not type(error).__module__.startswith("py4j"):
            raise
        reason = f"where no session can be had ({_first_line(error)})"
        raise ClusterError(settings.master or "local[*]", reason) from error


def _first_line(error: BaseException) -> str:
    """What an error says, Java's class names left out."""
    cause = getattr(error, "java_exception", None)
    text = str(_innermost(cause).getMessage() if cause is not None else error)
    if "stopped SparkContext" in text:
        return "whoever answers there is no master, or one of another version of Spark"
    return text.strip().partition("\n")[0].rstrip(".") or type(error).__name__


def _innermost(cause: Any) -> Any:
    while cause.getCause() is not None:
        cause = cause.getCause()
    return cause


def _remote(settings: SessionSettings) -> str | None:
    """The address of a Spark Connect server, if one is asked for."""
    if settings.master is not None:
        return settings.master if settings.master.startswith("sc://") else None
    return os.environ.get("SPARK_REMOTE")


def check_reachable(master: str) -> None:
    """Ask whether anybody answers at the addresses of ``spark://`` or ``sc://``; others pass.

    Raises:
        ClusterError: nobody does, or an address is none.
    """
    scheme, separator, rest = master.partition("://")
    if not separator or scheme not in ("spark", "sc"):
        return
    reasons = []
    for address in rest.partition("/")[0].partition(";")[0].split(","):
        host, _, port = address.rpartition(":")
        if scheme == "sc" and not host:
            host, port = address, "15002"
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ClusterError(master, f"expected {scheme}://HOST:PORT")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _DIALLING_S).close()
        except OSError as error:
            reasons.append(f"{address}: {error.strerror or error}")
        else:
            return
    raise ClusterError(master, f"where nobody answers ({'; '.join(reasons)})")


def _options(settings: SessionSettings, folder: Path) -> dict[str, str]:
    """Spark's options; `spark-submit` has decided some of them already."""
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ and settings.master is None
    found = {
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.pythonUDF.arrow.enabled": "true",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.files.ignoreCorruptFiles": "false",
        # Damage within a page is else read as other numbers.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        "spark.driver.maxResultSize": "0",
        "spark.ui.showConsoleProgress": "false",
    }
    if not submitted:
        found |= {
            "spark.master": settings.master or f"local[*,{_ATTEMPTS}]",
            "spark.driver.memory": f"{_memory_bytes(settings) // _MIB}m",
            _JAVA_OPTIONS: (
                f"-Dlog4j2.configurationFile={_log_file(folder)} "
                f'"-Djava.io.tmpdir={folder / _JAVA_SCRATCH}"'
            ),
            "spark.local.dir": str(folder / "scratch"),
            "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
            "spark.ui.enabled": "false",
        }
    if not submitted and settings.is_local:
        cores = os.cpu_count() or 1
        found |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(2 * cores),
        }
    given = dict(settings.options)
    if _JAVA_OPTIONS in given and _JAVA_OPTIONS in found:
        given[_JAVA_OPTIONS] = f"{found[_JAVA_OPTIONS]} {given[_JAVA_OPTIONS]}"
    return found | given


def _memory_bytes(settings: SessionSettings) -> int:
    if settings.memory_bytes is not None:
        return settings.memory_bytes
    quarter = int(psutil.virtual_memory().total) // 4
    return min(max(quarter, _GIB), 4 * _GIB)


def _log_file(folder: Path) -> str:
    return (folder / "log4j2.properties").as_uri()


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    above = Path(tempfile.gettempdir())
    free = shutil.disk_usage(above).free
    if free < _LEAST_SCRATCH:
        # Spark waits without end for a Java that cannot write where it is to be found.
        expected = f"expected {_LEAST_SCRATCH // _MIB} MiB for Spark's files (TMPDIR)"
        raise JobError(f"{above} has room for {free // _MIB} MiB more, {expected}")
    folder = Path(tempfile.mkdtemp(prefix="gossamer-spark-"))
    (folder / _JAVA_SCRATCH).mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _environment(settings: SessionSettings, folder: Path) -> Iterator[None]:
    """Where Spark's processes find Java and this Python; as it was, at the end."""
    (folder / "log4j2.properties").write_text(_LOGGING.format(level=settings.log_level))
    wanted = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}
    if settings.is_local:
        # Else Spark looks the host's name up, which may fail, and warns of what it finds.
        wanted["SPARK_LOCAL_HOSTNAME"] = os.environ.get("SPARK_LOCAL_HOSTNAME", "localhost")
    if _remote(settings) is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
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
