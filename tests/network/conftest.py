"""What several tests of nodes share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import transport_peers
from support.clusters import MadeCluster, made_cluster
from support.draws import Draws
from support.local_nodes import LocalNode
from support.node_processes import Shell
from support.switching_ways import let_peers_switch

SWITCHING = "switching"
OTHERS = ("resilient", SWITCHING)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Draw tests that take a ``seed`` as often as `--draws` says, else `DRAWS` of their module."""
    count = getattr(metafunc.module, "DRAWS", None)
    if count is not None and "seed" in metafunc.fixturenames:
        option = metafunc.config.getoption
        numbers = Draws(option("draws"), option("first_draw")).numbers(count)
        metafunc.parametrize("seed", [1 + number for number in numbers])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let a module's mark say how its tests run; pytest-trio heeds the marks of tests only."""
    for item in items:
        for node, mark in list(item.iter_markers_with_node("trio")):
            if node is not item:
                item.add_marker(pytest.mark.trio(**mark.kwargs), append=False)


@pytest.fixture(
    params=["kindred", *(pytest.param(one, marks=pytest.mark.campaign) for one in OTHERS)]
)
def each_preset(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The preset of the protocol of all peers in memory: the default, and the one before it.

    And the default once more, where all peers change how they take frames, by machine code too.
    """
    preset = str(request.param)
    if preset == SWITCHING:
        let_peers_switch(monkeypatch, machine_code=True)
        return "kindred"
    monkeypatch.setattr("support.memory_peers.PRESET", preset)
    return preset


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[MadeCluster]:
    """A cluster whose first peer's folder is `first`."""
    with made_cluster(tmp_path / "first") as made:
        yield made


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    made = Shell(tmp_path)
    yield made
    made.kill_all()


@pytest.fixture
def one_node(shell: Shell) -> Shell:
    """The same where `desk` is the folder of the one peer of a cluster."""
    shell.ok("node", "init", "desk", "--preset", "local")
    return shell


@pytest.fixture
def node(tmp_path: Path) -> LocalNode:
    """A node for local clients, before a peer without a network; it does not run yet."""
    return LocalNode(tmp_path)


@pytest.fixture(autouse=True)
def schedule(draws: Draws, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run tasks that could run in any order in the one that is drawn from `--first-draw`."""
    monkeypatch.setattr(transport_peers, "SCHEDULE", 1 + draws.first)
