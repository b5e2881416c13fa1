"""The subcommand `gossamer node replay`, which the node's command line finds by its entry point."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gossamer.command.options import number_option, whole_option
from gossamer.command.paths import local_path

Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def replay(
    trace: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE", help="Churn trace: .avt, .parquet, .csv.", parser=local_path
        ),
    ],
    peers: Annotated[
        int, whole_option("--peers", help="Real peers: the first nodes of the trace.")
    ] = 40,
    speed: Annotated[
        float | None,
        number_option(
            "--speed", help="Seconds of the trace in one; as many as this machine manages if none."
        ),
    ] = None,
    round_s: Annotated[
        float | None,
        number_option(
            "--round-s", help="Gossip round, in seconds of the trace; what takes half a second."
        ),
    ] = None,
    events_per_hour: Annotated[
        float, number_option("--events-per-hour", help="Events in an hour of the trace.")
    ] = 30.0,
    preset: Annotated[str, typer.Option(help="Preset of the protocol.")] = "kindred",
    seed: Annotated[int | None, whole_option("--seed", help="Seed of everything random.")] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Replace a value of the scenario: churn.end_s=3600."
        ),
    ] = None,
    processes: Annotated[
        int | None, whole_option("--processes", low=1, help="Processes that hold the peers.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Result folder, which must not exist.", parser=local_path
        ),
    ] = None,
    json: Json = False,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw nothing.")] = False,
) -> None:
    """Replay churn on real peers of this machine, beside a simulation of the same."""
    from gossamer.node.commands.signals import ended_as_by_interrupt
    from gossamer.replay.command import Options
    from gossamer.replay.command import replay as play

    options = Options(
        peers=peers, speed=speed, processes=processes, out=out, json=json, plots=not no_plots
    )
    with ended_as_by_interrupt():
        code = play(
            trace,
            options,
            preset=preset,
            round_s=round_s,
            events_per_hour=events_per_hour,
            seed=seed,
            changes=changes or (),
        )
    raise SystemExit(code)
