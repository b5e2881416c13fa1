"""The ports of a cluster of this machine: free ones, or those that were asked for."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from gossamer.node.commands.cluster import membership
from gossamer.node.commands.cluster.membership import init
from gossamer.node.commands.folder import load
from gossamer.node.errors import ConfigurationError

OPTIONS: dict[str, Any] = {"cluster": "desk", "name": "a", "schema": None, "preset": None}


def ports_of(folder: Path, peers: int) -> list[int]:
    """Where the peers of a cluster are to listen."""
    configs = [load(folder / f"peer{number}").config for number in range(1, peers + 1)]
    return [config.listen.endpoints[0][1] for config in configs]


def test_taken_ports_are_left_out_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        monkeypatch.setattr(membership, "FIRST_PORT", taken - 1)
        init(tmp_path / "any", **OPTIONS, peers=2, port=None)
        first, second = ports_of(tmp_path / "any", 2)
        assert taken < first == second - 1
        with pytest.raises(ConfigurationError, match=f"--port .*{taken - 1}.* listens at {taken}"):
            init(tmp_path / "asked", **OPTIONS, peers=2, port=taken - 1)
        assert not (tmp_path / "asked").exists()
    init(tmp_path / "asked", **OPTIONS, peers=2, port=taken)
    assert ports_of(tmp_path / "asked", 2) == [taken, taken + 1]


@pytest.mark.parametrize("port", [0, 80, 65_535])
def test_impossible_ports_are_named(tmp_path: Path, port: int) -> None:
    with pytest.raises(ConfigurationError, match="--port"):
        init(tmp_path / "c", **OPTIONS, peers=2, port=port)
    assert not (tmp_path / "c").exists()
