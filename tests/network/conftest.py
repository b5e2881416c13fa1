"""What several tests of nodes share."""

from __future__ import annotations

import pytest

from support.switching_ways import IS_ASKED_FOR, let_peers_switch


@pytest.fixture(params=["kindred", "resilient"])
def each_preset(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The preset of the protocol of all peers in memory: the default, and the one before it."""
    preset = str(request.param)
    monkeypatch.setattr("support.memory_peers.PRESET", preset)
    return preset


@pytest.fixture(autouse=IS_ASKED_FOR)
def switching(monkeypatch: pytest.MonkeyPatch) -> None:
    """With ``GOSSAMER_TEST_COMPILED=switching`` all peers in memory change how they take frames."""
    let_peers_switch(monkeypatch)
