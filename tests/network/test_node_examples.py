"""The examples of the node do what their readme says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from support.checkout import ROOT
from support.node_processes import PATIENCE_S, Shell

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "examples/node"


def run_example(shell: Shell, name: str) -> list[str]:
    process = shell.start(command=[sys.executable, str(EXAMPLES / name), "quotes"])
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    return out.splitlines()


def test_the_examples_print_the_quotes_that_match(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    schema = str(EXAMPLES / "quotes.toml")
    shell.ok("node", "init", "quotes", "--schema", schema, "--preset", "local")
    assert run_example(shell, "embedded_peer.py") == ["IBM 81.5"]
    with shell.node("quotes"):
        assert run_example(shell, "watch_and_publish.py") == ["IBM 81", "IBM 82.25"]
        fates = ["IBM 79.5 acknowledged", "IBM 81.0 acknowledged", "IBM -3.0 refused"]
        assert run_example(shell, "ticker.py") == [*fates, "dear: 81"]
        found = run_example(shell, "aio_watcher.py")
        assert sorted(found) == ["cheap: IBM 12", "dear: IBM 81.5"]
