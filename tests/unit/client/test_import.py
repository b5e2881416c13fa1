"""What importing the client costs a program."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import gossamer.client

PROBE = f"""
import sys
sys.path[:0] = {sys.path!r}
from gossamer.client import connect, open_client
import json
print(json.dumps(list(sys.modules)))
"""


def modules_loaded() -> set[str]:
    """The modules of a program that has imported the client; how long that takes says a bench."""
    run = subprocess.run([sys.executable, "-c", PROBE], check=True, capture_output=True, text=True)
    return set(json.loads(run.stdout))


def test_the_client_loads_neither_the_protocol_nor_the_node_nor_an_event_loop() -> None:
    modules = modules_loaded()
    parts = {name for name in modules if name.startswith("gossamer.")}
    assert "gossamer.client.client" in parts
    assert {name for name in parts if not name.startswith("gossamer.client")} == set()
    assert modules.isdisjoint({"asyncio", "trio", "numpy", "numba", "cryptography"})


def test_what_the_client_offers_is_there() -> None:
    for name in gossamer.client.__all__:
        assert getattr(gossamer.client, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'open_clint'"):
        _ = gossamer.client.open_clint
