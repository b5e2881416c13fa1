"""Trees that follow what changes: cost over time beside OPT, and what following it costs.

Run it by hand: ``python tests/bench/bench_adaptation.py [--brokers 40] [--length 240] [--rate 8]
[--links sparse|dense] [--seed 1] [--out DIR]``. With ``--out`` the plot and a JSON file are written
into a folder. All times of the plays are simulated; the last line is processor time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from time import process_time

import numpy as np
from rich.console import Console
from rich.progress import Progress, TaskID

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import read_options
from gossamer.command.tables import FittingTable
from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.results.plot_style import (
    BLUE,
    GREEN,
    GREY,
    HEIGHT_IN,
    VERMILION,
    legend_below,
    new_figure,
    plot_style,
    save,
)
from gossamer.sim.studies.dissemination import adaptation, topologies
from gossamer.sim.studies.dissemination.dynamics import DYNAMICS, Play

TITLES = {"drift": "regions wander", "flash": "a topic flares up", "moving": "clients move"}


def plain(found: adaptation.Adaptation) -> dict[str, object]:
    told: dict[str, object] = {"optimum": found.optimum.sum()}
    counted = ("documents", "deliveries", "lost", "doubled")
    summed = ("control_bytes", "document_bytes", "confirm_bytes")
    for name, one in (("planned anew", found.adaptive), ("first trees kept", found.frozen)):
        told[name] = {
            "cost": one.cost.sum(),
            "of OPT": one.cost.sum() / found.optimum.sum(),
            "switches": len(one.installed),
            **{key: int(getattr(one, key).sum()) for key in summed},
            **{key: getattr(one, key) for key in counted},
        }
    return told


def plot(results: Mapping[str, adaptation.Adaptation], folder: Path, name: str) -> None:
    """Draw cost over time beside OPT into ``folder`` as SVG and PNG, a panel for each play.

    Args:
        results: by title.
        folder: exists.
        name: of the files.
    """
    with plot_style():
        figure = new_figure(HEIGHT_IN * 0.75 * len(results))
        panels = figure.subplots(len(results), 1, squeeze=False)[:, 0]
        for axes, (title, found) in zip(panels, results.items(), strict=True):
            at = (np.arange(len(found.optimum)) + 0.5) * found.stretch
            per_document = 1 / (found.play.rate * found.stretch)
            for moment in found.adaptive.installed:
                axes.axvline(moment, color=GREY, linewidth=0.7, linestyle=":")
            lines = (
                (found.frozen.cost, VERMILION, "--", "first trees kept"),
                (found.adaptive.cost, BLUE, "-", "planned anew"),
                (found.optimum, GREEN, "-.", "OPT, a tree a document"),
            )
            for costs, colour, dashes, label in lines:
                axes.plot(at, costs * per_document, dashes, color=colour, label=label)
            axes.set_ylim(bottom=0)
            axes.set_title(title)
            axes.set_ylabel("links per document")
        panels[-1].set_xlabel("seconds (dotted: other trees came into use)")
        legend_below(figure, panels[0])
        save(figure, folder, name)


def table_of(results: Mapping[str, adaptation.Adaptation]) -> FittingTable:
    """What plays came to, for the terminal."""
    table = FittingTable(title="Trees that follow what changes")
    headings = (
        *("play", "trees", "of OPT", "switches"),
        *("control\nkB/s", "documents\nkB/s", "lost,\ntwice"),
    )
    for heading in headings:
        words = heading in ("play", "trees")
        table.add_column(heading, justify="left" if words else "right")
    for title, found in results.items():
        for label, run in (("planned anew", found.adaptive), ("first trees kept", found.frozen)):
            table.add_row(
                title,
                label,
                f"{run.cost.sum() / found.optimum.sum():.3f}",
                str(len(run.installed)),
                f"{rate_of(run.control_bytes.sum(), found):.1f}",
                f"{rate_of(run.document_bytes.sum(), found):.1f}",
                f"{run.lost}, {run.doubled}",
            )
    return table


def rate_of(total: int, found: adaptation.Adaptation) -> float:
    return float(total) / found.play.length / 1_000


def main() -> None:
    links = ("dense", "sparse")
    given = read_options(__doc__, brokers=40, length=240.0, rate=8.0, links=links, seed=1, out=Path)
    begun = process_time()
    keep_compiled_code()
    if given.links == "sparse":
        topology = topologies.transit_stub(
            topologies.transit_stub_of(given.brokers), seed=given.seed
        )
    else:
        topology = topologies.waxman(given.brokers, 0.9, 0.2, seed=given.seed)
    found: dict[str, adaptation.Adaptation] = {}
    console = Console()
    third = given.length / 3
    with use_compiled(), Progress(console=console, transient=True) as progress:
        for kind in DYNAMICS:
            task = progress.add_task(TITLES[kind], total=2)
            flash = (third, 2 * third, 0.8)
            times = {"length": given.length, "rate": given.rate, "stays": given.length / 4}
            play = Play(kind=kind, flash=flash, **times)

            def watch(name: str, share: float, task: TaskID = task) -> None:
                progress.update(task, completed=share + (name == "frozen"))

            found[TITLES[kind]] = adaptation.run_adaptation(
                topology, play, given.seed, stretch=given.length / 24, watch=watch
            )
    console.print(f"{topology.name}: {topology.graph.nodes} brokers, {topology.graph.links} links")
    console.print(table_of(found))
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        plot(found, given.out, "adaptation")
        told = {title: plain(one) for title, one in found.items()}
        (given.out / "adaptation.json").write_text(json.dumps(told, indent=2) + "\n")
    console.print(f"{process_time() - begun:.0f} s of processor time")


if __name__ == "__main__":
    main()
