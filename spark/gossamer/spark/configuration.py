"""Options of Spark: what a session that is made here gets, and what one that runs already takes.

Whatever is asked for by ``--conf`` or ``--memory`` has an effect or is refused: a Java that runs
already keeps its memory, and a server of Spark Connect the options that it was started with.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psutil

from gossamer.command.paths import foreign_storage, local_path
from gossamer.sim.errors import ScenarioError

if TYPE_CHECKING:
    from gossamer.spark.session import SessionSettings


JAVA_SCRATCH: Final = "java-scratch"
LOG_FILE: Final = "log4j2.properties"
_GIB: Final = 2**30
_MIB: Final = 2**20
# Of a task that fails for no fault of its own, on one machine.
_ATTEMPTS: Final = 3

_PYTHON: Final = "spark.pyspark.python"
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_HADOOP: Final = "spark.hadoop."
_PAGES: Final = "spark.ui.enabled"
_LOG: Final = "spark.eventLog.enabled"
_LOG_FOLDER: Final = "spark.eventLog.dir"
# Of the Java that `spark-submit` has started by the time that we are asked.
_OF_STARTED_JAVA: Final = (
    _JAVA_OPTIONS,
    "spark.driver.defaultJavaOptions",
    "spark.driver.extraClassPath",
    "spark.driver.extraLibraryPath",
    "spark.driver.memory",
)
# How tables are read and written, in any session that is not somebody else's.
_OF_TABLES: Final = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.pythonUDF.arrow.enabled": "true",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # Damage within a page is else read as other numbers.
    "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
}


def remote_of(settings: SessionSettings) -> str | None:
    """The address of a Spark Connect server, if one is asked for."""
    if settings.master is not None:
        return settings.master if settings.master.startswith("sc://") else None
    return os.environ.get("SPARK_REMOTE") or None


def is_submitted(settings: SessionSettings) -> bool:
    """Whether `spark-submit` has started Java, and decides where tasks run."""
    return "PYSPARK_GATEWAY_PORT" in os.environ and settings.master is None


def python_of(settings: SessionSettings) -> str:
    """The Python that tasks run in: as asked for, else that of the environment, else this one."""
    given = settings.options.get(_PYTHON)
    return given or os.environ.get("PYSPARK_PYTHON") or sys.executable


def options_at_start(settings: SessionSettings, folder: Path) -> dict[str, str]:
    """The options of a session that is made here; `spark-submit` has decided some of them already.

    Raises:
        ScenarioError: one that is asked for has no effect any more.
    """
    found = {**_OF_TABLES, "spark.ui.showConsoleProgress": "false"}
    if is_submitted(settings):
        _refuse_memory(settings, "spark-submit --driver-memory, which has started Java already")
        for key in _OF_STARTED_JAVA:
            _refuse(settings.options, key, "spark-submit --conf, which has started Java already")
        return found | dict(settings.options)
    memory = _memory_bytes(settings)
    found |= {
        "spark.master": settings.master or f"local[*,{_ATTEMPTS}]",
        "spark.driver.memory": f"{memory // _MIB}m",
        # What tasks hand back has to fit into Java beside all else; what is large goes by storage.
        "spark.driver.maxResultSize": f"{memory // 2 // _MIB}m",
        _JAVA_OPTIONS: (
            f"-Dlog4j2.configurationFile={(folder / LOG_FILE).as_uri()} "
            f'"-Djava.io.tmpdir={folder / JAVA_SCRATCH}"'
        ),
        "spark.local.dir": str(folder / "scratch"),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        _PAGES: "false",
    }
    if settings.is_local:
        found |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        }
    given = dict(settings.options)
    if _JAVA_OPTIONS in given:
        given[_JAVA_OPTIONS] = f"{found[_JAVA_OPTIONS]} {given[_JAVA_OPTIONS]}"
    return found | given


def check_nothing_is_asked(settings: SessionSettings) -> None:
    """Refuse options for a session that is joined, which is somebody else's.

    Raises:
        ScenarioError: an option, or an amount of memory, is asked for.
    """
    expected = "none, as a session is active already and joined as it is"
    _refuse_memory(settings, expected)
    for key in settings.options:
        _refuse(settings.options, key, expected)


def configure_running(session: Any, settings: SessionSettings) -> None:
    """Give a new session of Spark Connect its options, of which a server lets some be changed.

    Raises:
        ScenarioError: one that is asked for is none of these.
    """
    _refuse_memory(settings, "none with Spark Connect, whose server has its own")
    for key, value in (_OF_TABLES | dict(settings.options)).items():
        if key.startswith(_HADOOP):
            # A session hands all that it has on to Hadoop by its name there.
            session.conf.set(key.removeprefix(_HADOOP), value)
        elif session.conf.isModifiable(key):
            session.conf.set(key, value)
        else:
            expected = "an option that a Spark Connect server lets a session change"
            _refuse(settings.options, key, expected)


def _refuse(options: Mapping[str, str], key: str, expected: str) -> None:
    if key in options:
        raise ScenarioError(None, "--conf", f"{key}={options[key]}", expected)


def _refuse_memory(settings: SessionSettings, expected: str) -> None:
    if settings.memory_bytes is not None:
        raise ScenarioError(None, "--memory", f"{settings.memory_bytes // _MIB}m", expected)


def _memory_bytes(settings: SessionSettings) -> int:
    if settings.memory_bytes is not None:
        return settings.memory_bytes
    quarter = int(psutil.virtual_memory().total) // 4
    return min(max(quarter, _GIB), 4 * _GIB)


# What shows people what a session does.


def shown_options(pages: bool, event_log: str | None) -> dict[str, str]:
    """Options of Spark by which it serves its pages, and keeps its event log in a folder.

    Args:
        pages: whether it serves them.
        event_log: a path or URL; None: no log.
    """
    found = {_PAGES: "true"} if pages else {}
    if event_log is None:
        return found
    if foreign_storage(event_log) is None:
        event_log = Path(local_path(event_log)).absolute().as_uri()
    return found | {_LOG: "true", _LOG_FOLDER: event_log}


def make_log_folder(options: Mapping[str, str]) -> None:
    """Make the folder of the event log, which Spark does not, where it is on this machine."""
    place = options.get(_LOG_FOLDER, "")
    if place.startswith("file:///"):
        Path(local_path(place)).mkdir(parents=True, exist_ok=True)


def links_of(session: Any, options: Mapping[str, str]) -> list[str]:
    """Where people see what a session shows that was asked for by options, in sentences."""
    found = []
    if options.get(_PAGES) == "true":
        found.append(f"Spark's pages are at {session.sparkContext.uiWebUrl}")
    if options.get(_LOG) == "true":
        context = session.sparkContext
        place = context.getConf().get(_LOG_FOLDER)
        found.append(f"the event log of {context.applicationId} is in {place}")
    return found


# Options of the command line that Spark would misunderstand in its own words.


LOG_LEVELS: Final = ("off", "fatal", "error", "warn", "info", "debug")
_UNITS: Final = {"m": 2**20, "g": 2**30}
_LEAST_BYTES: Final = 512 * 2**20
# Options that are asked for in another way, or not at all.
_ELSEWHERE: Final = {
    "spark.master": "--master in its place",
    "spark.remote": "--master in its place",
    "spark.pyspark.driver.python": "spark.pyspark.python: the driver is this command itself",
}


def memory_of(text: str | None) -> int | None:
    """Bytes of a text such as 2g; raises `ScenarioError`."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,9})([mg])", text.strip().lower())
    if match is None or int(match[1]) * _UNITS[match[2]] < _LEAST_BYTES:
        raise ScenarioError(None, "--memory", text, "512m or more, such as 2g")
    return int(match[1]) * _UNITS[match[2]]


def log_level_of(text: str) -> str:
    """A level of Spark's log; raises `ScenarioError`."""
    if text.lower() not in LOG_LEVELS:
        raise ScenarioError(None, "--log-level", text, f"one of {', '.join(LOG_LEVELS)}")
    return text.lower()


def option_of(text: str) -> tuple[str, str]:
    """Key and value of an option of Spark; raises `ScenarioError`."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip().startswith("spark."):
        expected = "KEY=VALUE with a key that begins with spark."
        raise ScenarioError(None, "--conf", text, expected)
    if key.strip() in _ELSEWHERE:
        raise ScenarioError(None, "--conf", text, _ELSEWHERE[key.strip()])
    return key.strip(), value.strip()
