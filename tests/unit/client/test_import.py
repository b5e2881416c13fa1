"""What importing the client costs a program."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import gossamer.client

MOST_S = 0.15
PROBE = f"""
import sys, time
sys.path[:0] = {sys.path!r}
began = time.process_time()
from gossamer.client import connect, open_client
import json
print(json.dumps([time.process_time() - began, list(sys.modules)]))
"""


def probe() -> tuple[float, set[str]]:
    """Seconds of processor time, and the modules that are loaded."""
    run = subprocess.run([sys.executable, "-c", PROBE], check=True, capture_output=True, text=True)
    seconds, modules = json.loads(run.stdout)
    return seconds, set(modules)


@pytest.mark.slow
def test_importing_the_client_is_quick() -> None:
    assert min(probe()[0] for _ in range(3)) < MOST_S


def test_the_client_loads_neither_the_protocol_nor_the_node_nor_an_event_loop() -> None:
    modules = probe()[1]
    parts = {name for name in modules if name.startswith("gossamer.")}
    assert "gossamer.client.client" in parts
    assert {name for name in parts if not name.startswith("gossamer.client")} == set()
    assert modules.isdisjoint({"asyncio", "trio", "numpy", "numba", "cryptography"})


def test_what_the_client_offers_is_there() -> None:
    for name in gossamer.client.__all__:
        assert getattr(gossamer.client, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'open_clint'"):
        _ = gossamer.client.open_clint
