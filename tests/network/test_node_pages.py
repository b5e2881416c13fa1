"""What pages, the image and the compose file say works as it stands, in a fresh folder."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import typer

from gossamer.command.main import find_commands
from support.checkout import ROOT
from support.node_processes import COMMAND, PATIENCE_S, Shell, end, free_ports, next_line
from support.pasted_blocks import Reader, section, shell_blocks

PAGES = {
    "README.md": ("Peers of your own", "demo"),
    "docs/first-cluster.md": ("Tutorial: a first cluster", "demo"),
    "docs/broker-node.md": ("In five minutes", "brokers"),
    "docs/scot-node.md": ("In five minutes", "scot"),
    "docs/graph-brokers.md": ("In five minutes", "graph"),
}
# Where commands of the node are described, beside the pages above.
MORE = (
    *("docs/node.md", "docs/monitoring.md", "docs/client.md", "docs/tasks.md"),
    *("docs/upgrading.md", "examples/node/README.md"),
)


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with Reader(Shell(tmp_path, forks=False)) as found:
        yield found


@pytest.mark.campaign
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_work_as_they_stand(reader: Reader, page: str) -> None:
    heading, folder = PAGES[page]
    blocks = shell_blocks(section(text_of(page), heading))
    assert any("gossamer pub" in line for block in blocks for line in block)
    reader.paste(blocks)
    text = "".join(one.text for one in (reader.shell, *reader.terminals.values()))
    listeners = [one for line, one in reader.terminals.items() if "gossamer sub" in line]
    for one in listeners:
        one.wait_for('"price": 81.5')
    if not listeners:
        assert '"price": 8' in text, "the event has come to the shell"
    assert "Traceback" not in text
    cleaned = any(line == f"rm -r {folder}" for block in blocks for line in block)
    assert cleaned or f"`rm -r {folder}`" in text_of(page)
    if cleaned:
        assert not (reader.folder / folder).exists()


@pytest.mark.parametrize("page", [*PAGES, *MORE])
def test_every_command_of_a_page_is_one(page: str) -> None:
    """Names of commands and options, and how many arguments there are; nothing is run."""
    points = find_commands()
    lines = [line for block in shell_blocks(text_of(page)) for line in block]
    for line in filter(re.compile("gossamer ").match, lines):
        words = [word for word in shlex.split(line, comments=True) if word != "&"]
        loaded = points[words[1]].load()
        command: Any = typer.main.get_command(getattr(loaded, "typer_app", loaded))
        rest = words[2:]
        while hasattr(command, "commands"):
            assert rest[0] in command.commands, line
            command, rest = command.commands[rest[0]], rest[1:]
        command.make_context("gossamer", rest)


def test_the_programs_of_the_client_page_print_their_event(shell: Shell) -> None:
    shell.ok("node", "init", "demo", "--peers", "1", "--preset", "local")
    (shell.folder / "demo/peer1").symlink_to(shell.folder / "demo")
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```$", text_of("docs/client.md"))
    whole = [one for one in blocks if one.startswith(("from gossamer", "import "))][:2]
    assert len(whole) == 2
    with shell.node("demo"):
        for block in whole:
            program = shell.start(command=["python", "-u", "-c", block], stderr=subprocess.STDOUT)
            line = next_line(program)
            program.kill()
            program.communicate(timeout=PATIENCE_S)
            assert line == "IBM 81.5\n"


DEPLOY = ROOT / "deploy"
BUILD_S = 900


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"(?m)^#.*\n", "", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"))
    lines = filter(None, re.sub(r"\\\n", " ", text).splitlines())
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in lines]


def test_the_image_runs_a_node_that_reports_its_health() -> None:
    """And copies what there is; nothing else is sent."""
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    copies = [rest.split()[:-1] for name, rest in instructions() if name == "COPY"]
    copied = {source for one in copies for source in one if not one[0].startswith("--from")}
    assert copied == {line[1:] for line in ignored if line.startswith("!")}
    assert all((ROOT / source).exists() for source in copied)
    found = dict(instructions())
    command = json.loads(found["ENTRYPOINT"]) + json.loads(found["CMD"])
    assert command == ["gossamer", "node", "run", "/node"]
    health = json.loads(found["HEALTHCHECK"].partition("CMD ")[2])
    assert (health, found["USER"]) == (["gossamer", "node", "status", "/node"], "gossamer")


def test_the_commands_of_the_compose_file_make_a_cluster_of_three(shell: Shell) -> None:
    """Every command and setting as it stands; host names, ports and folders are this machine's."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed (extra docs)")
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    services = compose["services"]
    first = free_ports(6)
    peers = {name: services[name] for name in ("peer1", "peer2", "peer3")}
    assert set(services) == {"cluster", *peers}
    # Volumes are there before anything is made in them.
    for mounted in services["cluster"]["volumes"]:
        volume, _, place = mounted.partition(":")
        assert volume in compose["volumes"]
        (shell.folder / place.removeprefix("/")).mkdir(parents=True)
    make_cluster(shell, services["cluster"])
    before = (shell.folder / "peers/peer1/peer.key").read_bytes()
    make_cluster(shell, services["cluster"])
    assert (shell.folder / "peers/peer1/peer.key").read_bytes() == before, "it is made once only"
    with ExitStack() as stack:
        for number, (name, service) in enumerate(peers.items()):
            assert service["volumes"] == [f"{name}:/node"]
            changes = settings(service["environment"], first, number)
            stack.enter_context(shell.node(f"peers/{name}", *changes))
        subscriber = shell.subscriber("--folder", "peers/peer2", "price > 80", "--count", "1")
        event = shell.published("peers/peer3", "symbol=IBM", "price=81.5").strip()
        code, out, _ = end(subscriber)
    assert (code, json.loads(out)["id"]) == (0, event)


def make_cluster(shell: Shell, service: dict[str, Any]) -> None:
    """Run the command of the service that makes the cluster, but for the change of owner."""
    (script,) = service["command"]
    script = script.replace("/peers", str(shell.folder / "peers"))
    script, _, owner = script.partition("; ")
    assert owner.startswith("chown -R gossamer:gossamer ")
    called = f'gossamer() {{ {shlex.join(COMMAND)} "$@"; }}\n{script}'
    code, _, err = end(shell.start(command=[*service["entrypoint"], called]))
    assert code == 0, err


def settings(environment: dict[str, str], first: int, number: int) -> list[str]:
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


@pytest.mark.campaign
def test_docker_builds_the_image_and_runs_the_three_peers() -> None:
    if shutil.which("docker") is None:
        pytest.skip("docker is not installed")
    for command in (("info",), ("compose", "version")):
        if docker(*command, timeout=30).returncode != 0:
            pytest.skip(f"docker {command[0]} does not work here")
    compose = ["compose", "-f", str(DEPLOY / "compose.yaml"), "-p", f"gossamer{os.getpid()}"]
    try:
        up = docker(*compose, "up", "--build", "--detach", "--wait", timeout=BUILD_S)
        assert up.returncode == 0, up.stderr
        inside = (*compose, "exec", "-T")
        said = docker(*inside, "peer3", "gossamer", "pub", "--folder", "/node", "price=81")
        assert said.returncode == 0, said.stderr
        listed = ("gossamer", "node", "members", "/node", "--json")
        members = json.loads(docker(*inside, "peer1", *listed).stdout)
        assert {one["name"] for one in members} == {"peer1", "peer2", "peer3"}
    finally:
        docker(*compose, "down", "--volumes", timeout=120)
