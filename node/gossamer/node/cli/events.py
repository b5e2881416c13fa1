"""The subcommand `gossamer pub`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from gossamer.command.options import SETTINGS, number_option, whole_option
from gossamer.command.paths import local_path

# What several subcommands have in common: arguments that name a folder.

Folder = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FOLDER]",
        help="The peer's folder; the current one if none.",
        parser=local_path,
    ),
]
FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        "-f",
        metavar="FOLDER",
        help="The peer's folder; the current one if none.",
        parser=local_path,
    ),
]


pub_app = typer.Typer(**SETTINGS)

# Exit code of `pub` where this peer alone holds what was published.
HELD_ALONE: Final = 3


@pub_app.command()
def pub(
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ATTRIBUTE=VALUE]...", help="Such as symbol=IBM price=80.5."),
    ] = None,
    folder: FolderOption = None,
    jsonl: Annotated[
        str | None, typer.Option(metavar="FILE", help="Publish every line of JSON; - is stdin.")
    ] = None,
    workload: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="WORKLOAD",
            help="Publish the events of a workload of 'gossamer spark'.",
            parser=local_path,
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            metavar="ATTRIBUTE[=COLUMN]",
            help="With --from: what is published of a row (default: all).",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="At a broker: the client whose advertisements allow it.")
    ] = None,
    payload: Annotated[
        str | None, typer.Option(metavar="FILE", help="Bytes that the event carries; - is stdin.")
    ] = None,
    content_type: Annotated[
        str, typer.Option(metavar="TYPE", help="What these are, such as image/png.")
    ] = "application/octet-stream",
    retained_last: Annotated[
        str | None,
        typer.Option(
            metavar="ATTRIBUTE", help="Keep it for newcomers as the last of its value of this."
        ),
    ] = None,
    lasts: Annotated[
        float | None,
        number_option(
            "--lasts", low=0.001, high=1e9, help="Seconds for which it is kept; for good if none."
        ),
    ] = None,
    delete: Annotated[
        bool, typer.Option("--delete", help="Keep none of that value any more.")
    ] = False,
) -> None:
    """Publish an event, every line of a file, or a workload, and wait until peers hold it.

    Prints the id, of every line its number and id. Exit code 1 says that some were not
    acknowledged, and may be lost; 2 that there were lines that are no events, and not published;
    3 that all were acknowledged, but some by this peer alone: it knows others, and reaches none.
    """
    from gossamer.client.results import LastMark
    from gossamer.node.commands.clients import publishing
    from gossamer.node.commands.signals import ended_as_by_interrupt
    from gossamer.node.errors import PublicationUncertainError, UnacknowledgedError

    if (jsonl is not None) + (workload is not None) + bool(values) != 1:
        raise typer.BadParameter("expected one of values such as price=80.5, --jsonl and --from")
    if not values and (payload is not None or retained_last is not None):
        raise typer.BadParameter(
            "expected no --payload and no --retained-last with --jsonl or --from"
        )
    if retained_last is None and (lasts is not None or delete):
        raise typer.BadParameter("expected --retained-last with --lasts and --delete")
    if columns and workload is None:
        raise typer.BadParameter("expected no --column without --from")
    if not values:
        with ended_as_by_interrupt():
            if workload is not None:
                code, alone = publishing.publish_table(folder, workload, columns or (), name)
            else:
                code, alone = publishing.publish_lines(folder, jsonl or "", name)
        if alone:
            left = _held_alone(alone)
            raise left if code == 0 else typer.Exit(code)
        raise typer.Exit(code)
    try:
        with ended_as_by_interrupt():
            bytes_ = None if payload is None else publishing.read_payload(payload, content_type)
            mark = None
            if retained_last is not None:
                mark = LastMark(retained_last, lasts or 0.0, delete)
            id_, held_alone = publishing.publish_one(folder, values or (), name, bytes_, mark)
        print(id_)
        if held_alone:
            raise _held_alone(1)
    except (PublicationUncertainError, UnacknowledgedError) as error:
        print(f"gossamer: {error}", file=sys.stderr)
        raise typer.Exit(publishing.EXIT_UNACKNOWLEDGED) from None


def _held_alone(events: int) -> typer.Exit:
    """Say that nobody else holds what was published."""
    from gossamer.node.peer.membership.admission import ALONE

    print(f"gossamer: events acknowledged by this peer alone: {events}; {ALONE}", file=sys.stderr)
    return typer.Exit(HELD_ALONE)


# The subcommand `gossamer sub`.

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
        subscribing.subscribe_into(
            folder, wanted, into, subscriber, every_s=rotate_s, most=rotate_events
        )
