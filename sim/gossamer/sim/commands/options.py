"""The options and arguments that several subcommands of `gossamer sim` have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gossamer.command.options import whole_option
from gossamer.command.paths import local_path


def path_option(metavar: str, help: str) -> Any:
    """An option that takes a path."""
    return typer.Option(metavar=metavar, help=help, parser=local_path)


ScenarioFile = Annotated[
    Path | None,
    typer.Argument(
        metavar="[SCENARIO]",
        help="Scenario file, TOML; without one, peers under the defaults.",
        parser=local_path,
    ),
]
Out = Annotated[
    Path | None,
    path_option(
        "FOLDER", "Result folder, which must not exist (default: a free one under results)."
    ),
]
ResultFolder = Annotated[
    Path, typer.Argument(metavar="RESULTS", help="Result folder.", parser=local_path)
]
Trace = Annotated[Path | None, path_option("FILE", "Churn trace in place of the scenario's.")]
Workloads = Annotated[
    list[str] | None,
    typer.Option(
        "--workload",
        metavar="FOLDER",
        help="Take subscriptions, events, documents or churn from it; a path or URL.",
    ),
]
Seed = Annotated[int | None, whole_option("--seed", help="Seed of everything random.")]
Nodes = Annotated[int | None, whole_option("--nodes", help="Number of nodes, such as 1e5.")]
Rounds = Annotated[int | None, whole_option("--rounds", help="Number of rounds.")]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Replace a value, such as events.per_round=2 or system.kindred.ring_links=3.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print summary.json and nothing else.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with an unfinished run.")]
Plots = Annotated[
    str | None,
    typer.Option(
        "--plots",
        metavar="FORMATS",
        help="Formats of plots, some of svg,png,pdf (default: svg,png).",
    ),
]
PlotWidth = Annotated[
    str | None,
    typer.Option(
        "--plot-width",
        metavar="WIDTH",
        help="Width of plots: that of a page (default), or a column of two.",
    ),
]
Live = Annotated[
    bool, typer.Option("--live", help="Serve a page of the run to this machine while it goes on.")
]
LivePort = Annotated[
    int | None,
    whole_option(
        "--live-port",
        low=0,
        high=65535,
        metavar="PORT",
        help="Port of that page (default: a free one).",
    ),
]
Snapshots = Annotated[
    int | None,
    whole_option(
        "--snapshots",
        metavar="EVERY",
        help="Keep the overlays every so many rounds, as Parquet edge lists.",
    ),
]
Keep = Annotated[
    str | None,
    typer.Option(
        "--keep",
        metavar="TABLES",
        help="Further tables for the results: subscriptions,events (of peers).",
    ),
]
NoPlots = Annotated[bool, typer.Option("--no-plots", help="Draw nothing, write no report.")]
Threads = Annotated[
    int,
    whole_option(
        "--threads", low=1, help="Threads, for systems side by side and for the nodes of one."
    ),
]
Processes = Annotated[int, whole_option("--processes", low=1, help="Runs that go on at a time.")]
Studies = Annotated[
    list[str] | None,
    typer.Option(
        "--study",
        metavar="MODULE:NAME",
        help="A study that is not installed, as module:name or file.py:name.",
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="A reduced version, in minutes.")]
