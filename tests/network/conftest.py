"""What several tests of nodes share."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["kindred", "resilient"])
def each_preset(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The preset of the protocol of all peers in memory: the default, and the one before it."""
    preset = str(request.param)
    monkeypatch.setattr("support.memory_peers.PRESET", preset)
    return preset
