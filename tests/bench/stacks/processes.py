"""Processes that are started, asked, measured and ended; `application` is the other end."""

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

from bench.stacks.environments import LeftOut

ENDING_S = 10.0  # a process that takes longer to end is killed
TESTS = Path(__file__).parents[2]
READ_BYTES = 1 << 20
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


@define(eq=False)
class Program:
    """A process that answers requests.

    Attributes:
        log: what it writes on standard error.
    """

    process: subprocess.Popen[bytes]
    log: Path
    _held: bytearray = field(factory=bytearray)

    def ask(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Ask for something; `answer` is to be called next."""
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):  # `answer` says that it has ended
            self.process.stdin.write(json.dumps([name, arguments]).encode() + b"\n")
            self.process.stdin.flush()

    def answer(self, name: str, patience_s: float) -> Any:
        """What came of the request; raises `LeftOut` if nothing good did."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + patience_s
        while b"\n" not in self._held:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise LeftOut(f"it did not {name} within {patience_s:.0f} s{self._last_words()}")
            data = os.read(self.process.stdout.fileno(), READ_BYTES)
            if not data:
                raise LeftOut(f"a process {self._end()} when it was to {name}{self._last_words()}")
            self._held += data
        line, _, self._held = self._held.partition(b"\n")
        done, result = json.loads(line)
        if not done:
            raise LeftOut(f"it could not {name}: {result}")
        return result

    def _end(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            return f"ended with code {self.process.wait(ENDING_S)}"
        return "closed its output"

    def _last_words(self) -> str:
        words = self.log.read_text(errors="replace").split("\n")
        said = [line.strip() for line in words if line.strip()]
        return f" ({said[-1]})" if said else ""


@define(eq=False)
class Programs:
    """The processes of a stack.

    Attributes:
        programs: those that have peers.
        servers: identifiers of others that belong to it.
    """

    programs: Sequence[Program]
    servers: Sequence[int]

    def call(self, name: str, patience_s: float, **arguments: Any) -> list[Any]:
        """Ask all for the same; return their answers in order."""
        return self.call_each(name, patience_s, [arguments] * len(self.programs))

    def call_each(
        self, name: str, patience_s: float, arguments: Sequence[Mapping[str, Any]]
    ) -> list[Any]:
        """Ask each for its own."""
        for program, its in zip(self.programs, arguments, strict=True):
            program.ask(name, its)
        return [program.answer(name, patience_s) for program in self.programs]

    def cpu_s(self) -> float:
        """Processor seconds of all so far, with those of processes that they had and ended."""
        return sum(sum(one.cpu_times()[:4]) for one in self._all())

    def memory(self) -> tuple[int, int]:
        """Bytes resident in all, and the same with what several share shared out among them."""
        told = [one.memory_full_info() for one in self._all()]
        return sum(one.rss for one in told), sum(one.pss for one in told)

    def _all(self) -> list[psutil.Process]:
        """All of them; raises `LeftOut` if one has ended."""
        found = [one.process.pid for one in self.programs]
        processes = [psutil.Process(pid) for pid in (*found, *self.servers)]
        if any(one.status() == psutil.STATUS_ZOMBIE for one in processes):
            raise LeftOut("one of its processes ended")
        return processes


@contextmanager
def programs_of(
    python: Path, module: str, paths: Sequence[str], count: int, folder: Path
) -> Iterator[list[Program]]:
    """So many processes that run ``module``; ended when the block is left."""
    kept = {key: text for key, text in os.environ.items() if not key.startswith("PYTHON")}
    environment = kept | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
    with ExitStack() as stack:
        started = []
        for number in range(count):
            log = folder / f"process-{number}.log"
            process = stack.enter_context(
                started_process([str(python), "-m", module], log, environment, stdin=True)
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
    command: Sequence[str], log: Path, environment: Mapping[str, str], *, stdin: bool = False
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
            process.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
