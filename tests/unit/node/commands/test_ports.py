"""The ports of a cluster of this machine: free ones, or those that were asked for."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gossamer.node.commands.cluster import ports
from gossamer.node.commands.cluster.membership import init
from gossamer.node.commands.folder import load
from gossamer.node.errors import ConfigurationError

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
        monkeypatch.setattr(ports, "FIRST_PORT", taken - 1)
        init(tmp_path / "any", **OPTIONS, peers=2, port=None)
        first, second = ports_of(tmp_path / "any", 2)
        assert taken < first == second - 1
        with pytest.raises(ConfigurationError, match=f"--port .*{taken - 1}.* listens at {taken}"):
            init(tmp_path / "asked", **OPTIONS, peers=2, port=taken - 1)
        assert not (tmp_path / "asked").exists()
    init(tmp_path / "asked", **OPTIONS, peers=2, port=taken)
    assert ports_of(tmp_path / "asked", 2) == [taken, taken + 1]


@pytest.mark.parametrize("peers", [1, 2])
@pytest.mark.parametrize("port", [0, 80, 65_535])
def test_impossible_ports_are_named(tmp_path: Path, port: int, peers: int) -> None:
    with pytest.raises(ConfigurationError, match="--port"):
        init(tmp_path / "c", **OPTIONS, peers=peers, port=port)
    assert not (tmp_path / "c").exists()


def test_a_peer_takes_ports_that_are_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with taken_port() as taken:
        monkeypatch.setattr(ports, "DEFAULT_PORT", taken - 1)
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
        assert not (tmp_path / "desk").exists()
    init(tmp_path / "desk", **{**OPTIONS, "preset": "local"}, peers=1, port=taken)
    config = load(tmp_path / "desk").config
    assert config.listen.addresses == (f"127.0.0.1:{taken}",)
    assert config.page.address == f"127.0.0.1:{taken + 1}"


def test_several_peers_are_of_this_machine(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="--preset is 'lan', expected local"):
        init(tmp_path / "c", **{**OPTIONS, "preset": "lan"}, peers=2, port=None)
