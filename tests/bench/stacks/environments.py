"""Environments that stacks run in: made in a folder, never for the whole system."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from support.peer_processes import ProcessFailed

PATIENCE_S = 600.0  # for an installation
ASKING_S = 60.0  # for a version
STAMP = "installed"


class LeftOut(ProcessFailed):
    """A stack that cannot take part; says why in a sentence."""


def make_environment(folder: Path, requirement: str) -> Path:
    """The interpreter of a virtual environment with a package, made if it is not there.

    Raises `LeftOut` where it cannot be installed.
    """
    python = folder / "bin" / "python"
    if not (folder / STAMP).exists():
        shutil.rmtree(folder, ignore_errors=True)
        _do([sys.executable, "-m", "venv", str(folder)], "no virtual environment could be made")
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--retries", "1"]
        _do([*pip, "install", "--quiet", requirement], f"{requirement} cannot be installed")
        (folder / STAMP).touch()
    return python


def versions_of(python: Path, packages: Sequence[str]) -> dict[str, str]:
    asked = "import sys, json; from importlib.metadata import version as v; "
    asked += "print(json.dumps({name: v(name) for name in sys.argv[1:]}))"
    told = _do([str(python), "-c", asked, *packages], "it has no version", ASKING_S)
    return dict(json.loads(told))


def find_nats_server(folder: Path) -> Path:
    """The NATS server that is installed, or Debian's, unpacked in a folder of its own.

    Raises `LeftOut` where there is none.
    """
    places = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin"))
    installed = shutil.which("nats-server", path=places)
    if installed:
        return Path(installed)
    server = folder / "usr" / "sbin" / "nats-server"
    if not server.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        lacking = "there is no nats-server, and Debian's cannot be had"
        _do(["apt-get", "download", "--quiet", "nats-server"], lacking, folder=folder)
        packages = [str(path) for path in folder.glob("nats-server_*.deb")]
        _do(["dpkg", "-x", *packages[:1], str(folder)], lacking)
    if not server.exists():
        raise LeftOut("Debian's package nats-server has no server where it used to be")
    return server


def version_of_server(server: Path) -> str:
    told = _do([str(server), "--version"], "it tells no version", ASKING_S)
    return told.split()[-1].removeprefix("v")


def _do(
    command: Sequence[str], failure: str, patience_s: float = PATIENCE_S, folder: Path | None = None
) -> str:
    """What a command prints; `LeftOut` with its last words if it fails."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=patience_s,
            check=False,
        )
    except OSError as error:
        raise LeftOut(f"{failure}: {error}") from None
    except subprocess.TimeoutExpired:
        raise LeftOut(f"{failure}: {command[0]} took more than {patience_s:.0f} s") from None
    if done.returncode != 0:
        words = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        said = words[-1].removeprefix("ERROR: ") if words else f"exit code {done.returncode}"
        raise LeftOut(f"{failure}: {said}")
    return done.stdout
