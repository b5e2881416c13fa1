"""A node as a process: its signals, its logs, and its end, whatever the node is."""

from __future__ import annotations

import signal
import time
from contextlib import AsyncExitStack

import trio

from gossamer.node.commands.signals import EXIT_INTERRUPTED, ending_signals
from gossamer.node.config.node import NodeConfig
from gossamer.node.local.address import LocalAddress, local_address
from gossamer.node.local.server import LocalService
from gossamer.node.local.services import LocalCounts
from gossamer.node.monitoring.logs import Repetitions, log


class NodeProcess:
    """Runs until a signal or a client stops it; subclasses know what.

    Attributes:
        exit_code: of the process, once it has stopped.
    """

    def __init__(self, config: NodeConfig) -> None:
        self.exit_code = 0
        self._config = config
        self._address: LocalAddress = local_address(config.identity.folder, config.local)
        self._scope = trio.CancelScope()
        self._counts = LocalCounts()
        self._started_at = time.monotonic()
        self._server: LocalService | None = None

    async def run(self, repetitions: Repetitions) -> None:
        """Run until stopped."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                await nursery.start(self._watch_signals)
                nursery.start_soon(self._flush_logs, repetitions)
                async with AsyncExitStack() as stack:
                    await self._work(stack, nursery)
                    await trio.sleep_forever()
        repetitions.flush()
        log.info("stopped")

    def stop(self) -> None:
        """Stop soon."""
        self._scope.cancel()

    async def _work(self, stack: AsyncExitStack, nursery: trio.Nursery) -> None:
        """Start everything, and say when it is ready; what was started last stops first."""
        raise NotImplementedError

    @property
    def _clients(self) -> int:
        return 0 if self._server is None else self._server.clients

    @property
    def _uptime_s(self) -> float:
        return round(time.monotonic() - self._started_at, 1)

    async def _watch_signals(self, *, task_status: trio.TaskStatus[None]) -> None:
        with trio.open_signal_receiver(signal.SIGINT, *ending_signals()) as signals:
            task_status.started()
            async for number in signals:
                self.exit_code = EXIT_INTERRUPTED if number == signal.SIGINT else 0
                log.info("stopping", signal=signal.Signals(number).name)
                self.stop()

    async def _flush_logs(self, repetitions: Repetitions) -> None:
        """Tell now and then how often warnings were repeated."""
        while True:
            await trio.sleep(max(1.0, self._config.logging.repeat_s))
            repetitions.flush()
