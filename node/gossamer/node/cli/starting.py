"""The command `gossamer node`: what starts peers is done here, everything else by `cli`.

Reading arguments as `cli` does takes 11 MB and a quarter of the time in which a peer starts, and a
peer would hold the memory for as long as it runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gossamer.command.paths import local_path

if TYPE_CHECKING:
    from typer import Typer

NEIGHBOUR, EDGE = "--neighbour", "--edge"
# Options of `run` that all nodes have, and the change of a setting that they begin.
_OPTIONS = {
    "--set": "",
    "--role": "node.role=",
    "--covering": "broker.covering=",
    "--overlay": "broker.overlay=",
    NEIGHBOUR: "broker.neighbours=",
}


@cache
def run_options() -> Mapping[str, str]:
    """The options of `run`, those of families of brokers included."""
    from gossamer.node.config.broker import families

    own = {
        option: f"{family.name}.{setting}="
        for family in families()
        for option, setting in family.options.items()
    }
    return {**_OPTIONS, **own}


class NodeCommand:
    """The command, which reads its arguments itself where they start peers."""

    def __call__(self, args: Sequence[str], prog_name: str, standalone_mode: bool) -> object:
        """Run it with these arguments, as `typer_app` does; an exit code, or nothing."""
        plain = read_plain_run(args)
        if plain is not None:
            return run_peers(*plain)
        options = {"prog_name": prog_name, "standalone_mode": standalone_mode}
        return self.typer_app(args=list(args), **options)

    @property
    def typer_app(self) -> Typer:
        """The same as Typer has it, for whatever else is to be read."""
        from gossamer.node.cli import node as cli

        return cli.app


app: Final = NodeCommand()


def read_plain_run(args: Sequence[str]) -> tuple[list[Path], list[str]] | None:
    """Folders and changed settings of a `run`; None for whatever takes a closer look."""
    if not args or args[0] != "run":
        return None
    options = run_options()
    folders: list[Path] = []
    changes: list[str] = []
    several: dict[str, list[str]] = {NEIGHBOUR: [], EDGE: []}
    rest: Iterator[str] = iter(args[1:])
    for argument in rest:
        name, equals, value = argument.partition("=")
        if name in options:
            given = value if equals else next(rest, None)
            if given is None:
                return None
            if name in several:
                several[name].append(given)
            else:
                changes.append(options[name] + given)
        elif argument.startswith("-"):
            return None
        else:
            folders.append(local_path(argument))
    return folders, [*changes, *list_changes(several)]


def list_changes(given: Mapping[str, Sequence[str]]) -> list[str]:
    """The changes of settings that options make which may be given several times."""
    options = run_options()
    return [options[name] + json.dumps(list(values)) for name, values in given.items() if values]


def run_peers(folders: Sequence[Path], changes: Sequence[str] | None) -> int:
    """Run the peers of the folders, that of the current one if there are none; the exit code."""
    if len(folders) > 1:
        from gossamer.node.commands.running.several import run_several

        return run_several(folders, changes)
    from gossamer.node.commands.running.running import run_node

    return run_node(folders[0] if folders else None, changes)
