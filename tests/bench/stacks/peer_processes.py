"""Processes that are started, asked, measured and ended, and peers of a cluster in several.

The other end is `peer_requests`, for peers of a cluster `peer_process`.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from attrs import define, field

from support.clusters import MadeCluster

# Longer than anything here takes on a busy machine; only a fault lasts so long.
PATIENCE_S = 120.0
HUNG_S = 3600.0  # without an answer where a request has a patience of its own
ENDING_S = 10.0  # a process that takes longer to end is killed
READ_BYTES = 1 << 20
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class ProcessFailed(RuntimeError):
    """A process that did not do what it was asked for; says why in a sentence."""


@define(eq=False)
class Program:
    """A process that answers requests, with a log of what it writes on standard error."""

    process: subprocess.Popen[bytes]
    log: Path
    _held: bytearray = field(factory=bytearray)

    def call(self, name: str, **arguments: Any) -> Any:
        self.ask(name, arguments)
        return self.answer(name)

    def ask(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Ask for something; `answer` is to be called next."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # `answer` says that it has ended
            self.process.stdin.write(json.dumps([name, arguments]).encode() + b"\n")
            self.process.stdin.flush()

    def answer(self, name: str, within_s: float = HUNG_S) -> Any:
        """What came of the request; raises `ProcessFailed` if nothing good did."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + within_s
        while b"\n" not in self._held:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self._fail(f"it did not {name} within {within_s:.0f} s")
            data = os.read(self.process.stdout.fileno(), READ_BYTES)
            if not data:
                self._fail(f"a process {self._end()} when it was to {name}")
            self._held += data
        line, _, self._held = self._held.partition(b"\n")
        done, result = json.loads(line)
        if not done:
            raise ProcessFailed(f"it could not {name}: {result}")
        return result

    def _end(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            return f"ended with code {self.process.wait(ENDING_S)}"
        return "closed its output"

    def _fail(self, sentence: str) -> None:
        said = [line for line in self.log.read_text(errors="replace").split("\n") if line.strip()]
        raise ProcessFailed(f"{sentence} ({said[-1].strip()})" if said else sentence)


@define(eq=False)
class Programs:
    """Processes that answer requests, and the identifiers of others that belong to them."""

    programs: Sequence[Program]
    servers: Sequence[int] = ()

    def call(self, name: str, within_s: float = HUNG_S, **arguments: Any) -> list[Any]:
        return self.call_each(name, [arguments] * len(self.programs), within_s)

    def call_each(
        self, name: str, arguments: Sequence[Mapping[str, Any]], within_s: float = HUNG_S
    ) -> list[Any]:
        for program, its in zip(self.programs, arguments, strict=True):
            program.ask(name, its)
        return [program.answer(name, within_s) for program in self.programs]

    def cpu_s(self) -> float:
        """Processor seconds of all so far, with those of processes that they had and ended."""
        return sum(sum(one.cpu_times()[:4]) for one in self._all())

    def memory(self) -> tuple[int, int]:
        """Bytes resident in all, and the same with what several share shared out among them."""
        told = [one.memory_full_info() for one in self._all()]
        return sum(one.rss for one in told), sum(one.pss for one in told)

    def _all(self) -> list[psutil.Process]:
        found = [one.process.pid for one in self.programs]
        processes = [psutil.Process(pid) for pid in (*found, *self.servers)]
        if any(one.status() == psutil.STATUS_ZOMBIE for one in processes):
            raise ProcessFailed("one of its processes ended")
        return processes


@define(eq=False)
class PeerProcesses(Programs):
    """Peers of one cluster, numbered through over all processes, by the folders of each."""

    folders: Sequence[Sequence[str]] = field(kw_only=True)

    def open(self, round_s: float, settings: Mapping[str, Any]) -> None:
        """Start all peers, which look for the first one."""
        start = {"round_s": round_s, "settings": settings}
        first, *others = self.programs
        bootstrap = first.call("open", folders=self.folders[0], bootstrap=[], **start)[:1]
        rest = [{"folders": one, "bootstrap": bootstrap, **start} for one in self.folders[1:]]
        Programs(others).call_each("open", rest)

    def shared_out(self, items: Sequence[Any]) -> list[list[tuple[int, int, Any]]]:
        """For each process [number, place of the peer, item]: peers get items in turn."""
        peers = [
            (process, place)
            for process, folders in enumerate(self.folders)
            for place in range(len(folders))
        ]
        shares: list[list[tuple[int, int, Any]]] = [[] for _ in self.folders]
        for number, item in enumerate(items):
            process, place = peers[number % len(peers)]
            shares[process].append((number, place, item))
        return shares


@contextmanager
def peer_processes(cluster: MadeCluster, sizes: Sequence[int]) -> Iterator[PeerProcesses]:
    """Processes for as many peers each as ``sizes`` says; ended when the block is left."""
    folder = cluster.first.folder.path.parent
    members = [cluster.first, *(cluster.admit(f"peer-{i}") for i in range(1, sum(sizes)))]
    folders = iter([str(member.folder.path) for member in members])
    cluster.store.close()
    paths = [*filter(None, sys.path)]
    with programs_of(
        Path(sys.executable), "bench.stacks.peer_process", paths, len(sizes), folder, strict=True
    ) as programs:
        shares = [[next(folders) for _ in range(size)] for size in sizes]
        yield PeerProcesses(programs, folders=shares)


@contextmanager
def programs_of(
    python: Path,
    module: str,
    paths: Sequence[str],
    count: int,
    folder: Path,
    *,
    strict: bool = False,
) -> Iterator[list[Program]]:
    """So many processes that run ``module``; ended when the block is left.

    A ``strict`` one has to end by itself.
    """
    kept = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}
    environment = kept | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
    command = [str(python), "-m", module]
    with ExitStack() as stack:
        started: list[Program] = []
        for number in range(count):
            log = folder / f"process-{number}.log"
            process = stack.enter_context(
                started_process(command, log, environment, stdin=True, strict=strict)
            )
            started.append(Program(process, log))
        stack.callback(_close_all, started)
        yield started


def _close_all(programs: Sequence[Program]) -> None:
    """Let all end at the same time: the end of its standard input ends each."""
    for program in programs:
        assert program.process.stdin is not None
        with suppress(OSError):
            program.process.stdin.close()


@contextmanager
def started_process(
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str],
    *,
    stdin: bool = False,
    strict: bool = False,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that never outlives the block, or this process."""
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE if stdin else errors,
            stderr=errors,
            preexec_fn=_end_with_parent if sys.platform == "linux" else None,
        )
    try:
        yield process
    finally:
        if process.stdin is None:
            process.terminate()
        else:
            with suppress(OSError):
                process.stdin.close()
        try:
            process.wait(PATIENCE_S if strict else ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            if strict:
                raise
        finally:
            if process.stdout is not None:
                process.stdout.close()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
