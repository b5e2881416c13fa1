"""The speed of a replay: the highest at which the machine keeps up in a rehearsal."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from gossamer.replay import playing
from gossamer.replay.controller import Played
from gossamer.replay.plan import Plan
from gossamer.replay.playing import HALVINGS, REHEARSED, choose_speed, rehearse, warn_of_speed
from gossamer.replay.recorder import Recorder
from support.replays import short_plan

FASTEST = 600.0


def keep_up_at(most: float, monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    """Let rehearsals find all rounds late at a higher speed; the speeds and rounds that were."""
    tried: list[tuple[float, int]] = []

    def play(plan: Plan, speed: float, *_: Any) -> Played:
        tried.append((speed, plan.rounds))
        assert all(step.time_s < plan.rounds * plan.scenario.round_s for step in plan.steps)
        recorder = Recorder(lambda at: at, plan.scenario.round_s)
        for cycle in range(plan.rounds):
            # While peers still join, late rounds say nothing.
            late = 10 if speed > most or cycle < REHEARSED // 2 else 0
            recorder.tallies[cycle] = Counter(rounds=10, rounds_late=late)
        return Played(recorder, plan.rounds, interrupted=False, deaths=0)

    monkeypatch.setattr(playing, "play", play)
    return tried


def unseen(*_: Any) -> None:
    """For those who show no progress."""


@pytest.mark.parametrize(
    ("most", "speeds"),
    [(600, [600.0]), (200, [600.0, 300.0, 150.0]), (0, [600 / 2**k for k in range(HALVINGS)])],
)
def test_the_speed_is_the_highest_at_which_rounds_begin_in_time(
    tmp_path: Path,
    most: float,
    speeds: list[float],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tried = keep_up_at(most, monkeypatch)
    found = choose_speed(short_plan(tmp_path, REHEARSED + 6), FASTEST, 2, unseen)
    assert tried == [(speed, REHEARSED) for speed in speeds]
    assert found == (speeds[-1] if most else speeds[-1] / 2)
    said = capsys.readouterr().err
    assert f"speed {found:g}\n" in said
    assert said.count("100% of the rounds of a rehearsal began late") == len(speeds) - bool(most)


def test_a_speed_that_was_asked_for_is_said_to_be_too_high_before_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep_up_at(100, monkeypatch)
    plan = short_plan(tmp_path, REHEARSED + 6)
    assert warn_of_speed(plan, 100, 2, unseen)
    assert capsys.readouterr().err == ""
    assert warn_of_speed(plan, 101, 2, unseen)
    said = capsys.readouterr().err
    assert "too slow for so many peers at speed 101: 100% of the rounds" in said
    assert "without --speed the highest is found" in said


def test_what_is_as_short_as_a_rehearsal_is_not_rehearsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = keep_up_at(0, monkeypatch)
    assert rehearse(short_plan(tmp_path, REHEARSED), FASTEST, 2, unseen) == 0.0
    assert tried == []
