"""Nodes of one cluster in processes of their own, TLS on, over loopback, as people start them."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from attrs import define, field

from gossamer.client.address import LocalAddress
from gossamer.node.commands.folder import address_of
from gossamer.node.local.client import open_client
from support.node_processes import PATIENCE_S, Shell, end, free_ports, wait_for_log

Name = TypeVar("Name", bound=Hashable)


@define(eq=False)
class ClusterProcesses(Generic[Name]):
    """Nodes in the folder ``demo``, peer1, peer2, ..., by their names in this order.

    Behind their ports so many more are free as ``more_ports`` says.
    """

    shell: Shell
    names: Sequence[Name]
    more_ports: int = 0
    running: dict[Name, subprocess.Popen[str]] = field(factory=dict)
    first_port: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        count = len(self.names)
        self.first_port = free_ports(count + self.more_ports)
        ports = ("--port", str(self.first_port))
        self.shell.ok("node", "init", "demo", "--peers", str(count), *ports)

    def port(self, name: Name) -> int:
        return self.first_port + self.names.index(name)

    def folder(self, name: Name) -> Path:
        return self.shell.folder / f"demo/peer{self.names.index(name) + 1}"

    def at(self, name: Name) -> tuple[str, str]:
        return "--folder", str(self.folder(name))

    def address(self, name: Name) -> LocalAddress:
        return address_of(self.folder(name))

    def options(self, name: Name) -> Iterable[str]:
        raise NotImplementedError

    def begin(self, name: Name, **streams: Any) -> None:
        words = ("node", "run", str(self.folder(name)), *self.options(name))
        self.running[name] = self.shell.start(*words, **streams)

    def start(self, *names: Name) -> None:
        for name in names:
            self.begin(name)
        for name in names:
            wait_for_log(self.running[name], "ready")

    def kill(self, name: Name) -> None:
        process = self.running.pop(name)
        process.kill()
        process.communicate(timeout=PATIENCE_S)

    def stop(self) -> None:
        with ExitStack() as stack:
            for process in self.running.values():
                process.send_signal(signal.SIGCONT)
                process.send_signal(signal.SIGTERM)
                stack.callback(end, process)

    @contextmanager
    def all_running(self) -> Iterator[Self]:
        try:
            self.start(*self.names)
            yield self
        finally:
            self.stop()

    async def tables(self, name: Name) -> dict[str, Any]:
        async with open_client(self.address(name)) as client:
            return await client.tables()
