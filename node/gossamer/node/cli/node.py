"""The subcommands `gossamer node` and `top`: they read arguments, and no more.

The work is done in `gossamer.node.commands`, imported inside the commands, so that each loads only
what it needs. Installations find `sub` and `pub` here as well.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Annotated, Final

import typer

from gossamer.command.options import SETTINGS, number_option, whole_option
from gossamer.command.paths import local_path
from gossamer.command.waiting import waiting
from gossamer.node.cli.events import Folder, FolderOption, pub_app, sub_app
from gossamer.node.cli.schema import app as schema_app
from gossamer.node.cli.starting import EDGE, NEIGHBOUR, list_changes, run_options, run_peers
from gossamer.node.config.broker import family_names

__all__ = ["app", "pub_app", "sub_app", "top_app"]

# Subcommands of `gossamer node` that other packages bring along.
COMMAND_GROUP: Final = "gossamer.node.commands"

app = typer.Typer(help="Run peers that find each other.", no_args_is_help=True, **SETTINGS)
app.add_typer(schema_app, name="schema")
top_app = typer.Typer(**SETTINGS)

NewFolder = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Folder to be made.", parser=local_path)
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Replace a setting, such as logging.level=debug."
    ),
]
Preset = Annotated[str | None, typer.Option(help="lan, wan or local; what node.toml starts from.")]
Port = Annotated[
    int | None,
    whole_option(
        "--port",
        metavar="PORT",
        help="First of the ports to listen at; those of the preset, or free ones, if none.",
    ),
]
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
        int,
        whole_option(
            "--peers", low=1, help="Make so many peers of this machine, to try things out."
        ),
    ] = 1,
    port: Port = None,
) -> None:
    """Make a cluster and its first peer."""
    from gossamer.node.commands.cluster.membership import init as make

    with waiting("making the cluster"):
        made = make(
            folder,
            cluster=cluster,
            name=name,
            schema=schema,
            preset=preset,
            peers=peers,
            port=port,
        )
    _print(made)


@app.command()
def invite(
    folder: FolderOption = None,
    address: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT", help="Where this peer answers those who join."),
    ] = None,
    minutes: Annotated[
        float, number_option("--minutes", help="How long the token is good for.")
    ] = 60.0,
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
    port: Port = None,
) -> None:
    """Become a peer of somebody's cluster."""
    from gossamer.node.commands.cluster.membership import join as become

    called = name or folder.absolute().name
    with waiting("joining the cluster"):
        joined = become(token, folder, name=called, preset=preset, port=port)
    _print(joined)


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
    from gossamer.node.commands.cluster.renewing import renew as extend

    print(extend(folder, at or (), request=request, grant=grant, take=take))


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
    cluster: Annotated[
        int | None, whole_option("--cluster", help="In a SCOT: of this broker.")
    ] = None,
    clusters: Annotated[
        int | None, whole_option("--clusters", help="In a SCOT: how many there are.")
    ] = None,
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
    from gossamer.node.commands.cluster.listing import trace as show

    show(folder, message, as_json=json)


@app.command()
def reload(folder: Folder = None, json: Json = False) -> None:
    """Have a running node read its configuration anew; say what is in force, and what is not."""
    from gossamer.node.commands.cluster.control import reload as take_up

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

    with waiting("writing the backup"):
        written = back_up(folder, file)
    _print(written)


@app.command()
def restore(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="What 'backup' wrote.", parser=local_path)
    ],
    folder: NewFolder,
) -> None:
    """Make a peer's folder from a backup, as a whole or not at all."""
    from gossamer.node.commands.backup.making import restore as bring_back

    with waiting("restoring the backup"):
        restored = bring_back(file, folder)
    _print(restored)


@app.command()
def ready(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER]...",
            help="The folders of the nodes; the current one if none.",
            parser=local_path,
        ),
    ] = None,
    within: Annotated[
        float, number_option("--within", low=0, help="Seconds to wait at most.")
    ] = 30.0,
) -> None:
    """Wait until nodes that were started are ready; exit code 1 if one is not in time."""
    from gossamer.node.commands.cluster.control import not_ready

    if reason := not_ready(folders or [None], within):
        print(f"gossamer: {reason}", file=sys.stderr)
        raise SystemExit(1)


@app.command()
def stop(folder: Folder = None) -> None:
    """Stop the node that runs in a folder."""
    from gossamer.node.commands.cluster.control import stop as end

    end(folder)


@top_app.command()
def top(
    folder: Folder = None,
    interval: Annotated[
        float, number_option("--interval", low=0.1, help="Seconds between pictures.")
    ] = 1.0,
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


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        print(line)


def _add_installed_commands() -> None:
    """Take up subcommands of `gossamer node` that are registered as entry points."""
    for point in sorted(entry_points(group=COMMAND_GROUP), key=lambda point: point.name):
        app.command(point.name)(point.load())


_add_installed_commands()
