"""The image and the compose file: their commands run as they stand, here and in docker."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.checkout import ROOT
from support.node_processes import COMMAND, Shell, end, free_ports

DEPLOY = ROOT / "deploy"
BUILD_S = 900


def compose_file() -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed (extra docs)")
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    return found


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile and what follows them."""
    text = re.sub(r"(?m)^#.*\n", "", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
    lines = filter(None, re.sub(r"\\\n", " ", text).splitlines())
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in lines]


def test_the_image_copies_what_there_is_and_nothing_else_is_sent() -> None:
    allowed = [
        line[1:]
        for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    copied = {
        source
        for name, rest in instructions()
        if name == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    }
    assert copied == set(allowed)
    for source in copied:
        assert (ROOT / source).exists()


def test_the_image_runs_a_node_that_reports_its_health() -> None:
    found = dict(instructions())
    command = json.loads(found["ENTRYPOINT"]) + json.loads(found["CMD"])
    assert command == ["gossamer", "node", "run", "/node"]
    health = json.loads(found["HEALTHCHECK"].partition("CMD ")[2])
    assert health == ["gossamer", "node", "status", "/node"]
    assert found["USER"] == "gossamer"


def test_the_commands_of_the_compose_file_make_a_cluster_of_three(tmp_path: Path) -> None:
    """Every command and setting as it stands; host names, ports and folders are this machine's."""
    compose = compose_file()
    services = compose["services"]
    first = free_ports(6)
    peers = {name: services[name] for name in ("peer1", "peer2", "peer3")}
    assert set(services) == {"cluster", *peers}
    shell = Shell(tmp_path)
    # Volumes are there before anything is made in them.
    for mounted in services["cluster"]["volumes"]:
        volume, _, place = mounted.partition(":")
        assert volume in compose["volumes"]
        (tmp_path / place.removeprefix("/")).mkdir(parents=True)
    make_cluster(shell, services["cluster"])
    before = (tmp_path / "peers/peer1/peer.key").read_bytes()
    make_cluster(shell, services["cluster"])
    assert (tmp_path / "peers/peer1/peer.key").read_bytes() == before, "it is made once only"
    with ExitStack() as stack:
        for number, (name, service) in enumerate(peers.items()):
            assert service["volumes"] == [f"{name}:/node"]
            changes = settings(service["environment"], first, number)
            stack.enter_context(shell.node(f"peers/{name}", *changes))
        subscriber = shell.subscriber("--folder", "peers/peer2", "price > 80", "--count", "1")
        event = shell.ok("pub", "--folder", "peers/peer3", "symbol=IBM", "price=81.5").strip()
        code, out, _ = end(subscriber)
    assert code == 0
    assert json.loads(out)["id"] == event


def make_cluster(shell: Shell, service: dict[str, Any]) -> None:
    """Run the command of the service that makes the cluster, but for the change of owner."""
    (script,) = service["command"]
    script = script.replace("/peers", str(shell.folder / "peers"))
    script, _, owner = script.partition("; ")
    assert owner.startswith("chown -R gossamer:gossamer ")
    called = f'gossamer() {{ {shlex.join(COMMAND)} "$@"; }}\n{script}'
    done = shell.start(command=[*service["entrypoint"], called])
    code, _, err = end(done)
    assert code == 0, err


def settings(environment: dict[str, str], first: int, number: int) -> list[str]:
    """The settings of a service's environment for this machine, as options."""
    found: list[str] = []
    for name, value in environment.items():
        section, _, setting = name.removeprefix("GOSSAMER_NODE_").lower().partition("_")
        for other in (1, 2, 3):
            value = value.replace(f"peer{other}:7710", f"127.0.0.1:{first + other - 1}")
        value = value.replace("0.0.0.0:7710", f"127.0.0.1:{first + number}")
        value = value.replace("0.0.0.0:7711", f"127.0.0.1:{first + 3 + number}")
        found += ["--set", f"{section}.{setting}={value}"]
    return found


def docker(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["docker", *arguments], capture_output=True, text=True, **options)


def needs_docker(*more: str) -> None:
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed")
    if docker("info", timeout=30).returncode != 0:
        pytest.skip("no docker daemon runs here")
    for one in more:
        if docker(one, "version", timeout=30).returncode != 0:
            pytest.skip(f"docker {one} is not installed")


@pytest.mark.campaign
def test_docker_builds_the_image_and_runs_the_three_peers() -> None:
    needs_docker("compose")
    compose = ["compose", "-f", str(DEPLOY / "compose.yaml"), "-p", f"gossamer{os.getpid()}"]
    try:
        up = docker(*compose, "up", "--build", "--detach", "--wait", timeout=BUILD_S)
        assert up.returncode == 0, up.stderr
        said = docker(
            *compose, "exec", "-T", "peer3", *["gossamer", "pub", "--folder", "/node", "price=81"]
        )
        assert said.returncode == 0, said.stderr
        members = docker(
            *compose, "exec", "-T", "peer1", *["gossamer", "node", "members", "/node", "--json"]
        )
        assert {one["name"] for one in json.loads(members.stdout)} == {"peer1", "peer2", "peer3"}
    finally:
        docker(*compose, "down", "--volumes", timeout=120)
