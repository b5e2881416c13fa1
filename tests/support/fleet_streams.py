"""Peers of a fleet that all publish at once, and subscribers that write what they get to files."""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from support.node_fleets import Fleet
from support.node_processes import Shell, end, wait_for_line

DEAREST: Final = 600.0


def thresholds(fleet: Fleet) -> dict[str, float]:
    """The least price that the subscriber of each peer wants, by what it is called."""
    peers = len(fleet.names)
    return {Path(name).name: DEAREST * place / peers for place, name in enumerate(fleet.names)}


@contextmanager
def subscribers(
    shell: Shell, fleet: Fleet, rotate_s: float, *others: tuple[str, str, str, str]
) -> Iterator[None]:
    """One at each peer, and others [peer, expression, into, as]; each finishes its last file."""
    wanted = zip(fleet.names, thresholds(fleet).items(), strict=True)
    of_peers = [(name, f"price >= {least}", "got", called) for name, (called, least) in wanted]
    with ExitStack() as stack:
        for name, expression, into, called in (*of_peers, *others):
            words = ("sub", "--folder", name, expression, "--into", into, "--as", called)
            named = ("--name", f"keep-{called}", "--rotate-s", f"{rotate_s:g}")
            process = shell.start(*words, *named)
            stack.callback(end, process)
            stack.callback(process.send_signal, signal.SIGINT)
            wait_for_line(process, "subscribed")
        yield


def publish_at_once(
    shell: Shell, fleet: Fleet, events: int, draws: random.Random, timeout_s: float
) -> dict[str, float]:
    """Publish at all peers at the same time, as fast as these take events; their prices by id."""
    running = []
    peers = len(fleet.names)
    for place, name in enumerate(fleet.names):
        count = events // peers + (place < events % peers)
        prices = [round(draws.uniform(0, DEAREST), 2) for _ in range(count)]
        file, told = shell.folder / f"{place}.jsonl", shell.folder / f"{place}.told"
        values = ({"symbol": "IBM", "price": price, "volume": 1} for price in prices)
        file.write_text("".join(f"{json.dumps(one)}\n" for one in values))
        with told.open("w") as out:
            words = ("pub", "--folder", name, "--jsonl", str(file))
            running.append((shell.start(*words, stdout=out), prices, told))
    published: dict[str, float] = {}
    for process, prices, told in running:
        _, errors = process.communicate(timeout=timeout_s)
        assert process.returncode == 0, errors
        acknowledged = [line.split() for line in told.read_text().splitlines()]
        assert len(acknowledged) == len(prices)
        published |= {event: prices[int(number) - 1] for number, event in acknowledged}
    return published


def ids_in(files: Sequence[Path]) -> set[str]:
    """The ids of the events in files of a subscriber."""
    return {json.loads(line)["id"] for file in files for line in file.read_text().splitlines()}
