"""A sweep in cells: three settings over ten seeds on all cores, and a figure with intervals.

Open it as a notebook (VS Code, PyCharm and Jupytext know the cells), or run it as a script:

    pip install '.[notebook]'
    python examples/notebook/sweep.py
"""

# %% How much traffic goes to nodes that do not want it, by how a peer chooses its links?
import sys
from pathlib import Path

import matplotlib.pyplot as plt

import gossamer.sim as gs

scenario = gs.Scenario(
    name="friends",
    nodes=100,
    rounds=60,
    events=gs.Events(per_round=5, warm_up_rounds=40),
    subscriptions=gs.Subscriptions(kind="skewed"),
    systems=["paper", "baseline"],
)
FRIENDS = "system.paper.friend_links"
seeds = range(1, int(sys.argv[1]) + 1 if sys.argv[1:] else 11)

# %% Thirty runs. Systems that run with one seed meet the same peers, interests and events.
frame = gs.sweep(scenario, seeds=seeds, grid={FRIENDS: [2, 4, 8]})
print(frame[[FRIENDS, "seed", "system", "hit_ratio", "traffic_overhead"]].head())

# %% Means over the seeds, with 95 % intervals; and what more friends change, seed by seed
means = gs.means_of(frame)
overhead = means[means.measure == "traffic_overhead"]
print(overhead[["system", FRIENDS, "seeds", "mean", "low", "high"]].to_string(index=False))
changes = gs.differences_of(frame)
changes = changes[changes.measure == "traffic_overhead"]
print(changes[["first", "second", "difference", "low", "high"]].to_string(index=False))

# %% The figure
figure, axes = plt.subplots(figsize=(3.5, 2.6), layout="constrained")
paper = overhead[overhead.system == "paper"]
half = 100 * (paper.high - paper["mean"])
axes.errorbar(paper[FRIENDS], 100 * paper["mean"], half, marker="o", label="paper", capsize=3)
baseline = overhead[overhead.system == "baseline"].iloc[0]
axes.axhline(100 * baseline["mean"], color="C1", label="baseline")
axes.axhspan(100 * baseline.low, 100 * baseline.high, color="C1", alpha=0.2, lw=0)
axes.set(xlabel="friend links", ylabel="traffic overhead (%)", ylim=(0, None))
axes.set_xticks([2, 4, 8])
figure.legend(loc="outside upper center", ncols=2, frameon=False)
place = Path(sys.argv[2] if sys.argv[2:] else "friends.pdf")
figure.savefig(place)
print(f"Figure: {place}")
