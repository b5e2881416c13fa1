"""Six live peers followed by a job that is killed twice: every count is exact.

`--draws N` says how many events are published, in all.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest
import trio
from attrs import define, field

from gossamer.sim.results.storage.place import LocalPlace
from gossamer.spark.stream.folder import DELIVERIES, batches_of, windows_of
from support.draws import Draws
from support.node_fleets import Fleet
from support.node_processes import Shell, end, wait_for_line
from support.spark_processes import (
    HUNG_S,
    kill_group,
    needs_spark,
    run_spark_command,
    start_spark_command,
    wait_for,
)

pytestmark = [pytest.mark.campaign, needs_spark]
EVENTS: Final = 3_000
PEERS, SEED = 6, 1
KILLS: Final = 2
PORTIONS: Final = KILLS + 1
# That are published at once.
PART: Final = 1_200
DEAREST: Final = 600.0
WINDOW_S: Final = 5
# Above all thresholds, so that every subscriber gets it.
PROBE: Final = {"symbol": "PROBE", "price": DEAREST, "volume": 0}


@define(eq=False)
class Lines:
    """The lines of finished files, column by column.

    Attributes:
        ids, begins, published, prices: of the events; when their windows begin and when they were
            published, Unix seconds.
        probes: the ids of those that were not counted.
    """

    ids: array[int] = field(factory=lambda: array("Q"))
    begins: array[int] = field(factory=lambda: array("q"))
    published: array[float] = field(factory=lambda: array("d"))
    prices: array[float] = field(factory=lambda: array("d"))
    probes: set[int] = field(factory=set)

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
    """The events in the finished files of subscribers, each of which is read once.

    Attributes:
        folder: of all subscribers.
        ids: of the events that each of them has got.
    """

    folder: Path
    ids: dict[str, set[int]] = field(factory=dict)
    _known: set[Path] = field(factory=set)

    def look(self) -> dict[str, set[int]]:
        """Read what is new; return `ids`."""
        for file in set(self.folder.glob("*/*.jsonl")) - self._known:
            new = (int(json.loads(line)["id"], 16) for line in file.read_text().splitlines())
            self.ids.setdefault(file.parent.name, set()).update(new)
            self._known.add(file)
        return self.ids


@define(eq=False)
class Live:
    """Six peers, each with a subscriber, and one more to everything.

    Attributes:
        folder: of all files.
        rotation: when subscribers begin a new file.
        prices: of the events that were published and acknowledged, by id.
        got, recorded: what the subscribers have, and the one to everything.
    """

    folder: Path
    shell: Shell
    fleet: Fleet
    rotation: tuple[str, str]
    prices: dict[int, float] = field(factory=dict)
    draws: random.Random = field(factory=lambda: random.Random(SEED))
    got: Received = field(init=False)
    recorded: Received = field(init=False)
    _parts: deque[list[int]] = field(factory=deque)

    def __attrs_post_init__(self) -> None:
        self.got, self.recorded = (Received(self.folder / name) for name in ("got", "published"))

    def threshold(self, subscriber: str) -> float:
        return 100.0 * (int(subscriber.removeprefix("peer")) - 1)

    @contextmanager
    def subscribers(self) -> Iterator[None]:
        """Subscribers that write files; each finishes its last one at the end."""
        words = [
            (name, f"price >= {self.threshold(Path(name).name)}", "got", Path(name).name)
            for name in self.fleet.names
        ]
        words.append((self.fleet.names[0], "price >= 0", "published", "record"))
        with ExitStack() as stack:
            for name, expression, into, called in words:
                sub = ("sub", "--folder", name, expression, "--into", into, "--as", called)
                process = self.shell.start(*sub, "--name", f"keep-{called}", *self.rotation)
                stack.callback(interrupted, process)
                wait_for_line(process, "subscribed")
            yield

    def settle(self) -> None:
        """Publish at all peers until a round of events has come to all subscribers."""
        rounds: list[set[int]] = []

        def is_settled() -> bool:
            text = json.dumps(PROBE) + "\n"
            told = [
                self.shell.ok("pub", "--folder", name, "--jsonl", "-", text=text)
                for name in self.fleet.names
            ]
            rounds.append({int(line.split()[1], 16) for one in told for line in one.splitlines()})
            got = [*self.got.look().values(), *self.recorded.look().values()]
            return len(got) == PEERS + 1 and any(all(one <= ids for ids in got) for one in rounds)

        wait_for(is_settled)

    def publish(self, events: int) -> None:
        """Publish so many events, a part once all but those of the one before have come."""
        for begin in range(0, events, PART):
            self._publish_at_once(min(PART, events - begin))
            wait_for(lambda: self.has_all_but(1))
        wait_for(lambda: self.has_all_but(0))

    def _publish_at_once(self, events: int) -> None:
        """Publish events at all peers at the same time, as fast as these take them."""
        running: list[tuple[subprocess.Popen[str], list[float], Path]] = []
        part = list[int]()
        for place, name in enumerate(self.fleet.names):
            count = events // PEERS + (place < events % PEERS)
            prices = [round(self.draws.uniform(0, DEAREST), 2) for _ in range(count)]
            file, told = self.folder / f"{place}.jsonl", self.folder / f"{place}.told"
            values = ({"symbol": "IBM", "price": price, "volume": 1} for price in prices)
            file.write_text("".join(f"{json.dumps(one)}\n" for one in values))
            with told.open("w") as out:
                words = ("pub", "--folder", name, "--jsonl", str(file))
                running.append((self.shell.start(*words, stdout=out), prices, told))
        for process, prices, told in running:
            _, errors = process.communicate(timeout=HUNG_S)
            assert process.returncode == 0, errors
            acknowledged = [line.split() for line in told.read_text().splitlines()]
            assert len(acknowledged) == len(prices)
            for number, text in acknowledged:
                event = int(text, 16)
                self.prices[event] = prices[int(number) - 1]
                part.append(event)
        self._parts.append(part)

    def expected(self, events: Iterable[int]) -> dict[str, set[int]]:
        """Those of some events that each subscriber is to get."""
        names = [Path(name).name for name in self.fleet.names]
        prices = [(event, self.prices[event]) for event in events]
        return {
            name: {event for event, price in prices if price >= self.threshold(name)}
            for name in names
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


def interrupted(process: subprocess.Popen[str]) -> None:
    """End a command as Ctrl-C does."""
    process.send_signal(signal.SIGINT)
    end(process)


@contextmanager
def six_peers(folder: Path, rotate_s: float) -> Iterator[Live]:
    """Six peers of one cluster, processes of this machine."""
    shell = Shell(folder)
    # With the job beside them, peers refuse events now and then, which are tried again.
    fleet = Fleet.make(
        shell,
        PEERS,
        discovery__multicast=False,
        delivery__acknowledge_s=60.0,
    )
    try:
        fleet.start(*fleet.names)
        trio.run(fleet.ready)
        yield Live(folder, shell, fleet, ("--rotate-s", f"{rotate_s:g}"))
    finally:
        fleet.stop()


def follow_and_kill(command: Sequence[str], out: Path, scratch: Path) -> None:
    """Follow the stream until two batches are whole, and end the job at once."""

    def batches() -> int:
        return len(list(out.glob("windows/batch=*/_SUCCESS")))

    enough = batches() + 2
    with start_spark_command(*command, TMPDIR=str(scratch)) as process:
        wait_for(lambda: process.poll() is not None or batches() >= enough)
        assert process.poll() is None, process.communicate()
        kill_group(process)


def kept_lines(out: Path) -> dict[str, list[npt.NDArray[np.uint64]]]:
    """The ids of the deliveries that were kept, by subscriber."""
    kept: dict[str, list[npt.NDArray[np.uint64]]] = {}
    for files in batches_of(LocalPlace(out), DELIVERIES).values():
        for file in files:
            table = pq.read_table(file.source(), columns=["subscriber", "id"])
            ids = np.array([int(one, 16) for one in table["id"].to_pylist()], np.uint64)
            names = table["subscriber"].to_numpy()
            for name in np.unique(names):
                kept.setdefault(str(name), []).append(ids[names == name])
    return kept


def windows_found(out: Path) -> dict[tuple[int, str], tuple[int, int]]:
    table = windows_of(LocalPlace(out))
    assert table is not None
    return {
        (round(row["begin"].timestamp()), row["subscriber"]): (row["due"], row["delivered"])
        for row in table.to_pylist()
    }


def windows_wanted(live: Live, got: Mapping[str, Lines]) -> dict[tuple[int, str], tuple[int, int]]:
    """The same by the files of subscribers, each event counted once."""
    recorded = lines_of(live.folder / "published")["record"]
    once = recorded.once()
    begins, prices, published = (
        np.array(column)[once] for column in (recorded.begins, recorded.prices, recorded.published)
    )
    due, delivered = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for name, lines in got.items():
        told = json.loads((live.folder / "got" / name / "subscription.json").read_text())
        is_due = (prices >= live.threshold(name)) & (published >= told["since"])
        for counts, windows in (
            (due, begins[is_due]),
            (delivered, np.array(lines.begins)[lines.once()]),
        ):
            for begin, count in zip(*np.unique(windows, return_counts=True), strict=True):
                counts[int(begin), name] = int(count)
    return {key: (due[key], delivered[key]) for key in due | delivered}


def test_counts_of_live_peers_are_exact_though_the_job_is_killed_twice(
    tmp_path: Path, draws: Draws
) -> None:
    wished = len(draws.numbers(EVENTS))
    got, published, out, scratch = (
        tmp_path / name for name in ("got", "published", "out", "scratch")
    )
    scratch.mkdir()
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
        done = run_spark_command(*command, "--once")
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
        assert windows_found(out) == windows_wanted(live, lines)
        written = sum(len(one.ids) for one in lines.values())
        told = f"{wished:,} events of {PEERS} peers, {sum(map(len, wanted.values())):,} deliveries"
        print(
            f"seed {SEED}: {told}, {written - sum(len(one.once()) for one in lines.values()):,} of "
            f"them written twice; {len(batches_of(LocalPlace(out), DELIVERIES))} batches, killed "
            f"{KILLS} times; published and delivered in {delivered_s:.0f} s, job included"
        )
