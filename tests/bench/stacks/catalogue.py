"""The stacks that are compared: how each is installed, started and secured.

Environments are made in a folder, never for the whole system.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

import trustme
from attrs import define, field

from bench.stacks.peer_processes import ProcessFailed, started_process
from bench.stacks.workload import Workload
from gossamer.node.peer.batches import machine_code
from gossamer.node.peer.batches.machine_code import Made
from support.clusters import MadeCluster
from support.node_processes import free_ports

TESTS = Path(__file__).parents[2]
STARTING_S = 20.0  # for a server
LOOK_S = 0.05
PATIENCE_S = 600.0  # for an installation
STAMP = "installed"

# What processes of peers are told, and the identifiers of servers.
Settings = Iterator[tuple[dict[str, Any], list[int]]]


@define(eq=False)
class Stack(ABC):
    """A stack that takes part."""

    name: ClassVar[str]
    title: ClassVar[str]
    module: ClassVar[str]  # that its peers run
    security: ClassVar[str]
    published: ClassVar[str]  # when a publication counts as taken
    requirement: ClassVar[str] = ""

    python: Path = Path(sys.executable)
    versions: dict[str, str] = field(factory=dict)
    paths: list[str] = field(factory=lambda: [str(TESTS)])

    def install(self, environments: Path) -> None:
        """Make its environment, or find it; raises `LeftOut` where that cannot be."""
        self.python = make_environment(environments / self.requirement, self.requirement)
        asked = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"
        told = _do([str(self.python), "-c", asked, self.requirement], "it has no version")
        self.versions = {self.requirement: told.strip()}

    @abstractmethod
    @contextmanager
    def settings(self, workload: Workload, folder: Path) -> Settings:
        """What its processes are told, and the processes of servers that run meanwhile."""


class GossamerStack(Stack):
    name = "gossamer"
    title = "gossamer"
    module = "bench.stacks.gossamer_peers"
    security = "mutual TLS, signed events"
    published = "several peers hold the event and will deliver it"
    round_s: float = 2.0

    def install(self, environments: Path) -> None:
        del environments  # it is what this script itself runs in
        self.paths = [path for path in sys.path if path]
        self.versions = {"gossamer": version("gossamer")}
        # As on every machine where a node has been busy before.
        for part in machine_code.ARGUMENTS:
            if machine_code.load(part) is None and machine_code.make(part) is not Made.HERE:
                raise LeftOut("its rules for busy peers could not be compiled")

    @contextmanager
    def settings(self, workload: Workload, folder: Path) -> Settings:
        cluster = MadeCluster(folder / "first")
        others = (cluster.admit(f"peer-{number}") for number in range(1, workload.peers))
        members = [cluster.first, *others]
        cluster.store.close()
        folders = [str(member.folder.path) for member in members]
        addresses = _addresses("{host}:{port}", workload)
        yield {"folders": folders, "addresses": addresses, "round_s": self.round_s}, []


class ZenohStack(Stack):
    name = "zenoh"
    title = "Zenoh"
    module = "bench.stacks.zenoh_peers"
    security = "mutual TLS"
    published = "it is in the queues of the links, which block when they are full"
    requirement = "eclipse-zenoh"

    @contextmanager
    def settings(self, workload: Workload, folder: Path) -> Settings:
        authority, certificate, key = _certificates(folder)
        tls = {
            "root_ca_certificate": authority,
            "enable_mtls": True,
            "listen_certificate": certificate,
            "listen_private_key": key,
            "connect_certificate": certificate,
            "connect_private_key": key,
        }
        addresses = _addresses("tls/{host}:{port}", workload)
        yield {"addresses": addresses, "tls": tls, "topics": workload.names}, []


class ReliableZenohStack(ZenohStack):
    name = "zenoh-reliable"
    title = "Zenoh, advanced"
    module = "bench.stacks.zenoh_reliable_peers"
    published = "it is in the links' queues, and kept for who misses it"


class NatsStack(Stack):
    name = "nats"
    title = "NATS"
    module = "bench.stacks.nats_peers"
    security = "mutual TLS"
    published = "the client has buffered it, in bursts when the server has read it"
    requirement = "nats-py"
    server: Path = Path()
    servers: ClassVar[int] = 1

    def install(self, environments: Path) -> None:
        super().install(environments)
        self.server = find_nats_server(environments / "nats-server")
        told = _do([str(self.server), "--version"], "it tells no version")
        self.versions["nats-server"] = told.split()[-1].removeprefix("v")

    @contextmanager
    def settings(self, workload: Workload, folder: Path) -> Settings:
        authority, certificate, key = _certificates(folder)
        tls = (
            f'tls {{ cert_file: "{certificate}", key_file: "{key}", ca_file: "{authority}", '
            "verify: true }\n"
        )
        port = free_ports(2 * self.servers)
        addresses = [f"127.0.0.1:{port + number}" for number in range(self.servers)]
        texts = self.configurations(folder, port + self.servers, tls)
        with ExitStack() as running:
            processes = []
            for number, (address, text) in enumerate(zip(addresses, texts, strict=True)):
                told, log = folder / f"nats-{number}.conf", folder / f"nats-{number}.log"
                told.write_text(f'listen: "{address}"\n{tls}{text}')
                command = [str(self.server), "--config", str(told)]
                server = running.enter_context(started_process(command, log, os.environ))
                processes.append(server.pid)
            for number, address in enumerate(addresses):
                _wait_for_server(address, folder / f"nats-{number}.log")
            files = {"authority": authority, "certificate": certificate, "key": key}
            servers = [f"tls://{address}" for address in addresses]
            yield {"servers": servers, "topics": list(workload.names), **files}, processes

    def configurations(self, folder: Path, port: int, tls: str) -> list[str]:
        """What each server is told beside its address and certificates; ports from one on."""
        del folder, port, tls
        return [""]


class JetStreamStack(NatsStack):
    name = "jetstream"
    title = "NATS JetStream"
    module = "bench.stacks.jetstream_peers"
    published = "two of three servers have it in files, which are not synced before"
    servers = 3

    def configurations(self, folder: Path, port: int, tls: str) -> list[str]:
        addresses = [f"127.0.0.1:{port + number}" for number in range(self.servers)]
        routes = ", ".join(f'"nats-route://{address}"' for address in addresses)
        return [
            f'server_name: "server-{number}"\njetstream {{ store_dir: "{folder / str(number)}" }}\n'
            f'cluster {{ name: "three", listen: "{address}", routes: [{routes}], {tls} }}\n'
            for number, address in enumerate(addresses)
        ]


class Libp2pStack(Stack):
    name = "libp2p"
    title = "py-libp2p"
    module = "bench.stacks.libp2p_peers"
    security = "Noise, signed events"
    published = "it is in the queues of the streams, which drop it when they are full"
    requirement = "libp2p"

    @contextmanager
    def settings(self, workload: Workload, folder: Path) -> Settings:
        del folder
        yield {"addresses": _addresses("/ip4/{host}/tcp/{port}", workload)}, []


STACKS: tuple[type[Stack], ...] = (
    *(GossamerStack, JetStreamStack, ReliableZenohStack),
    *(ZenohStack, NatsStack, Libp2pStack),
)


def _addresses(form: str, workload: Workload) -> list[str]:
    first = free_ports(workload.peers)
    return [form.format(host="127.0.0.1", port=first + i) for i in range(workload.peers)]


def _certificates(folder: Path) -> tuple[str, str, str]:
    """Files of an authority, and of a certificate with its key that all share."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    files = [folder / name for name in ("authority.pem", "certificate.pem", "key.pem")]
    authority.cert_pem.write_to_path(files[0])
    for blob in issued.cert_chain_pems:
        blob.write_to_path(files[1], append=True)
    issued.private_key_pem.write_to_path(files[2])
    return str(files[0]), str(files[1]), str(files[2])


def _wait_for_server(address: str, log: Path) -> None:
    host, port = address.split(":")
    deadline = time.monotonic() + STARTING_S
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(LOOK_S)
    said = log.read_text(errors="replace").strip().split("\n")
    raise LeftOut(f"the server did not listen within {STARTING_S:.0f} s ({said[-1]})")


class LeftOut(ProcessFailed):
    """A stack that cannot take part; says why in a sentence."""


def make_environment(folder: Path, requirement: str) -> Path:
    """The interpreter of a virtual environment with a package, made if it is not there."""
    python = folder / "bin" / "python"
    if not (folder / STAMP).exists():
        shutil.rmtree(folder, ignore_errors=True)
        _do([sys.executable, "-m", "venv", str(folder)], "no virtual environment could be made")
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--retries", "1"]
        _do([*pip, "install", "--quiet", requirement], f"{requirement} cannot be installed")
        (folder / STAMP).touch()
    return python


def find_nats_server(folder: Path) -> Path:
    """The NATS server that is installed, or Debian's, unpacked in a folder of its own."""
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin"))
    installed = shutil.which("nats-server", path=places)
    if installed:
        return Path(installed)
    server = folder / "usr" / "sbin" / "nats-server"
    if not server.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        lacking = "there is no nats-server, and Debian's cannot be had"
        _do(["apt-get", "download", "--quiet", "nats-server"], lacking, folder=folder)
        packages = [str(path) for path in folder.glob("nats-server_*.deb")]
        _do(["dpkg", "-x", *packages[:1], str(folder)], lacking)
    if not server.exists():
        raise LeftOut("Debian's package nats-server has no server where it used to be")
    return server


def _do(command: Sequence[str], failure: str, folder: Path | None = None) -> str:
    """What a command prints; `LeftOut` with its last words if it fails."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except OSError as error:
        raise LeftOut(f"{failure}: {error}") from None
    except subprocess.TimeoutExpired:
        raise LeftOut(f"{failure}: {command[0]} took more than {PATIENCE_S:.0f} s") from None
    if done.returncode != 0:
        words = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        said = words[-1].removeprefix("ERROR: ") if words else f"exit code {done.returncode}"
        raise LeftOut(f"{failure}: {said}")
    return done.stdout
