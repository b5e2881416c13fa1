"""A live cluster watched, in cells: what arrives when, while one of three peers is away.

python examples/notebook/cluster.py [events] [picture]
"""

# %% Three peers of this machine, each a process, in a folder that is removed at the end
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from subprocess import DEVNULL, Popen, run

import matplotlib.pyplot as plt

from gossamer.client import BlockingSubscription, connect

count = int(sys.argv[1]) if sys.argv[1:] else 150
made = tempfile.TemporaryDirectory()
peers = [f"{made.name}/three/peer{number}" for number in (1, 2, 3)]
NODE = [sys.executable, "-m", "gossamer.command.main", "node"]
run([*NODE, "init", f"{made.name}/three", "--peers", "3"], check=True)
running = [Popen([*NODE, "run", folder], stderr=DEVNULL) for folder in peers]
run([*NODE, "ready", *peers], check=True)

# %% Subscriptions with names miss nothing; clients connect again when their node is back
begin = time.time()
with connect(peers[0]) as feed, connect(peers[1]) as stays, connect(peers[2]) as leaves:
    subscribed = [node.subscribe("price > 0", name="screen") for node in (stays, leaves)]

    def watch(quotes: BlockingSubscription) -> list[tuple[float, float]]:
        seen = []
        for _, quote in zip(range(count), quotes, strict=False):
            seen.append((quote.published_at - begin, 1000 * (time.time() - quote.published_at)))
            quotes.acknowledge(quote)
        return seen

    watching = ThreadPoolExecutor().map(watch, subscribed)
    for number in range(count):
        if number == count // 3:
            running[2].terminate()
        elif number == 2 * count // 3:
            running[2].wait()
            running[2] = Popen([*NODE, "run", peers[2]], stderr=DEVNULL)
        feed.publish({"symbol": "IBM", "price": 1 + number, "volume": 100})
        time.sleep(0.02)
    seen = dict(zip(("peer 2", "peer 3, away for a while"), watching, strict=True))
for process in running:
    process.terminate()
    process.wait()
made.cleanup()
print({name: f"{len(events)} of {count} events" for name, events in seen.items()})

# %% Each event by when it was published, and how long it took
figure, axes = plt.subplots(figsize=(7, 3), layout="constrained")
for (name, events), mark in zip(seen.items(), "ox", strict=True):
    axes.semilogy(*zip(*events, strict=True), mark, ms=4, label=name)
axes.set(xlabel="published (s)", ylabel="time to arrive (ms)")
axes.legend(frameon=False)
figure.savefig(sys.argv[2] if sys.argv[2:] else "cluster.png", dpi=120)
