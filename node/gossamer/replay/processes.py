"""The processes that hold the peers: started, fed with commands, watched over, stopped.

A worker that dies is replaced, which `ReplayProcesses.on_loss` hears of. Should this process
die itself, the workers' input ends, and they with it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

import attrs
import trio

from gossamer.node.errors import CommandError
from gossamer.replay.lines import Line, Lines, Setup, encode

# Peers stop within two seconds; a worker that does not end is ended.
STOP_S: Final = 5.0
# A worker that dies this often will not do better the next time.
MOST_DEATHS: Final = 3
# Commands that wait for a process.
COMMANDS: Final = 1 << 16


@attrs.define(eq=False)
class _Worker:
    number: int
    commands: trio.MemorySendChannel[Line]
    deaths: int = 0


class ReplayProcesses:
    """Workers with an equal share of the peers each.

    Attributes:
        deaths: how many workers died.
        ended: set once all have ended as they should.
        on_report: takes what workers report.
        on_loss: told the number of a worker that died and was replaced.
    """

    def __init__(self, setup: Setup, workers: int) -> None:
        self.deaths = 0
        self.ended = trio.Event()
        self.on_report: Callable[[Line], None] = lambda _: None
        self.on_loss: Callable[[int], None] = lambda _: None
        self._setup = setup
        self._workers: list[_Worker] = []
        self._channels = [trio.open_memory_channel[Line](COMMANDS) for _ in range(workers)]
        self._stopping = False

    def worker_of(self, node: int) -> int:
        """The number of the worker that holds a peer."""
        return node % len(self._workers)

    def tell(self, node: int, **command: object) -> None:
        """Send a command to a peer."""
        self._workers[self.worker_of(node)].commands.send_nowait({"node": node, **command})

    def tell_all(self, **command: object) -> None:
        """Send a command to all workers."""
        for worker in self._workers:
            worker.commands.send_nowait(dict(command))

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        """Keep the workers running until `dismiss`, or until cancelled.

        Raises:
            CommandError: a worker dies again and again.
        """
        async with trio.open_nursery() as nursery:
            for number, (send, receive) in enumerate(self._channels):
                worker = _Worker(number, send)
                self._workers.append(worker)
                nursery.start_soon(self._keep_running, worker, receive)
            task_status.started()
        self.ended.set()

    def dismiss(self) -> None:
        """Let all peers say goodbye and all workers end."""
        self._stopping = True
        for worker in self._workers:
            worker.commands.close()

    async def _keep_running(
        self, worker: _Worker, commands: trio.MemoryReceiveChannel[Line]
    ) -> None:
        while True:
            code = await self._run_one(commands)
            if self._stopping:
                return
            self.deaths += 1
            worker.deaths += 1
            if worker.deaths >= MOST_DEATHS:
                raise CommandError(
                    f"a process of peers ended {worker.deaths} times, the last time with exit code "
                    f"{code}, expected it to run to the end of the replay"
                )
            self.on_loss(worker.number)

    async def _run_one(self, commands: trio.MemoryReceiveChannel[Line]) -> int:
        async with _process() as process:
            assert process.stdin is not None
            async with trio.open_nursery() as nursery:
                await nursery.start(self._feed, process.stdin, commands)
                await self._read(process)
                nursery.cancel_scope.cancel()
            await process.wait()
            assert process.returncode is not None
            return process.returncode

    async def _feed(
        self,
        stdin: trio.abc.SendStream,
        commands: trio.MemoryReceiveChannel[Line],
        task_status: trio.TaskStatus[None],
    ) -> None:
        """Send what is to be sent; then let the worker's input end, with which it stops."""
        task_status.started()
        try:
            async with stdin:
                await stdin.send_all(encode(attrs.asdict(self._setup)))
                async for command in commands:
                    await stdin.send_all(encode(command))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            # The worker is dead, which is seen where its output ends.
            return

    async def _read(self, process: trio.Process) -> None:
        assert process.stdout is not None
        lines = Lines()
        async for data in process.stdout:
            for line in lines.feed(bytes(data)):
                self.on_report(line)


@asynccontextmanager
async def _process() -> AsyncIterator[trio.Process]:
    """A worker's process, which does not outlive the block."""
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", "gossamer.replay.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # In a group of its own, so that a Ctrl-C at the terminal is for us alone.
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with trio.CancelScope(shield=True):
            assert process.stdin is not None
            await process.stdin.aclose()
            with trio.move_on_after(STOP_S):
                await process.wait()
            if process.returncode is None:
                process.kill()
                await process.wait()
            assert process.stdout is not None
            await process.stdout.aclose()
