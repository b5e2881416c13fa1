"""Six live peers followed by a job that is killed twice: every count is exact.

`--draws N` says how many events are published, in all.
"""

from __future__ import annotations

import json
import random
import time
from array import array
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest
import trio
from attrs import define, field

from gossamer.sim.results.storage.place import LocalPlace
from gossamer.spark.stream.following import DELIVERIES, batches_of
from support import node_processes, spark_processes
from support.draws import Draws
from support.node_fleets import DEAREST, Fleet, ids_in, publish_at_once, subscribers, thresholds
from support.spark_results import windows_in

pytestmark = [pytest.mark.campaign, spark_processes.needs_spark]
EVENTS: Final = 3_000
PEERS, SEED = 6, 1
KILLS: Final = 2
PORTIONS: Final = KILLS + 1
# That are published at once.
PART: Final = 1_200
WINDOW_S: Final = 5
# Above all thresholds, so that every subscriber gets it.
PROBE: Final = {"symbol": "PROBE", "price": DEAREST, "volume": 0}


@define(eq=False)
class Lines:
    """The events in lines of finished files, column by column."""

    ids: array[int] = field(factory=lambda: array("Q"))
    begins: array[int] = field(factory=lambda: array("q"))  # of their windows, Unix seconds
    published: array[float] = field(factory=lambda: array("d"))  # Unix seconds
    prices: array[float] = field(factory=lambda: array("d"))
    probes: set[int] = field(factory=set)  # the ids of those that were not counted

    def add(self, line: Mapping[str, Any]) -> None:
        self.ids.append(int(line["id"], 16))
        self.begins.append(int(line["published_at"]) // WINDOW_S * WINDOW_S)
        self.published.append(line["published_at"])
        self.prices.append(line["values"]["price"])
        if line["values"]["symbol"] == PROBE["symbol"]:
            self.probes.add(self.ids[-1])

    def once(self) -> npt.NDArray[np.int64]:
        """Places of lines, one for each event."""
        return np.unique(np.array(self.ids), return_index=True)[1]


def lines_of(folder: Path) -> dict[str, Lines]:
    """All lines of finished files below a folder, by the name of what they lie in."""
    found: dict[str, Lines] = {}
    for path in sorted(folder.glob("*/*.jsonl")):
        lines = found.setdefault(path.parent.name, Lines())
        with path.open() as file:
            for text in file:
                lines.add(json.loads(text))
    return found


@define(eq=False)
class Received:
    """The ids of the events in the finished files of subscribers, each of which is read once."""

    folder: Path
    ids: dict[str, set[int]] = field(factory=dict)
    _known: set[Path] = field(factory=set)

    def look(self) -> dict[str, set[int]]:
        """Read what is new; return `ids`."""
        for file in set(self.folder.glob("*/*.jsonl")) - self._known:
            new = {int(one, 16) for one in ids_in([file])}
            self.ids.setdefault(file.parent.name, set()).update(new)
            self._known.add(file)
        return self.ids


@define(eq=False)
class Live:
    """Six peers, each with a subscriber, and one more to everything."""

    folder: Path
    shell: node_processes.Shell
    fleet: Fleet
    rotate_s: float
    prices: dict[int, float] = field(factory=dict)  # of the events that were acknowledged, by id
    draws: random.Random = field(factory=lambda: random.Random(SEED))
    got: Received = field(init=False)
    recorded: Received = field(init=False)
    _parts: deque[dict[int, float]] = field(factory=deque)

    def __attrs_post_init__(self) -> None:
        self.got, self.recorded = (Received(self.folder / name) for name in ("got", "published"))

    def subscribers(self) -> AbstractContextManager[None]:
        """Subscribers that write files; each finishes its last one at the end."""
        recorder = (self.fleet.names[0], "price >= 0", "published", "record")
        return subscribers(self.shell, self.fleet, self.rotate_s, recorder)

    def settle(self) -> None:
        """Publish at all peers until a round of events has come to all subscribers."""
        rounds: list[set[int]] = []

        def is_settled() -> bool:
            text = json.dumps(PROBE) + "\n"
            names = self.fleet.names
            told = [self.shell.published(name, "--jsonl", "-", text=text) for name in names]
            rounds.append({int(line.split()[1], 16) for one in told for line in one.splitlines()})
            got = [*self.got.look().values(), *self.recorded.look().values()]
            return len(got) == PEERS + 1 and any(all(one <= ids for ids in got) for one in rounds)

        spark_processes.wait_for(is_settled)

    def publish(self, events: int) -> None:
        """Publish so many events, a part once all but those of the one before have come."""
        for begin in range(0, events, PART):
            count = min(PART, events - begin)
            published = publish_at_once(
                self.shell, self.fleet, count, self.draws, spark_processes.HUNG_S
            )
            self._parts.append({int(event, 16): price for event, price in published.items()})
            self.prices |= self._parts[-1]
            spark_processes.wait_for(lambda: self.has_all_but(1))
        spark_processes.wait_for(lambda: self.has_all_but(0))

    def expected(self, prices: Mapping[int, float]) -> dict[str, set[int]]:
        """Those of some events that each subscriber is to get."""
        return {
            name: {event for event, price in prices.items() if price >= least}
            for name, least in thresholds(self.fleet).items()
        }

    def has_all_but(self, parts: int) -> bool:
        """Whether the files have all events but those of the last parts.

        Those that they are known to have are not looked for again.
        """
        got, recorded = self.got.look(), self.recorded.look()
        while len(self._parts) > parts:
            wanted = self.expected(self._parts[0])
            if not recorded["record"].issuperset(self._parts[0]) or any(
                not got[name] >= ids for name, ids in wanted.items()
            ):
                return False
            self._parts.popleft()
        return True


@contextmanager
def six_peers(folder: Path, rotate_s: float) -> Iterator[Live]:
    """Six peers of one cluster, processes of this machine."""
    shell = node_processes.Shell(folder)
    # With the job beside them, peers refuse events now and then, which are tried again.
    settings = {"discovery__multicast": False, "delivery__acknowledge_s": 60.0}
    fleet = Fleet.make(shell, PEERS, **settings)
    try:
        fleet.start(*fleet.names)
        trio.run(fleet.ready)
        yield Live(folder, shell, fleet, rotate_s)
    finally:
        fleet.stop()


def follow_and_kill(command: Sequence[str], out: Path, scratch: Path) -> None:
    """Follow the stream until two batches are whole, and end the job at once."""
    pattern = "windows/batch=*/_SUCCESS"
    enough = len(list(out.glob(pattern))) + 2
    spark_processes.kill_spark_when(
        lambda: len(list(out.glob(pattern))) >= enough, *command, scratch=scratch
    )


def kept_lines(out: Path) -> dict[str, list[npt.NDArray[np.uint64]]]:
    kept: dict[str, list[npt.NDArray[np.uint64]]] = {}
    for files in batches_of(LocalPlace(out), DELIVERIES).values():
        for file in files:
            table = pq.read_table(file.source(), columns=["subscriber", "id"])
            ids = np.array([int(one, 16) for one in table["id"].to_pylist()], np.uint64)
            names = table["subscriber"].to_numpy()
            for name in np.unique(names):
                kept.setdefault(str(name), []).append(ids[names == name])
    return kept


def windows_wanted(live: Live, got: Mapping[str, Lines]) -> dict[tuple[int, str], tuple[int, int]]:
    """What was due and delivered by the files of subscribers, each event counted once."""
    recorded = lines_of(live.folder / "published")["record"]
    once = recorded.once()
    columns = (recorded.begins, recorded.prices, recorded.published)
    begins, prices, published = (np.array(column)[once] for column in columns)
    due, delivered = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    least = thresholds(live.fleet)
    for name, lines in got.items():
        told = json.loads((live.folder / "got" / name / "subscription.json").read_text())
        is_due = (prices >= least[name]) & (published >= told["since"])
        came = np.array(lines.begins)[lines.once()]
        for counts, windows in ((due, begins[is_due]), (delivered, came)):
            for begin, count in zip(*np.unique(windows, return_counts=True), strict=True):
                counts[int(begin), name] = int(count)
    return {key: (due[key], delivered[key]) for key in due | delivered}


def test_counts_are_exact_though_the_job_is_killed_twice(tmp_path: Path, draws: Draws) -> None:
    wished = len(draws.numbers(EVENTS))
    got, published, out, scratch = map(tmp_path.joinpath, ("got", "published", "out", "scratch"))
    folders = ("stream", str(got), "--published", str(published), "--out", str(out))
    command = (*folders, "--window", str(WINDOW_S), "--late", "3600", "--memory", "1g")
    # A listing of many small files takes Spark long.
    with six_peers(tmp_path, 0.5 if wished < 50_000 else 5) as live:
        with live.subscribers():
            live.settle()
            began = time.monotonic()
            with ThreadPoolExecutor(1) as pool:
                for portion in range(PORTIONS):
                    events = wished // PORTIONS + (portion < wished % PORTIONS)
                    published_all = pool.submit(live.publish, events)
                    if portion < KILLS:
                        follow_and_kill((*command, "--every", "0.2", "--files", "4"), out, scratch)
                    published_all.result()
            delivered_s = time.monotonic() - began
        done = spark_processes.run_spark_command(*command, "--once")
        assert done.returncode == 0, done.stderr

        assert len(live.prices) == wished
        lines = lines_of(got)
        probes = set[int]().union(*(one.probes for one in lines.values()))
        wanted = live.expected(live.prices)
        assert {name: ids - probes for name, ids in live.got.look().items()} == wanted
        assert live.recorded.look()["record"] - probes == live.prices.keys()
        kept = kept_lines(out)
        assert kept.keys() == lines.keys()
        for name, one in lines.items():
            assert np.array_equal(np.sort(np.concatenate(kept[name])), np.sort(np.array(one.ids)))
        found = {key: (row["due"], row["delivered"]) for key, row in windows_in(out).items()}
        assert found == windows_wanted(live, lines)
        written = sum(len(one.ids) for one in lines.values())
        told = f"{wished:,} events of {PEERS} peers, {sum(map(len, wanted.values())):,} deliveries"
        print(
            f"seed {SEED}: {told}, {written - sum(len(one.once()) for one in lines.values()):,} of "
            f"them written twice; {len(batches_of(LocalPlace(out), DELIVERIES))} batches, killed "
            f"{KILLS} times; published and delivered in {delivered_s:.0f} s, job included"
        )
