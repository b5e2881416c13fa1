"""A churn trace explored, in cells: who is online, for how long, and what that does to delivery.

python examples/notebook/trace.py [nodes] [picture]
"""

# %% A trace is sessions of nodes, as NumPy columns; in this one a crowd joins, and a quarter fails
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import gossamer.sim as gs

bundled = gs.read_trace(Path(__file__).resolve().parents[2] / "traces" / "flash_crowd.avt.gz")
trace = bundled.limited(int(sys.argv[1]) if sys.argv[1:] else 1_000)
print(trace)

# %% Sessions that begin and end within it
whole = (trace.start_s > 0) & (trace.end_s < trace.duration_s)
minutes = np.sort((trace.end_s - trace.start_s)[whole] / 60)
print(f"{len(minutes)} whole sessions, median {np.median(minutes):.0f} minutes")

# %% Two systems under it; a round is a minute
with tempfile.TemporaryDirectory() as folder:
    gs.write_trace(trace, f"{folder}/explored.avt.gz")
    run = gs.simulate(
        name="explored",
        churn=f"{folder}/explored.avt.gz",
        events=gs.Events(per_round=10, warm_up_rounds=10),
        systems=["kindred", "baseline"],
    )
print(run)

# %% Who is online, what share of the deliveries came in every quarter of an hour, and the sessions
figure, (top, middle, last) = plt.subplots(3, 1, figsize=(7, 6.5), layout="constrained")
seconds = np.linspace(0, trace.duration_s, 500, endpoint=False)
top.plot(seconds / 3600, trace.population(seconds), color="C2")
top.set(ylabel="nodes online", ylim=(0, None))
for name, result in run.items():
    events = result.tables["events"]
    hours, edges = events["time_s"].to_numpy() / 3600, np.arange(0, trace.duration_s / 3600, 0.25)
    due, came = (
        np.histogram(hours, edges, weights=events[key].to_numpy())[0]
        for key in ("expected", "delivered")
    )
    some = due > 0
    middle.plot(edges[:-1][some] + 0.125, 100 * came[some] / due[some], marker=".", label=name)
middle.set(xlabel="hours", ylabel="hit ratio (%)", xlim=top.get_xlim())
middle.legend(frameon=False)
last.semilogx(minutes, 100 * (1 - np.arange(len(minutes)) / len(minutes)), color="C2")
last.set(xlabel="minutes", ylabel="sessions as long (%)", ylim=(0, 100))
figure.savefig(sys.argv[2] if sys.argv[2:] else "trace.png", dpi=120)
