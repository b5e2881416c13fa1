"""Brokers in processes of their own, TLS on, over loopback, as people start them."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import trio
from attrs import define, field

from gossamer.node.commands.folder import address_of
from gossamer.node.local.client import open_client
from support.node_processes import PATIENCE_S, Shell, end, free_ports, wait_for_log

POLL_S = 0.05


@define(eq=False)
class BrokerProcesses:
    """Three brokers in a row in the folder ``demo``: peer1, peer2, peer3.

    Attributes:
        running: by number.
    """

    shell: Shell
    options: Sequence[str] = ("--covering", "active")
    running: dict[int, subprocess.Popen[str]] = field(factory=dict)
    _first_port: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._first_port = free_ports(3)
        self.shell.ok("node", "init", "demo", "--peers", "3", "--port", str(self._first_port))

    def folder(self, number: int) -> str:
        return f"demo/peer{number}"

    def start(self, number: int) -> None:
        """Start a broker that dials the one before it."""
        dialled = [f"127.0.0.1:{self._first_port + number - 2}"] if number > 1 else []
        options = [word for at in dialled for word in ("--neighbour", at)]
        process = self.shell.start(
            "node", "run", self.folder(number), "--role", "broker", *self.options, *options
        )
        self.running[number] = process
        wait_for_log(process, "ready")

    def kill(self, number: int) -> None:
        """kill -9"""
        process = self.running.pop(number)
        process.kill()
        process.communicate(timeout=PATIENCE_S)

    def tables(self, number: int) -> dict[str, Any]:
        """What a broker tells of its tables."""

        async def ask() -> dict[str, Any]:
            async with open_client(address_of(self.shell.folder / self.folder(number))) as client:
                return await client.tables()

        return trio.run(ask)

    def wait_for(self, number: int, **sizes: int) -> dict[str, Any]:
        """Wait until a broker's tables are of these sizes; returns them."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            told = self.tables(number)
            if all(told["sizes"][name] == size for name, size in sizes.items()):
                return told
            assert time.monotonic() < deadline, f"{told['sizes']}, expected {sizes}"
            time.sleep(POLL_S)


@contextmanager
def broker_processes(shell: Shell, **options: Any) -> Iterator[BrokerProcesses]:
    """Three brokers that run; stopped at the end."""
    brokers = BrokerProcesses(shell, **options)
    try:
        for number in (1, 2, 3):
            brokers.start(number)
        yield brokers
    finally:
        for process in brokers.running.values():
            process.send_signal(signal.SIGTERM)
        for process in brokers.running.values():
            end(process)
