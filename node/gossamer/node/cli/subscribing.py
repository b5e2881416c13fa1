"""The subcommand `gossamer sub`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gossamer.command.options import SETTINGS, number_option, whole_option
from gossamer.command.paths import local_path
from gossamer.node.cli.options import FolderOption

sub_app = typer.Typer(**SETTINGS)


@sub_app.command()
def sub(
    expressions: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="EXPR...",
            help="""Such as 'symbol == "IBM" and price > 80'; of several, one has to match.""",
        ),
    ] = None,
    folder: FolderOption = None,
    name: Annotated[
        str | None,
        typer.Option(help="The node keeps what is not printed under this name, and over restarts."),
    ] = None,
    count: Annotated[
        int | None, whole_option("--count", low=1, help="End after so many events.")
    ] = None,
    retained: Annotated[
        bool, typer.Option("--retained", help="Begin a new name with what the node has kept.")
    ] = False,
    forget: Annotated[
        bool, typer.Option("--forget", help="Have the node forget the name, and end.")
    ] = False,
    label: Annotated[str, typer.Option(help="What the name calls this subscription.")] = "sub",
    group: Annotated[
        str | None,
        typer.Option(help="Each event goes to one of all that print for this group, at any peer."),
    ] = None,
    ahead: Annotated[
        int,
        whole_option(
            "--ahead", low=1, high=256, help="Of a group: events taken before any is printed."
        ),
    ] = 1,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Print the events of each publisher in its order.")
    ] = False,
    last: Annotated[
        bool, typer.Option("--last", help="Begin with the last values (pub --retained-last).")
    ] = False,
    within: Annotated[
        float | None,
        number_option(
            "--within",
            low=0.001,
            high=86_400,
            help="At a broker: seconds in which events match a composite '{...} & {...}' together.",
        ),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            parser=local_path, help="Write files of JSON lines here, for 'gossamer spark stream'."
        ),
    ] = None,
    subscriber: Annotated[
        str | None, typer.Option("--as", help="Of --into: this subscriber (default: the peer).")
    ] = None,
    rotate_s: Annotated[
        float,
        number_option(
            "--rotate-s", low=0.1, help="Of --into: seconds after which a file is finished."
        ),
    ] = 10.0,
    rotate_events: Annotated[
        int,
        whole_option(
            "--rotate-events", low=1, help="Of --into: events after which a file is finished."
        ),
    ] = 100_000,
) -> None:
    """Print the events that match, or that match together, one line of JSON each."""
    from gossamer.client.client import one_of
    from gossamer.node.commands.clients import subscribing
    from gossamer.node.commands.signals import ended_as_by_interrupt
    from gossamer.protocol.content.filters.composite import is_composite

    if group is not None and (name is not None or retained or ordered):
        raise typer.BadParameter("expected no --name, --retained or --ordered with --group")
    if last and (group is not None or name is not None or ordered):
        raise typer.BadParameter("expected no --name, --group or --ordered with --last")
    if forget and group is not None and expressions:
        subscribing.leave_group(folder, group, one_of(expressions))
        return
    if forget:
        if name is None or expressions:
            raise typer.BadParameter(
                "expected --name and no expression with --forget, or --group and its own"
            )
        subscribing.forget(folder, name)
        return
    if not expressions or not all(map(str.strip, expressions)):
        raise typer.BadParameter("expected an expression, such as 'price > 80'")
    if within is not None and (len(expressions) > 1 or not is_composite(expressions[0])):
        raise typer.BadParameter("expected one expression in braces with --within: '{...} & {...}'")
    if within is None and any(map(is_composite, expressions)):
        raise typer.BadParameter("expected --within SECONDS with an expression in braces")
    if within is not None and (retained or group is not None or ordered or last or into):
        raise typer.BadParameter(
            "expected no --retained, --group, --ordered, --last or --into with --within"
        )
    wanted = subscribing.Wanted(
        expression=one_of(expressions),
        name=name,
        count=count,
        retained=retained,
        label=label,
        group=group,
        ahead=ahead,
        ordered=ordered,
        last=last,
        within=within,
    )
    with ended_as_by_interrupt():
        if into is None:
            subscribing.subscribe(folder, wanted)
            return
        files = subscribing.Files(
            folder=into, subscriber=subscriber, every_s=rotate_s, most=rotate_events
        )
        subscribing.subscribe_into(folder, wanted, files)
