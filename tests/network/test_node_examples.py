"""The examples of the node do what their readme says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.checkout import ROOT
from support.node_processes import PATIENCE_S, Shell

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


def pasted(page: Path, first: str) -> str:
    """The block of commands of ``page`` that begins with ``first``, without its indent."""
    blocks = re.findall(r"(?:^ {4}.+\n)+", page.read_text(encoding="utf-8"), re.MULTILINE)
    (block,) = [one for one in blocks if one.strip().startswith(first)]
    return re.sub(r"(?m)^ {4}", "", block)


def with_commands(shell: Shell) -> Shell:
    """Has `gossamer` and `python` be found as where the project is installed."""
    commands = shell.folder / "commands"
    commands.mkdir()
    for name, command in {"python": "", "gossamer": "-m gossamer.command.main"}.items():
        path = commands / name
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n', encoding="utf-8")
        path.chmod(0o755)
    shell.environment["PATH"] = f"{commands}{os.pathsep}{shell.environment['PATH']}"
    return shell


@pytest.mark.campaign
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_the_commands_of_the_readme_run_as_they_are_pasted(tmp_path: Path) -> None:
    """All at once, so that nothing waits for what a person would have read meanwhile."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shell = with_commands(Shell(tmp_path))
    block = pasted(EXAMPLES / "README.md", "gossamer node init quotes")
    process = shell.start(command=["bash", "-e"], stdin=subprocess.PIPE)
    last = "trap 'kill $(jobs -p) || true' EXIT\n"  # where a command fails, the node is to end too
    out, err = process.communicate(f"{last}{block}wait\n", timeout=2 * PATIENCE_S)
    assert process.returncode == 0, err
    assert out.splitlines()[-7:-2] == [
        "IBM 82.25",
        "IBM 79.5 acknowledged",
        "IBM 81.0 acknowledged",
        "IBM -3.0 refused",
        "dear: 81",
    ]
    assert sorted(out.splitlines()[-2:]) == ["cheap: IBM 12", "dear: IBM 81.5"]
    assert not (tmp_path / "quotes").exists()
