"""The subcommands `gossamer node`, `sub`, `pub` and `top`: they read arguments, and no more.

The work is done in `gossamer.node.commands`, imported inside the commands, so that each loads only
what it needs.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from gossamer.command.paths import local_path
from gossamer.node.cli.schema import app as schema_app
from gossamer.node.cli.starting import EDGE, NEIGHBOUR, list_changes, run_options, run_peers
from gossamer.node.config.families import family_names

SETTINGS: Final[dict[str, Any]] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
}

# Subcommands of `gossamer node` that other packages bring along.
COMMAND_GROUP: Final = "gossamer.node.commands"
# Exit code of `pub` where this peer alone holds what was published.
HELD_ALONE: Final = 3

app = typer.Typer(help="Run peers that find each other.", no_args_is_help=True, **SETTINGS)
app.add_typer(schema_app, name="schema")
sub_app = typer.Typer(**SETTINGS)
pub_app = typer.Typer(**SETTINGS)
top_app = typer.Typer(**SETTINGS)

NewFolder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Folder to be made.", parser=local_path)
]
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
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Replace a setting, such as logging.level=debug."
    ),
]
Preset = Annotated[str | None, typer.Option(help="lan, wan or local; what node.toml starts from.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


@app.command()
def init(
    folder: NewFolder,
    cluster: Annotated[str, typer.Option(help="What the cluster is called.")] = "gossamer",
    name: Annotated[str, typer.Option(help="What this peer is called.")] = "first",
    schema: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="TOML file of what events are made of; stock quotes if none.",
            parser=local_path,
        ),
    ] = None,
    preset: Preset = None,
    peers: Annotated[
        int, typer.Option(min=1, help="Make so many peers of this machine, to try things out.")
    ] = 1,
    port: Annotated[int, typer.Option(help="First port of several peers.")] = 7720,
) -> None:
    """Make a cluster and its first peer."""
    from gossamer.node.commands.cluster.membership import init as make

    _print(
        make(
            folder,
            cluster=cluster,
            name=name,
            schema=schema,
            preset=preset,
            peers=peers,
            port=port,
        )
    )


@app.command()
def invite(
    folder: FolderOption = None,
    address: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", help="Where this peer answers those who join."),
    ] = None,
    minutes: Annotated[float, typer.Option(help="How long the token is good for.")] = 60.0,
) -> None:
    """Print a token by which one peer may join; this node has to run then."""
    from gossamer.node.commands.cluster.membership import invite as make

    print(make(folder, address or (), 60.0 * minutes))


@app.command()
def join(
    token: Annotated[str, typer.Argument(metavar="TOKEN", help="What 'invite' printed.")],
    folder: NewFolder,
    name: Annotated[str, typer.Option(help="What this peer is called; the folder's if none.")] = "",
    preset: Preset = None,
) -> None:
    """Become a peer of somebody's cluster."""
    from gossamer.node.commands.cluster.membership import join as become

    _print(become(token, folder, name=name or folder.absolute().name, preset=preset))


@app.command()
def revoke(
    who: Annotated[str, typer.Argument(metavar="PEER", help="Its name or key.")],
    folder: FolderOption = None,
    unrecorded: Annotated[
        bool,
        typer.Option("--unrecorded", help="Take a key of which there is no record here any more."),
    ] = False,
) -> None:
    """Let a peer belong no more."""
    from gossamer.node.commands.cluster.membership import revoke as shut_out

    print(shut_out(folder, who, unrecorded=unrecorded))


@app.command()
def renew(
    folder: Folder = None,
    at: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST:PORT", help="Where the peer that made the cluster takes join requests."
        ),
    ] = None,
    request: Annotated[
        bool, typer.Option("--request", help="Print a request to be carried there.")
    ] = False,
    grant: Annotated[
        str | None, typer.Option(metavar="FILE", help="There: print the answer to a request.")
    ] = None,
    take: Annotated[
        str | None, typer.Option(metavar="FILE", help="Put the answer in place; - is stdin.")
    ] = None,
) -> None:
    """Renew a certificate, an expired one too; running nodes do so by themselves in time."""
    from gossamer.node.commands.cluster.renewing import Way
    from gossamer.node.commands.cluster.renewing import renew as extend

    print(extend(folder, Way(at=at or (), request=request, grant=grant, take=take)))


@app.command()
def check(folder: Folder = None, changes: Changes = None) -> None:
    """Check configuration, schema and membership; show every setting and where it comes from."""
    from gossamer.node.commands.cluster.checking import check as look

    look(folder, changes)


@app.command()
def doctor(
    peers: Annotated[
        list[str] | None, typer.Argument(metavar="[HOST:PORT]...", help="Peers to reach.")
    ] = None,
    folder: FolderOption = None,
    json: Json = False,
) -> None:
    """Explain in plain words why peers cannot be reached."""
    from gossamer.node.commands.cluster.checking import doctor as examine

    if not examine(folder, peers or (), as_json=json):
        raise SystemExit(1)


@app.command()
def run(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER]...",
            help="The peer's folder, the current one if none; each of several runs on its own.",
            parser=local_path,
        ),
    ] = None,
    changes: Changes = None,
    role: Annotated[str | None, typer.Option(help="peer or broker.")] = None,
    neighbours: Annotated[
        list[str] | None,
        typer.Option("--neighbour", metavar="HOST:PORT", help="A broker to connect to."),
    ] = None,
    covering: Annotated[
        str | None, typer.Option(help="off, lazy, active, packed, selective or incremental.")
    ] = None,
    overlay: Annotated[
        str | None, typer.Option(help=f"The family of a broker: {', '.join(family_names())}.")
    ] = None,
    region: Annotated[str | None, typer.Option(help="In a SCOT: of this broker.")] = None,
    cluster: Annotated[int | None, typer.Option(help="In a SCOT: of this broker.")] = None,
    clusters: Annotated[int | None, typer.Option(help="In a SCOT: how many there are.")] = None,
    edges: Annotated[
        list[str] | None,
        typer.Option("--edge", metavar="A-B", help="In a SCOT: two regions that are linked."),
    ] = None,
) -> None:
    """Run a peer or a broker until it is stopped (Ctrl-C)."""
    lists = list_changes({NEIGHBOUR: neighbours or (), EDGE: edges or ()})
    single = {
        "--role": role,
        "--covering": covering,
        "--overlay": overlay,
        "--region": region,
        "--cluster": cluster,
        "--clusters": clusters,
    }
    options = run_options()
    given = [*(changes or ()), *lists]
    given += [f"{options[name]}{value}" for name, value in single.items() if value is not None]
    raise SystemExit(run_peers(folders or (), given))


@app.command()
def status(folder: Folder = None, json: Json = False) -> None:
    """Show what a running node says of itself."""
    from gossamer.node.commands.cluster.watching import status as show

    show(folder, as_json=json)


@app.command()
def service(
    folder: Folder = None,
    install: Annotated[
        bool, typer.Option("--install", help="Write the unit where systemd looks for it.")
    ] = False,
    system: Annotated[
        bool, typer.Option("--system", help="For the machine, not for this user alone.")
    ] = False,
    name: Annotated[
        str | None, typer.Option(help="Of the unit, gossamer-NAME.service; the node's if none.")
    ] = None,
) -> None:
    """Print or install a systemd unit that runs the node of a folder."""
    from gossamer.node.commands.running.service import service as make

    _print(make(folder, name, system=system, install=install))


@app.command()
def members(
    folder: Folder = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on, and print who joins, leaves, fails or returns.")
    ] = False,
    json: Json = False,
) -> None:
    """List the members of the cluster that a running node has met: state, version, certificate."""
    from gossamer.node.commands.cluster.listing import members as show
    from gossamer.node.commands.signals import ended_as_by_interrupt

    with ended_as_by_interrupt():
        show(folder, watch=watch, as_json=json)


@app.command()
def trace(
    folder: Folder = None,
    message: Annotated[
        str | None,
        typer.Option(metavar="ID", help="A publication, as 'gossamer pub' and 'sub' print it."),
    ] = None,
    json: Json = False,
) -> None:
    """Show the tables of a broker, or the way that a publication took through the overlay."""
    from gossamer.node.commands.cluster.tracing import trace as show

    show(folder, message, as_json=json)


@app.command()
def reload(folder: Folder = None, json: Json = False) -> None:
    """Have a running node read its configuration anew; say what is in force, and what is not."""
    from gossamer.node.commands.cluster.reloading import reload as take_up

    take_up(folder, as_json=json)


@app.command()
def backup(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The peer's folder.", parser=local_path)
    ],
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File to be made.", parser=local_path)
    ],
) -> None:
    """Write a peer's folder to a file, keys included, whether its node runs or not."""
    from gossamer.node.commands.backup.making import back_up

    _print(back_up(folder, file))


@app.command()
def restore(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What 'backup' wrote.", parser=local_path)
    ],
    folder: NewFolder,
) -> None:
    """Make a peer's folder from a backup, as a whole or not at all."""
    from gossamer.node.commands.backup.restoring import restore as bring_back

    _print(bring_back(file, folder))


@app.command()
def stop(folder: Folder = None) -> None:
    """Stop the node that runs in a folder."""
    from gossamer.node.commands.cluster.stopping import stop as end

    end(folder)


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
    count: Annotated[int | None, typer.Option(min=1, help="End after so many events.")] = None,
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
        int, typer.Option(min=1, max=256, help="Of a group: events taken before any is printed.")
    ] = 1,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Print the events of each publisher in its order.")
    ] = False,
    last: Annotated[
        bool, typer.Option("--last", help="Begin with the last values (pub --retained-last).")
    ] = False,
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
        float, typer.Option(min=0.1, help="Of --into: seconds after which a file is finished.")
    ] = 10.0,
    rotate_events: Annotated[
        int, typer.Option(min=1, help="Of --into: events after which a file is finished.")
    ] = 100_000,
) -> None:
    """Print the events that match, one line of JSON each."""
    from gossamer.client.client import one_of
    from gossamer.node.commands.clients import subscribing
    from gossamer.node.commands.signals import ended_as_by_interrupt

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
    )
    with ended_as_by_interrupt():
        if into is None:
            subscribing.subscribe(folder, wanted)
            return
        files = subscribing.Files(
            folder=into, subscriber=subscriber, every_s=rotate_s, most=rotate_events
        )
        subscribing.subscribe_into(folder, wanted, files)


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
        typer.Option(min=0.001, max=1e9, help="Seconds for which it is kept; for good if none."),
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


@top_app.command()
def top(
    folder: Folder = None,
    interval: Annotated[float, typer.Option(min=0.1, help="Seconds between pictures.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Print one picture and end.")] = False,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Of all members that answer, not of this one.")
    ] = False,
    json: Json = False,
) -> None:
    """Watch a running peer: links, load, rates, queues and drops; or the whole cluster."""
    from gossamer.node.commands.cluster.watching import top as watch
    from gossamer.node.commands.signals import ended_as_by_interrupt

    with ended_as_by_interrupt():
        watch(folder, interval, once=once, as_json=json, cluster=cluster)


def _held_alone(events: int) -> typer.Exit:
    """Say that nobody else holds what was published."""
    from gossamer.node.peer.membership.status import ALONE

    print(f"gossamer: events acknowledged by this peer alone: {events}; {ALONE}", file=sys.stderr)
    return typer.Exit(HELD_ALONE)


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        print(line)


def _add_installed_commands() -> None:
    """Take up subcommands of `gossamer node` that are registered as entry points."""
    for point in sorted(entry_points(group=COMMAND_GROUP), key=lambda point: point.name):
        app.command(point.name)(point.load())


_add_installed_commands()
