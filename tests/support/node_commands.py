"""Every command of a node, as people type it beside nodes that run, with good arguments and bad."""

from __future__ import annotations

import importlib
import os
import shlex
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen

from gossamer.node.cli.node import app
from support.checkout import ROOT
from support.node_processes import Shell

GROUP = "gossamer.commands"

# By command, its arguments. {folder} is that of a node that runs, {new} one that is not there,
# {lines} a file of events and other lines, {batch} one of operations, {token} a token, {member} the
# name of one who may be a member, {volume} a number.
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "node init": ("{new}", "{folder}", "{new} --peers 2", "{new} --preset huge"),
    "node invite": (
        "--folder {folder}",
        "--folder {folder} --address 127.0.0.1:7",
        "--folder {folder} --address nowhere",
        "--folder {folder} --minutes -1",
        "--folder {new}",
    ),
    "node join": ("{token} {new}", "{token} {folder}", "nonsense {new}"),
    "node revoke": (
        "{member} --folder {folder}",
        "peer1 --folder {folder}",
        "0123456789abcdef --folder {folder} --unrecorded",
        "peer1 --folder {new}",
    ),
    "node renew": (
        "{folder}",
        "{folder} --request",
        "{folder} --grant {lines}",
        "{folder} --take {lines}",
        "{folder} --at 127.0.0.1:7",
        "{new}",
    ),
    "node check": ("{folder}", "{folder} --set listen.plain_text=3", "{new}"),
    "node backup": ("{folder} {new}", "{folder} {lines}", "{new} {new}"),
    "node restore": ("{lines} {new}", "{lines} {folder}", "{new} {folder}"),
    "node reload": ("{folder}", "{folder} --json", "{new}"),
    "node doctor": ("", "--folder {folder}", "--folder {folder} --json 127.0.0.1:1", "nowhere"),
    "node run": ("{folder}", "{folder} --set nonsense=1", "{new}", "{folder} {new}"),
    "node replay": ("{new}.avt", "{lines} --out {new}"),
    "node members": ("{folder}", "{folder} --json", "{new}"),
    "node service": ("{folder}", "{folder} --system --name desk", "{new}"),
    "node ready": ("{folder}", "{new}", "{folder} --within 0"),
    "node status": ("{folder}", "{folder} --json", "{new}"),
    "node trace": ("{folder}", "{folder} --message 00 --json", "{new}"),
    "node stop": ("{new}", "{folder}"),
    "sub": (
        "'volume >= 0' --folder {folder}",
        "'volume >= 0' --folder {folder} --name beside",
        "'volume >= 0' --folder {folder} --name beside --retained --count 1",
        "--forget --folder {folder} --name beside",
        "'volume >= 0' --folder {folder} --group beside --count 1",
        "'volume >= 0' --folder {folder} --ordered --name beside --count 1",
        "'volume >= 0' --folder {folder} --last",
        "'volume >= 0' --folder {folder} --group beside --forget",
        "'volume >= 0' --folder {folder} --group beside --name beside",
        "'volume >' --folder {folder} --group beside",
        "'volume >' --folder {folder}",
        "'volume >= 0' --folder {new}",
    ),
    "pub": (
        "symbol=IBM price=81 volume={volume} --folder {folder}",
        "symbol=IBM price=81 volume={volume} --folder {folder} --name writer",
        "symbol=IBM volume={volume} --retained-last symbol --folder {folder}",
        "symbol=IBM --retained-last symbol --delete --folder {folder}",
        "symbol=IBM --retained-last price --folder {folder}",
        "symbol=IBM price=dear --folder {folder}",
        "--jsonl {lines} --folder {folder}",
        "--jsonl {new} --folder {folder}",
        "symbol=IBM --folder {new}",
    ),
    "request": (
        "symbol=IBM price=81 volume={volume} --timeout 0.2 --folder {folder}",
        "symbol=IBM price=dear --folder {folder}",
        "symbol=IBM --payload {new} --folder {folder}",
        "symbol=IBM --folder {new}",
    ),
    "reply": (
        "'volume >= 0' --echo --folder {folder}",
        "'volume >= 0' --run cat --name beside --count 1 --folder {folder}",
        "'volume >= 0' --folder {folder}",
        "'volume >' --echo --folder {folder}",
        "'volume >= 0' --echo --folder {new}",
    ),
    "top": ("{folder} --once", "{folder} --cluster --once", "{folder}", "{new} --once"),
    "advertise": (
        "'present(symbol) and present(price)' --name beside --folder {folder}",
        "'present(' --name beside --folder {folder}",
        "--withdraw --name beside --folder {folder}",
    ),
    "unsub": ("--name beside --folder {folder}", "nothing --name beside --folder {folder}"),
    "batch": ("{batch} --name beside --folder {folder}", "{lines} --folder {folder}", "{new}"),
}


def known_commands() -> set[str]:
    points = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"][GROUP]
    found = set()
    for name, point in points.items():
        module = importlib.import_module(point.partition(":")[0])
        if not module.__name__.startswith("gossamer.node."):
            continue
        if name == "node":
            callbacks = [one.callback for one in app.registered_commands]
            found |= {f"node {one.__name__}" for one in callbacks if one is not None}
        else:
            found.add(name)
    return found


@frozen
class Done:
    words: tuple[str, ...]
    code: int  # exit code, negative where it was killed
    out: str
    err: str

    @property
    def was_killed(self) -> bool:
        return self.code < 0


def filled(command: str, arguments: str, values: Mapping[str, object]) -> tuple[str, ...]:
    words = shlex.split(arguments)
    return (*command.split(), *(word.format_map(dict(values)) for word in words))


def run_for(shell: Shell, words: tuple[str, ...], seconds: float) -> Done:
    """Run a command; kill it after so many seconds, where it has not ended by then."""
    process = shell.start(*words, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    return Done(words, process.returncode, out, err)


def deleted_files(process: int) -> list[str]:
    """Files that a process holds open, and that are not there any more."""
    found = []
    for entry in Path(f"/proc/{process}/fd").iterdir():
        try:
            target = os.readlink(entry)
        except FileNotFoundError:  # closed since it was listed
            continue
        if target.endswith(" (deleted)"):
            found.append(target)
    return found
