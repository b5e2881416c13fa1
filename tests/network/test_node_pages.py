"""The shell blocks of the first pages, pasted as they stand into a fresh folder, work."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from gossamer.command.main import find_commands
from support.checkout import ROOT
from support.node_processes import COMMAND, PATIENCE_S, Shell
from support.pasted_blocks import Reader, section, shell_blocks

PAGES = {
    "README.md": ("Peers of your own", "demo"),
    "docs/first-cluster.md": ("Tutorial: a first cluster", "demo"),
    "docs/broker-node.md": ("In five minutes", "brokers"),
    "docs/scot-node.md": ("In five minutes", "scot"),
    "docs/graph-brokers.md": ("In five minutes", "graph"),
}
# Where commands of the node are described, beside the pages above.
MORE = ("docs/node.md", "docs/client.md", "docs/upgrading.md", "examples/node/README.md")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    environment = Shell(tmp_path, forks=False).environment
    with Reader(tmp_path, COMMAND, environment) as found:
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


@pytest.mark.campaign
def test_the_blocks_of_the_examples_work_as_they_stand(reader: Reader) -> None:
    (reader.folder / "examples").symlink_to(ROOT / "examples")
    reader.paste(shell_blocks(section(text_of("examples/node/README.md"), "First steps")))
    said = [line.strip() for line in reader.shell.said]
    for line in ("IBM 81.5", "IBM 82.25", "IBM -3.0 refused", "cheap: IBM 12"):
        assert line in said
    assert not (reader.folder / "quotes").exists()


def test_tutorials_use_folders_and_ports_of_their_own() -> None:
    """Whoever goes from one page to the next without cleaning up meets no port that is taken."""
    found = {}
    for page, (heading, folder) in PAGES.items():
        lines = [line for block in shell_blocks(section(text_of(page), heading)) for line in block]
        (made,) = [line for line in lines if "node init" in line]
        assert shlex.split(made)[3] == folder
        port = re.search(r"--port (\d+)", made)
        found[folder] = 7720 if port is None else int(port[1])
    assert len(set(found.values())) == len(found)


def commands_of(page: str) -> list[str]:
    lines = [line for block in shell_blocks(text_of(page)) for line in block]
    return [line for line in lines if line.startswith("gossamer ")]


@pytest.mark.parametrize("page", [*PAGES, *MORE])
def test_every_command_of_a_page_is_one(page: str) -> None:
    """Names of commands and options, and how many arguments there are; nothing is run."""
    points = find_commands()
    for line in commands_of(page):
        words = [word for word in shlex.split(line, comments=True) if word != "&"]
        loaded = points[words[1]].load()
        command: Any = typer.main.get_command(getattr(loaded, "typer_app", loaded))
        rest = words[2:]
        while hasattr(command, "commands"):
            assert rest[0] in command.commands, line
            command, rest = command.commands[rest[0]], rest[1:]
        command.make_context("gossamer", rest)


def test_the_programs_of_the_client_page_print_their_event(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ok("node", "init", "demo", "--peers", "1", "--preset", "local")
    (tmp_path / "demo/peer1").symlink_to(tmp_path / "demo")
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```$", text_of("docs/client.md"))
    whole = [one for one in blocks if one.startswith(("from gossamer", "import "))][:2]
    assert len(whole) == 2
    with shell.node("demo"):
        for block in whole:
            program = shell.start(command=["python", "-u", "-c", block], stderr=subprocess.STDOUT)
            assert program.stdout is not None
            line = program.stdout.readline()
            program.kill()
            program.communicate(timeout=PATIENCE_S)
            assert line == "IBM 81.5\n"
