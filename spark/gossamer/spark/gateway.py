"""The Java process of a session: started quietly, ended with it, and waited for."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil

from gossamer.spark.jobs import java_may_be_gone

_ENDING_S: Final = 20.0
_UNCAUGHT: Final = re.compile(r'^Exception in thread "main" [\w.$]+: (.+)$', re.M)


class JavaFailed(RuntimeError):
    """Java ended before there was a session; the message is what it said."""


@contextmanager
def own_java() -> Iterator[None]:
    """End the Java that is started within, and wait until it has cleared up.

    Left to itself it goes on until this process ends, with an environment that is gone by then.
    """
    from pyspark import SparkContext

    before = SparkContext._gateway
    try:
        yield
    finally:
        gateway = SparkContext._gateway
        started = getattr(gateway, "proc", None)  # None of a Java that another process started
        if before is None and gateway is not None and started is not None:
            SparkContext._gateway = SparkContext._jvm = None
            with java_may_be_gone():
                gateway.shutdown()
            with suppress(BrokenPipeError):
                started.stdin.close()  # by which it learns that it is to end
            try:
                started.wait(_ENDING_S)
            except subprocess.TimeoutExpired:
                started.kill()
                started.wait()


def start_java(options: Mapping[str, str], complaints: Path | None) -> None:
    """Start the Java of the session to come, unless there is one already.

    Args:
        options: of Spark.
        complaints: file for what Java and the workers' Pythons print as errors, which Spark raises
            as well; on standard error if None.

    Raises:
        JavaFailed: it ended at once.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    conf = SparkConf()
    for key, value in options.items():
        conf.set(key, value)
    with _ended_at_interrupts():
        if complaints is None:
            SparkContext._ensure_initialized(gateway=launch_gateway(conf))
            return
        with complaints.open("wb") as stream:
            try:
                gateway = launch_gateway(conf, {"stderr": stream})
            except PySparkRuntimeError as error:
                raise JavaFailed(_last_words(complaints) or str(error)) from error
        SparkContext._ensure_initialized(gateway=gateway)


@contextmanager
def _ended_at_interrupts() -> Iterator[None]:
    """End the Java that is being started within when that is interrupted.

    Nobody knows it yet who would end it. Left to itself it stays forever: it fails to write its
    address into a folder that is gone, and the thread that waits for connections goes on.
    """
    this = psutil.Process()
    before = this.children()
    try:
        yield
    except KeyboardInterrupt:
        for process in this.children():
            if process not in before:
                _kill_with_children(process)
        raise


def _kill_with_children(process: psutil.Process) -> None:
    """Kill a process and what it has started, and wait until they are gone."""
    with suppress(psutil.NoSuchProcess):
        killed = [process, *process.children(recursive=True)]
        for one in killed:
            one.kill()
        psutil.wait_procs(killed, timeout=_ENDING_S)


def _last_words(complaints: Path) -> str:
    text = complaints.read_text(encoding="utf-8", errors="replace").strip()
    uncaught = _UNCAUGHT.search(text)
    return uncaught[1] if uncaught else text.rpartition("\n")[2]
