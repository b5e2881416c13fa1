"""Starting a peer loads only what a peer needs, however the command is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.node.broker.node import family_of
from gossamer.node.cli.starting import read_plain_run
from gossamer.node.config.file import load_config, parse_setting

# What takes long or much memory, and serves other subcommands, simulations, or a LAN.
NOT_NEEDED = (
    "annotated_types asyncio llvmlite matplotlib networkx numba prometheus_client pyarrow pydantic "
    "rich scipy structlog typer zeroconf"
)
LOADING = f"""
import sys
sys.path[:0] = {sys.path!r}
import gossamer.command.main, gossamer.node.cli.starting
import gossamer.node.commands.running.running
print(*sys.modules)
import gossamer.node.commands.running.broker
print(*sys.modules)
"""


def test_a_node_loads_no_compiler_and_nothing_of_other_commands() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADING], check=True, capture_output=True, text=True
    )
    peer, both = (set(line.split()) for line in done.stdout.splitlines())
    assert both.isdisjoint(NOT_NEEDED.split())
    assert "gossamer.protocol.brokers.core.effects" in both - peer
    # Of which family a broker is, only its configuration says; the rest is for all of them.
    brokers = {one for one in both if one.startswith("gossamer.protocol.brokers.")}
    assert {one.split(".")[3] for one in brokers} <= {"core", "arrivals"}


@pytest.mark.parametrize(
    ("args", "read"),
    [
        ("run", ([], [])),
        ("run one", ([Path("one")], [])),
        ("run one two", ([Path("one"), Path("two")], [])),
        ("run --set a=1 one --set=b=2", ([Path("one")], ["a=1", "b=2"])),
        *((args, None) for args in ("", "status", "--help", "run --help", "run --set", "run -f")),
        ("run --", None),
    ],
)
def test_a_plain_run_is_read_at_once_and_all_else_left_to_the_whole_command_line(
    args: str, read: tuple[list[Path], list[str]] | None
) -> None:
    assert read_plain_run(args.split()) == read


def test_options_of_brokers_are_settings() -> None:
    args = ["run", "a", "--role", "broker", "--neighbour", "[::1]:7710", "--neighbour=b:2"]
    folders, changes = read_plain_run([*args, "--covering=off"]) or ([], [])
    assert folders == [Path("a")]
    config = load_config(None, flags=dict(map(parse_setting, changes)), environment={}).config
    assert config.node.role == "broker"
    assert config.broker.neighbours == ("[::1]:7710", "b:2")
    assert family_of(config).of.covering == "off"
