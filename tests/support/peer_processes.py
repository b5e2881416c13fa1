"""Many real peers in several processes, driven from one place; `peer_process` is the other end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field

from support.clusters import MadeCluster

# Longer than anything here takes on a busy machine; only a fault lasts so long.
PATIENCE_S = 120.0


@define(eq=False)
class PeerProcess:
    """A process that runs some peers.

    Attributes:
        first: the number of its first peer.
        folders: those of its peers.
    """

    first: int
    folders: Sequence[Path]
    _process: subprocess.Popen[str]

    def ask(self, name: str, **arguments: Any) -> None:
        """Ask for something; `answer` is to be called next."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        """What came of the request."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a process of peers ended before it answered")
        done, result = json.loads(line)
        if not done:
            raise RuntimeError(result)
        return result

    def call(self, name: str, **arguments: Any) -> Any:
        """Ask for something, and wait for it."""
        self.ask(name, **arguments)
        return self.answer()


@define(eq=False)
class PeerProcesses:
    """Peers of one cluster, numbered through over all processes."""

    processes: Sequence[PeerProcess]
    _home: dict[int, tuple[PeerProcess, int]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        for process in self.processes:
            for place in range(len(process.folders)):
                self._home[process.first + place] = process, place

    def open(self, round_s: float, settings: Mapping[str, Any]) -> None:
        """Start all peers, which look for the first one."""
        bootstrap: list[str] = []
        for process in self.processes:
            folders = list(map(str, process.folders))
            start = {"bootstrap": bootstrap, "round_s": round_s, "settings": dict(settings)}
            if bootstrap:
                process.ask("open", folders=folders, **start)
            else:
                bootstrap = process.call("open", folders=folders, **start)[:1]
        for process in self.processes[1:]:
            process.answer()

    def of_peer(self, number: int) -> tuple[PeerProcess, int]:
        """The process of a peer, and its place there."""
        return self._home[number]

    def call(self, name: str, **arguments: Any) -> list[Any]:
        """Ask all processes for the same; return their answers in order."""
        return self.call_each(name, [arguments] * len(self.processes))

    def call_each(self, name: str, arguments: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Ask each process for its own."""
        for process, its in zip(self.processes, arguments, strict=True):
            process.ask(name, **its)
        return [process.answer() for process in self.processes]


@contextmanager
def peer_processes(cluster: MadeCluster, sizes: Sequence[int]) -> Iterator[PeerProcesses]:
    """Processes for as many peers each as ``sizes`` says; ended when the block is left."""
    folders = [cluster.first.folder.path]
    folders += [cluster.admit(f"peer-{i}").folder.path for i in range(1, sum(sizes))]
    cluster.store.close()
    with ExitStack() as stack:
        made = []
        for i, size in enumerate(sizes):
            first = sum(sizes[:i])
            process = stack.enter_context(_spawned())
            made.append(PeerProcess(first, folders[first : first + size], process))
        yield PeerProcesses(made)


@contextmanager
def _spawned() -> Iterator[subprocess.Popen[str]]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, "-m", "support.peer_process"],
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        # The end of its standard input ends it.
        try:
            process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
