"""How a node starts, at which membership, and what runs beside it: its unit, memory given back."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import trio

from gossamer.node.broker.node import family_of
from gossamer.node.cli.starting import read_plain_run
from gossamer.node.commands.cluster import membership
from gossamer.node.commands.cluster.membership import init
from gossamer.node.commands.running import process
from gossamer.node.commands.running.process import PAUSE_S, find_trim, give_back_spare_memory
from gossamer.node.commands.running.service import service, unit_text, user_units
from gossamer.node.config.file import load, load_config, parse_setting
from gossamer.node.errors import CommandError, ConfigurationError

# What takes long or much memory, and serves other subcommands, simulations, or a LAN.
NOT_NEEDED = (
    "annotated_types asyncio llvmlite matplotlib networkx numba prometheus_client pyarrow pydantic "
    "rich scipy structlog typer zeroconf"
)
LOADS = f"""
import sys
sys.path[:0] = {sys.path!r}
import gossamer.command.main, gossamer.node.cli.starting
import gossamer.node.commands.running.running
print(*sys.modules)
import gossamer.node.commands.running.broker
print(*sys.modules)
"""


def test_a_node_loads_no_compiler_and_nothing_of_other_commands() -> None:
    done = subprocess.run([sys.executable, "-c", LOADS], check=True, capture_output=True, text=True)
    peer, both = (set(line.split()) for line in done.stdout.splitlines())
    assert both.isdisjoint(NOT_NEEDED.split())
    assert "gossamer.protocol.brokers.core.effects" in both - peer
    # Of which family a broker is, only its configuration says; the rest is for all of them.
    brokers = {one for one in both if one.startswith("gossamer.protocol.brokers.")}
    assert {one.split(".")[3] for one in brokers} <= {"core", "arrival_queue"}


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
def test_a_plain_run_is_read_at_once(args: str, read: tuple[list[Path], list[str]] | None) -> None:
    assert read_plain_run(args.split()) == read


def test_options_of_brokers_are_settings() -> None:
    args = ["run", "a", "--role", "broker", "--neighbour", "[::1]:7710", "--neighbour=b:2"]
    folders, changes = read_plain_run([*args, "--covering=off"]) or ([], [])
    assert folders == [Path("a")]
    config = load_config(None, flags=dict(map(parse_setting, changes)), environment={}).config
    assert config.node.role == "broker"
    assert config.broker.neighbours == ("[::1]:7710", "b:2")
    assert family_of(config).of.covering == "off"


# The systemd unit


def folder(parent: Path, name: str = "desk") -> Path:
    made = parent / name
    made.mkdir()
    (made / "node.toml").write_text(f'[identity]\nfolder = "{made}"\n', encoding="utf-8")
    return made


def entries(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line and line[0] != "#")


def test_a_unit_runs_the_node_of_the_folder_for_the_user_or_the_system(tmp_path: Path) -> None:
    made = folder(tmp_path)
    found = entries("\n".join(service(made, None, system=False, install=False)))
    run = f"{sys.executable} -m gossamer.command.main node run {made}"
    expected = {"ExecStart": run, "ExecReload": run.replace(" run ", " reload ")}
    expected |= {"WantedBy": "default.target", "Restart": "on-failure"}
    expected["StartLimitIntervalSec"] = "0"  # the network may take its time
    assert found.items() >= expected.items()
    assert "User" not in found
    found = entries(unit_text(made, "desk", system=True))
    assert found["User"] == tmp_path.owner()
    assert found["WantedBy"] == "multi-user.target"
    # What systemd would expand is quoted.
    found = entries(unit_text(folder(tmp_path, 'my "50%" $desk'), "desk", system=False))
    assert found["ExecStart"].endswith('/my \\"50%%\\" $$desk"')


def test_a_unit_is_never_replaced_and_none_installed_without_systemd(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = folder(tmp_path)
    with monkeypatch.context() as mac:
        mac.setattr(sys, "platform", "darwin")
        assert "[Service]" in service(made, None, system=False, install=False)
        with pytest.raises(CommandError, match="is read by systemd, which this system has not"):
            service(made, None, system=False, install=True)
        assert not (tmp_path / "config").exists()
    lines = service(made, "desk", system=False, install=True)
    path = user_units() / "gossamer-desk.service"
    assert lines[0] == f"installed {path}"
    assert path.read_text(encoding="utf-8") == unit_text(made, "desk", system=False)
    service(made, "desk", system=False, install=True)
    with pytest.raises(CommandError, match="is there already and differs"):
        service(folder(tmp_path, "other"), "desk", system=False, install=True)
    for name in ("a/b", "..", "a b", "x" * 65):
        with pytest.raises(CommandError, match="is no name of a unit"):
            service(made, name, system=False, install=False)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.parametrize("system", [False, True])
def test_systemd_takes_the_unit(tmp_path: Path, system: bool) -> None:
    path = tmp_path / "gossamer-desk.service"
    path.write_text(unit_text(folder(tmp_path), "desk", system=system), encoding="utf-8")
    manager = "--system" if system else "--user"
    done = subprocess.run(
        ["systemd-analyze", "verify", manager, str(path)],
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


# Spare memory

PIECES, PIECE_BYTES = 16_000, 2_000


def test_holes_that_a_burst_left_go_back() -> None:
    trim = find_trim()
    if trim is None:
        pytest.skip("the C library is not glibc, which alone keeps holes")
    # What stays lies between what goes, so that no end of the heap is free.
    pieces = [bytes(PIECE_BYTES) for _ in range(PIECES)]
    kept = [piece for i, piece in enumerate(pieces) if i % 8 == 0]
    del pieces
    before = psutil.Process().memory_info().rss
    trim()
    assert before - psutil.Process().memory_info().rss > PIECES * PIECE_BYTES // 2
    assert all(piece == bytes(PIECE_BYTES) for piece in kept)


@pytest.mark.parametrize("glibc", [True, False])
async def test_memory_goes_back_each_minute(monkeypatch: pytest.MonkeyPatch, glibc: bool) -> None:
    times: list[float] = []

    def trim() -> None:
        times.append(trio.current_time())

    monkeypatch.setattr(process, "find_trim", lambda: trim if glibc else None)
    with trio.move_on_after(3.5 * PAUSE_S):
        await give_back_spare_memory()
    assert times == pytest.approx([PAUSE_S, 2 * PAUSE_S, 3 * PAUSE_S] if glibc else [], rel=1e-9)


# The ports of a cluster of this machine: free ones, or those that were asked for

OPTIONS: dict[str, Any] = {"cluster": "desk", "name": "a", "schema": None, "preset": None}
# Below those that the kernel gives to whoever asks for any, so that the next ones are free.
QUIET = range(20_000, 32_000, 10)


@contextmanager
def taken_port() -> Iterator[int]:
    """A port that somebody listens at, and nobody at those beside it."""
    with ExitStack() as stack:
        for port in QUIET:
            try:
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
            yield port
            return
        pytest.fail(f"no port of {QUIET} is free")


def ports_of(folder: Path, peers: int) -> list[int]:
    configs = [load(folder / f"peer{number}").config for number in range(1, peers + 1)]
    return [config.listen.endpoints[0][1] for config in configs]


def test_taken_ports_are_left_out_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with taken_port() as taken:
        monkeypatch.setattr(membership, "FIRST_PORT", taken - 1)
        init(tmp_path / "any", **OPTIONS, peers=2, port=None)
        first, second = ports_of(tmp_path / "any", 2)
        assert taken < first == second - 1
        with pytest.raises(ConfigurationError, match=f"--port .*{taken - 1}.* listens at {taken}"):
            init(tmp_path / "asked", **OPTIONS, peers=2, port=taken - 1)
        assert not (tmp_path / "asked").exists()
    init(tmp_path / "asked", **OPTIONS, peers=2, port=taken)
    assert ports_of(tmp_path / "asked", 2) == [taken, taken + 1]


def test_a_peer_takes_ports_that_are_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with taken_port() as taken:
        monkeypatch.setattr(membership, "DEFAULT_PORT", taken - 1)
        said = init(tmp_path / "desk", **OPTIONS, peers=1, port=None)
    listen = load(tmp_path / "desk").config.listen
    port = listen.endpoints[0][1]
    assert listen.endpoints == (("0.0.0.0", port), ("::", port))
    assert listen.join_endpoints == (("0.0.0.0", port + 2), ("::", port + 2))
    assert f"it listens at 0.0.0.0:{port}, its page is at 127.0.0.1:{port + 1}" in said


def test_a_peer_takes_the_ports_that_were_asked_for_or_none(tmp_path: Path) -> None:
    with taken_port() as taken:
        with pytest.raises(ConfigurationError, match=f"--port .*{taken - 2}.* listens at {taken}"):
            init(tmp_path / "desk", **OPTIONS, peers=1, port=taken - 2)
        for peers in (1, 2):
            for port in (0, 80, 65_535):
                with pytest.raises(ConfigurationError, match="--port"):
                    init(tmp_path / "desk", **OPTIONS, peers=peers, port=port)
        assert not (tmp_path / "desk").exists()
    init(tmp_path / "desk", **{**OPTIONS, "preset": "local"}, peers=1, port=taken)
    config = load(tmp_path / "desk").config
    assert config.listen.addresses == (f"127.0.0.1:{taken}",)
    assert config.page.address == f"127.0.0.1:{taken + 1}"
    with pytest.raises(ConfigurationError, match="--preset is 'lan', expected local"):
        init(tmp_path / "c", **{**OPTIONS, "preset": "lan"}, peers=2, port=None)
