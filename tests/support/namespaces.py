"""Two hosts on one network: network namespaces with an address each, joined by a cable."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import attrs
import pytest

PATIENCE_S = 20


@attrs.frozen
class Host:
    name: str
    address: str  # IPv4, on the network that both hosts are on

    @property
    def inside(self) -> tuple[str, ...]:
        """What a command begins with that is to run on this host."""
        return ("ip", "netns", "exec", self.name)

    def run(self, *command: str) -> None:
        _run(*self.inside, *command)


@contextmanager
def two_hosts() -> Iterator[Sequence[Host]]:
    """Two hosts; the test is skipped where this user may not make any."""
    hosts = [Host(f"gossamer-{os.getpid()}-{n}", f"10.77.0.{n}") for n in (1, 2)]
    with ExitStack() as stack:
        for host in hosts:
            _make_namespace(host)
            stack.callback(_run, "ip", "netns", "delete", host.name)
        cable = [f"gsm{os.getpid()}n{n}" for n in (1, 2)]
        _run(*("ip", "link", "add", cable[0], "type", "veth", "peer", "name", cable[1]))
        for host, end in zip(hosts, cable, strict=True):
            _run("ip", "link", "set", end, "netns", host.name)
            host.run("ip", "address", "add", f"{host.address}/24", "dev", end)
            host.run("ip", "link", "set", end, "up")
            host.run("ip", "link", "set", "lo", "up")
        yield hosts


@contextmanager
def firewall(host: Host, port: int) -> Iterator[None]:
    """Let ``host`` drop what comes to a TCP port; skipped where there is no firewall to use."""
    if shutil.which("nft") is None:
        pytest.skip("there is no nft here to make a firewall with")
    table = ("table", "inet", "gossamer")
    host.run("nft", "add", *table)
    hook = "{ type filter hook input priority 0 ; }"
    host.run("nft", "add", "chain", *table[1:], "input", hook)
    host.run("nft", "add", "rule", *table[1:], "input", "tcp", "dport", str(port), "drop")
    try:
        yield
    finally:
        host.run("nft", "delete", *table)


def _make_namespace(host: Host) -> None:
    if shutil.which("ip") is None:
        pytest.skip("there is no ip command (iproute2) here to make network namespaces with")
    try:
        _run("ip", "netns", "add", host.name)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_S)
