"""The view of a cluster counts who answered, adds up what is wanted, and fits a terminal."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console

from gossamer.node.commands.cluster.cluster_picture import cluster_picture
from gossamer.node.commands.cluster.tables import short_text, span_text
from gossamer.node.monitoring.cluster import FIGURES, LISTED, SECTORS, Report, cluster_view


def member(number: int, state: str = "alive", version: str = "0.1.0") -> dict[str, Any]:
    return {
        "key": f"{number:016x}",
        "name": f"peer{number}",
        "addresses": [],
        "version": version,
        "state": state,
        "since": 0.0,
        "certificate_expires": None,
    }


def report(wanted: int = 0, **figures: float) -> tuple[Report, float]:
    return Report(figures=dict.fromkeys(FIGURES, 0.0) | figures, wanted=[wanted] * SECTORS), 1.0


def drawn(view: dict[str, Any]) -> str:
    console = Console(width=80, force_terminal=False)
    with console.capture() as said:
        console.print(cluster_picture(view))
    return said.get()


def test_who_did_not_answer_is_counted_and_listed_last() -> None:
    members = [member(0), member(1), member(2, "gone"), member(3, "suspect"), member(4)]
    told = {one["key"]: report(wanted=2) for one in (members[0], members[4])}
    view = cluster_view(members, told, asked=3)
    assert (view["known"], view["asked"], view["answered"]) == (4, 4, 2)
    assert view["states"] == {"alive": 3, "gone": 1, "suspect": 1}
    assert view["wanted"] == [4] * SECTORS
    assert [one["name"] for one in view["members"]][:3] == ["peer0", "peer4", "peer1"]
    said = drawn(view)
    assert "2 of 4 members answered (4 were asked)" in said
    assert said.count("no answer") == 1, "of one that is suspect or gone none is expected"


@pytest.mark.parametrize(
    ("figure", "value", "words"),
    [
        ("overloading", 1.0, "a flood of events"),
        ("late_rounds", 0.5, "late rounds"),
        ("queued_bytes", 4e6, "long queues"),
    ],
)
def test_who_is_overloaded_is_named(figure: str, value: float, words: str) -> None:
    members = [member(0), member(1)]
    told = {members[0]["key"]: report(), members[1]["key"]: report(**{figure: value})}  # type: ignore[arg-type]
    view = cluster_view(members, told, asked=1)
    assert view["overloaded"] == ["peer1"]
    said = drawn(view)
    assert "overloaded: peer1" in said
    assert words.split()[0] in said


def test_versions_are_a_column_where_there_are_several() -> None:
    members = [member(0), member(1, version="0.2.0")]
    told = {one["key"]: report() for one in members}
    assert "0.2.0" in drawn(cluster_view(members, told, 1)).splitlines()[-1]
    same = [member(0), member(1)]
    told = {one["key"]: report() for one in same}
    assert "0.1.0" not in drawn(cluster_view(same, told, 1)).splitlines()[-1]


def test_nothing_is_cut_off_in_eighty_columns() -> None:
    figures = dict.fromkeys(FIGURES, 123_456.0) | {
        "position": 0.99,
        "late_rounds": 0.0,
        "overloading": 0.0,
        "queued_bytes": 123_456.0,
    }
    members = [member(number) for number in range(40)]
    told = {one["key"]: report(wanted=9, **figures) for one in members}
    said = drawn(cluster_view(members, told, 39))
    assert "\u2026" not in said
    assert "+" in said, "forty members at one place of the ring"


def test_a_view_is_bounded() -> None:
    members = [member(number) for number in range(1000)]
    told = {one["key"]: report() for one in members}
    view = cluster_view(members, told, 512)
    assert len(view["members"]) == LISTED
    assert view["known"] == view["answered"] == 1000
    assert "and 216 more" in drawn(view)


def test_numbers_are_short() -> None:
    assert [short_text(one) for one in (0, 0.148, 999, 12_700, 4e6)] == [
        *("0", "0.148", "999", "12.7k", "4M")
    ]
    assert [span_text(one) for one in (7, 150, 8000, 200_000)] == ["7 s", "2 min", "2 h", "2 d"]
