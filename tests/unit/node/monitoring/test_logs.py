"""Logs: readable, bounded, without secrets, and never the end of the process."""

from __future__ import annotations

import io
import itertools
import json
import logging
import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from gossamer.node.monitoring.logs import (
    HIDDEN,
    MORE,
    REPEATS_REMEMBERED,
    Repetitions,
    configure_logs,
    log,
)

SECRET = "a3" * 32
TOKEN = "gossamer1-" + "abcdefgh234567" * 8


class Logs:
    """Logs written to memory, with a clock that tests set."""

    def __init__(self, **options: Any) -> None:
        self.stream = io.StringIO()
        self.now = 0.0
        options |= {"stream": self.stream, "clock": lambda: self.now}
        self.repetitions: Repetitions = configure_logs(**options)
        self.log = log

    def text(self) -> str:
        return self.stream.getvalue()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text().splitlines()]


@pytest.fixture(autouse=True)
def restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    yield
    root.handlers[:], root.level = before


def test_a_program_gets_json_lines_from_the_level_on() -> None:
    logs = Logs(name="peer1", level="warning")
    logs.log.info("chatter")
    logs.log.error("peer joined", peer="00ab", links=3)
    (event,) = logs.events()
    assert event.pop("timestamp").endswith("Z")
    said = {"event": "peer joined", "level": "error", "peer": "00ab", "links": 3}
    assert event == said | {"node": "peer1"}


def test_people_get_key_value_text_and_a_terminal_is_recognised() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    logs = Logs(format="text")
    logs.log.info("peer joined", peer="00ab", says='a "b"')
    assert logs.text().endswith("Z info    peer joined peer=00ab says='a \"b\"'\n")
    logs = Logs(format="text", name="peer1")
    logs.log.info("ready")
    assert logs.text().endswith("info    [peer1] ready\n")
    terminal = Terminal()
    configure_logs(stream=terminal)
    log.info("up")
    assert terminal.getvalue().endswith(" info    up\n")


@pytest.mark.parametrize("format", ["json", "text"])
def test_no_secret_is_written_whoever_logs_it_and_endless_values_are_cut(format: str) -> None:
    endless: list[Any] = []
    endless.append(endless)
    logs = Logs(format=format)
    logs.log.info("hello", peer="0123456789abcdef", cluster="ab" * 16, path="/var/lib/" + "d" * 60)
    logs.log.info("odd", value=endless)
    assert HIDDEN not in logs.text(), "public keys and clusters are no secret"
    assert "nested too deeply" in logs.text()
    logs.log.info(
        "all at once",
        token="abc-secret",
        private_key="abc-secret",
        join_secret=["abc-secret"],
        raw=bytes.fromhex(SECRET),
        text=f"it is {SECRET}",
        invitation=f"use {TOKEN} now",
        nested={"api_token": "abc-secret", "deep": [{"note": TOKEN}]},
        pasted="-----BEGIN PRIVATE KEY-----\nabc-secret\n-----END PRIVATE KEY-----",
    )
    try:
        raise ValueError(f"no good: {TOKEN}")
    except ValueError:
        logs.log.exception("failed")
    logging.getLogger("library").warning("token is %s", TOKEN)
    for secret in ("abc-secret", SECRET, "abcdefgh234567"):
        assert secret not in logs.text()
    assert logs.text().count(HIDDEN) >= 8
    assert "(32 bytes)" in logs.text()


def test_a_repeated_warning_is_counted_and_told_with_the_next() -> None:
    """Warnings of other peers and causes are others; information is written as it comes."""
    logs = Logs(repeat_s=60)
    for second in range(61):
        logs.now = float(second)
        logs.log.warning("bad frame", peer="1", size=second)
    first, again = logs.events()
    assert "more_like_this" not in first
    assert again["more_like_this"] == 59
    logs = Logs(event_lines=5)
    for peer in ("1", "2"):
        for cause in ("flood", "silent"):
            for _ in range(5):
                logs.log.warning("cut", peer=peer, cause=cause)
    assert len(logs.events()) == 4
    for _ in range(5):
        logs.log.info("peer joined")
    assert len(logs.events()) == 4 + 5


@pytest.mark.parametrize("level", ["info", "warning", "error"])
def test_an_event_with_ever_new_causes_is_cut_at_the_limit_and_counted(level: str) -> None:
    """Without it a stranger whose every attempt is logged with another cause fills the disk."""
    logs = Logs(repeat_s=60, event_lines=10)
    for number in range(1000):
        logs.now = number * 0.05
        getattr(logs.log, level)("refused", cause=f"port {number}")
    assert len(logs.events()) == 10
    logs.log.info("something else")
    logs.repetitions.flush()
    *_, other, told = logs.events()
    assert other["event"] == "something else"
    assert (told["event"], told["of"], told["count"]) == (MORE, "refused", 990)


def test_after_the_interval_an_event_is_written_again_and_what_was_left_out_is_told() -> None:
    logs = Logs(repeat_s=60, event_lines=3)
    for second in range(120):
        logs.now = float(second)
        logs.log.info("peer joined", peer=str(second))
    written = [event["peer"] for event in logs.events() if event["event"] == "peer joined"]
    told = [event["count"] for event in logs.events() if event["event"] == MORE]
    assert (written, told) == (["0", "1", "2", "60", "61", "62"], [57])
    logs.repetitions.flush()
    assert logs.events()[-1]["count"] == 57


@pytest.mark.parametrize("seed", range(5))
def test_each_line_is_either_written_or_told_of_once(seed: int) -> None:
    """Whatever mixture comes, against counts; no interval has more lines than it may."""
    draws, sent = random.Random(seed), 0
    logs = Logs(repeat_s=60, event_lines=8)
    for _ in range(3000):
        logs.now += draws.expovariate(5)
        say = draws.choice([logs.log.info, logs.log.warning])
        say(draws.choice("ab"), cause=str(draws.randrange(6)), at=logs.now)
        sent += 1
        if draws.random() < 0.001:
            logs.repetitions.flush()
    logs.repetitions.flush()
    events = logs.events()
    written = [event for event in events if event["event"] != MORE]
    told = sum(event.get("count", 0) + event.get("more_like_this", 0) for event in events)
    assert len(written) + told == sent
    for name in "ab":
        times = [event["at"] for event in written if event["event"] == name]
        within = [sum(at <= one < at + 60 for one in times) for at in times]
        assert max(within) <= 2 * 8
    warned: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in written:
        if event["level"] == "warning":
            warned[event["event"], event["cause"]].append(event["at"])
    for times in warned.values():
        assert all(later - one >= 60 for one, later in itertools.pairwise(times))


@pytest.mark.parametrize(("repeat_s", "written"), [(0, 5), (60, 1)])
def test_at_the_end_what_was_left_out_is_told(repeat_s: float, written: int) -> None:
    logs = Logs(repeat_s=repeat_s, event_lines=1)
    for _ in range(5):
        logs.log.warning("cut", cause="flood")
    assert len(logs.events()) == written
    logs.repetitions.flush()
    logs.repetitions.flush()
    told = [
        (one["event"], one["of"], one["cause"], one["count"]) for one in logs.events()[written:]
    ]
    assert told == [(MORE, "cut", "flood", 4)][: written < 5]


def test_the_memory_of_repetitions_is_bounded_and_loses_no_count() -> None:
    logs = Logs(event_lines=1000)
    for peer in range(2 * REPEATS_REMEMBERED):
        for _ in range(3):
            logs.log.warning("cut", peer=str(peer))
    assert len(logs.repetitions._seen) == REPEATS_REMEMBERED
    logs.repetitions.flush()
    told = [event["count"] for event in logs.events() if event["event"] == MORE]
    assert sum(told) == 2 * 2 * REPEATS_REMEMBERED


def test_libraries_are_heard_even_when_they_log_nonsense() -> None:
    logs = Logs()
    logging.getLogger("someone").warning("%d packets", 3)
    logging.getLogger("someone").info("chatter %d", "three")
    assert {event["library"] for event in logs.events()} == {"someone"}
    assert [event["cause"] for event in logs.events()] == ["3 packets", "chatter %d"]


def test_a_full_disk_costs_the_line_and_not_the_process() -> None:
    class FullDisk(io.StringIO):
        attempts = 0

        def write(self, _: str) -> int:
            self.attempts += 1
            raise OSError(28, "No space left on device")

    disk = FullDisk()
    configure_logs(stream=disk)
    log.error("disk full")
    assert disk.attempts == 1
