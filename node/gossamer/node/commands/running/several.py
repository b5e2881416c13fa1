"""`gossamer node run` with several folders: a process for each, watched over by this one."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import trio
from attrs import define, field

from gossamer.node.commands.signals import (
    EXIT_INTERRUPTED,
    SIGNALLED,
    ending_signals,
    has_terminal,
)
from gossamer.node.config.file import load
from gossamer.node.config.node import NAME_LENGTH, Logging
from gossamer.node.errors import NodeError
from gossamer.node.monitoring.logs import configure_logs, log
from gossamer.protocol.kernel.errors import ProtocolError

# Peers stop within two seconds, on a machine that is busy later; one that hangs is ended.
STOP_S: Final = 30.0


def run_several(folders: Sequence[Path], changes: Sequence[str] | None) -> int:
    """Run the peer of each folder in a process of its own; return the exit code.

    When one is lost that is told at once and the others go on: peers are there to survive each
    other's failures. The exit code tells of it at the end: that of the process, or 128 and the
    number of the signal that killed it.
    """
    options = [part for change in changes or () for part in ("--set", change)]
    logging = _logging(folders[0], changes)
    configure_logs(logging.level, logging.format, logging.repeat_s)
    return trio.run(partial(_run, folders, options))


def _logging(folder: Path, changes: Sequence[str] | None) -> Logging:
    """How to log: as the first peer does, which itself tells what is wrong with its settings."""
    try:
        return load(folder, changes).config.logging
    except (NodeError, ProtocolError, OSError):
        return Logging()


async def _run(folders: Sequence[Path], options: Sequence[str]) -> int:
    watch = _Watch(set(folders))
    reloads = not has_terminal()  # asked later, one that was closed is none any more
    with trio.open_signal_receiver(signal.SIGINT, *ending_signals()) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch.end_after, nursery.cancel_scope)
            for folder in folders:
                nursery.start_soon(watch.run, folder, options)
            async for number in signals:
                if number == signal.SIGHUP and reloads:
                    watch.reload()
                    continue
                watch.stopping = True
                watch.interrupted = number == signal.SIGINT
                nursery.cancel_scope.cancel()
    return EXIT_INTERRUPTED if watch.interrupted else max(watch.lost, default=0)


@define
class _Watch:
    """Over the processes of all peers.

    Attributes:
        running: folders whose peers have not ended.
        lost: exit codes of those that ended without having been told to.
        stopping: whether all are told to stop.
        interrupted: whether they are by Ctrl-C.
    """

    running: set[Path]
    lost: list[int] = field(factory=list)
    stopping: bool = False
    interrupted: bool = False
    _processes: dict[Path, trio.Process] = field(factory=dict)
    _ended: trio.Event = field(factory=trio.Event)

    async def run(self, folder: Path, options: Sequence[str]) -> None:
        """Run one peer to its end, and tell if it is lost."""
        code = await self._run_one(folder, options)
        self.running.discard(folder)
        if code != 0 and not self.stopping:
            self.lost.append(code if code > 0 else SIGNALLED - code)
            left = ", ".join(sorted(map(str, self.running)))
            log.error("a peer is lost", folder=str(folder), cause=_cause(code), left=left or "none")
        if not self.running:
            self._ended.set()

    def reload(self) -> None:
        """Have all peers read their configuration anew."""
        for folder in self.running & self._processes.keys():
            self._processes[folder].send_signal(signal.SIGHUP)

    async def _run_one(self, folder: Path, options: Sequence[str]) -> int:
        # In a group of its own, so that a Ctrl-C at the terminal reaches it once, through us.
        async with trio.open_nursery() as nursery:
            run = partial(
                trio.run_process,
                _command(folder, options),
                check=False,
                start_new_session=True,
                deliver_cancel=_stop,
            )
            process: trio.Process = await nursery.start(run)
            self._processes[folder] = process
        assert process.returncode is not None
        return process.returncode

    async def end_after(self, scope: trio.CancelScope) -> None:
        """Cancel once no peer runs any more."""
        await self._ended.wait()
        scope.cancel()


def _cause(code: int) -> str:
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        return f"it was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was killed by signal {-code}"


def _command(folder: Path, options: Sequence[str]) -> list[str]:
    run = [sys.executable, "-m", "gossamer.command.main", "node", "run", str(folder)]
    # All write to one terminal or file, so that each says in its lines which it is.
    name = "".join(filter(str.isprintable, folder.absolute().name))[:NAME_LENGTH]
    return [*run, "--set", f"logging.name={name}", *options]


async def _stop(process: subprocess.Popen[bytes] | trio.Process) -> None:
    process.send_signal(signal.SIGTERM)
    await trio.sleep(STOP_S)
    log.error("a peer did not stop and is killed", process=process.pid, after_s=STOP_S)
    process.kill()
