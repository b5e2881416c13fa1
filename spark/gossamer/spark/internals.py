"""What is used of PySpark and Spark beyond what they promise: names of theirs, and words.

`tests/pipeline/test_spark_internals.py` holds the names to the PySpark that is installed, and the
words to its jars, so that it says what is gone on the day that it is. What is here is used where
nothing public does the same: a Java that is started quietly and ended, workers counted, a job
cancelled for a reason, a master asked who it is, an error told in a sentence. (Storage, which is
below this, looks for connectors itself.)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

# Words of Spark's, of Java's and of the bridge between, by what they tell.
TOO_LARGE: Final = re.compile(r"bigger than spark\.driver\.maxResultSize")
NOT_THERE: Final = re.compile(r"FILE_NOT_EXIST|FileNotFoundException")
NO_PROGRAM: Final = re.compile(r'Cannot run program "([^"]+)"')
FILE: Final = re.compile(r"file:/+(\S+?\.parquet)")
LOST: Final = re.compile(
    r"Python worker exited unexpectedly|ExecutorLostFailure|worker lost|"
    r"Connect(ion|Exception).{0,40}(refused|reset)",
    re.IGNORECASE,
)
GONE: Final = re.compile(
    r"SparkContext (was|has been) (shut ?down|stopped)|stopped SparkContext|"
    r"masters are unresponsive|Master removed our application|"
    r"Answer from Java side is empty|Error while (sending|receiving)",
    re.IGNORECASE,
)
DAMAGED: Final = re.compile(
    r"FAILED_READ_FILE|is not a Parquet file|CANNOT_READ_FILE_FOOTER|[Cc]orrupt|ParquetDecoding"
)
STOPPED: Final = "stopped SparkContext"
FULL: Final = "No space left on device"
BRIDGE: Final = "An error occurred while calling"


def has_gateway() -> bool:
    """Whether there is a bridge to a Java in this process."""
    from pyspark import SparkContext

    return SparkContext._gateway is not None


def begin_gateway(options: Mapping[str, str], arguments: Mapping[str, Any]) -> None:
    """Start a Java by Spark's own program, with further arguments of `subprocess.Popen`."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    conf = SparkConf().setAll(list(options.items()))
    SparkContext._ensure_initialized(gateway=launch_gateway(conf, dict(arguments)))


def taken_gateway() -> Any:
    """The bridge to a Java that this process has started, which is forgotten; None: there is none.

    Its ``proc`` is the process, its ``shutdown`` closes the bridge.
    """
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    # None of a Java that another process started.
    if getattr(gateway, "proc", None) is None:
        return None
    SparkContext._gateway = SparkContext._jvm = None
    return gateway


def has_workers(context: Any) -> bool:
    """Whether a cluster has given executors to the session of a context."""
    # The driver is one of those that Spark counts.
    return len(context._jsc.sc().statusTracker().getExecutorInfos()) > 1


def cancel_jobs(context: Any, jobs: Sequence[int], reason: str) -> None:
    """Cancel jobs of a context, whose errors say the reason."""
    for job in jobs:
        context._jsc.sc().cancelJob(job, reason)


def quiet_counters(session: Any) -> None:
    """Let the server to which Java sends counts of tasks, which has a thread, print nothing.

    It would print how it failed when Java ends; whoever waits for a job says that.
    """
    server = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda _request, _address: None


def message_of(error: BaseException) -> str:
    """What an error says, of one of Java's the innermost cause."""
    cause = getattr(error, "java_exception", None)
    while cause is not None and cause.getCause() is not None:
        cause = cause.getCause()
    return str(error if cause is None else cause.getMessage())


def asker(options: Mapping[str, str]) -> Any:
    """An end of Spark's remote calls that asks only, to be shut down.

    Raises:
        Exception: Spark has other classes, and says so in many ways.
    """
    from pyspark import SparkContext

    java = SparkContext._jvm
    conf = java.org.apache.spark.SparkConf(False)
    for key, value in options.items():
        conf.set(key, value)
    manager = java.org.apache.spark.SecurityManager
    # The defaults of its second and third parameter, as Scala calls them.
    defaults = (getattr(manager, f"$lessinit$greater$default${place}")() for place in (2, 3))
    secured = manager(conf, *defaults)
    return java.org.apache.spark.rpc.RpcEnv.create("gossamer", "localhost", 0, conf, secured, True)


def is_master(asked_by: Any, address: tuple[str, int]) -> bool:
    """Whether who answers at an address is a master of a standalone cluster."""
    from py4j.protocol import Py4JJavaError
    from pyspark import SparkContext

    try:
        where = SparkContext._jvm.org.apache.spark.rpc.RpcAddress(*address)
        asked_by.setupEndpointRef(where, "Master")
    except Py4JJavaError:
        return False
    return True
