"""A first overlay in cells: who stands beside whom in two systems of the same peers.

python examples/notebook/overlay.py [nodes] [picture]
"""

# %% Simulate: peers that want a range of prices each, and a few events
import math
import sys

import matplotlib.pyplot as plt
import networkx as nx

import gossamer.sim as gs

nodes = int(sys.argv[1]) if sys.argv[1:] else 150
run = gs.simulate(
    name="overlay",
    nodes=nodes,
    rounds=40,
    subscriptions=gs.Subscriptions(kind="random", width=0.04),
    events=gs.Events(per_round=5, warm_up_rounds=20),
    systems=["kindred", "baseline"],
)
print(run)

# %% The overlay after the last round is a NetworkX graph: nodes have what they want, links a kind
overlays = {name: run[name].overlay() for name in run}
for name, graph in overlays.items():
    undirected = graph.to_undirected()
    print(f"{name}: {len(graph)} nodes, {graph.number_of_edges()} links,", end=" ")
    print(f"{nx.average_shortest_path_length(undirected):.2f} hops between two nodes")

# %% The ring of identifiers, its nodes coloured by the middle of the range that they want
figure, both = plt.subplots(1, 2, figsize=(7, 4.2), layout="constrained")
for axes, (name, graph) in zip(both, overlays.items(), strict=True):
    identifiers = nx.get_node_attributes(graph, "identifier")
    ring = sorted(identifiers, key=identifiers.__getitem__)
    angles = {node: 2 * math.pi * place / len(ring) for place, node in enumerate(ring)}
    places = {node: (math.sin(angle), math.cos(angle)) for node, angle in angles.items()}
    # Numbers of the overlay are places in a domain of 2^62.
    middles = [(graph.nodes[n]["low"] + graph.nodes[n]["high"]) / 2**63 for n in graph]
    nx.draw_networkx_edges(graph, places, ax=axes, arrows=False, width=0.4, alpha=0.25)
    dots = nx.draw_networkx_nodes(
        graph, places, ax=axes, node_size=18, node_color=middles, cmap="viridis"
    )
    overhead = 100 * run[name].traffic_overhead
    hops = run[name].path_length_mean
    axes.set_title(f"{name}: {hops:.1f} hops, {overhead:.0f} % overhead", fontsize=10)
    axes.set_aspect("equal")
    axes.axis("off")
figure.colorbar(
    dots, ax=both, location="bottom", shrink=0.5, label="middle of what a node wants, from 0 to 1"
)
place = sys.argv[2] if sys.argv[2:] else "overlay.png"
figure.savefig(place, dpi=120, bbox_inches="tight")
print(f"Figure: {place}")
