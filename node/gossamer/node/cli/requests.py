"""The subcommands `gossamer request` and `reply`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gossamer.command.options import SETTINGS, number_option, whole_option
from gossamer.command.paths import local_path
from gossamer.node.cli.events import FolderOption

request_app = typer.Typer(**SETTINGS)
reply_app = typer.Typer(**SETTINGS)

# Exit code of `request` where replies are missing, or say that they failed.
INCOMPLETE = 1


@request_app.command()
def request(
    values: Annotated[
        list[str], typer.Argument(metavar="ATTRIBUTE=VALUE...", help="Such as symbol=IBM.")
    ],
    folder: FolderOption = None,
    timeout: Annotated[
        float,
        number_option("--timeout", low=0.001, high=86_400, help="Seconds to wait for replies."),
    ] = 10.0,
    replies: Annotated[
        int,
        whole_option(
            "--replies", low=1, high=1024, help="End after so many, of different repliers."
        ),
    ] = 1,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print the bytes of replies, and nothing else.")
    ] = False,
    payload: Annotated[
        str | None, typer.Option(metavar="FILE", help="Bytes that it carries; - is stdin.")
    ] = None,
    content_type: Annotated[
        str, typer.Option(metavar="TYPE", help="What these are, such as image/png.")
    ] = "application/octet-stream",
) -> None:
    """Publish an event, and print what those reply who get it, one line of JSON each.

    Exit code 1 says that fewer replies came in time, or that one says that it failed.
    """
    from gossamer.node.commands.clients import publishing, requesting
    from gossamer.node.commands.signals import ended_as_by_interrupt
    from gossamer.node.errors import (
        NoReplyError,
        PublicationUncertainError,
        UnacknowledgedError,
    )

    try:
        with ended_as_by_interrupt():
            carried = None if payload is None else publishing.read_payload(payload, content_type)
            if not requesting.request(
                folder, values, carried, timeout_s=timeout, count=replies, raw=raw
            ):
                raise typer.Exit(INCOMPLETE)
    except (NoReplyError, PublicationUncertainError, UnacknowledgedError) as error:
        print(f"gossamer: {error}", file=sys.stderr)
        raise typer.Exit(INCOMPLETE) from None


@reply_app.command()
def reply(
    expressions: Annotated[
        list[str],
        typer.Argument(metavar="EXPR...", help="Which requests; of several, one has to match."),
    ],
    folder: FolderOption = None,
    run: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="For the shell: reads the request, prints the reply."),
    ] = None,
    echo: Annotated[bool, typer.Option("--echo", help="Reply the request itself.")] = False,
    content_type: Annotated[
        str, typer.Option(metavar="TYPE", help="What the command prints.")
    ] = "text/plain; charset=utf-8",
    name: Annotated[
        str | None,
        typer.Option(help="The node keeps requests under this name while nobody replies."),
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="One of all that reply for this group gets each request.")
    ] = None,
    count: Annotated[
        int | None, whole_option("--count", low=1, help="End after so many requests.")
    ] = None,
) -> None:
    """Reply to requests that match, by a command or with the request itself."""
    from gossamer.client.client import one_of
    from gossamer.node.commands.clients import requesting, subscribing
    from gossamer.node.commands.signals import ended_as_by_interrupt

    if (run is None) != echo:
        raise typer.BadParameter("expected either --run or --echo")
    if not all(map(str.strip, expressions)):
        raise typer.BadParameter("expected an expression, such as 'price > 80'")
    if name is not None and group is not None:
        raise typer.BadParameter("expected either --name or --group")
    wanted = subscribing.Wanted(
        expression=one_of(expressions), name=name, label="reply", group=group, count=count
    )
    with ended_as_by_interrupt():
        requesting.reply(folder, wanted, run, content_type)


# The subcommands `gossamer advertise`, `unsub` and `batch`, for clients of a broker.

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
    if withdraw:
        if expression:
            raise typer.BadParameter("expected no filter with --withdraw")
        asking.change(folder, name, "unadvertise", label)
        return
    if not expression:
        raise typer.BadParameter("expected a filter, such as 'present(symbol) and price > 0'")
    asking.change(folder, name, "advertise", label, expression)


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
    asking.change(folder, name, "unsubscribe", label)


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
