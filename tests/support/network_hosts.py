"""Hosts of one machine: network namespaces on one switch, each with an address of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import attrs
import pytest

NETWORK = "10.77.0"
SWITCH = "switch"


@attrs.define
class Host:
    name: str
    number: int
    interface: str  # of the network that all hosts are on
    network: str = NETWORK

    @property
    def address(self) -> str:
        return f"{self.network}.{self.number}"

    @property
    def inside(self) -> tuple[str, ...]:
        """What a command begins with that is to run on this host."""
        return ("ip", "netns", "exec", self.name)

    def run(self, *command: str) -> None:
        _run(*self.inside, *command)

    def shut_out(self, others: Iterable[Host]) -> None:
        """Let nothing of this host reach others, until `let_in`."""
        for other in others:
            self.run("ip", "route", "replace", "blackhole", f"{other.address}/32")

    def let_in(self) -> None:
        self.run("ip", "route", "flush", "type", "blackhole")

    def unplug(self, *, is_unplugged: bool) -> None:
        self.run("ip", "link", "set", self.interface, "down" if is_unplugged else "up")


@contextmanager
def network_hosts(count: int) -> Iterator[Sequence[Host]]:
    """So many hosts; the test is skipped where this user may not make any."""
    mine = os.getpid()
    hosts = [Host(f"gossamer-{mine}-{n}", n, f"gsm{mine}n{n}") for n in range(1, count + 1)]
    switch = Host(f"gossamer-{mine}-{SWITCH}", 0, SWITCH)
    with ExitStack() as stack:
        for host in (switch, *hosts):
            _make_namespace(host)
            stack.callback(_run, "ip", "netns", "delete", host.name)
        switch.run("ip", "link", "add", SWITCH, "type", "bridge")
        switch.run("ip", "link", "set", SWITCH, "up")
        for host in hosts:
            port = f"gsp{mine}n{host.number}"  # of its own: it is on this machine at first
            _run("ip", "link", "add", host.interface, "type", "veth", "peer", "name", port)
            _run("ip", "link", "set", host.interface, "netns", host.name)
            _run("ip", "link", "set", port, "netns", switch.name)
            switch.run("ip", "link", "set", port, "master", SWITCH, "up")
            host.run("ip", "link", "set", host.interface, "up")
            host.run("ip", "link", "set", "lo", "up")
        number_anew(hosts, NETWORK)
        yield hosts


def number_anew(hosts: Sequence[Host], network: str) -> None:
    for host in hosts:
        host.run("ip", "address", "flush", "dev", host.interface, "scope", "global")
        host.network = network
        host.run("ip", "address", "add", f"{host.address}/24", "dev", host.interface)
        # Multicast goes the way of the interface that has an address.
        host.run("ip", "route", "replace", "224.0.0.0/4", "dev", host.interface)


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
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=20)
