"""The subcommand `gossamer spark`: reads arguments; the work is done elsewhere.

Everything beyond the arguments is imported inside the commands, so that help needs no Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from inspect import Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from gossamer.command.options import SETTINGS, number_option, whole_option
from gossamer.command.signals import exit_code_of, interruptible
from gossamer.command.waiting import waiting

if TYPE_CHECKING:
    from gossamer.sim.results.storage.place import Place
    from gossamer.spark.session import SessionSettings


# Sessions as the options of a command ask for them; Spark is imported when one is made.


@contextmanager
def session_for(out: Place, settings: SessionSettings, *, is_new: bool = True) -> Iterator[Any]:
    """A session for work on a folder; what refuses a new one does so before Spark starts."""
    from gossamer.spark.configuration import links_of
    from gossamer.spark.jobs import disk_errors, job_errors
    from gossamer.spark.session import runs_here, slots, spark_session
    from gossamer.spark.shipping.versions import require_same_versions, send_files
    from gossamer.spark.storage.folders import check_is_free

    with disk_errors(out):
        if is_new:
            check_is_free(out)
        with spark_session(settings) as session:
            with job_errors("sending files to executors"):
                send_files(session, settings.py_files, settings.archives)
            for line in links_of(session, settings.options):
                typer.echo(f"gossamer: {line}", err=True)
            if not runs_here(session):
                require_same_versions(session, slots(session))
            yield session


app = typer.Typer(no_args_is_help=True, **SETTINGS)

Master = Annotated[
    str | None,
    typer.Option(help="Cluster, such as spark://HOST:7077 or sc://HOST (default: this machine)."),
]
Memory = Annotated[
    str | None, typer.Option(help="Memory of Spark on this machine, such as 2g or 900m.")
]
Patience = Annotated[
    float,
    number_option(
        "--patience", low=1, help="Seconds to wait for workers where a cluster has none."
    ),
]
LogLevel = Annotated[str, typer.Option(help="Spark's log on standard error: off, error, info.")]
Conf = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="Any option of Spark.")
]
PyFiles = Annotated[
    list[str] | None,
    typer.Option("--py-files", metavar="FILE", help="Put on the import path of executors."),
]
Archives = Annotated[
    list[str] | None,
    typer.Option("--archives", metavar="FILE[#NAME]", help="Unpacked where executors work."),
]
Ui = Annotated[
    bool | None, typer.Option("--ui", help="Serve Spark's pages of jobs, and print the address.")
]
EventLog = Annotated[
    str | None, typer.Option(metavar="FOLDER", help="Keep Spark's event log there; also a URL.")
]
# None, which lineage leaves out, stands for Parquet.
Format = Annotated[
    str | None,
    typer.Option("--format", metavar="FORMAT", help="Of the tables: parquet or delta."),
]
Seed = Annotated[int, whole_option("--seed", help="Seed of everything random.")]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting, such as exponent=1.5."),
]


def session_settings(
    master: Master = None,
    memory: Memory = None,
    patience: Patience = 120.0,
    log_level: LogLevel = "off",
    conf: Conf = None,
    py_files: PyFiles = None,
    archives: Archives = None,
    ui: Ui = None,
    event_log: EventLog = None,
) -> Any:
    """What session the command line asks for: `SessionSettings`."""
    from gossamer.spark.configuration import log_level_of, memory_of, option_of, shown_options
    from gossamer.spark.session import SessionSettings
    from gossamer.spark.shipping.versions import check_files

    check_files("--py-files", py_files or ())
    check_files("--archives", archives or ())
    return SessionSettings(
        master=master,
        memory_bytes=memory_of(memory),
        patience_s=patience,
        log_level=log_level_of(log_level),
        options=dict(map(option_of, conf or [])) | shown_options(bool(ui), event_log),
        py_files=tuple(py_files or ()),
        archives=tuple(archives or ()),
    )


def with_session(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose first parameter is ``settings``, with the options of a session in its place.

    Where Spark is not installed it says so before anything else.
    """
    shared = list(signature(session_settings).parameters.values())
    own = list(signature(command).parameters.values())[1:]

    @wraps(command)
    def run(**given: Any) -> None:
        from gossamer.spark.session import require_spark

        require_spark()
        settings = session_settings(**{one.name: given.pop(one.name) for one in shared})
        command(settings, **given)

    run.__annotations__ = {one.name: one.annotation for one in (*own, *shared)}
    hints = get_type_hints(run, include_extras=True)
    parameters = [one.replace(annotation=hints[one.name]) for one in (*own, *shared)]
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


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
        from gossamer.sim.study.scenarios import name_studies

        name_studies(studies)


@app.command()
@with_session
def workload(
    settings: SessionSettings,
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="vinifera, siena, covering, keywords, commuters, quotes or churn.",
        ),
    ],
    out: Annotated[
        str, typer.Option(metavar="FOLDER", help="New folder for the tables, a path or URL.")
    ],
    subscriptions: Annotated[
        int, whole_option("--subscriptions", help="Subscriptions; keywords, or nodes of churn.")
    ] = 100_000,
    events: Annotated[int, whole_option("--events", help="Events, documents or quotes.")] = 100_000,
    seed: Seed = 1,
    source: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Quotes to resample, trace to fit, or graph of brokers; a path or URL.",
        ),
    ] = None,
    changes: Changes = None,
    partitions: Annotated[
        int | None,
        whole_option("--partitions", low=1, help="Files of a table; the rows are the same."),
    ] = None,
    table_format: Format = None,
) -> None:
    """Make a workload of any size as Parquet tables, and check it."""
    from gossamer.sim.results.storage.place import place_of
    from gossamer.sim.row_tables.kinds import WorkloadRequest, make_workload
    from gossamer.sim.study.scenario_format import parse_override
    from gossamer.spark.commands.tables import print_workload
    from gossamer.spark.storage.delta import is_delta
    from gossamer.spark.workload.writing import write_workload

    delta = is_delta(table_format)
    place = place_of(out, settings.options)
    with ExitStack() as stack:
        file = None
        if source is not None:
            file = stack.enter_context(place_of(source, settings.options).fetched())
        request = WorkloadRequest(
            seed=seed,
            subscriptions=subscriptions,
            events=events,
            source=file,
            settings=dict(map(parse_override, changes or [])),
        )
        make_workload(kind, request)  # refused, if it is to be, before Spark starts
        session = stack.enter_context(session_for(place, settings))
        written = write_workload(session, kind, request, place, partitions, delta=delta)
    print_workload(written)
    if not all(check.holds for check in written.checks):
        raise typer.Exit(1)


@app.command()
@with_session
def crunch(
    settings: SessionSettings,
    results: Annotated[
        list[str],
        typer.Argument(metavar="RESULTS...", help="Result folders, or folders of them; also URLs."),
    ],
    out: Annotated[
        str,
        typer.Option(
            metavar="FOLDER", help="New folder for measures, plots and report, a path or URL."
        ),
    ],
    plots: Annotated[bool, typer.Option(help="Draw plots.")] = True,
    claims: Annotated[
        list[str] | None,
        typer.Option("--claim", metavar="ID", help="Claim of the paper to check: V3 or V6."),
    ] = None,
    exact_up_to: Annotated[
        int,
        whole_option(
            "--exact-up-to",
            low=0,
            help="Rows of a workload up to which matches of all events are counted.",
        ),
    ] = 10_000_000,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY",
            help="Tables in folders by this key of scenarios, or by system or seed; repeatable.",
        ),
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Add to the results in FOLDER, if there are any.")
    ] = False,
    table_format: Format = None,
) -> None:
    """Make the results of one or thousands of runs into measures with intervals."""
    from gossamer.sim.errors import ScenarioError
    from gossamer.sim.results.storage.place import place_of
    from gossamer.spark.commands.tables import print_crunched
    from gossamer.spark.crunch.crunching import crunch_into_tables, crunch_results
    from gossamer.spark.crunch.delta_tables import check_is_addable
    from gossamer.spark.crunch.folders import find_runs
    from gossamer.spark.crunch.kept_runs import check_is_appendable, folders_of, known
    from gossamer.spark.storage.delta import is_delta

    delta = is_delta(table_format)
    if claims:
        from gossamer.spark.crunch.claims import check_names

        check_names(claims)
        if append or delta:
            beside = "--format delta" if delta else "--append"
            raise ScenarioError(None, "--claim", ", ".join(claims), f"no {beside} beside it")
    place = place_of(out, settings.options)
    runs = find_runs([place_of(one, settings.options) for one in results])
    if delta:
        check_is_addable(place, runs, partition_by, append=append)
    elif append:
        check_is_appendable(place, runs, partition_by)
    else:
        folders_of(known(runs), partition_by or ())
    common: dict[str, Any] = {"exact_up_to": exact_up_to, "partition_by": partition_by}
    with session_for(place, settings, is_new=not append) as session:
        if delta:
            found = crunch_into_tables(session, runs, place, append=append, **common)
        else:
            common |= {"plots": plots, "claims": claims or ()}
            found = crunch_results(session, runs, place, append=append, **common)
    print_crunched(found)
    if any(check.claim.verdict == "differs" for check in found.checked):
        raise typer.Exit(1)


@app.command()
@with_session
def sweep(
    settings: SessionSettings,
    file: Annotated[str, typer.Argument(metavar="SWEEP", help="Sweep file, TOML, a path or URL.")],
    out: Annotated[
        str,
        typer.Option(
            metavar="FOLDER", help="New folder for the results of all points, a path or URL."
        ),
    ],
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an unfinished sweep.")
    ] = False,
    at_once: Annotated[
        int | None, whole_option("--at-once", low=1, help="Points that run at a time, at most.")
    ] = None,
    retries: Annotated[
        int,
        whole_option(
            "--retries", low=0, help="Times that a point is tried again if its worker is lost."
        ),
    ] = 2,
) -> None:
    """Run scenarios over a grid of values and seeds, one simulation a task."""
    from gossamer.sim.commands.sweep import print_sweep
    from gossamer.sim.results.storage.place import place_of
    from gossamer.spark.errors import ClusterLost, JobError
    from gossamer.spark.jobs import sentence_of
    from gossamer.spark.session import runs_here
    from gossamer.spark.sweep.running import SweepOptions, read_sweep_at, run_sweep, what_is_kept_at

    place = place_of(out, settings.options)
    plan = read_sweep_at(place_of(file, settings.options))
    try:
        with session_for(place, settings) as session:
            options = SweepOptions(
                resume=resume, at_once=at_once, retries=retries, shares_memory=runs_here(session)
            )
            outcome = run_sweep(session, plan, place, options)
    except KeyboardInterrupt as interrupt:
        typer.echo(f"gossamer: interrupted; {what_is_kept_at(file, place)}", err=True)
        raise typer.Exit(exit_code_of(interrupt)) from None
    except (ClusterLost, OSError) as error:
        raise JobError(f"{sentence_of(error)}; {what_is_kept_at(file, place)}") from error
    print_sweep(outcome)
    if outcome.failed:
        raise typer.Exit(1)


@app.command()
@with_session
def stream(
    settings: SessionSettings,
    deliveries: Annotated[
        str,
        typer.Argument(metavar="FOLDER", help="What 'gossamer sub --into' writes; a path or URL."),
    ],
    out: Annotated[
        str,
        typer.Option(metavar="FOLDER", help="Folder for tables, new or to go on in; also a URL."),
    ],
    published: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="The same of all events: tells the hit ratio."),
    ] = None,
    window_s: Annotated[int, whole_option("--window", low=1, help="Seconds of a window.")] = 60,
    late_s: Annotated[
        int, whole_option("--late", low=0, help="Seconds for which windows wait for deliveries.")
    ] = 600,
    every_s: Annotated[
        float, number_option("--every", low=0, help="Seconds between batches.")
    ] = 10,
    once: Annotated[
        bool, typer.Option("--once", help="End when all that is there has been read.")
    ] = False,
    files: Annotated[
        int, whole_option("--files", low=1, help="Files read at a time, at most, of each folder.")
    ] = 1_000,
) -> None:
    """Follow deliveries of live nodes: windowed rates, hit ratio and latencies, exactly once."""
    from gossamer.sim.results.storage.place import place_of
    from gossamer.spark.commands.tables import print_windows
    from gossamer.spark.stream.due import WindowSettings
    from gossamer.spark.stream.following import StreamSettings, follow_stream

    place = place_of(out, settings.options)
    followed = StreamSettings(
        deliveries=place_of(deliveries, settings.options),
        published=None if published is None else place_of(published, settings.options),
        windows=WindowSettings(window_s=window_s, late_s=late_s),
        every_s=every_s,
        once=once,
        files_a_batch=files,
    )
    followed.check(place)
    try:
        with session_for(place, settings, is_new=False) as session:
            windows = follow_stream(session, followed, place)
    except KeyboardInterrupt as interrupt:
        typer.echo(f"gossamer: ended; the same command goes on in {out}", err=True)
        raise typer.Exit(exit_code_of(interrupt)) from None
    print_windows(windows, place.shown())


@app.command()
def package(
    out: Annotated[
        str, typer.Option(metavar="FOLDER", help="New folder for the archives, a path or URL.")
    ],
    conf: Conf = None,
) -> None:
    """Pack what executors need that have no gossamer: the package, and a whole environment."""
    from gossamer.sim.results.storage.place import place_of
    from gossamer.spark.commands.tables import print_package
    from gossamer.spark.configuration import option_of
    from gossamer.spark.shipping.packing import make_package

    place = place_of(out, dict(map(option_of, conf or [])))
    with waiting("packing the environment"):
        made = make_package(place)
    print_package(made)


@app.command()
def lineage(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="Workload or crunched results, a path or URL.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
    conf: Conf = None,
) -> None:
    """Show what made a folder: command, versions, seeds, inputs with their own lineage."""
    import json

    from gossamer.sim.results.storage.place import place_of
    from gossamer.spark.commands.tables import lineage_lines
    from gossamer.spark.configuration import option_of
    from gossamer.spark.storage.lineage import read_lineage

    place = place_of(folder, dict(map(option_of, conf or [])))
    told = read_lineage(place)
    text = json.dumps(told, indent=2) if as_json else "\n".join(lineage_lines(place.shown(), told))
    typer.echo(text)
