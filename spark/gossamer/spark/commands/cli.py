"""The subcommand `gossamer spark`: reads arguments; the work is done elsewhere.

Everything beyond the arguments is imported inside the commands, so that help needs no Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gossamer.command.paths import local_path
from gossamer.command.signals import exit_code_of, interruptible

if TYPE_CHECKING:
    from gossamer.spark.session import SessionSettings

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Master = Annotated[
    str | None,
    typer.Option(help="Cluster, such as spark://HOST:7077 or sc://HOST (default: this machine)."),
]
Memory = Annotated[
    str | None, typer.Option(help="Memory of Spark on this machine, such as 2g or 900m.")
]
Patience = Annotated[
    float, typer.Option(min=1, help="Seconds to wait for workers where a cluster has none.")
]
LogLevel = Annotated[str, typer.Option(help="Spark's log on standard error: off, error, info.")]
Conf = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="Any option of Spark.")
]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as exponent=1.5."),
]


@app.callback()
def begin(
    context: typer.Context,
    studies: Annotated[
        list[str] | None,
        typer.Option(
            "--study",
            metavar="MODULE:NAME",
            help="A study that is not installed, as module:name or file.py:name.",
        ),
    ] = None,
) -> None:
    """Workloads, sweeps and results at scale, on Apache Spark (extra 'spark')."""
    context.with_resource(interruptible())
    if studies:
        from gossamer.sim.study.registry import name_studies

        name_studies(studies)


@app.command()
def workload(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="vinifera, siena, covering, keywords, commuters, quotes or churn.",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(metavar="FOLDER", help="New folder for the tables.", parser=local_path),
    ],
    subscriptions: Annotated[
        int, typer.Option(help="Subscriptions; keywords, or nodes of churn.")
    ] = 100_000,
    events: Annotated[int, typer.Option(help="Events, documents or quotes.")] = 100_000,
    seed: Seed = 1,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Quotes to resample, trace to fit, or graph of brokers.",
            parser=local_path,
        ),
    ] = None,
    changes: Changes = None,
    partitions: Annotated[
        int | None, typer.Option(min=1, help="Files of a table; the rows are the same.")
    ] = None,
    master: Master = None,
    memory: Memory = None,
    patience: Patience = 120.0,
    log_level: LogLevel = "off",
    conf: Conf = None,
) -> None:
    """Make a workload of any size as Parquet tables, and check it."""
    from gossamer.sim.row_tables.kinds import Wish, make_workload
    from gossamer.sim.study.toml_files import parse_override
    from gossamer.spark.commands.tables import print_workload
    from gossamer.spark.session import require_spark
    from gossamer.spark.workload.writing import write_workload

    require_spark()
    wish = Wish(
        seed=seed,
        subscriptions=subscriptions,
        events=events,
        source=source,
        settings=dict(map(parse_override, changes or [])),
    )
    make_workload(kind, wish)  # refused, if it is to be, before Spark starts
    settings = _session(master, memory, patience, log_level, conf)
    with _session_for(out, settings) as session:
        print_workload(write_workload(session, kind, wish, out, partitions))


@app.command()
def crunch(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULTS...", help="Result folders, or folders of them.", parser=local_path
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER", help="New folder for measures, plots and report.", parser=local_path
        ),
    ],
    plots: Annotated[bool, typer.Option(help="Draw plots.")] = True,
    claims: Annotated[
        list[str] | None,
        typer.Option("--claim", metavar="ID", help="Claim of the paper to check: V3 or V6."),
    ] = None,
    exact_up_to: Annotated[
        int,
        typer.Option(
            min=0, help="Deliveries up to which percentiles of delays are exact, not sketched."
        ),
    ] = 10_000_000,
    master: Master = None,
    memory: Memory = None,
    patience: Patience = 120.0,
    log_level: LogLevel = "off",
    conf: Conf = None,
) -> None:
    """Make the results of one or thousands of runs into measures with intervals."""
    from gossamer.spark.commands.tables import print_crunched
    from gossamer.spark.crunch.crunching import crunch_results
    from gossamer.spark.crunch.folders import find_runs
    from gossamer.spark.session import require_spark

    require_spark()
    if claims:
        from gossamer.spark.crunch.claims import check_names

        check_names(claims)
    runs = find_runs(results)
    settings = _session(master, memory, patience, log_level, conf)
    with _session_for(out, settings) as session:
        found = crunch_results(
            session, runs, out, plots=plots, exact_up_to=exact_up_to, claims=claims or ()
        )
    print_crunched(found)


@app.command()
def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="SWEEP", help="Sweep file, TOML.", parser=local_path)
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER", help="New folder for the results of all points.", parser=local_path
        ),
    ],
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an unfinished sweep.")
    ] = False,
    at_once: Annotated[
        int | None, typer.Option(min=1, help="Points that run at a time, at most.")
    ] = None,
    retries: Annotated[
        int, typer.Option(min=0, help="Times that a point is tried again if its worker is lost.")
    ] = 2,
    master: Master = None,
    memory: Memory = None,
    patience: Patience = 120.0,
    log_level: LogLevel = "off",
    conf: Conf = None,
) -> None:
    """Run scenarios over a grid of values and seeds, one simulation a task."""
    from gossamer.spark.commands.tables import print_sweep
    from gossamer.spark.errors import ClusterLost, SweepEnded
    from gossamer.spark.jobs import sentence_of
    from gossamer.spark.session import require_spark, runs_here
    from gossamer.spark.sweep.plan import read_sweep
    from gossamer.spark.sweep.running import SweepOptions, run_sweep, what_is_kept

    require_spark()
    plan = read_sweep(file)
    settings = _session(master, memory, patience, log_level, conf)
    try:
        with _session_for(out, settings) as session:
            options = SweepOptions(
                resume=resume, at_once=at_once, retries=retries, shares_memory=runs_here(session)
            )
            outcome = run_sweep(session, plan, out, options)
    except KeyboardInterrupt as interrupt:
        typer.echo(f"gossamer: interrupted; {what_is_kept(file, out)}", err=True)
        raise typer.Exit(exit_code_of(interrupt)) from None
    except (ClusterLost, OSError) as error:
        raise SweepEnded(f"{sentence_of(error)}; {what_is_kept(file, out)}") from error
    print_sweep(outcome)
    if outcome.failed:
        raise typer.Exit(1)


@contextmanager
def _session_for(out: Path, settings: SessionSettings) -> Iterator[Any]:
    """A session for work on a new folder; what refuses the folder does so before Spark starts."""
    from gossamer.sim.results.held import check_is_free
    from gossamer.spark.jobs import disk_errors
    from gossamer.spark.session import spark_session

    with disk_errors(out):
        check_is_free(out)
        with spark_session(settings) as session:
            yield session


def _session(
    master: str | None,
    memory: str | None,
    patience: float,
    log_level: str,
    conf: Sequence[str] | None,
) -> SessionSettings:
    """What session the command line asks for."""
    from gossamer.spark.options import log_level_of, memory_of, option_of
    from gossamer.spark.session import SessionSettings

    return SessionSettings(
        master=master,
        memory_bytes=memory_of(memory),
        patience_s=patience,
        log_level=log_level_of(log_level),
        options=dict(map(option_of, conf or [])),
    )
