"""What a long run is measured by: memory and descriptors of processes, and lines of their logs."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any, Final

import attrs

from gossamer.node.monitoring.logs import MORE

# By how much the private memory of a warm process may have grown between the first and the last
# third of its samples: pages of an allocator that are in use now and then.
GROWTH_BYTES: Final = 3 << 20
# And how fast, where it was watched for long enough to tell a trend from noise.
SLOPE_BYTES: Final = 128 << 10  # a minute
SLOPE_FROM_S: Final = 600.0
# Fewer samples say nothing.
LEAST_SAMPLES: Final = 9
# In `repeat_s` a warning is written once. It may seem twice where the node was stopped between
# looking at its clock and writing.
TIMES: Final = 2
# How often repetitions are told of in that time: of a warning, of its event, and when one begins.
TIMES_TOLD: Final = 3


@attrs.frozen
class Sample:
    at: float  # seconds since 1970, as the lines of logs have it
    private: int  # bytes of memory that no other process shares
    descriptors: Mapping[str, int] = attrs.field(factory=dict)  # how many are open, by kind


def sample_of(pid: int, at: float) -> Sample | None:
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        descriptors = _descriptors(Path(f"/proc/{pid}/fd"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    # One that ended and was not waited for yet has no memory.
    return Sample(at, _private_bytes(rollup), descriptors) if rollup else None


def _private_bytes(rollup: str) -> int:
    fields = dict(line.split(":", 1) for line in rollup.splitlines()[1:])
    names = ("Private_Clean", "Private_Dirty", "Swap")
    return sum(int(fields[name].split()[0]) << 10 for name in names)


def _descriptors(folder: Path) -> dict[str, int]:
    kinds: Counter[str] = Counter()
    for one in folder.iterdir():
        try:
            target = os.readlink(one)
        except FileNotFoundError:
            continue  # closed meanwhile
        kinds["file" if target.startswith("/") else target.split(":")[0]] += 1
    return dict(kinds)


@attrs.frozen
class Trend:
    samples: int  # how many it is from
    seconds: float  # from the first to the last of them
    growth: float  # bytes between the medians of the first and the last third of them
    # Bytes a minute, the median of those between any two samples (after Theil and Sen).
    slope: float

    @property
    def is_flat(self) -> bool:
        """Whether neither bound is passed; that of the slope holds from `SLOPE_FROM_S` on."""
        is_slow = self.seconds < SLOPE_FROM_S or self.slope <= SLOPE_BYTES
        return self.growth <= GROWTH_BYTES and is_slow

    def __str__(self) -> str:
        return (
            f"{self.growth / 1024:+.0f} KiB in {self.seconds:.0f} s ({self.samples} samples), "
            f"{self.slope / 1024:+.1f} KiB a minute"
        )


def trend(samples: Sequence[Sample], warm_up_s: float, steps: Iterable[float] = ()) -> Trend | None:
    """How memory of a process went after the warm-up; None of too few samples.

    ``steps`` are when it was to take more memory, once each; it warms up anew after them.
    """
    if not samples:
        return None
    began, ended = samples[0].at, samples[-1].at
    began = max([began, *(step for step in steps if began <= step <= ended)])
    warm = [one for one in samples if one.at >= began + warm_up_s]
    if len(warm) < LEAST_SAMPLES:
        return None
    third = len(warm) // 3
    first, last = (median(one.private for one in part) for part in (warm[:third], warm[-third:]))
    slopes = [
        (later.private - one.private) / (later.at - one.at) for one, later in combinations(warm, 2)
    ]
    return Trend(len(warm), warm[-1].at - warm[0].at, last - first, 60 * median(slopes))


def times_of(event: str, log: str) -> list[float]:
    told = [line for run in runs_of(log)[0] for line in run if line["event"] == event]
    return [_time_of(line) for line in told]


def _time_of(line: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(line["timestamp"]).timestamp()


def more_descriptors(before: Mapping[str, int], now: Mapping[str, int], room: int) -> list[str]:
    """Kinds of which more are open than before; of sockets there may be ``room`` more.

    Sockets come and go with the links of the overlay; of all else there are as many as before.
    """
    rooms = {"socket": room}
    return [
        f"{kind}: {count}, were {before.get(kind, 0)}"
        for kind, count in now.items()
        if count > before.get(kind, 0) + rooms.get(kind, 0)
    ]


def runs_of(log: str, began: str = "peer listens") -> tuple[list[list[dict[str, Any]]], list[str]]:
    """The lines of a node's log by its runs, and those that are none: of a crash, or a library."""
    runs: list[list[dict[str, Any]]] = [[]]
    others = []
    for line in log.splitlines():
        if not line.startswith("{"):
            others.append(line)
            continue
        event = json.loads(line)
        if event["event"] == began:
            runs.append([])
        runs[-1].append(event)
    return [run for run in runs if run], others


def too_often(run: Iterable[Mapping[str, Any]], repeat_s: float, event_lines: int) -> list[str]:
    """What a node wrote more often than it may in ``repeat_s``, in one run.

    A warning of one cause and peer once, the count of its repetitions with it and once between;
    and any event ``event_lines`` times.
    """
    written: defaultdict[tuple[str, ...], list[float]] = defaultdict(list)
    limits: dict[tuple[str, ...], int] = {}
    for event in run:
        at = _time_of(event)
        name = str(event["event"])
        kind = (name, *(str(event.get(field, "")) for field in ("of", "cause", "peer")))
        if name == MORE:
            limits[kind] = TIMES_TOLD
        else:
            # An interval that the node counts in may begin anywhere in ours.
            limits[(name,)] = 2 * event_lines
            written[(name,)].append(at)
        if name != MORE and event["level"] in ("warning", "error"):
            limits[kind] = TIMES
        if kind in limits:
            written[kind].append(at)
    found = {kind: _most_within(times, repeat_s) for kind, times in written.items()}
    return [
        f"{' '.join(filter(None, kind))}: {count} times in {repeat_s:g} s, at most {limits[kind]}"
        for kind, count in found.items()
        if count > limits[kind]
    ]


def _most_within(times: Sequence[float], seconds: float) -> int:
    most = first = 0
    for number, at in enumerate(times):
        while at - times[first] >= seconds:
            first += 1
        most = max(most, number - first + 1)
    return most
