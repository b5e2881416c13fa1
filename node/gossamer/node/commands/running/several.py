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

from gossamer.node.commands.folder import load
from gossamer.node.commands.signals import EXIT_INTERRUPTED, SIGNALLED, ending_signals
from gossamer.node.config.node import Logging
from gossamer.node.errors import NodeError
from gossamer.node.monitoring.logs import configure_logs, log
from gossamer.protocol.kernel.errors import ProtocolError

# Peers stop within two seconds; one that does not is ended.
STOP_S: Final = 5.0


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
    with trio.open_signal_receiver(signal.SIGINT, *ending_signals()) as signals:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch.end_after, nursery.cancel_scope)
            for folder in folders:
                nursery.start_soon(watch.run, folder, options)
            async for number in signals:
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
    _ended: trio.Event = field(factory=trio.Event)

    async def run(self, folder: Path, options: Sequence[str]) -> None:
        """Run one peer to its end, and tell if it is lost."""
        code = await _run_one(folder, options)
        self.running.discard(folder)
        if code != 0 and not self.stopping:
            self.lost.append(code if code > 0 else SIGNALLED - code)
            left = ", ".join(sorted(map(str, self.running)))
            log.error("a peer is lost", folder=str(folder), cause=_cause(code), left=left or "none")
        if not self.running:
            self._ended.set()

    async def end_after(self, scope: trio.CancelScope) -> None:
        """Cancel once no peer runs any more."""
        await self._ended.wait()
        scope.cancel()


def _cause(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"it ended with exit code {code}"
    try:
        return f"it was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"it was killed by signal {-code}"


async def _run_one(folder: Path, options: Sequence[str]) -> int:
    command = [sys.executable, "-m", "gossamer.command.main", "node", "run", str(folder), *options]
    # In a group of its own, so that a Ctrl-C at the terminal reaches it once, through us.
    done = await trio.run_process(
        command, check=False, start_new_session=True, deliver_cancel=_stop
    )
    return done.returncode


async def _stop(process: subprocess.Popen[bytes] | trio.Process) -> None:
    process.send_signal(signal.SIGTERM)
    await trio.sleep(STOP_S)
    process.kill()
