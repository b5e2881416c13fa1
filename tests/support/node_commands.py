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

# By command, its arguments. {at} is the option of a node that runs, {gone} that of none; {folder}
# is the node's folder, {new} one that is not there, {lines} a file of events and other lines,
# {batch} one of operations, {token} a token, {member} the name of one who may be a member, {quote}
# an event and {volume} a number.
_SHORT: Mapping[str, tuple[str, ...]] = {
    "node init": ("{new}", "{folder}", "{new} --peers 2", "{new} --preset huge"),
    "node invite": (
        *("{at}", "{at} --address 127.0.0.1:7", "{at} --address nowhere"),
        *("{at} --minutes -1", "{gone}"),
    ),
    "node join": ("{token} {new}", "{token} {folder}", "nonsense {new}"),
    "node revoke": (
        *("{member} {at}", "peer1 {at}", "0123456789abcdef {at} --unrecorded", "peer1 {gone}"),
    ),
    "node renew": (
        *("{folder}", "{folder} --request", "{folder} --grant {lines}", "{folder} --take {lines}"),
        *("{folder} --at 127.0.0.1:7", "{new}"),
    ),
    "node check": ("{folder}", "{folder} --set listen.plain_text=3", "{new}"),
    "node backup": ("{folder} {new}", "{folder} {lines}", "{new} {new}"),
    "node restore": ("{lines} {new}", "{lines} {folder}", "{new} {folder}"),
    "node reload": ("{folder}", "{folder} --json", "{new}"),
    "node doctor": ("", "{at}", "{at} --json 127.0.0.1:1", "nowhere"),
    "node run": ("{folder}", "{folder} --set nonsense=1", "{new}", "{folder} {new}"),
    "node replay": ("{new}.avt", "{lines} --out {new}"),
    "node members": ("{folder}", "{folder} --json", "{new}"),
    "node service": ("{folder}", "{folder} --system --name desk", "{new}"),
    "node ready": ("{folder}", "{new}", "{folder} --within 0"),
    "node status": ("{folder}", "{folder} --json", "{new}"),
    "node trace": ("{folder}", "{folder} --message 00 --json", "{new}"),
    "node stop": ("{new}", "{folder}"),
    "sub": (
        *("'volume >= 0' {at}", "'volume >= 0' {at} --name beside"),
        "'volume >= 0' {at} --name beside --retained --count 1",
        *("--forget {at} --name beside", "'volume >= 0' {at} --group beside --count 1"),
        "'volume >= 0' {at} --ordered --name beside --count 1",
        *("'volume >= 0' {at} --last", "'volume >= 0' {at} --group beside --forget"),
        "'volume >= 0' {at} --group beside --name beside",
        *("'volume >' {at} --group beside", "'volume >' {at}", "'volume >= 0' {gone}"),
    ),
    "pub": (
        *("{quote} {at}", "{quote} {at} --name writer"),
        "symbol=IBM volume={volume} --retained-last symbol {at}",
        "symbol=IBM --retained-last symbol --delete {at}",
        *("symbol=IBM --retained-last price {at}", "symbol=IBM price=dear {at}"),
        *("--jsonl {lines} {at}", "--jsonl {new} {at}", "symbol=IBM {gone}"),
    ),
    "request": (
        *("{quote} --timeout 0.2 {at}", "symbol=IBM price=dear {at}"),
        *("symbol=IBM --payload {new} {at}", "symbol=IBM {gone}"),
    ),
    "reply": (
        *("'volume >= 0' --echo {at}", "'volume >= 0' --run cat --name beside --count 1 {at}"),
        *("'volume >= 0' {at}", "'volume >' --echo {at}", "'volume >= 0' --echo {gone}"),
    ),
    "top": ("{folder} --once", "{folder} --cluster --once", "{folder}", "{new} --once"),
    "advertise": (
        "'present(symbol) and present(price)' --name beside {at}",
        *("'present(' --name beside {at}", "--withdraw --name beside {at}"),
    ),
    "unsub": ("--name beside {at}", "nothing --name beside {at}"),
    "batch": ("{batch} --name beside {at}", "{lines} {at}", "{new}"),
}
_QUOTE = "symbol=IBM price=81 volume={volume}"


def _in_full(arguments: str) -> str:
    for short, full in (("at", "--folder {folder}"), ("gone", "--folder {new}"), ("quote", _QUOTE)):
        arguments = arguments.replace(f"{{{short}}}", full)
    return arguments


COMMANDS = {command: tuple(map(_in_full, kinds)) for command, kinds in _SHORT.items()}


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
