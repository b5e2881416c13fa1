"""The subcommand `gossamer pub`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from gossamer.command.options import SETTINGS, number_option
from gossamer.command.paths import local_path
from gossamer.node.cli.options import FolderOption

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
    from gossamer.node.peer.membership.status import ALONE

    print(f"gossamer: events acknowledged by this peer alone: {events}; {ALONE}", file=sys.stderr)
    return typer.Exit(HELD_ALONE)
