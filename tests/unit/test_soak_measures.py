"""What a soak is judged by finds what it is to find: leaks, and lines that repeat too often."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from gossamer.node.monitoring.logs import MORE
from support.node_processes import next_line, say
from support.soak_measures import (
    GROWTH_BYTES,
    LEAST_SAMPLES,
    SLOPE_BYTES,
    Sample,
    Trend,
    more_descriptors,
    runs_of,
    sample_of,
    times_of,
    too_often,
    trend,
)

# Takes a line, keeps so many bytes and opens so many descriptors, and answers.
LEAKING = """
import os, sys
kept = []
for line in sys.stdin:
    size, descriptors = map(int, line.split())
    made = b"x" * max(size, 1 << 20)
    if size:
        kept.append(made)
    for _ in range(descriptors):
        os.dup(0)
    del made
    print("done", flush=True)
"""
WARM_UP_S = 20.0
TICKS = 60
TICK_S = 2.0


def watched(leaked_bytes: int, leaked_descriptors: int) -> list[Sample]:
    """A process that leaks so much in each of its ticks, as if each took `TICK_S`."""
    pipes: dict[str, Any] = {
        "stdin": subprocess.PIPE,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.DEVNULL,
    }
    samples = []
    with subprocess.Popen([sys.executable, "-c", LEAKING], text=True, **pipes) as process:
        for tick in range(TICKS):
            say(process, f"{leaked_bytes} {leaked_descriptors}\n")
            assert next_line(process)
            found = sample_of(process.pid, tick * TICK_S)
            assert found is not None
            samples.append(found)
        process.communicate()
    return samples


def made_up(minutes: float, slope: float, noise: int, seed: int, every_s: float = 5.0) -> Any:
    """Samples of a process that fills its tables first, and grows by ``slope`` bytes a minute."""
    draws = random.Random(seed)
    print(f"seed {seed}")
    times = [number * every_s for number in range(int(60 * minutes / every_s))]
    grown = [60e6 - 20e6 * 0.7**at + slope * at / 60 + draws.uniform(-noise, noise) for at in times]
    return [Sample(at, int(private)) for at, private in zip(times, grown, strict=True)]


def a_trend(samples: list[Sample], warm_up_s: float, steps: Sequence[float] = ()) -> Trend:
    found = trend(samples, warm_up_s, steps)
    assert found is not None
    return found


@pytest.mark.parametrize("leaked", [0, 1 << 20])
def test_a_process_that_keeps_nothing_is_flat_and_one_that_leaks_is_not(leaked: int) -> None:
    samples = watched(leaked, 0)
    found = a_trend(samples, WARM_UP_S)
    assert found.is_flat == (not leaked)
    assert not leaked or found.slope == pytest.approx(leaked * 60 / TICK_S, rel=0.1)
    assert more_descriptors(samples[0].descriptors, samples[-1].descriptors, room=0) == []


def test_leaked_descriptors_are_named() -> None:
    samples = watched(0, 1)
    (kind,) = more_descriptors(samples[0].descriptors, samples[-1].descriptors, room=5)
    assert kind == f"pipe: {TICKS + 2}, were 3"


def test_sockets_have_room_and_nothing_else_has() -> None:
    before = {"socket": 10, "file": 3}
    assert more_descriptors(before, {"socket": 15, "file": 3}, room=5) == []
    assert more_descriptors(before, {"socket": 16, "file": 2}, room=5) == ["socket: 16, were 10"]
    more = more_descriptors(before, {"file": 4, "pipe": 1}, room=5)
    assert more == ["file: 4, were 3", "pipe: 1, were 0"]


def test_a_process_that_is_ending_or_has_ended_is_none() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE, text=True) as process:
        assert next_line(process) == ""
        while (found := sample_of(process.pid, 0)) is not None:
            assert found.private > 0
    assert sample_of(process.pid, 0) is None


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_leak_is_found_in_half_an_hour(seed: int) -> None:
    """Noise and the filling of tables are none."""
    assert a_trend(made_up(30, 0, GROWTH_BYTES // 4, seed), WARM_UP_S).is_flat
    found = a_trend(made_up(30, 1.2 * SLOPE_BYTES, GROWTH_BYTES // 8, seed), WARM_UP_S)
    assert not found.is_flat
    assert found.slope == pytest.approx(1.2 * SLOPE_BYTES, rel=0.1)


def test_a_leak_is_told_by_growth_where_it_was_watched_for_too_short_for_a_slope() -> None:
    for growth, is_flat in ((8 * GROWTH_BYTES, False), (2 * SLOPE_BYTES, True)):
        assert a_trend(made_up(1, growth, 0, 1, every_s=1.0), WARM_UP_S).is_flat is is_flat


def test_too_few_samples_say_nothing() -> None:
    assert trend([], 0) is None
    warm = [Sample(WARM_UP_S + number, 1) for number in range(LEAST_SAMPLES - 1)]
    assert trend([Sample(0.0, 1), *warm], WARM_UP_S) is None
    assert trend([Sample(0.0, 1), *warm, Sample(99.0, 1)], WARM_UP_S) is not None


def test_a_step_that_was_expected_begins_the_warm_up_anew() -> None:
    samples = [Sample(at, (100 << 20) if at >= 100 else (50 << 20)) for at in range(0, 200, 2)]
    for steps, is_flat in (((), False), ((100.0,), True), ((99.0, 500.0), True), ((20.0,), False)):
        assert a_trend(samples, WARM_UP_S, steps).is_flat == is_flat
    assert trend(samples, WARM_UP_S, [190.0]) is None


def line(event: str, at: float, level: str = "warning", **fields: Any) -> dict[str, Any]:
    when = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
    return {"event": event, "level": level, "timestamp": when, **fields}


CUT = [line("cut", at, cause="flood") for at in (0, 4, 10, 20, 30)]


@pytest.mark.parametrize(
    ("allowed", "more", "event_lines", "told"),
    [
        pytest.param(
            [*CUT, line("cut", 31, cause="silent")],
            [line("cut", at, cause="flood") for at in (31, 32)],
            *(50, "cut flood: 3 times in 10 s, at most 2"),
            id="a warning, once in the interval and twice by a stopped node",
        ),
        pytest.param(
            [line("joined", at * 0.1, "info", peer=str(at)) for at in range(20)],
            [line("joined", 2.0, "info", peer="20")],
            *(10, "joined: 21 times in 10 s, at most 20"),
            id="an event, whatever its causes",
        ),
        pytest.param(
            [line(MORE, at, of="cut", cause="flood") for at in range(3)],
            [line(MORE, 3, of="cut", cause="flood")],
            *(50, f"{MORE} cut flood: 4 times in 10 s, at most 3"),
            id="what is told of repetitions",
        ),
    ],
)
def test_a_line_has_its_limit(
    allowed: list[Any], more: list[Any], event_lines: int, told: str
) -> None:
    assert too_often(allowed, 10, event_lines) == []
    assert too_often([*allowed, *more], 10, event_lines) == [told]


def test_a_log_is_read_by_runs_and_times_and_what_is_no_event_is_told() -> None:
    first = [line("peer listens", 5), line("cut", 7), line("cut", 8.5)]
    second = [line("peer listens", 9)]
    crash = "Traceback (most recent call last):"
    log = "\n".join([*map(json.dumps, first), crash, *map(json.dumps, second)])
    assert runs_of(log) == ([first, second], [crash])
    assert times_of("cut", log) == [7, 8.5]
