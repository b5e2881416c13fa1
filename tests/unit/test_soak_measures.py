"""What a soak is judged by finds what it is to find: leaks, and lines that repeat too often."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from gossamer.node.monitoring.logs import MORE
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


@contextmanager
def a_process() -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", LEAKING],
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def watched(leaked_bytes: int, leaked_descriptors: int) -> list[Sample]:
    """A process that leaks so much in each of its ticks, as if each took `TICK_S`."""
    with a_process() as process:
        assert process.stdin is not None
        assert process.stdout is not None
        samples = []
        for tick in range(TICKS):
            process.stdin.write(f"{leaked_bytes} {leaked_descriptors}\n")
            process.stdin.flush()
            assert process.stdout.readline()
            found = sample_of(process.pid, tick * TICK_S)
            assert found is not None
            samples.append(found)
    return samples


def made_up(minutes: float, slope: float, noise: int, seed: int, every_s: float = 5.0) -> Any:
    """Samples of a process that fills its tables first, and grows by ``slope`` bytes a minute."""
    draws = random.Random(seed)
    print(f"seed {seed}")
    return [
        Sample(
            at,
            int(60e6 - 20e6 * 0.7**at + slope * at / 60 + draws.uniform(-noise, noise)),
        )
        for at in (number * every_s for number in range(int(60 * minutes / every_s)))
    ]


def a_trend(samples: list[Sample], warm_up_s: float, steps: Sequence[float] = ()) -> Trend:
    found = trend(samples, warm_up_s, steps)
    assert found is not None
    return found


def test_a_process_that_keeps_nothing_is_flat() -> None:
    samples = watched(0, 0)
    assert a_trend(samples, WARM_UP_S).is_flat
    assert more_descriptors(samples[0].descriptors, samples[-1].descriptors, room=0) == []


def test_a_process_that_leaks_is_not() -> None:
    found = a_trend(watched(1 << 20, 0), WARM_UP_S)
    assert not found.is_flat
    assert found.slope == pytest.approx((1 << 20) * 60 / TICK_S, rel=0.1)


def test_leaked_descriptors_are_named() -> None:
    samples = watched(0, 1)
    (kind,) = more_descriptors(samples[0].descriptors, samples[-1].descriptors, room=5)
    assert kind == f"pipe: {TICKS + 2}, were 3"


def test_sockets_have_room_and_nothing_else_has() -> None:
    before = {"socket": 10, "file": 3}
    assert more_descriptors(before, {"socket": 15, "file": 3}, room=5) == []
    assert more_descriptors(before, {"socket": 16, "file": 2}, room=5) == ["socket: 16, were 10"]
    assert more_descriptors(before, {"file": 4, "pipe": 1}, room=5) == [
        "file: 4, were 3",
        "pipe: 1, were 0",
    ]


def test_a_process_that_has_ended_is_none() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    assert sample_of(process.pid, 0) is None


def test_a_process_that_is_ending_is_none() -> None:
    with subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b""
        while (found := sample_of(process.pid, 0)) is not None:
            assert found.private > 0


@pytest.mark.parametrize("seed", range(5))
def test_noise_and_the_filling_of_tables_are_no_leak(seed: int) -> None:
    assert a_trend(made_up(30, 0, GROWTH_BYTES // 4, seed), WARM_UP_S).is_flat


@pytest.mark.parametrize("seed", range(5))
def test_a_slow_leak_is_found_in_half_an_hour(seed: int) -> None:
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


def test_a_warning_may_be_written_once_in_the_interval_and_twice_by_a_stopped_node() -> None:
    sound = [line("cut", at, cause="flood") for at in (0, 4, 10, 20, 30)]
    assert too_often(sound, 10, 50) == []
    assert too_often([*sound, line("cut", 31, cause="silent")], 10, 50) == []
    (said,) = too_often([*sound, *(line("cut", at, cause="flood") for at in (31, 32))], 10, 50)
    assert said == "cut flood: 3 times in 10 s, at most 2"


def test_an_event_has_its_limit_whatever_its_causes() -> None:
    many = [line("joined", at * 0.1, "info", peer=str(at)) for at in range(21)]
    assert too_often(many[:20], 10, 10) == []
    assert too_often(many, 10, 10) == ["joined: 21 times in 10 s, at most 20"]


def test_what_is_told_of_repetitions_has_its_limit_too() -> None:
    told = [line(MORE, at, of="cut", cause="flood") for at in range(4)]
    assert too_often(told[:3], 10, 50) == []
    assert too_often(told, 10, 50) == [f"{MORE} cut flood: 4 times in 10 s, at most 3"]


def test_a_log_says_when_something_was() -> None:
    lines = [line("peer listens", 5), line("cut", 7), line("cut", 8.5)]
    assert times_of("cut", "\n".join(map(json.dumps, lines))) == [7, 8.5]


def test_a_log_is_read_by_runs_and_what_is_no_event_is_told() -> None:
    first = [line("peer listens", 0), line("cut", 1)]
    second = [line("peer listens", 2)]
    lines = [json.dumps(one) for one in first]
    lines += ["Traceback (most recent call last):", *(json.dumps(one) for one in second)]
    assert runs_of("\n".join(lines)) == ([first, second], ["Traceback (most recent call last):"])
