"""The subcommands `gossamer advertise`, `unsub` and `batch`, for clients of a broker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gossamer.command.options import SETTINGS
from gossamer.command.paths import local_path
from gossamer.node.cli.options import FolderOption

advertise_app = typer.Typer(**SETTINGS)
unsub_app = typer.Typer(**SETTINGS)
batch_app = typer.Typer(**SETTINGS)

Name = Annotated[str, typer.Option(help="The client, which the broker remembers.")]


@advertise_app.command()
def advertise(
    expression: Annotated[
        str, typer.Argument(metavar="FILTER", help="Such as 'present(symbol) and price > 0'.")
    ] = "",
    name: Name = "",
    label: Annotated[str, typer.Option(help="What the client calls it.")] = "adv",
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take it back.")] = False,
    folder: FolderOption = None,
) -> None:
    """Announce what a client will publish: any of the attributes named, and no others."""
    from gossamer.node.commands.clients import asking

    if not name:
        raise typer.BadParameter("expected --name: an advertisement is a client's")
    whose = asking.Whose(name=name, label=label)
    if withdraw:
        if expression:
            raise typer.BadParameter("expected no filter with --withdraw")
        asking.unadvertise(folder, whose)
        return
    if not expression:
        raise typer.BadParameter("expected a filter, such as 'present(symbol) and price > 0'")
    asking.advertise(folder, whose, expression)


@unsub_app.command()
def unsub(
    label: Annotated[str, typer.Argument(metavar="[LABEL]", help="The subscription.")] = "sub",
    name: Name = "",
    folder: FolderOption = None,
) -> None:
    """Take a subscription of a client back."""
    from gossamer.node.commands.clients import asking

    if not name:
        raise typer.BadParameter("expected --name: a subscription is a client's")
    asking.unsubscribe(folder, asking.Whose(name=name, label=label))


@batch_app.command()
def batch(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="One operation a line.", parser=local_path)
    ],
    name: Annotated[
        str | None, typer.Option(help="The client; one that is gone at the end if none.")
    ] = None,
    folder: FolderOption = None,
) -> None:
    """Carry out the operations of a file: advertise, subscribe, publish, and take back."""
    from gossamer.node.commands.clients import asking

    print(asking.run_batch(folder, name, file))
