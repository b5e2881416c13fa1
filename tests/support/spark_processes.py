"""`gossamer spark` here or in processes of its own, and clusters of a master and workers."""

from __future__ import annotations

import importlib.util
import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Final

import attrs
import psutil
import pytest

from gossamer.command.main import COMMAND_GROUP, run_command
from support.checkout import ROOT
from support.waiting import POLL_S

# Ends tests that hang: a busy machine takes minutes to start Java, and a first simulation compiles.
HUNG_S: Final = 1800.0
# Of Java that lives for seconds: compiling thoroughly is not worth it.
BRIEF: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
needs_spark = pytest.mark.skipif(
    importlib.util.find_spec("pyspark") is None, reason="needs Spark: pip install '.[spark]'"
)
_PROGRESS = re.compile(r"gossamer: .*\b\d+ of \d+ (tasks|points)\b")
_COMMAND: Final = EntryPoint("spark", "gossamer.spark.commands.cli:app", COMMAND_GROUP)
_RUN: Final = (
    "import sys; from importlib.metadata import EntryPoint; from gossamer.command import main; "
    f"sys.exit(main.run_command({_COMMAND!r}, sys.argv[1:]))"
)


def sentences(told: str) -> list[str]:
    """The lines on standard error that are not about progress."""
    return [line for line in told.splitlines() if not _PROGRESS.match(line)]


def environment(**changes: str | None) -> dict[str, str]:
    """That of this process with the sources on the import path; None removes a variable."""
    folders = [str(ROOT / name) for name in ("node", "sim", "shared", "spark")]
    path = os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")])
    merged: dict[str, str | None] = {**os.environ, "PYTHONPATH": path, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def run_spark_here(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `gossamer spark` in this process, where it joins the session that is active."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = run_command(_COMMAND, arguments)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


def start_spark_command(*arguments: str, **changes: str | None) -> subprocess.Popen[str]:
    has_own_java = not any(argument.startswith("sc://") for argument in arguments)
    # Executors, which are killed, leave their files where they work: below the cluster's folder.
    conf = [
        f"--conf=spark.driver.extraJavaOptions={BRIEF}",
        f"--conf=spark.executor.extraJavaOptions={BRIEF} -Djava.io.tmpdir=.",
    ]
    return subprocess.Popen(
        [sys.executable, "-c", _RUN, *arguments, *(conf if has_own_java else [])],
        env=environment(**changes),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def run_spark_command(*arguments: str, **changes: str | None) -> subprocess.CompletedProcess[str]:
    return run_spark_meanwhile(lambda _: None, HUNG_S, *arguments, **changes)


def run_spark_meanwhile(
    act: Callable[[subprocess.Popen[str]], object],
    end_s: float,
    *arguments: str,
    **changes: str | None,
) -> subprocess.CompletedProcess[str]:
    """Run `gossamer spark` to its end, which has to come so soon after something was done to it."""
    with start_spark_command(*arguments, **changes) as process:
        try:
            act(process)
            out, err = process.communicate(timeout=end_s)
        except BaseException:
            kill_group(process)
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def wait_in(process: subprocess.Popen[Any], condition: Callable[[], object]) -> None:
    wait_for(lambda: process.poll() is not None or condition())


def run_spark_well(*arguments: str, **changes: str | None) -> str:
    """Run `gossamer spark`, which has to end well and without a complaint; what it prints."""
    done = run_spark_command(*arguments, **changes)
    assert (done.returncode, sentences(done.stderr)) == (0, []), done.stderr
    return done.stdout


def kill_spark_when(condition: Callable[[], object], *arguments: str, scratch: Path) -> None:
    """Start `gossamer spark`, and kill it as soon as a condition holds.

    Its files, which stay then, go to the folder ``scratch``.
    """

    def kill(process: subprocess.Popen[str]) -> None:
        wait_in(process, condition)
        assert process.poll() is None, process.communicate()
        kill_group(process)

    scratch.mkdir(exist_ok=True)
    run_spark_meanwhile(kill, HUNG_S, *arguments, TMPDIR=str(scratch))


def kill_group(process: subprocess.Popen[Any]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + HUNG_S
    while not condition():
        assert time.monotonic() < deadline, "what was to happen did not"
        time.sleep(POLL_S)


def spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


@attrs.frozen
class Cluster:
    """A standalone cluster of Spark on this machine; workers start executors for who asks."""

    master: str
    workers: list[subprocess.Popen[bytes]]
    start_worker: Callable[[], None]

    def busy_executors(self) -> list[psutil.Process]:
        """The processes that run tasks now, or have: those that started a Python for them."""
        found = [one for worker in self.workers for one in psutil.Process(worker.pid).children()]
        return [one for one in found if _has_children(one)]

    def kill_busy_worker(self) -> None:
        """Kill a worker while its executor runs tasks, with it, and start another worker.

        The Python processes of tasks have groups of their own, and end with their executor.
        """
        wait_for(self.busy_executors)
        (executor, *_) = self.busy_executors()
        (worker,) = [one for one in self.workers if one.pid == executor.ppid()]
        kill_group(worker)
        self.workers.remove(worker)
        self.start_worker()


def _has_children(process: psutil.Process) -> bool:
    try:
        return bool(process.children())
    except psutil.NoSuchProcess:
        return False


def apart_from(folder: Path, other: Path | None = None) -> tuple[str, ...]:
    """What a command begins with to which ``folder`` is another one: empty, if not ``other``.

    The test is skipped where this user may not make mount namespaces.
    """
    mount = "-t tmpfs tmpfs" if other is None else f"--bind {shlex.quote(str(other))}"
    inside = f'mount {mount} "$0" && exec "$@"'
    command = ("unshare", "--mount", "sh", "-c", inside, str(folder))
    try:
        tried = subprocess.run([*command, "true"], capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"needs mount namespaces: {error}")
    if tried.returncode:
        pytest.skip(f"needs mount namespaces: {tried.stderr.strip()}")
    return command


@contextmanager
def standalone_cluster(
    folder: Path, java_home: Path, workers: int, inside: Sequence[str] = (), **variables: str
) -> Iterator[Cluster]:
    """A master and workers of one core each on this machine, with their files in a folder.

    Commands of workers begin with ``inside``, such as `apart_from` a folder; executors inherit the
    variables of their environment.
    """
    home = spark_home()
    running: list[subprocess.Popen[bytes]] = []
    started: list[subprocess.Popen[bytes]] = []
    changes = {
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(java_home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": f"{BRIEF} -Djava.io.tmpdir={folder}",
        "TMPDIR": str(folder),
        **variables,
    }

    def start(sign: str, name: str, *arguments: str, inside: Sequence[str] = ()) -> str:
        """Start a daemon of Spark, and wait for what its log says when it is ready."""
        log = folder / f"{name}-{len(running)}.log"
        program = (str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}")
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [*inside, *program, "--webui-port", "0", *arguments],
                env=environment(**changes),
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        running.append(process)
        wait_in(process, lambda: re.search(sign, log.read_text()))
        seen = re.search(sign, log.read_text())
        assert seen, f"{name} ended before it was ready"
        return seen[0]

    def start_worker() -> None:
        scratch = folder / f"worker-{len(running)}"
        size = ("--cores", "1", "--memory", "1g", "--work-dir", str(scratch))
        start("Successfully registered with", "worker.Worker", *size, address, inside=inside)
        started.append(running[-1])

    try:
        local = ("--host", "127.0.0.1", "--port", "0")
        address = start(r"spark://127\.0\.0\.1:\d+(?=\s)", "master.Master", *local)
        for _ in range(workers):
            start_worker()
        assert running[0].poll() is None
        yield Cluster(address, started, start_worker)
    finally:
        for process in reversed(running):
            if process.poll() is None:
                kill_group(process)
