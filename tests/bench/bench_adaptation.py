"""Trees that follow what changes: cost over time beside OPT, and what following it costs.

Run it by hand: ``python tests/bench/bench_adaptation.py [--brokers 40] [--length 240] [--rate 8]
[--links sparse|dense] [--seed 1] [--out DIR]``. With ``--out`` the plot and a JSON file are written
into a folder. All times of the plays are simulated; the last line is processor time.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from time import process_time

from rich.console import Console
from rich.progress import Progress

from gossamer.compiled.store import keep_compiled_code
from gossamer.protocol.kernel.rules import use_compiled
from gossamer.sim.studies.dissemination.adaptation.adaptation import Adaptation, run_adaptation
from gossamer.sim.studies.dissemination.adaptation.adaptation_plot import (
    plot_adaptation,
    table_of_adaptation,
)
from gossamer.sim.studies.dissemination.topologies.generators import (
    transit_stub,
    transit_stub_of,
    waxman,
)
from gossamer.sim.studies.dissemination.topologies.topology import Topology
from gossamer.sim.studies.dissemination.workload.dynamics import DYNAMICS, Play

TITLES = {
    "drift": "regions wander",
    "flash": "a topic flares up",
    "moving": "clients move",
}


def overlay(kind: str, brokers: int, seed: int) -> Topology:
    """A graph with few links (transit-stub) or many (Waxman)."""
    if kind == "sparse":
        return transit_stub(transit_stub_of(brokers), seed=seed)
    return waxman(brokers, 0.9, 0.2, seed=seed)


def plain(found: Adaptation) -> dict[str, object]:
    """What a play came to, as numbers."""
    runs = {"planned anew": found.adaptive, "first trees kept": found.frozen}
    return {
        "optimum": found.optimum.sum(),
        **{
            name: {
                "cost": one.cost.sum(),
                "of OPT": one.cost.sum() / found.optimum.sum(),
                "switches": len(one.installed),
                "control_bytes": int(one.control_bytes.sum()),
                "document_bytes": int(one.document_bytes.sum()),
                "confirm_bytes": int(one.confirm_bytes.sum()),
                "documents": one.documents,
                "deliveries": one.deliveries,
                "lost": one.lost,
                "doubled": one.doubled,
            }
            for name, one in runs.items()
        },
    }


def main() -> None:
    """Run the plays and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", type=int, default=40)
    parser.add_argument("--length", type=float, default=240.0)
    parser.add_argument("--rate", type=float, default=8.0)
    parser.add_argument("--links", choices=("sparse", "dense"), default="dense")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    begun = process_time()
    keep_compiled_code()
    topology = overlay(given.links, given.brokers, given.seed)
    found: dict[str, Adaptation] = {}
    console = Console()
    third = given.length / 3
    with use_compiled(), Progress(console=console, transient=True) as progress:
        for kind in DYNAMICS:
            task = progress.add_task(TITLES[kind], total=2)
            play = Play(
                kind=kind,
                length=given.length,
                rate=given.rate,
                stays=given.length / 4,
                flash=(third, 2 * third, 0.8),
            )

            def watch(name: str, share: float, task: object = task) -> None:
                done = share + (name == "frozen")
                progress.update(task, completed=done)  # type: ignore[arg-type]

            found[TITLES[kind]] = run_adaptation(
                topology, play, given.seed, stretch=given.length / 24, watch=watch
            )
    console.print(f"{topology.name}: {topology.graph.nodes} brokers, {topology.graph.links} links")
    console.print(table_of_adaptation(found))
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        plot_adaptation(found, given.out, "adaptation")
        told = {title: plain(one) for title, one in found.items()}
        (given.out / "adaptation.json").write_text(json.dumps(told, indent=2) + "\n")
    console.print(f"{process_time() - begun:.0f} s of processor time")


if __name__ == "__main__":
    main()
