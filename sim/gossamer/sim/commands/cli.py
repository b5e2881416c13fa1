"""The subcommand `gossamer sim`: reads arguments; the work is done in `gossamer.sim.commands`.

Everything beyond the arguments is imported inside the commands, so that help needs no compiler.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from gossamer.command.options import SETTINGS, number_option, whole_option
from gossamer.command.paths import local_path
from gossamer.command.signals import interruptible
from gossamer.command.waiting import waiting
from gossamer.sim.commands.options import (
    Changes,
    Json,
    Keep,
    Live,
    LivePort,
    Nodes,
    NoPlots,
    Out,
    Plots,
    PlotWidth,
    Processes,
    Quick,
    ResultFolder,
    Resume,
    Rounds,
    ScenarioFile,
    Seed,
    Snapshots,
    Studies,
    Threads,
    Trace,
    Workloads,
    path_option,
)

app = typer.Typer(no_args_is_help=True, **SETTINGS)

_STARTING: Final = "starting"


# Objects, made and not yet gone, that are searched for garbage. At Python's 700, a fifth of a short
# run is searches of the modules that it imports.
_GARBAGE: Final = (50_000, 20, 20)


@app.callback()
def begin(context: typer.Context, studies: Studies = None) -> None:
    """Simulate overlays of up to a million nodes."""
    context.with_resource(interruptible())
    before = gc.get_threshold()
    context.call_on_close(lambda: gc.set_threshold(*before))
    gc.set_threshold(*_GARBAGE)
    if studies:
        from gossamer.sim.study.scenarios import name_studies

        name_studies(studies)


@app.command()
def run(
    scenario: ScenarioFile = None,
    out: Out = None,
    trace: Trace = None,
    workloads: Workloads = None,
    seed: Seed = None,
    nodes: Nodes = None,
    rounds: Rounds = None,
    changes: Changes = None,
    json: Json = False,
    resume: Resume = False,
    plots: Plots = None,
    plot_width: PlotWidth = None,
    no_plots: NoPlots = False,
    live: Live = False,
    live_port: LivePort = None,
    snapshots: Snapshots = None,
    keep: Keep = None,
    threads: Threads = 2,
) -> None:
    """Run a scenario and write a folder of results."""
    with waiting(_STARTING):
        from gossamer.sim.commands.looking import look_of
        from gossamer.sim.commands.run import Options, run_scenario, workload_overrides
        from gossamer.sim.study.plot import plot_options
        from gossamer.sim.study.scenarios import placed_errors, read_scenario

        overrides = _overrides(changes, trace=trace, seed=seed, nodes=nodes, rounds=rounds)
        overrides = workload_overrides(scenario, workloads or (), overrides)
    options = Options(
        out=out,
        json=json,
        resume=resume,
        plots=None if no_plots else plot_options(plots, plot_width),
        look=look_of(live, live_port, snapshots, keep),
        threads=threads,
    )
    with placed_errors(scenario, overrides):
        run_scenario(*read_scenario(scenario, overrides), options)


@app.command()
def check(
    scenario: ScenarioFile = None,
    out: Out = None,
    trace: Trace = None,
    workloads: Workloads = None,
    seed: Seed = None,
    nodes: Nodes = None,
    rounds: Rounds = None,
    changes: Changes = None,
) -> None:
    """Check a scenario, its files and where results would go, without running it; show its size."""
    with waiting("checking"):
        from rich.console import Console

        from gossamer.sim.commands.run import default_name, new_destination, workload_overrides
        from gossamer.sim.study.scenarios import placed_errors, read_scenario, study_of

        overrides = _overrides(changes, trace=trace, seed=seed, nodes=nodes, rounds=rounds)
        overrides = workload_overrides(scenario, workloads or (), overrides)
        checked, _ = read_scenario(scenario, overrides)
        new_destination(out, default_name(checked)).check()
        with placed_errors(scenario, overrides):
            preview = study_of(checked).preview(checked)
    Console().print(preview)


@app.command()
def replay(
    trace: Annotated[
        Path, typer.Argument(metavar="TRACE", help="Churn trace to run under.", parser=local_path)
    ],
    round_s: Annotated[
        float, number_option("--round-s", help="Length of a gossip round, seconds.")
    ] = 60.0,
    preset: Annotated[str, typer.Option(help="System beside the baseline.")] = "kindred",
    out: Out = None,
    seed: Seed = None,
    nodes: Nodes = None,
    rounds: Rounds = None,
    changes: Changes = None,
    json: Json = False,
    resume: Resume = False,
    plots: Plots = None,
    plot_width: PlotWidth = None,
    no_plots: NoPlots = False,
    live: Live = False,
    live_port: LivePort = None,
    snapshots: Snapshots = None,
    keep: Keep = None,
    threads: Threads = 2,
) -> None:
    """Run a system and the baseline under a churn trace, no scenario needed."""
    with waiting(_STARTING):
        from gossamer.sim.commands.looking import look_of
        from gossamer.sim.commands.run import Options, run_scenario
        from gossamer.sim.studies.peers.inputs.scenario_file import replay_scenario
        from gossamer.sim.study.plot import plot_options

        overrides = _overrides(changes, round_s=round_s, seed=seed, nodes=nodes, rounds=rounds)
        scenario, text = replay_scenario(trace, preset, overrides)
    options = Options(
        out=out,
        json=json,
        resume=resume,
        plots=None if no_plots else plot_options(plots, plot_width),
        look=look_of(live, live_port, snapshots, keep),
        threads=threads,
    )
    run_scenario(scenario, text, options)


@app.command()
def sweep(
    file: Annotated[
        Path, typer.Argument(metavar="SWEEP", help="Sweep file, TOML.", parser=local_path)
    ],
    out: Out = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an unfinished sweep.")
    ] = False,
    processes: Annotated[
        int | None,
        whole_option("--processes", low=1, help="Runs that go on at a time (default: one a core)."),
    ] = None,
    plots: Plots = None,
    plot_width: PlotWidth = None,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw nothing.")] = False,
) -> None:
    """Run a scenario over a grid of values and seeds, on all cores of this machine."""
    with waiting(_STARTING):
        from gossamer.sim.commands.sweep import run_sweep_file
        from gossamer.sim.study.plot import plot_options

    options = None if no_plots else plot_options(plots, plot_width)
    run_sweep_file(file, out, resume=resume, processes=processes, plots=options)


def _budget(name: str, help: str) -> Any:
    """An option of how often something may happen in an exploration."""
    return whole_option(f"--{name}", low=0, high=255, help=help)


@app.command()
def explore(
    protocol: Annotated[
        str | None, typer.Argument(metavar="FILE.PY:CLASS", help="Protocol of rules.")
    ] = None,
    nodes: Annotated[int, whole_option("--nodes", low=1, high=31, help="Number of nodes.")] = 3,
    invariants: Annotated[
        list[str] | None,
        typer.Option(
            "--invariant", metavar="NAME", help="What must hold (default: all that is declared)."
        ),
    ] = None,
    losses: Annotated[int, _budget("losses", "Messages that may be lost.")] = 0,
    duplicates: Annotated[int, _budget("duplicates", "Messages that may come twice.")] = 0,
    crashes: Annotated[int, _budget("crashes", "Nodes that may crash.")] = 0,
    leaves: Annotated[int, _budget("leaves", "Nodes that may leave.")] = 0,
    restarts: Annotated[int, _budget("restarts", "Nodes that may come up again.")] = 0,
    rounds: Annotated[int, _budget("rounds", "Rounds by which the clock may go on.")] = 0,
    in_flight: Annotated[
        int, whole_option("--in-flight", low=1, help="Timers fire while fewer messages are.")
    ] = 4,
    draws: Annotated[
        int, whole_option("--draws", low=1, high=255, help="First draws of a step that draws.")
    ] = 4,
    depth: Annotated[int | None, whole_option("--depth", low=1, help="Actions at most.")] = None,
    states: Annotated[
        int | None, whole_option("--states", low=1, help="End with the level that has more.")
    ] = None,
    symmetric: Annotated[
        bool, typer.Option("--symmetric", help="Take states with other names of nodes as one.")
    ] = False,
    changes: Changes = None,
    out: Out = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an unfinished exploration.")
    ] = False,
    memory: Annotated[
        int | None,
        whole_option("--memory", low=1, metavar="MB", help="Of a level; the rest is in files."),
    ] = None,
    plots: Plots = None,
    plot_width: PlotWidth = None,
    no_plots: Annotated[bool, typer.Option("--no-plots", help="Draw nothing.")] = False,
    story: Annotated[
        Path | None,
        typer.Option("--replay", metavar="STORY", help="Take a story again.", parser=local_path),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Replay interpreted and checked, with breakpoint().")
    ] = False,
) -> None:
    """Explore every order of messages, timers and faults in a small overlay of one's own."""
    with waiting(_STARTING):
        from gossamer.sim.commands import exploring
        from gossamer.sim.study.plot import plot_options
    if story is not None:
        exploring.replay_story(story, debug=debug)
        return
    bounds = {
        "losses": losses,
        "duplicates": duplicates,
        "crashes": crashes,
        "leaves": leaves,
        "restarts": restarts,
        "rounds": rounds,
        "in_flight": in_flight,
        "draws": draws,
        "depth": depth,
        "states": states,
        "symmetric": symmetric,
    }
    exploring.explore_protocol(
        exploring.Exploring(
            protocol=protocol or "",
            nodes=nodes,
            invariants=invariants or (),
            scenario=exploring.nested(_overrides(changes)),
            bounds=bounds,
            out=out,
            resume=resume,
            memory=memory,
            plots=None if no_plots else plot_options(plots, plot_width),
        )
    )


@app.command()
def figures(
    name: Annotated[str, typer.Argument(help="Whose figures, such as vinifera.")],
    quick: Quick = False,
    out: Out = None,
    plots: Plots = None,
    plot_width: PlotWidth = None,
    processes: Processes = 2,
    spark: Annotated[bool, typer.Option("--spark", help="Run each point as a Spark task.")] = False,
    master: Annotated[
        str | None, typer.Option(help="Cluster to do so (see gossamer spark).")
    ] = None,
) -> None:
    """Reproduce the figures of a paper and say which of its claims hold."""
    with waiting(_STARTING):
        from gossamer.sim.commands.reproduction import elsewhere, reproduce
        from gossamer.sim.study.plot import plot_options

    options = plot_options(plots, plot_width)
    with elsewhere("spark" if spark else None, master):
        reproduce(name, out, quick=quick, processes=processes, plots=options)


@app.command()
def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which; all if none.")
    ] = None,
    sizes: Annotated[str, typer.Option(help="Numbers of nodes, such as 10000,100000.")] = "",
    out: Annotated[
        Path | None,
        path_option("FOLDER", "New folder for bench.json and a plot of costs."),
    ] = None,
    quick: Quick = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print bench.json and nothing else.")
    ] = False,
) -> None:
    """Measure speed and memory."""
    with waiting(_STARTING):
        from gossamer.sim.commands.reproduction import measure_speed, parse_sizes

    measure_speed(names or [], parse_sizes(sizes), out, quick=quick, as_json=json)


@app.command()
def compare(
    results: Annotated[
        list[Path], typer.Argument(metavar="RESULTS...", help="Result folders.", parser=local_path)
    ],
) -> None:
    """Set the results of runs side by side, the first as the reference."""
    with waiting("reading results"):
        from rich.console import Console

        from gossamer.sim.results.tables import compare_folders, comparison_table

        table = comparison_table(compare_folders(results))
    Console().print(table)


@app.command()
def page(
    results: ResultFolder,
    out: Annotated[
        Path | None,
        path_option("FILE", "New HTML file (default: beside the results)."),
    ] = None,
) -> None:
    """Write a page that replays a finished run with a slider, as one file."""
    with waiting("writing the page"):
        from gossamer.sim.commands.looking import write_page_of

        file = write_page_of(results, out)
    typer.echo(f"Page: {file}")


@app.command()
def export(
    results: ResultFolder,
    system: Annotated[
        str | None, typer.Option(help="System whose overlay it is (default: the only one).")
    ] = None,
    round_: Annotated[
        int | None, whole_option("--round", help="After which round (default: the last snapshot).")
    ] = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", help="graphml, gexf or edges (default: by the file's name)."),
    ] = None,
    out: Annotated[
        Path | None, path_option("FILE", "New file (default: named after the results, here).")
    ] = None,
) -> None:
    """Write an overlay of a finished run as GraphML, GEXF or an edge list, with node ids."""
    with waiting("exporting the overlay"):
        from gossamer.sim.commands.looking import export_from

        file, told = export_from(results, system, round_, format_, out)
    typer.echo(f"{file}: {told}")


def _overrides(changes: Sequence[str] | None, **options: object) -> dict[str, object]:
    """What the command line puts in place of the scenario's values, by dotted key."""
    from gossamer.sim.study.scenario_format import parse_override

    given = {key: value for key, value in options.items() if value is not None}
    if "trace" in given:
        given["churn.trace"] = given.pop("trace")
    return given | dict(map(parse_override, changes or []))
