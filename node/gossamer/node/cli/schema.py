"""The subcommands `gossamer node schema`: what events are made of, and how that changes."""

from __future__ import annotations

from typing import Annotated

import typer

from gossamer.node.cli.events import FolderOption

app = typer.Typer(help="Show what events are made of, and change it where the cluster was made.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the attribute.")]
Fields = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FIELD=VALUE]...", help="Such as minimum=0, or values=buy,sell for enumerations."
    ),
]


@app.command()
def show(folder: FolderOption = None) -> None:
    """Print the attributes of the version in force, as far as this peer knows."""
    from gossamer.node.commands.cluster.schema_changes import show as describe

    for line in describe(folder):
        print(line)


@app.command()
def add(
    name: Name,
    type_name: Annotated[
        str, typer.Argument(metavar="TYPE", help="integer, float, decimal, boolean, string, ...")
    ],
    fields: Fields = None,
    folder: FolderOption = None,
) -> None:
    """Let events have one attribute more."""
    from gossamer.node.commands.cluster.schema_changes import add as append

    print(append(folder, name, type_name, fields or ()))


@app.command()
def widen(name: Name, fields: Fields = None, folder: FolderOption = None) -> None:
    """Let an attribute have more values; fields that are not named stay as they are."""
    from gossamer.node.commands.cluster.schema_changes import widen as extend

    print(extend(folder, name, fields or ()))


@app.command()
def retire(name: Name, folder: FolderOption = None) -> None:
    """Let new events have an attribute no more; its name is never used again."""
    from gossamer.node.commands.cluster.schema_changes import retire as withdraw

    print(withdraw(folder, name))
