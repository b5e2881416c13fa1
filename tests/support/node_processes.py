"""Commands of the node in processes of their own, as people run them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from attrs import define, field

from support.forked_commands import IS_POSSIBLE, ForkedCommand
from support.installed_command import write_distribution

COMMAND = (sys.executable, "-m", "gossamer.command.main")

# Longer than anything here takes on a busy machine: only a fault lasts so long.
PATIENCE_S = 300
# A process that says nothing of what is waited for is killed then: replays take minutes.
SILENCE_S = 300

READY = "ready"
# What nodes logged before they were ready.
_BEFORE_READY: WeakKeyDictionary[subprocess.Popen[str], list[dict[str, Any]]] = WeakKeyDictionary()


@define(eq=False)
class Shell:
    folder: Path
    forks: bool = True  # whether `gossamer` is forked, and not started the long way
    environment: dict[str, str] = field(init=False)
    started: list[subprocess.Popen[str]] = field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        installed = self.folder / "installed"
        write_distribution(installed)
        paths = [*sys.path, str(installed)]
        kept = {key: text for key, text in os.environ.items() if "GOSSAMER_NODE" not in key}
        self.environment = kept | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}

    def start(
        self, *arguments: str, command: Sequence[str] = COMMAND, **options: Any
    ) -> subprocess.Popen[str]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        common: dict[str, Any] = {"cwd": self.folder, "env": self.environment, "text": True}
        process: subprocess.Popen[str]
        if command is COMMAND and self.forks and IS_POSSIBLE:
            process = ForkedCommand(arguments, **common, **{**pipes, **options})
        else:
            process = subprocess.Popen(
                [*command, *arguments], preexec_fn=_heed_signals, **{**common, **pipes, **options}
            )
        self.started.append(process)
        return process

    def kill_all(self) -> None:
        """End what a failed test left running, or it would fail the next one too."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def run(
        self, *arguments: str, text: str = "", patience_s: float = PATIENCE_S
    ) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, stdin=subprocess.PIPE)
        out, err = process.communicate(text, timeout=patience_s)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def _ended(self, codes: Sequence[int], *arguments: str, text: str) -> tuple[str, str]:
        done = self.run(*arguments, text=text)
        assert done.returncode in codes, done.stderr
        return done.stdout, done.stderr

    def ok(self, *arguments: str, text: str = "") -> str:
        """What a command printed that did its work."""
        return self._ended((0,), *arguments, text=text)[0]

    def published(self, folder: str, *arguments: str, text: str = "") -> str:
        """What `gossamer pub` printed, which ends with 3 where the peers have not met yet."""
        return self._ended((0, 3), "pub", "--folder", folder, *arguments, text=text)[0]

    def refused(self, *arguments: str, text: str = "") -> str:
        """What a command said that ended with exit code 2."""
        said = self._ended((2,), *arguments, text=text)[1]
        assert "Traceback" not in said
        return said

    def subscriber(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """`gossamer sub` once it has subscribed."""
        process = self.start("sub", *arguments, **options)
        wait_for_line(process, "subscribed")
        return process

    def status(self, folder: str) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.ok("node", "status", folder, "--json"))
        return told

    @contextmanager
    def node(self, folder: str, *more: str) -> Iterator[subprocess.Popen[str]]:
        """A node that is ready; stopped at the end, where it still runs."""
        process = self.start("node", "run", folder, *more, "--set", "discovery.multicast=false")
        try:
            wait_for_log(process, READY)
            yield process
        finally:
            end(process, signal.SIGTERM)


def _heed_signals() -> None:
    """As from a terminal; what runs in the background or by nohup ignores some of them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def wait_for_log(
    process: subprocess.Popen[str], event: str, *, since_start: bool = False
) -> dict[str, Any]:
    """The next log line about ``event``, of a process that is killed if it is too long silent.

    ``since_start``: also one that was logged before the node of `Shell.node` was ready.
    """
    for fields in _BEFORE_READY.get(process, ()) if since_start else ():
        if fields["event"] == event:
            return fields
    assert process.stderr is not None
    seen = []
    with _killed_when_silent(process):
        for line in process.stderr:
            seen.append(line)
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                if found["event"] == event:
                    return found
                if event == READY:
                    _BEFORE_READY.setdefault(process, []).append(found)
    raise AssertionError(f"it ended without {event!r}: {''.join(seen)}")


def wait_for_line(process: subprocess.Popen[str], words: str, *, printed: bool = False) -> None:
    """Wait until the process says ``words``, on standard error, or prints them."""
    stream = process.stdout if printed else process.stderr
    assert stream is not None
    with _killed_when_silent(process):
        for line in stream:
            if words in line:
                return
    raise AssertionError(f"it ended without {words!r}: {process.stderr and process.stderr.read()}")


def next_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def say(process: subprocess.Popen[str], text: str) -> None:
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.flush()


@contextmanager
def _killed_when_silent(process: subprocess.Popen[str]) -> Iterator[None]:
    late = threading.Timer(SILENCE_S, process.kill)
    late.start()
    try:
        yield
    finally:
        late.cancel()


def end(
    process: subprocess.Popen[str], number: signal.Signals | None = None
) -> tuple[int, str, str]:
    """Exit code and what was still to be read of a process that ends, by a signal if need be."""
    if number is not None:
        process.send_signal(number)
    try:
        out, err = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return process.returncode, out, err


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody listens on.

    Processes that look for some at the same time, whose numbers are close, do so far apart, and all
    of them below what the system gives to connections.
    """
    for first in range(20_000 + os.getpid() % 400 * 30, 32_700, count):
        with ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise AssertionError("no port is free")
