"""Trees that follow what changes: cost over time beside OPT, and what following it costs.

Run it by hand: ``python tests/bench/bench_adaptation.py [--brokers 40] [--length 240] [--rate 8]
[--links sparse|dense] [--seed 1] [--out DIR]``. With ``--out`` the plot and a JSON file are written
into a folder. All times of the plays are simulated; the last line is processor time.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import process_time

from rich.console import Console
from rich.progress import Progress, TaskID

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.common import read_options
from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.kernel.rules import use_compiled
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
    console.print(adaptation.table_of_adaptation(found))
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        adaptation.plot_adaptation(found, given.out, "adaptation")
        told = {title: plain(one) for title, one in found.items()}
        (given.out / "adaptation.json").write_text(json.dumps(told, indent=2) + "\n")
    console.print(f"{process_time() - begun:.0f} s of processor time")


if __name__ == "__main__":
    main()
