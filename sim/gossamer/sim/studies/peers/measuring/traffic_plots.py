"""The plots of what messages of peers come to in bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gossamer.sim.results.plot_style import plot_style
from gossamer.sim.studies.peers.measuring.records import RunRecord
from gossamer.sim.studies.worlds.traffic_plots import Traffic, write_traffic_plots
from gossamer.sim.study.plot import Plot


def traffic_plots(record: RunRecord, folder: Path) -> list[Plot]:
    """Draw traffic into a folder that there is; nothing where it was not counted."""
    systems = {
        name: Traffic(
            one.traffic.rounds["time_s"],
            one.traffic.rounds["size_bytes"].astype(np.float64),
            one.traffic.rounds["node_s"],
            one.traffic.by_message,
        )
        for name, one in record.systems.items()
        if one.traffic is not None
    }
    with plot_style():
        return write_traffic_plots(systems, folder)
